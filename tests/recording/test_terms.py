"""Histories of several nodes make one: what they recorded doubly, or not at all, is said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from fila_server.history_files.terms import named, notes, terms

BEGAN = datetime(2026, 3, 2, 14, tzinfo=UTC)


def entries(
    node: str,
    term: int,
    deposes: int,
    since_s: int,
    until_s: int,
    *,
    ends: bool = True,
    table: str = "decisions",
) -> list[Any]:
    """A run of one file."""
    said = {"node": node, "term": term, "deposes": deposes, "run": f"run-{term}"}
    times = {
        "first_at": (BEGAN + timedelta(seconds=since_s)).isoformat(),
        "last_at": (BEGAN + timedelta(seconds=until_s)).isoformat(),
    }
    file = said | times | {"file": f"{table}/{term}.parquet", "table": table, "number": 1}
    return [file, said | times | {"end": True, "number": 2}] if ends else [file]


def test_terms_that_follow_one_another_are_one_history_with_nothing_to_say():
    found = terms(
        {
            "a": [*entries("fila-1", 0, -1, 0, 60), *entries("fila-1", 90, 50, 130, 200)],
            "b": entries("fila-2", 50, 0, 62, 128),
        }
    )
    assert [(term.term, term.node, term.directory) for term in found] == [
        (0, "fila-1", "a"), (50, "fila-2", "b"), (90, "fila-1", "a"),
    ]  # fmt: skip
    assert notes(found) == []


def test_a_run_is_named_with_its_term_and_node_and_that_of_a_broker_alone_by_itself():
    listed = [{"run": "alone", "file": "a.parquet"}, *entries("fila-2", 50, 0, 60, 128)]
    assert named("run-50", listed) == "run-50, term 50 of fila-2"
    assert named("alone", listed) == "alone"


def test_what_a_deposed_owner_went_on_to_record_counts_for_nobody():
    found = terms({"a": entries("fila-1", 0, -1, 0, 70), "b": entries("fila-2", 50, 0, 60, 128)})
    assert notes(found) == [
        (
            "term 0 of fila-1 and term 50 of fila-2 both recorded from 2026-03-02 14:01:00.000 UTC to 2026-03-02 "
            "14:01:10.000 UTC: fila-2 had taken over by then, and what fila-1 recorded of that time counts for nobody"
        )
    ]


def test_passes_of_a_deposed_owner_that_decided_nothing_are_nothing_to_say():
    idle = entries("fila-1", 0, -1, 0, 70, table="inputs")
    assert notes(terms({"a": idle, "b": entries("fila-2", 50, 0, 60, 128)})) == []


def test_a_term_without_an_end_leaves_a_hole():
    found = terms({"a": entries("fila-1", 0, -1, 0, 30, ends=False), "b": entries("fila-2", 50, 0, 60, 128)})
    assert notes(found) == [
        (
            "the end of term 0 of fila-1 was not recorded: nothing is known from 2026-03-02 14:00:30.000 UTC to "
            "2026-03-02 14:01:00.000 UTC, when term 50 of fila-2 began"
        )
    ]


def test_a_term_that_nobody_has_is_named_but_not_that_before_the_first():
    found = terms({"a": [*entries("fila-1", 20, 7, 0, 60), *entries("fila-1", 90, 50, 130, 200)]})
    assert notes(found) == [
        (
            "term 50, which term 90 of fila-1 deposed, is in none of the directories: its node recorded nothing, or "
            "its directory is not among them"
        )
    ]


def test_a_directory_that_is_given_twice_counts_once():
    of_term = entries("fila-1", 0, -1, 0, 60)
    found = terms({"a": of_term, "copy": of_term})
    assert notes(found) == ["term 0 of fila-1 is in a and in copy: it counts once"]


def test_runs_of_a_broker_alone_are_no_terms():
    alone = {name: value for name, value in entries("", 0, 0, 0, 1)[0].items() if name != "term"}
    assert terms({"a": [alone]}) == []
