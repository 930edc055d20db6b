"""Whom a node without a copy asks for one, when it reads the log from its beginning, and when only people can help."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila_server.cluster.sources import AGAIN_MS, ASK_MS, Act, Lack, Search, Seen, Step

STANDBY = Seen("s:1", gives=True, position=50, name="standby")
OWNER = Seen("o:1", gives=True, owns=True, position=60, name="owner")
EMPTY = Seen("e:1", name="empty")
SILENT = Seen("x:1", answers=False)
UNASKED = Seen("u:1", is_asked=False, answers=False)


def search(lack=Lack.EMPTY, start: int | None = 0, needed=-1) -> Search:
    made = Search(0, lack, needed)
    if start is not None:
        made.log_begins(start)
    return made


def takes(step: Step, source: Seen) -> bool:
    return step.act is Act.TAKE and step.source == source


@pytest.mark.parametrize("lack", Lack)
@pytest.mark.parametrize("start", [0, 40])
def test_a_standby_is_asked_before_the_owner_and_the_one_that_is_furthest_first(lack, start):
    further = replace(STANDBY, address="s:2", position=55)
    assert takes(search(lack, start).decide(0, [OWNER, STANDBY, EMPTY, further]), further)
    assert takes(search(lack, start).decide(0, [OWNER, EMPTY]), OWNER)


@pytest.mark.parametrize("lack", Lack)
def test_nothing_is_decided_before_the_log_answers_nor_before_all_others_were_asked(lack):
    assert search(lack, None).decide(99_999, [STANDBY]) == Step(Act.WAIT, why="the log does not answer")
    early = search(lack).decide(ASK_MS - 1, [OWNER, UNASKED])
    assert early == Step(Act.WAIT)
    assert takes(search(lack).decide(ASK_MS, [OWNER, UNASKED]), OWNER)
    assert takes(search(lack).decide(0, [OWNER, SILENT]), OWNER)


@pytest.mark.parametrize("others", [[], [EMPTY], [SILENT], [EMPTY, SILENT]])
def test_a_node_without_a_copy_reads_the_log_where_nobody_gives_one_and_it_begins_at_0(others):
    assert search().decide(0, others).act is Act.READ


def test_a_copy_that_ends_before_the_log_begins_is_of_no_use():
    assert search(start=51).decide(0, [STANDBY]).act is Act.TAKE
    assert search(start=52).decide(0, [STANDBY]).is_halt
    assert takes(search(start=52).decide(0, [STANDBY, OWNER]), OWNER)
    assert takes(search(Lack.BEHIND, 40, needed=55).decide(0, [STANDBY, OWNER]), OWNER)


@pytest.mark.parametrize("lack", Lack)
def test_where_the_log_has_no_beginning_and_nobody_has_a_copy_it_halts_and_says_what_to_do(lack):
    for others in ([], [EMPTY]):
        step = search(lack, 40).decide(0, others)
        assert step.is_halt
        assert "Bring back a node" in step.why
        assert ("the copy is damaged" in step.why) == (lack is Lack.DAMAGED)
        assert ("begins at offset 40" in step.why) == (lack in (Lack.EMPTY, Lack.BEHIND))
    assert "the group has no other node" in search(lack, 40).decide(0, []).why


def test_a_damaged_copy_is_never_given_up_for_the_log_alone():
    step = search(Lack.DAMAGED, 0).decide(0, [EMPTY])
    assert step.is_halt
    assert "move the data directory away" in step.why


def test_where_a_group_began_with_a_brokers_data_the_log_alone_is_never_read():
    step = search(Lack.FOUNDED, 0, needed=1).decide(0, [EMPTY])
    assert step.is_halt
    assert "or start the one whose data it was" in step.why
    assert not search(Lack.FOUNDED, 0, needed=1).decide(0, [SILENT]).is_halt
    assert takes(search(Lack.FOUNDED, 0, needed=1).decide(0, [STANDBY]), STANDBY)


@pytest.mark.parametrize("lack", Lack)
def test_nodes_that_do_not_answer_may_have_one_and_are_waited_for(lack):
    step = search(lack, 40).decide(99_999, [EMPTY, SILENT, replace(SILENT, name="fila-3")])
    assert step.act is Act.WAIT
    assert not step.is_halt
    assert "it waits for a copy of fila-3, x:1" in step.why
    assert takes(search(lack, 40).decide(99_999, [EMPTY, SILENT, STANDBY]), STANDBY)


def test_who_gave_no_whole_copy_is_asked_again_after_a_while_and_others_at_once():
    going = search(Lack.BEHIND, 40)
    assert takes(going.decide(0, [STANDBY, OWNER]), STANDBY)
    going.failed(1_000, STANDBY.address, "standby: its copy is damaged")
    assert takes(going.decide(1_000, [STANDBY, OWNER]), OWNER)
    going.failed(2_000, OWNER.address, "owner: it is busy")
    step = going.decide(2_000, [STANDBY, OWNER])
    assert step.act is Act.WAIT
    assert step.why == "standby: its copy is damaged"
    assert going.decide(999 + AGAIN_MS, [STANDBY, OWNER]).act is Act.WAIT
    assert takes(going.decide(1_000 + AGAIN_MS, [STANDBY, OWNER]), STANDBY)


def test_after_a_try_that_failed_an_empty_node_reads_the_log_that_has_its_beginning():
    going = search()
    going.failed(1_000, STANDBY.address, "the connection ended")
    assert going.decide(1_000, [STANDBY]).act is Act.READ


@pytest.mark.parametrize("lack", Lack)
def test_a_full_disk_is_no_matter_of_other_nodes(lack):
    going = search(lack, 40)
    going.failed(1_000, STANDBY.address, "standby: make room", is_own=True)
    assert going.decide(999 + AGAIN_MS, [STANDBY, OWNER]) == Step(Act.WAIT, why="standby: make room")
    assert takes(going.decide(1_000 + AGAIN_MS, [STANDBY, OWNER]), STANDBY)


seen = st.builds(
    Seen,
    address=st.sampled_from(("a", "b", "c")),
    is_asked=st.booleans(),
    answers=st.booleans(),
    gives=st.booleans(),
    owns=st.booleans(),
    position=st.integers(-1, 100),
)


@given(
    st.sampled_from(Lack),
    st.integers(0, 90),
    st.integers(-1, 90),
    st.lists(seen, max_size=3, unique_by=lambda each: each.address),
    st.lists(st.tuples(st.integers(0, 30_000), st.sampled_from("abc"), st.booleans()), max_size=4),
    st.integers(0, 60_000),
)
def test_what_is_taken_is_of_use_and_the_log_is_read_only_where_it_has_all(
    lack, start, needed, others, failed, now
):
    going = search(lack, start, needed)
    for at, address, is_own in sorted(failed):
        going.failed(at, address, "it failed", is_own=is_own)
    step = going.decide(now, others)
    if step.act is Act.TAKE:
        assert step.source in others
        assert step.source.answers
        assert step.source.gives
        assert step.source.position >= max(start - 1, needed)
        assert all(at + AGAIN_MS <= now for at, address, _ in failed if address == step.source.address)
    elif step.act is Act.READ:
        assert (lack, start) == (Lack.EMPTY, 0)
    if step.is_halt:
        assert all(other.answers for other in others)
        assert not any(other.gives and other.position >= max(start - 1, needed) for other in others)
