"""`fila schedule`: where a payload comes from."""

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
