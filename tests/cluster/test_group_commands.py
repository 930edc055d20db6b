"""What an owner says to operators of a group before it does anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fila_server import errors
from fila_server.operations.group_commands import named, raised_format, removable, successor
from fila_server.telemetry.group import GONE, HALTED, OWNER, STANDBY, GroupStatus, NodeStatus

OWN = NodeStatus("10.0.0.1:5556", "fila-1", 1, OWNER, position=9)
READY = NodeStatus("10.0.0.2:5556", "fila-2", 2, STANDBY, position=8)
FURTHER = NodeStatus("10.0.0.3:5556", "fila-3", 3, STANDBY, position=9)
BEHIND = NodeStatus("10.0.0.2:5556", "fila-2", 2, STANDBY, lacks="the log is not read to its end")
HALTS = NodeStatus("10.0.0.3:5556", "fila-3", 3, HALTED, lacks="the log lost its end")
SILENT = NodeStatus("10.0.0.2:5556", "fila-2", 2, GONE, lacks="it answers no probe")
UNKNOWN = NodeStatus("10.0.0.3:5556")


def group(*others: NodeStatus) -> GroupStatus:
    return GroupStatus("orders", (OWN, *others))


def test_the_standby_that_has_read_most_takes_over_or_the_one_that_is_named():
    assert successor(group(READY, FURTHER)) is FURTHER
    assert successor(group(READY, FURTHER), "fila-2") is READY
    assert successor(group(BEHIND, FURTHER)) is FURTHER


@pytest.mark.parametrize(
    ("others", "name", "said"),
    [
        ((READY,), "fila-1", "fila-1 cannot take over: it serves already"),
        ((BEHIND, FURTHER), "fila-2", "fila-2 cannot take over: the log is not read to its end"),
        ((SILENT, FURTHER), "fila-2", "fila-2 cannot take over: it answers no probe"),
        ((), "", "no standby can take over. The group has no other node"),
        (
            (SILENT, HALTS),
            "",
            "no standby can take over. fila-2: it answers no probe; fila-3: the log lost its end",
        ),
        ((UNKNOWN,), "", "no standby can take over. 10.0.0.3:5556: it has never answered"),
    ],
)
def test_a_node_that_would_not_take_over_is_told_with_what_it_lacks(others, name, said):
    with pytest.raises(errors.Conflict, match=said):
        successor(group(*others), name)


def test_a_node_that_nobody_knows_is_told_with_those_that_there_are():
    with pytest.raises(errors.NotFound, match=r'"fila-7"; there are fila-1, fila-2$'):
        named(group(READY, UNKNOWN), "fila-7")


def test_a_node_that_is_gone_is_removed_by_its_name_or_by_its_address():
    assert removable(group(SILENT, UNKNOWN), "fila-2") is SILENT
    assert removable(group(SILENT, UNKNOWN), "10.0.0.2:5556") is SILENT
    assert removable(group(SILENT, UNKNOWN), "10.0.0.3:5556") is UNKNOWN


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fila-1", "^fila-1 serves the group. Only a node that is gone for good can be removed$"),
        ("10.0.0.1:5556", "^10.0.0.1:5556 serves the group"),
        ("fila-2", "^fila-2 answers: it is standby. Stop it for good first"),
        ("fila-3", "^fila-3 answers: it is halted. Stop it for good first"),
    ],
)
def test_a_node_that_serves_or_answers_is_not_removed(name, said):
    with pytest.raises(errors.Conflict, match=said):
        removable(group(BEHIND, HALTS), name)


@pytest.mark.parametrize("name", ["", "fila-7", "10.0.0.7:5556"])
def test_who_is_not_known_is_not_removed(name):
    with pytest.raises(errors.NotFound, match=f'named "{name}"; there are fila-1, fila-2$'):
        removable(group(READY, UNKNOWN), name)


def reads(node: NodeStatus, log_format: int) -> NodeStatus:
    return replace(node, log_format=log_format, version="0.2.0")


def upgraded(*others: NodeStatus) -> GroupStatus:
    return GroupStatus("orders", (reads(OWN, 2), *others), written_format=1)


def test_the_newest_format_that_all_nodes_read_is_what_the_group_is_to_write():
    assert raised_format(upgraded(reads(READY, 2), reads(HALTS, 2))) == 2
    assert raised_format(upgraded()) == 2


@pytest.mark.parametrize(
    ("others", "said"),
    [
        (
            (reads(READY, 1),),
            "^fila-2 reads the log up to format 1, and is Fila 0.2.0: upgrade it first. The group",
        ),
        ((reads(READY, 2), reads(HALTS, 1)), "^fila-3 reads the log up to format 1"),
        ((reads(READY, 3),), "^fila-1 reads the log up to format 2"),
        ((reads(SILENT, 2),), "^fila-2 does not answer, and may not read format 2. Start it, or remove it"),
        ((reads(READY, 2), UNKNOWN), "^10.0.0.3:5556 does not answer"),
    ],
)
def test_a_node_that_reads_less_or_does_not_answer_keeps_the_format_as_it_is(others, said):
    with pytest.raises(errors.Conflict, match=said):
        raised_format(upgraded(*others))
