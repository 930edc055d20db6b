"""`fila schedule`: where a payload comes from, and when it is due."""

from __future__ import annotations

import pytest

from fila.v1 import schedule_pb2
from tests.cli.fake_broker import FakeBroker


@pytest.mark.parametrize(
    ("given", "payload"),
    [((), b""), (("--payload", "text"), b"text"), (("--payload", "-"), b"from \xff a pipe")],
)
def test_a_payload_is_text_or_comes_from_stdin(fila, broker: FakeBroker, given, payload):
    made: list[schedule_pb2.CreateScheduleRequest] = []

    def create(request: schedule_pb2.CreateScheduleRequest) -> schedule_pb2.CreateScheduleResponse:
        made.append(request)
        return schedule_pb2.CreateScheduleResponse()

    broker.answers["CreateSchedule"] = create
    ran = fila(
        "schedule", "create", "daily", "--queue", "q", "--every", "5m", *given, stdin=b"from \xff a pipe"
    )

    assert ran.code == 0, ran.err
    assert made[0].settings.payload == payload


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--every", "0s"), "--every must be at least 1s"),
        (("--cron", ""), "--cron is empty; give five fields, such as '0 9 * * 1-5'"),
        (("--cron", "* * * * *", "--every", "1s"), "--cron and --every say the same thing; give one"),
        ((), "give --cron '0 9 * * 1-5' or --every 5m"),
    ],
)
def test_no_rhythm_and_two_are_refused_in_the_words_of_the_command(fila, broker: FakeBroker, given, said):
    ran = fila("schedule", "create", "daily", "--queue", "q", *given)
    assert (ran.code, said in ran.err) == (2, True), ran.err
