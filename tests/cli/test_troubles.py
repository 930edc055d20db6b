"""What is wrong is said first, in the broker's words, by every command that shows how things are."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fila.v1 import admin_pb2, events_pb2
from fila_cli.cockpit.cockpit import Cockpit
from fila_cli.cockpit.screen import render
from tests.cli.fake_broker import FakeBroker

NOBODY = events_pb2.Trouble(
    kind=events_pb2.Trouble.KIND_NOBODY_CONSUMES,
    text="Nobody has consumed exports for 3 min: 120 messages wait.",
    queue="exports",
    lever="Start a consumer",
    command="fila consumer list exports",
)
EVIL = events_pb2.Trouble(text="a\x1b[2J\u202e has been paused.", lever="Resume a\x1b[2J")
SAID = """\
Nobody has consumed exports for 3 min: 120 messages wait.
  Start a consumer: fila consumer list exports
a\\x1b[2J\\u202e has been paused.
  Resume a\\x1b[2J
and 2 more

"""


@pytest.fixture
def status(broker: FakeBroker) -> events_pb2.GetStatusResponse:
    answer = events_pb2.GetStatusResponse(troubles=[NOBODY, EVIL], more_troubles=2)
    broker.answers["GetStatus"] = answer
    return answer


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (("status",), {}),
        (("late",), {}),
        (("late", "exports"), {"queue": "exports"}),
        (("explain", "exports", "acme"), {"queue": "exports", "fairness_key": "acme"}),
        (("top", "--once", "--interval", "1ms"), {}),
        (("top", "exports", "--once", "--interval", "1ms"), {"queue": "exports"}),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("status")
def test_a_command_says_first_what_is_wrong(fila, broker: FakeBroker, words, asked):
    broker.answers["ListLate"] = events_pb2.ListLateResponse(keys=[events_pb2.LateKey(queue="q")])
    broker.answers["ListQueues"] = admin_pb2.ListQueuesResponse(queues=[admin_pb2.QueueInfo(name="q")])
    broker.answers["GetStats"] = admin_pb2.GetStatsResponse(
        per_key_stats=[admin_pb2.PerFairnessKeyStats(key="a", pending_count=1)]
    )

    ran = fila(*words)

    assert ran.code == 0
    assert ran.out.startswith(SAID)
    assert len(ran.out) > len(SAID), "and what it says besides"
    assert broker.request("GetStatus") == events_pb2.GetStatusRequest(**asked)


def test_that_all_is_well_is_said_as_the_broker_says_it(fila, broker: FakeBroker):
    broker.answers["GetStatus"] = events_pb2.GetStatusResponse(well="All is well, of what you may see.")

    assert fila("late").out == "All is well, of what you may see.\n"


def test_a_program_that_reads_the_list_is_not_told_sentences(fila, broker: FakeBroker):
    broker.answers["ListLate"] = events_pb2.ListLateResponse(waiting_keys=1)

    fila("late", "-o", "json")
    fila("explain", "exports", "acme", "-o", "json")

    assert "GetStatus" not in [name for name, _ in broker.asked]


def shown(cockpit: Cockpit, width: int) -> list[str]:
    out = io.StringIO()
    picture = render(cockpit, address="a", clock="12:00:00", now_s=0.0, width=width, height=24)
    Console(file=out, width=width, height=24).print(picture)
    return out.getvalue().splitlines()


def test_the_cockpits_second_line_is_the_worst_and_its_third_the_lever(status):
    cockpit = Cockpit()
    cockpit.take(cockpit.look, admin_pb2.ListQueuesResponse(), 0.0)
    cockpit.status = status

    lines = shown(cockpit, 120)
    assert lines[1].rstrip() == f"{NOBODY.text} And 3 more: fila status"
    assert lines[2].rstrip() == "  Start a consumer: fila consumer list exports"
    assert shown(cockpit, 40)[1].rstrip() == "Nobody has consumed exports for 3 min: …"
    cockpit.status = events_pb2.GetStatusResponse(well="All is well.")
    assert shown(cockpit, 40)[1].rstrip() == "All is well."
