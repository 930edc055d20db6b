"""Which copy an operator may choose where a log lost its end."""

from __future__ import annotations

import pytest

from fila_server import errors
from fila_server.cluster.command_line import copies
from fila_server.cluster.reports import Report
from fila_server.cluster.reseeding import Held, judged
from fila_server.config.kinds import Address
from fila_server.telemetry.group import HALTED, OWNER, STANDBY


def held(name: str, position: int, role: str = HALTED, **more) -> Held:
    report = Report(
        1, name, position, False, 0, role=role, owns=role == OWNER, record_ms=1_764_000_000_000, **more
    )
    return Held(Address("10.0.0.1:5556"), report)


FIRST, SECOND = held("fila-1", 90), held("fila-2", 80)
SILENT = Held(Address("10.0.0.3:5556"), None)


def test_the_copy_that_holds_most_raises_no_doubt():
    assert judged([FIRST, SECOND], "fila-1") == (FIRST, [])
    later = held("fila-2", 5, incarnation=7)
    assert judged([FIRST, later], "fila-2") == (later, [])


@pytest.mark.parametrize(
    ("nodes", "chosen", "doubt"),
    [
        ([FIRST, SECOND], "fila-2", "fila-1 holds more: up to offset 90"),
        ([FIRST, SILENT], "fila-1", "10.0.0.3:5556 does not answer, and may hold more"),
        (
            [FIRST, held("fila-2", 9, OWNER)],
            "fila-1",
            "fila-2 serves the group: what it holds alone would be gone",
        ),
        ([held("fila-1", 90, STANDBY)], "fila-1", "no node is halted: one of them takes over by itself"),
    ],
)
def test_a_choice_that_may_lose_something_is_doubted(nodes, chosen, doubt):
    assert judged(nodes, chosen)[1] == [doubt]


@pytest.mark.parametrize(
    ("nodes", "chosen", "said"),
    [
        ([FIRST, SILENT], "fila-3", "no node that answers is named fila-3; those that do: fila-1"),
        ([held("fila-1", -1)], "fila-1", "fila-1 has no copy"),
        ([held("fila-1", 9, OWNER)], "fila-1", "fila-1 serves the group: there is nothing to reseed"),
    ],
)
def test_a_node_that_cannot_be_chosen_is_told(nodes, chosen, said):
    with pytest.raises(errors.StartError, match=said):
        judged(nodes, chosen)


def test_what_each_holds_is_a_line():
    lacking = held("fila-1", 4711, lacks="the log lost its end")
    assert copies([lacking, held("fila-2", -1), SILENT]) == [
        "fila-1: halted, up to offset 4,711 of 2025-11-24 16:00:00 UTC. the log lost its end",
        "fila-2: no copy",
        "10.0.0.3:5556: it does not answer",
    ]
