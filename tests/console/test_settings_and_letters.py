"""A queue's settings and dead letters as the pages tell them: texts, differences, groups, sentences; and
events that are alike."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.answers import QueueConfig, Retention
from fila.dead_letters import DeadLetterFilter, Operation, OperationRequest
from fila.observations import Event
from fila_console import differences, letters
from fila_console.pages.events import Folds, _row
from fila_console.progress import progress

# Settings of a queue as text.


@given(st.text())
def test_a_key_in_one_line_is_the_same_key_again(key):
    line = differences.in_one_line(key)
    assert not set(line) & set("\n\r\0")
    assert differences.from_one_line(line) == key


def test_what_a_line_means_is_what_was_typed():
    assert differences.from_one_line("C:\\temp") == "C:\\temp"
    assert differences.from_one_line("a\\\\n") == "a\\n"


def test_a_difference_has_the_lines_and_no_names_of_files():
    told = differences.difference("x", "\n".join("abcdefghij"), "\n".join("aXcdefghiY"))
    assert told.lines == [" a", "-b", "+X", " c", " d", "…", " h", " i", "-j", "+Y"]
    assert differences.difference("x", "20", "7").lines == ["-20", "+7"]


def test_the_way_back_sets_what_differs_and_no_channel():
    now = QueueConfig(max_attempts=3, weights={"a": 2}, retention=Retention(soft_bytes=5), channels=["x"])
    then = QueueConfig(max_attempts=3, paused=True)
    nothing_kept = {"soft_period_ms": 0, "soft_bytes": 0, "hard_period_ms": 0, "hard_bytes": 0}
    assert differences.settings_back(then, now) == {
        "weights": {},
        "paused": True,
        "retention": nothing_kept,
    }
    assert [each.name for each in differences.differences(now, then)] == ["weights", "retention", "paused"]


# Dead letters.


def dead(error: str, key: str = "acme", reason: str = "rejected") -> letters.Letter:
    message: Any = SimpleNamespace(
        fairness_key=key,
        dead_letter=SimpleNamespace(
            last_error=error,
            reason=reason,
            attempts=1,
            at=None,
            source_queue="orders",
            source_channel="default",
        ),
    )
    return letters.letter_of(message)


def test_letters_whose_errors_differ_in_numbers_alone_are_one_group():
    first, second = dead("card 17 of 0xab was declined\nat line 3"), dead("card 4 of 0x1 was declined")
    assert first.kind == second.kind == "card # of # was declined"
    group = letters.Group("rejected", first.kind, "acme")
    assert group.takes(first)
    assert group.takes(second)
    assert not group.takes(dead("card 4 of 0x1 was declined", key="globex"))


def test_a_groups_filter_means_every_letter_of_it():
    for error in ("card 17 was declined", "17", "", "no numbers"):
        letter = dead(error)
        wanted = letters.Group(letter.reason, letter.kind, "acme").as_filter()
        assert letter.is_meant(wanted), error
    assert letters.Group(letters.BY_HAND, "", "").as_filter().reason == ""


@pytest.mark.parametrize(
    ("ago_s", "said"),
    [
        ([], ""),
        ([10, 599, 700, 1_199, 5_000], "2 in the last 10 min, 2 in the 10 before"),
        ([30], "1 in the last 10 min, 0 in the 10 before"),
        ([7_200, 90_000], "none for 2 h 00 min"),
    ],
)
def test_a_group_says_whether_more_and_more_die_of_it(ago_s, said):
    assert letters.trend([1e9 - each for each in ago_s], 1e9) == said


# Events that are alike.


def happened(position: int, minute: int, *, queue: str = "orders.dlq", peer: str = "") -> Event:
    at = datetime(2026, 3, 1, 9, tzinfo=UTC) + timedelta(minutes=minute)
    return Event(position=position, at=at, kind="dead_letters.made", queue=queue, count=2, peer=peer)


def test_what_happens_again_and_again_within_an_hour_is_one_row_and_what_a_person_did_stands_alone():
    folds = Folds()
    for number in range(61):
        folds.add(happened(number, number))
    folds.add(happened(61, 60, queue="mail.dlq"))
    folds.add(happened(62, 61))
    folds.add(happened(63, 61, peer="10.0.0.7"))
    folds.add(happened(64, 61, peer="10.0.0.7"))

    told = [
        (each.newest.queue, each.times, each.count, each.newest.position) for each in folds.folds.values()
    ]
    assert told == [
        ("orders.dlq", 61, 122, 60),
        ("mail.dlq", 1, 2, 61),
        ("orders.dlq", 1, 2, 62),
        ("orders.dlq", 1, 2, 63),
        ("orders.dlq", 1, 2, 64),
    ]


def test_the_sentence_of_a_trouble_stands_first_in_its_event_and_has_no_name():
    folds = Folds()
    details = {"text": "Nobody consumes orders: 3 messages wait.", "trouble": "nobody_consumes"}
    folds.add(replace(happened(0, 0), kind="trouble.began", details=details))
    (fold,) = folds.folds.values()

    told = _row("broker", fold)["cells"][-1]["t"]
    assert told == "Nobody consumes orders: 3 messages wait, trouble=nobody_consumes"


# What an operation does, in words.


def operation(state: str, error: str = "", principal: str = "") -> Operation:
    wanted = DeadLetterFilter(fairness_key="acme", error="declined")
    request = OperationRequest(dlq_queue="q.dlq", kind="redrive", filter=wanted, rate_per_second=20.0)
    at = datetime(2026, 3, 2, 14, 2, 10, tzinfo=UTC)
    return Operation(
        id="1",
        state=state,
        looked_at=12,
        done=10,
        stuck=2,
        total=48,
        started_at=at,
        ended_at=at,
        error=error,
        principal=principal,
        request=request,
    )


def test_an_operation_is_told_in_a_sentence_and_can_be_cancelled_while_it_runs():
    told = progress([operation("done"), operation("running", principal="anna")])
    assert told["operation"]["t"] == (
        "Moving back letters with key acme, “declined” in the error (at most 20.0/s): 12 of 48 looked at, "
        "10 letters moved back, 2 stayed; since 14:02:10 UTC, by anna."
    )
    assert (told["operation-bar"]["bar"], told["operation-id"]["t"]) == (0.25, "1")
    assert told["operation-cancel"]["t"]


@pytest.mark.parametrize("state", ["done", "cancelled", "failed", "stopped"])
def test_an_operation_that_ended_says_how_and_offers_nothing_to_cancel(state):
    told = progress([operation(state, error="the disk is full" if state == "failed" else "")])
    assert told["operation"]["t"].lstrip("● ").lower().startswith(state)
    assert ("the disk is full" in told["operation"]["t"]) == (state == "failed")
    assert not told["operation-cancel"]["t"] + told["operation-id"]["t"]
