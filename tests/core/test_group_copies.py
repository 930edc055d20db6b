"""A copy as other nodes take it: a checkpoint, up to where it is on the disk, and a log whose beginning is gone."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from fila_server import errors
from fila_server.core.runtime.store_copy import BEGINS_LATER, FOLLOWS, HALTS, LOW, ROOMY, StoreCopy
from tests.simulation.log_replay import Replay, dumped

BARRIERS = 4_096


def checkpoint(copy: StoreCopy, place: Path) -> Path:
    """A data directory made of it."""
    place.mkdir()
    copy.checkpoint(str(place / "rocksdb"))
    (place / "format").write_text("fila 3\n")
    return place


def follow_to_end(node):
    while node.follow():
        pass


def test_a_checkpoint_of_a_standby_or_an_owner_is_a_copy_that_follows(group, tmp_path):
    owner, standby = group.owner(), group.node()
    owner.enqueue("q", b"one")
    follow_to_end(standby)
    places = [checkpoint(standby.copy, tmp_path / "a"), checkpoint(owner.core.copy, tmp_path / "b")]
    owner.enqueue("q", b"behind the checkpoint")

    for place in places:
        node = group.node()
        node.kill()
        node.directory = place
        node.start()
        assert node.copy.position >= 0
        follow_to_end(node)
        node.kill()
        assert dumped(place) == Replay(group.log).families()


def test_a_checkpoint_is_made_while_another_thread_follows(group, tmp_path):
    owner, standby = group.owner(), group.node()
    for number in range(300):
        owner.enqueue("q", b"%d" % number)
    made: list[Path] = []

    def make():
        made.extend(checkpoint(standby.copy, tmp_path / str(number)) for number in range(5))

    making = threading.Thread(target=make)
    making.start()
    follow_to_end(standby)
    making.join()
    assert len(made) == 5
    assert standby.copy.state == FOLLOWS


def test_a_store_that_is_closed_makes_none(group):
    owner, standby = group.owner(), group.node()
    follow_to_end(standby)
    standby.kill()
    copy = owner.core.copy
    owner.node.kill()
    for each in (standby.copy, copy):
        with pytest.raises(errors.StoreError, match="about to end"):
            each.checkpoint("/nowhere")


def test_synced_is_what_was_applied_when_the_last_sync_began(group):
    owner, standby = group.owner(), group.node()
    assert standby.copy.synced == -1
    owner.enqueue("q", b"one")
    follow_to_end(standby)
    assert standby.copy.synced == -1
    standby.copy.sync()
    synced = standby.copy.synced
    assert 0 <= synced == standby.copy.applied <= standby.copy.position
    owner.enqueue("q", b"two")
    follow_to_end(standby)
    assert standby.copy.synced == synced

    standby.kill()
    standby.start()
    assert standby.copy.position >= synced
    assert standby.copy.synced >= synced, "a start syncs what it finds"


def test_where_nothing_happens_a_copy_says_all_the_same_how_far_it_is(group):
    """Else a group that is idle for weeks would fall behind the beginning of a log of barriers alone."""
    owner, standby = group.owner(), group.node()
    for _ in range(BARRIERS + 100):
        owner.advance(500)
        owner.run_pass()
        owner.commit()
    follow_to_end(standby)
    for node in (owner.node, standby):
        before = len(group.log)
        node.kill()
        node.start()
        assert node.copy.position > before - BARRIERS - 10
    follow_to_end(standby)
    follow_to_end(owner.node)
    assert standby.copy.state == owner.node.copy.state == FOLLOWS


def test_the_log_of_a_group_where_nothing_happens_may_forget_what_a_copy_has_read(group):
    """What goes is what the copy says it has: it finds the log's beginning behind that at its next start."""
    owner, standby = group.owner(), group.node()
    for _ in range(2 * BARRIERS):
        owner.advance(500)
        owner.run_pass()
        owner.commit()
    follow_to_end(standby)
    standby.sync()
    assert standby.copy.synced > len(group.log) - BARRIERS - 10
    assert owner.node.end.truncate(len(group.log) - BARRIERS) == ""
    standby.kill()
    standby.start()
    follow_to_end(standby)
    assert standby.copy.state == FOLLOWS, standby.copy.why


def test_bytes_of_the_log_are_counted_alike_by_owner_and_standby(group):
    owner, standby = group.owner(), group.node()
    owner.enqueue("q", b"one" * 1000)
    follow_to_end(standby)
    assert standby.copy.read_bytes == sum(len(group.log.content(at)) for at in range(len(group.log)))
    assert owner.core.copy.read_bytes == standby.copy.read_bytes


def test_a_copy_goes_on_where_the_log_begins_just_behind_it(group):
    owner, standby = group.owner(), group.node()
    follow_to_end(standby)
    standby.kill()
    standby.start()
    at = standby.copy.position
    owner.enqueue("q", b"one")
    assert owner.node.end.truncate(at + 1) == ""
    follow_to_end(standby)
    follow_to_end(standby)
    assert standby.copy.state == FOLLOWS, standby.copy.why
    assert standby.copy.position == len(group.log) - 1


def test_a_copy_that_looks_again_goes_on_where_its_last_record_is_truncated(group):
    """As a node looks that has heard nothing for a second."""
    owner, standby = group.owner(), group.node()
    follow_to_end(standby)
    assert owner.node.end.truncate(standby.copy.position + 1) == ""
    standby.copy.look_again()
    follow_to_end(standby)
    owner.enqueue("q", b"one")
    follow_to_end(standby)
    assert standby.copy.state == FOLLOWS, standby.copy.why
    assert standby.copy.position == len(group.log) - 1


def test_a_copy_that_the_log_has_left_behind_says_where_the_log_begins(group):
    owner, standby = group.owner(), group.node()
    follow_to_end(standby)
    standby.kill()
    standby.start()
    at = standby.copy.position
    for number in range(5):
        owner.enqueue("q", b"%d" % number)
    owner.node.end.truncate(at + 3)
    follow_to_end(standby)
    assert standby.copy.state == HALTS
    assert standby.copy.halted == (BEGINS_LATER, at + 3)


def test_an_empty_node_halts_where_the_log_has_no_beginning_any_more(group):
    owner = group.owner()
    owner.enqueue("q", b"one")
    owner.node.end.truncate(2)
    late = group.node()
    follow_to_end(late)
    assert late.copy.halted == (BEGINS_LATER, 2)


# --- the disk of a standby


def test_a_standby_looks_at_its_disk_and_its_copy_follows_none_the_less(group):
    owner, roomy = group.owner(), group.node()
    low = group.node(storage_min_free_bytes=1 << 60)
    assert roomy.copy.look_at_disk()[0] == ROOMY
    level, free_bytes = low.copy.look_at_disk()
    assert level == LOW
    assert 0 < free_bytes < 1 << 60
    owner.enqueue("q", b"one")
    follow_to_end(low)
    assert low.copy.state == FOLLOWS
    assert low.copy.upkeep() == -1


def test_a_standby_goes_by_what_the_owner_says_that_its_messages_take(group):
    """Some seconds into a term the owner has counted it; until then its records say less."""
    owner, standby = group.owner(), group.node()
    owner.enqueue("q", b"x" * 100_000)
    follow_to_end(standby)
    assert standby.copy.upkeep() == -1

    owner.advance(20_000)
    owner.run_pass()
    owner.enqueue("q", b"one more")
    owner.settle_down()
    follow_to_end(standby)
    assert 100_000 < standby.copy.upkeep() < 110_000
    standby.copy.break_off(True)
    assert standby.copy.upkeep() > 0
    standby.copy.break_off(False)

    while told := owner.lease("q", 10):
        owner.ack("q", told)
    owner.advance(1_000)
    owner.run_pass()
    owner.enqueue("q", b"what waits now")
    owner.settle_down()
    follow_to_end(standby)
    assert 0 <= standby.copy.upkeep() < 1_000
    assert (standby.directory / "ballast").exists()
    assert standby.copy.state == FOLLOWS
    standby.kill()
    assert standby.copy.upkeep() == -1
    standby.copy.break_off(True)
