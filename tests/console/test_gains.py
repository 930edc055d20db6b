"""Whom a limit's change touches: which way it goes, who waits for it, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from fila.observations import LateKey
from fila_console.gains import effect, held_by, sentence
from fila_console.limit_words import parts_of


def limit(**fields: str) -> Any:
    return parts_of(fields)


@pytest.mark.parametrize(
    ("before", "asked", "what"),
    [
        ({"rates": "5/s"}, {"rates": "10/s"}, "gain"),
        ({"rates": "5/s"}, {"rates": "60/m"}, "wait longer"),
        ({"rates": "5/s"}, {"rates": "5/s,50"}, "are touched"),
        ({"rates": "5/s"}, {"slots": "3"}, "are touched"),
        ({"rates": "5/s", "slots": "3"}, {"rates": "5/s"}, "gain"),
        ({"rates": "5/s 100cost/s"}, {"rates": "9/s 10cost/s"}, "are touched"),
        ({"slots": "3"}, {"slots": "3", "budget": "10/day"}, "wait longer"),
        ({"budget": "10/day"}, {"budget": "11/day"}, "gain"),
        ({"budget": "10/day"}, {"budget": "11/week"}, "are touched"),
        ({"budget": "10/day"}, {"budget": "11cost/day"}, "are touched"),
        ({"rates": "5/s"}, {"rates": "1/s", "shadow": "yes"}, "gain"),
        ({"rates": "5/s", "shadow": "yes"}, {"rates": "9/s"}, "wait longer"),
    ],
)
def test_a_change_of_a_limit_is_more_or_less_of_what_it_lets_through(before, asked, what):
    assert effect(limit(**before), limit(**asked)) == what


def test_of_one_rate_it_is_said_how_long_what_waits_takes_as_it_is_and_as_asked():
    held = [
        LateKey(queue="q", channel="", fairness_key=key, cause="", blocking_bucket="a", pending=60)
        for key in "xy"
    ]
    slow, fast = limit(rates="2/s"), limit(rates="10/s")
    assert sentence(slow, fast, held, 2) == (
        "These keys gain. Their 120 messages wait for it up to 1 min 00 s as it is, and 12.0 s as asked."
    )
    assert sentence(fast, slow, held, 9) == "9 keys wait longer, among them these."
    assert sentence(slow, limit(rates="10/s", slots="1"), held, 2) == "These keys are touched."


def test_a_pattern_holds_what_begins_so_and_a_name_itself_alone():
    late = [
        LateKey(queue="q", channel="", fairness_key=each, cause="", blocking_bucket=each)
        for each in ("a:1", "a", "b")
    ]
    assert [each.fairness_key for each in held_by("a:*", late)] == ["a:1"]
    assert [each.fairness_key for each in held_by("a", late)] == ["a"]
