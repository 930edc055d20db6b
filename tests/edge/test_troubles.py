"""The sentence is right: each kind of trouble alone, pairs of them, and states in which all is well. Each is staged as
the facts of the looks there would have been, so no time goes by."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fila.v1 import events_pb2 as pb
from fila_server.operations import trouble_kinds as kinds
from fila_server.operations import troubles
from fila_server.operations.trouble_facts import (
    Facts,
    Failing,
    Limit,
    Pause,
    Unserved,
    acknowledged_ms,
)
from fila_server.operations.trouble_rates import FloodNow
from fila_server.operations.trouble_words import About, words
from tests.edge.staged_states import (
    ALONE,
    HEALTHY,
    LOOK_S,
    MINUTE,
    STAGED,
    START_MS,
    Stage,
    State,
    budget,
    damaged,
    flood,
    limit,
    lost,
    merged,
    nobody,
    nothing,
    paused_key,
    poison,
)

Told = list[tuple[str, dict[str, Any]]]


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    found: Told = []
    monkeypatch.setattr(troubles, "emit", lambda kind, **about: found.append((kind, about)))
    return found


@pytest.mark.parametrize("name", ALONE)
def test_a_trouble_alone_is_told_with_its_cause_its_time_and_its_lever(name: str) -> None:
    state, seconds, kind, text, command = ALONE[name]

    [trouble] = Stage().run(seconds, state).report().troubles
    assert pb.Trouble.Kind.Name(trouble.kind) == f"KIND_{kind}"
    assert trouble.text == text
    assert trouble.command == command
    assert trouble.lever


PAIRS = [pair for pair in itertools.combinations(STAGED, 2) if pair != (lost, damaged)]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: " and ".join(each.__name__ for each in pair))
def test_of_two_troubles_the_worse_comes_first_and_both_are_told(pair: tuple[State, State]) -> None:
    both = Stage().run(200, merged(*reversed(pair))).texts
    alone = [Stage().run(200, state).texts[0] for state in pair]

    assert both == alone


def test_four_are_told_by_harm_and_the_rest_is_counted() -> None:
    report = Stage().run(200, merged(*reversed(STAGED[2:]))).report()

    assert [trouble.kind for trouble in report.troubles] == [3, 4, 5, 6]
    assert report.more_troubles == 4
    assert report.well == ""


def test_of_one_kind_those_come_first_for_which_most_messages_wait() -> None:
    rows = [Unserved(name, "default", ready, 0) for name, ready in (("few", 3), ("most", 900), ("some", 40))]
    report = Stage().run(150, lambda _: Facts(unserved=rows)).report(max_troubles=2)

    assert [trouble.queue for trouble in report.troubles] == ["most", "some"]
    assert report.more_troubles == 1


# --- all is well ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_state_is_told_to_be_well_at_every_look_of_an_hour(name: str, told: Told) -> None:
    stage = Stage().run(3600, HEALTHY[name])

    assert told == []
    assert stage.texts == []
    assert stage.report().well == "All is well."


# --- when it begins and ends ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "kind", "after_s"),
    [
        (nobody, kinds.NOBODY_CONSUMES, 120),
        (limit, kinds.LIMIT_BEHIND, 122),
        (budget, kinds.BUDGET_SPENT, 60),
        (flood, kinds.FLOOD, 26),
    ],
)
def test_what_may_pass_by_itself_is_told_after_its_time(
    state: State, kind: kinds.Kind, after_s: float
) -> None:
    assert Stage().run(after_s - 2, state).texts == []
    [trouble] = Stage().run(after_s + 2, state).report().troubles
    assert trouble.kind == kind.number


@pytest.mark.parametrize("name", [name for name in ALONE if name not in ("poison", "a flood")])
def test_a_trouble_ends_with_its_cause_and_its_events_say_the_same(name: str, told: Told) -> None:
    state, seconds, kind, _, _ = ALONE[name]
    stage = Stage().run(seconds, state)
    began = stage.texts
    stage.run(20, nothing)

    assert stage.texts == []
    assert [event for event, _ in told] == ["trouble.began", "trouble.ended"]
    assert {about["trouble"] for _, about in told} == {kind.lower()}
    without_times = re.sub(r"\d+ (s|min|h \d+ min)\b", "", began[0])
    assert (
        re.sub(r"\d+ (s|min|h \d+ min)\b", "", told[-1][1]["text"]).split()[:3] == without_times.split()[:3]
    )


def test_dead_letters_are_told_for_a_quarter_of_an_hour_after_the_last_failure() -> None:
    stage = Stage().run(MINUTE, poison)
    stage.run(13 * MINUTE, lambda s: poison(s, until_s=MINUTE))
    assert stage.texts == [
        "webhooks has been failing for 13 min: 300 dead letters within 15 min; 300 messages wait."
    ]
    stage.run(3 * MINUTE, lambda s: poison(s, until_s=MINUTE))
    assert stage.texts == []


def test_failures_that_all_came_before_the_first_look_count() -> None:
    died = Failing("webhooks", 0, 2000, 2000, 0, 0, 0, began_ago_s=1.5)
    assert len(Stage().run(2, lambda _: Facts(failing=[died])).texts) == 1


def test_a_limit_that_works_its_backlog_off_is_told_until_little_is_left() -> None:
    stage = Stage().run(180, limit)

    def draining(s: float) -> Facts:
        left = int(360 - 2 * (s - 180))
        return Facts(limits=[Limit("sendgrid", 2.0, 2.0, int(2 * s), left, (("mail", "default", left),))])

    stage.run(120, draining)
    assert stage.texts[0].startswith(
        "sendgrid has fallen behind for 3 min: 0 a second need it, and it lets 2 through"
    )
    stage.run(50, draining)
    assert stage.texts == []


def test_a_limit_whose_budget_is_spent_is_told_as_that_alone() -> None:
    def spent(s: float) -> Facts:
        fields = {
            name: getattr(budget(s).limits[0], name) for name in ("part", "amount", "period_ms", "ends_ms")
        }
        return Facts(limits=[row._replace(is_compound=True, **fields) for row in limit(s).limits])

    assert [trouble.kind for trouble in Stage().run(200, spent).report().troubles] == [
        kinds.BUDGET_SPENT.number
    ]


def test_a_spent_budget_is_over_with_its_period() -> None:
    stage = Stage().run(120, budget)
    assert len(stage.texts) == 1
    stage.run(2, lambda s: Facts(limits=[budget(s).limits[0]._replace(ends_ms=START_MS + 86_400_000)]))
    assert stage.texts == []


def test_looks_that_miss_messages_of_a_bucket_now_and_then_change_nothing() -> None:
    def blinking(s: float) -> Facts:
        seen = int(s / LOOK_S) % 3  # all of it, nothing, a half
        rows = [row._replace(messages=row.messages // max(seen, 1)) for row in limit(s).limits if seen != 1]
        return Facts(limits=rows)

    [text] = Stage().run(200, blinking).texts
    assert text.startswith("sendgrid has fallen behind for 2 min: 3.8 a second need it")


def test_one_who_is_served_in_between_begins_anew() -> None:
    stage = Stage().run(100, nobody)
    stage.run(2, lambda _: Facts(unserved=[Unserved("exports", "default", 90, 60)]))
    stage.run(100, lambda _: Facts(unserved=[Unserved("exports", "default", 90, 60)]))
    assert stage.texts == []


def test_a_pause_of_before_there_were_records_lasts_at_least_as_long_as_it_is_seen() -> None:
    stage = Stage().run(120, lambda _: Facts(pauses=[Pause("kept", "", 7)]))
    assert stage.texts == ["(no key) in kept has been paused for at least 2 min: 7 messages wait."]


def test_a_beginning_that_is_read_later_is_told_from_then_on() -> None:
    stage = Stage().run(2, lambda _: Facts(pauses=[Pause("kept", "a", 7)]))
    stage.run(2, lambda _: Facts(pauses=[Pause("kept", "a", 7, since_ms=START_MS - 600_000, by="eve")]))
    assert stage.texts == ["a in kept has been paused by eve for 10 min: 7 messages wait."]


def test_why_it_is_paused_is_told_on_one_line_and_not_at_length() -> None:
    def told(comment: str) -> str:
        pause = Pause("kept", "a", 7, since_ms=START_MS, by="eve", comment=comment)
        return Stage().run(60, lambda _: Facts(pauses=[pause])).texts[0]

    assert told("the provider is down") == (
        'a in kept has been paused by eve for 1 min ("the provider is down"): 7 messages wait.'
    )
    assert '("one\\u000atwo\\u202e")' in told("one\ntwo\u202e")
    assert len(told("x" * 1024)) < 300


@pytest.mark.parametrize("key", ["p\nq", "it's", "\x1b[2J\u202e", "--help", "-", ""])
def test_a_command_that_is_pasted_into_a_shell_is_about_the_key_it_was_told_for(key: str) -> None:
    trouble = Stage().run(2, lambda _: Facts(pauses=[Pause("kept", key, 7)])).report().troubles[0]
    command = f"fila() {{ printf '%s\\0' \"$@\"; }}; {trouble.command}"

    ran = subprocess.run(["bash", "-c", command], capture_output=True, check=True, text=True)
    given = [word for word in ran.stdout.split("\0")[:-1] if word != "--"]
    assert (trouble.command.isprintable(), given) == (True, ["key", "resume", "kept", key])
    assert "--" in ran.stdout.split("\0") or not key.startswith("-"), "the key is no option"


def test_no_command_is_told_that_no_shell_could_hand_on() -> None:
    assert (
        Stage().run(2, lambda _: Facts(pauses=[Pause("kept", "a\0b", 7)])).report().troubles[0].command == ""
    )


def test_a_rate_in_a_command_is_a_number() -> None:
    now = FloodNow(part=0.9, arriving=9_000, served=5_000, others=2)
    told = words(About(kinds.FLOOD, "orders", fairness_key="acme"), now, 9, 0, 1_000)
    assert told.command == "fila key rate orders acme 2500"


def test_what_is_paused_lacks_no_consumer() -> None:
    def kept(ready: int) -> State:
        return lambda _: Facts(
            unserved=[Unserved("kept", "default", ready, 0)],
            pauses=[Pause("kept", "umbrella", 5, since_ms=START_MS)],
        )

    assert [trouble.kind for trouble in Stage().run(200, kept(5)).report().troubles] == [kinds.PAUSED.number]
    both = Stage().run(200, kept(7)).report().troubles
    assert [(trouble.kind, trouble.waiting) for trouble in both] == [(5, 2), (7, 5)]


def test_the_key_without_a_name_and_its_queue_are_two_pauses() -> None:
    both = [Pause("kept", "", 7), Pause("kept", "", 9, is_queue=True)]
    assert len(Stage().run(2, lambda _: Facts(pauses=both)).texts) == 2


def test_no_more_than_so_many_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(troubles, "KEPT_MAX", 5)
    rows = [Unserved(f"q{number}", "default", 1, 0) for number in range(9)]
    report = Stage().run(150, lambda _: Facts(unserved=rows)).report()
    assert (len(report.troubles), report.more_troubles) == (4, 1)


# --- who is told ------------------------------------------------------------------------------


def only(*seen: str) -> Callable[[str, str], bool]:
    return lambda queue, _channel: queue in seen


def test_a_caller_is_told_of_what_it_may_see_alone() -> None:
    stage = Stage().run(200, merged(*STAGED))

    report = stage.report(only("exports"))
    assert [trouble.queue for trouble in report.troubles] == ["exports"]
    assert report.more_troubles == 0
    assert stage.report(only("nothing")).well == "All is well, of what you may see."
    assert Stage().run(2, nothing).report(only("exports")).well == "All is well, of what you may see."


def test_who_paused_it_is_told_to_those_who_may_be_told_and_in_no_event(told: Told) -> None:
    stage = Stage().run(120, paused_key)

    [trouble] = stage.report(names=lambda principal: principal != "alice").troubles
    assert trouble.text == "umbrella in kept has been paused for 2 min: 5,000 messages wait."
    assert "alice" in stage.texts[0]
    assert "alice" not in str(told)


def test_of_a_limit_of_several_queues_others_are_neither_named_nor_counted() -> None:
    stage = Stage().run(180, limit)

    [trouble] = stage.report(only("sms")).troubles
    assert trouble.text.endswith("5 messages wait in sms.")
    assert (trouble.waiting, trouble.queue, trouble.throttle_key) == (5, "sms", "sendgrid")
    [whole] = stage.report().troubles
    assert (whole.waiting, whole.queue) == (360, "")
    [budgeted] = Stage().run(200, budget).report(only("sms")).troubles
    assert " 10 messages wait in sms for " in budgeted.text
    assert "mail" not in str(budgeted)


def test_a_caller_asks_for_one_queue_and_leaves_out_the_pauses_of_other_keys() -> None:
    more = [
        Pause("orders", "globex", 5),
        Pause("orders", "initech", 6),
        Pause("orders", "", 7, is_queue=True),
    ]
    stage = Stage().run(200, merged(*STAGED, lambda _: Facts(pauses=more)))

    told = stage.report(queue="orders", fairness_key="globex", max_troubles=100).troubles
    assert [(trouble.kind, trouble.fairness_key) for trouble in told] == [
        (kinds.CIRCUIT_OPEN.number, ""),
        (kinds.PAUSED.number, ""),
        (kinds.PAUSED.number, "globex"),
        (kinds.FLOOD.number, "acme"),
    ]
    of_sms = stage.report(queue="sms").troubles
    assert [each.throttle_key for each in of_sms] == ["sendgrid", "openai"]


def test_nothing_is_called_well_before_the_first_look_or_long_after_the_last() -> None:
    stage = Stage()
    assert stage.report().well == "The broker has just started and has not looked around yet."
    stage.run(2, nothing)
    stage.at_s += 100
    assert stage.report().well.startswith("The broker is too busy to look around: it last did so 1 min ago")


def test_metrics_are_given_the_worst_with_their_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage().run(200, merged(paused_key, limit, nobody))

    readings = stage.troubles.readings()
    assert [each[:5] for each in readings] == [
        ("nobody_consumes", "exports", "default", "", ""),
        ("paused", "kept", "", "umbrella", ""),
        ("limit_behind", "", "", "", "sendgrid"),
    ]
    assert [each.since_s - START_MS / 1000 for each in readings] == [0, 0, 62]
    monkeypatch.setattr(troubles, "READINGS_MAX", 2)
    assert len(stage.troubles.readings()) == 2


# --- the table --------------------------------------------------------------------------------


def test_the_page_shows_the_table_as_it_is() -> None:
    page = Path(__file__).parents[2] / "docs" / "operations" / "troubles.md"
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.read_text().partition("## Loss")[0].splitlines()
        if line.startswith("| `")
    ]
    assert [row[:3] for row in rows] == [
        [f"`{kind.name}`", _for(kind.begins, kind.begins_s), _for(kind.ends, kind.ends_s)]
        for kind in kinds.KINDS
    ]
    assert [kind.number for kind in kinds.KINDS] == [value for value in pb.Trouble.Kind.values() if value]
    assert [f"KIND_{kind.name.upper()}" for kind in kinds.KINDS] == pb.Trouble.Kind.keys()[1:]


def _for(text: str, seconds: float) -> str:
    return f"{text}; for {seconds:.0f} s" if seconds else text


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2023-11-14T22:13:20Z", 1_700_000_000),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000),
        ("yes", 0),
        ("", 0),
    ],
)
def test_an_acknowledgement_is_a_moment(value: str, seconds: int) -> None:
    assert acknowledged_ms(value) == seconds * 1000
