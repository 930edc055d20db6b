"""Which format a group writes: a copy reads no further than its note says, and the note comes first."""

from __future__ import annotations

import pytest

from fila_server import errors
from fila_server.cluster import written
from fila_server.cluster.written import NOTE, Note, WrittenFormat
from fila_server.core.runtime.store_copy import BIDS, FOLLOWS, HALTS, OWNS
from tests.core.driven_engine import MS
from tests.core.driven_group import Group, Node


@pytest.fixture
def group():
    made = Group()
    yield made
    for node in made.nodes:
        node.remove()


@pytest.fixture
def newer(monkeypatch):
    """A build that reads one format more."""
    monkeypatch.setattr(written, "READS", 2)


def bid(node: Node, log_format: int, nonce: int = 7) -> None:
    while node.follow():
        pass
    assert node.copy.bid(nonce, node.clock.wall_ns // MS, log_format=log_format)
    node.end.turn(node.clock.now_ms, 999)


def test_a_group_writes_the_first_format_until_it_is_raised(tmp_path):
    assert WrittenFormat(tmp_path).format == 1
    assert not (tmp_path / NOTE).exists()


def test_a_build_that_is_too_old_halts_at_the_takeover_and_says_so(group, tmp_path):
    owner, node = group.node(), group.node()
    bid(owner, 2)
    while node.follow():
        pass
    assert node.copy.state == HALTS
    assert "writes a newer format: upgrade this version" in node.copy.why
    known = WrittenFormat(tmp_path)
    assert not known.goes_on(node.copy)
    assert (known.format, node.copy.state) == (1, HALTS)


def test_a_build_that_reads_it_notes_it_and_reads_on(group, tmp_path, newer):
    owner, node = group.node(), group.node()
    bid(owner, 2)
    while node.follow():
        pass
    position = node.copy.position
    known = WrittenFormat(tmp_path)
    assert known.goes_on(node.copy)
    assert node.copy.state == FOLLOWS
    assert node.copy.position == position, "the note is there before anything of that format is taken"
    assert WrittenFormat(tmp_path).format == 2
    while node.follow():
        pass
    assert node.copy.term == (position + 1, 7)


def test_a_node_owns_by_the_takeover_that_raises_its_group(group, tmp_path, newer):
    node = group.node()
    bid(node, 2)
    while node.follow():
        pass
    known = WrittenFormat(tmp_path)
    assert node.copy.state == HALTS
    assert known.goes_on(node.copy)
    assert node.copy.state == BIDS
    while node.copy.state == BIDS:
        assert node.follow()
    assert node.copy.state == OWNS


def test_a_takeover_that_another_nodes_came_before_raises_nothing(group, tmp_path, newer):
    first, second = group.node(), group.node()
    while second.follow():
        pass
    bid(first, 1, nonce=5)
    assert second.copy.bid(7, second.clock.wall_ns // MS, log_format=2)
    second.end.turn(second.clock.now_ms, 999)
    while second.follow():
        pass
    assert second.copy.state == FOLLOWS
    assert second.copy.term[1] == 5
    assert not WrittenFormat(tmp_path).goes_on(second.copy)
    assert WrittenFormat(tmp_path).format == 1


def test_who_lost_against_a_newer_format_follows(group, tmp_path, newer):
    first, second = group.node(), group.node()
    while second.follow():
        pass
    bid(first, 2, nonce=5)
    assert second.copy.bid(7, second.clock.wall_ns // MS, log_format=1)
    second.end.turn(second.clock.now_ms, 999)
    while second.follow():
        pass
    assert WrittenFormat(tmp_path).goes_on(second.copy)
    while second.follow():
        pass
    assert (second.copy.state, second.copy.term[1]) == (FOLLOWS, 5)


def test_a_build_that_does_not_read_what_a_copy_holds_does_not_open_it(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(written, "READS", 2)
        WrittenFormat(tmp_path).at_least(2)
    with pytest.raises(
        errors.StoreError, match="writes format 2 of the log, and this fila-server reads up to 1"
    ):
        WrittenFormat(tmp_path)
    (tmp_path / NOTE).write_text("{")
    with pytest.raises(errors.StoreError, match=f"{NOTE} cannot be read: .* takes another node's copy"):
        WrittenFormat(tmp_path)


def test_a_disk_that_takes_no_note_keeps_the_copy_where_it_is(group, tmp_path, newer):
    owner, node = group.node(), group.node()
    bid(owner, 2)
    while node.follow():
        pass
    known = WrittenFormat(tmp_path / "away")
    with pytest.raises(errors.StoreError, match="cannot be written: No such file"):
        known.goes_on(node.copy)
    assert (known.format, node.copy.state) == (1, HALTS)


def test_what_a_node_that_is_alone_is_to_write_outlasts_its_process(tmp_path, newer):
    WrittenFormat(tmp_path).want(2)
    known = WrittenFormat(tmp_path)
    assert (known.format, known.wanted) == (1, 2)
    known.at_least(2)
    assert (known.format, known.wanted) == (2, 0)
    known.forget()
    assert WrittenFormat(tmp_path).format == Note().format
