"""The sentence is right: each kind of trouble alone, pairs of them, and states in which all is well. Each is staged as
the facts of the looks there would have been, so no time goes by."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fila.v1 import events_pb2 as pb
from fila_server.operations import trouble_kinds as kinds
from fila_server.operations import troubles
from fila_server.operations.trouble_facts import (
    Circuit,
    Disk,
    Facts,
    Failing,
    Found,
    Limit,
    Pause,
    Unserved,
    acknowledged_ms,
)
from fila_server.operations.troubles import Troubles
from fila_server.telemetry.snapshot import Channel, Key

LOOK_S = 2.0
START_MS = 1_700_000_000_000
MINUTE = 60.0
State = Callable[[float], Facts]
"""The facts of a look so many seconds after the beginning."""

Told = list[tuple[str, dict[str, Any]]]


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    found: Told = []
    monkeypatch.setattr(troubles, "emit", lambda kind, **about: found.append((kind, about)))
    return found


class Stage:
    """A broker that is looked at every two seconds, as long as the stage runs."""

    def __init__(self) -> None:
        self.troubles = Troubles()
        self.at_s = 0.0

    def run(self, seconds: float, state: State) -> Stage:
        end_s = self.at_s + seconds
        while self.at_s <= end_s:
            self.troubles.look(state(self.at_s), self.at_s, self.wall_ms)
            self.at_s += LOOK_S
        self.at_s -= LOOK_S
        return self

    @property
    def wall_ms(self) -> int:
        return START_MS + int(self.at_s * 1000)

    def report(
        self,
        sees: Callable[[str, str], bool] = lambda _queue, _channel: True,
        names: Callable[[str], bool] = lambda _principal: True,
        **asked: Any,
    ) -> Any:
        return self.troubles.reported(pb.GetStatusRequest(**asked), sees, names, self.at_s, self.wall_ms)

    @property
    def texts(self) -> list[str]:
        return [trouble.text for trouble in self.report().troubles]


def merged(*states: State) -> State:
    """All of them at once."""

    def at(seconds: float) -> Facts:
        facts = Facts()
        for state in states:
            more = state(seconds)
            for name in Facts.__slots__:
                old, new = getattr(facts, name), getattr(more, name)
                if isinstance(new, dict):
                    setattr(facts, name, {**old, **new})
                elif isinstance(new, (list, tuple)) and not isinstance(new, (Found, Disk)):
                    setattr(facts, name, [*old, *new])
                else:
                    setattr(facts, name, new if new is not None else old)
        return facts

    return at


# --- staged troubles --------------------------------------------------------------------------


def lost(_s: float) -> Facts:
    return Facts(lost=Found(START_MS, ranges=2, messages=120))


def damaged(_s: float) -> Facts:
    return Facts(damaged=Found(START_MS))


def disk(_s: float) -> Facts:
    return Facts(disk=Disk(is_full=False, free_bytes=120_000_000))


def circuit(_s: float) -> Facts:
    return Facts(circuits=[Circuit("orders", "on_enqueue")])


def nobody(_s: float) -> Facts:
    return Facts(unserved=[Unserved("exports", "default", 120, 30)])


def poison(s: float, *, until_s: float = 1e9) -> Facts:
    """Ten deliveries a second, of which all fail, and five dead letters; all of it from the first second on."""
    at_s = min(s, until_s)
    return Facts(failing=[Failing("webhooks", 40, int(10 * at_s), int(5 * at_s), 40, 0, 0, s, ready=300)])


def paused_key(_s: float) -> Facts:
    return Facts(pauses=[Pause("kept", "umbrella", 5_000, since_ms=START_MS, by="alice")])


def paused_queue(_s: float) -> Facts:
    return Facts(pauses=[Pause("orders", "", 70, is_queue=True, since_ms=START_MS - 3_600_000, by="bob")])


def limit(s: float) -> Facts:
    """Two a second pass, and four a second come; two queues wait."""
    messages = int(2 * s)
    places = (("mail", "default", messages - 5), ("sms", "default", 5))
    return Facts(limits=[Limit("sendgrid", 2.0, 2.0, int(2 * s), messages, places)] if messages > 5 else [])


def channel(**numbers: Any) -> Channel:
    given: dict[str, Any] = dict.fromkeys(Channel.__struct_fields__, 0)
    return Channel(**(given | {"name": b"default", "waited_ms": (0.0,) * 5, "consumers": 2, **numbers}))


def key(
    name: str,
    *,
    share: float = 0,
    throttle: float = 0,
    held: float = 0,
    queue: str = "orders",
    **numbers: Any,
) -> Key:
    sums = (0.0, share, throttle, 0.0, held, 0.0, 0.0)
    given: dict[str, Any] = dict.fromkeys(Key.__struct_fields__, 0)
    names = {"queue": queue.encode(), "channel": b"default", "fairness_key": name.encode()}
    return Key(**(given | names | {"totals": sums, **numbers}))


def flood(s: float) -> Facts:
    """acme sends fifty a second and is served ten; the others have a hundredth of it, and wait for their turn."""
    acme = key(
        "acme",
        share=1e6 * s,
        pending=int(40 * s),
        arrived=int(50 * s),
        delivered=int(10 * s),
        oldest_ms=30_000,
    )
    others = [
        key(name, share=1e3 * s, pending=20, arrived=int(s), delivered=int(s), oldest_ms=12_000)
        for name in ("globex", "initech")
    ]
    ready = int(40 * s) + 40
    return Facts(keys=[acme, *others], channels={(b"orders", b"default"): channel(ready=ready)})


ALONE: dict[str, tuple[State, float, str, str, str]] = {
    "messages are lost": (
        lost, 2, "LOST",
        "Messages are lost to damage: 120 messages in 2 ranges, found 2 s ago.",
        "fila config set loss.acknowledged 2023-11-14T22:13:22Z",
    ),
    "damage and nothing lost": (
        damaged, 2, "DAMAGED",
        "The disk damaged the store, and nothing is lost: found 2 s ago, when the broker started.",
        "fila config set loss.acknowledged 2023-11-14T22:13:22Z",
    ),
    "the disk is nearly full": (
        disk, 10, "DISK", "The disk has been nearly full for 10 s, 120 MB left: enqueues are refused.",
        "fila queue list",
    ),
    "a script is not called": (
        circuit, 2, "CIRCUIT_OPEN",
        ("The script on_enqueue of orders has failed for 2 s and is not called: the queue's settings "
         "route its messages."),
        "fila hook show orders",
    ),
    "nobody consumes": (
        nobody, 180, "NOBODY_CONSUMES", "Nobody has consumed exports for 3 min: 120 messages wait.",
        "fila consumer list exports",
    ),
    "poison": (
        poison, 120, "FAILING",
        ("webhooks has been failing for 1 min: 100% of its deliveries in the last minute, 300 dead letters a minute; "
         "300 messages wait."),
        "fila dlq group webhooks.dlq",
    ),
    "a paused key": (
        paused_key, 120, "PAUSED", "umbrella in kept has been paused by alice for 2 min: 5,000 messages wait.",
        "fila key resume kept umbrella",
    ),
    "a paused queue": (
        paused_queue, 2, "PAUSED", "orders has been paused by bob for 1 h 0 min: 70 messages wait.",
        "fila queue resume orders",
    ),
    "a limit that falls behind": (
        limit, 180, "LIMIT_BEHIND",
        ("sendgrid has fallen behind for 1 min: 4 a second need it, and it lets 2 through; "
         "360 messages wait in mail, sms."),
        "fila config set throttle.sendgrid 5,5",
    ),
    "a flood": (
        flood, 90, "FLOOD",
        ("acme has flooded orders for 1 min: 3,600 messages, 99% of what waits; 50 a second come and 10 are delivered; "
         "2 other keys wait for it."),
        "fila key rate orders acme 5",
    ),
    "all writes are refused": (
        lambda _: Facts(disk=Disk(is_full=True, free_bytes=0)), 2, "DISK",
        "The disk has been full for 2 s, 0 MB left: every write is refused.", "fila queue list",
    ),
    "a script of failures": (
        lambda _: Facts(circuits=[Circuit("a b", "on_failure")]), 2, "CIRCUIT_OPEN",
        "The script on_failure of a b has failed for 2 s and is not called: the queue's settings decide its failures.",
        "fila hook show 'a b'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ALONE)
def test_a_trouble_alone_is_told_with_its_cause_its_time_and_its_lever(name: str) -> None:
    state, seconds, kind, text, command = ALONE[name]

    [trouble] = Stage().run(seconds, state).report().troubles
    assert pb.Trouble.Kind.Name(trouble.kind) == f"KIND_{kind}"
    assert trouble.text == text
    assert trouble.command == command
    assert trouble.lever


STAGED = (lost, damaged, disk, circuit, nobody, poison, paused_key, limit, flood)
PAIRS = [pair for pair in itertools.combinations(STAGED, 2) if pair != (lost, damaged)]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: " and ".join(each.__name__ for each in pair))
def test_of_two_troubles_the_worse_comes_first_and_both_are_told(pair: tuple[State, State]) -> None:
    both = Stage().run(200, merged(*reversed(pair))).texts
    alone = [Stage().run(200, state).texts[0] for state in pair]

    assert both == alone


def test_four_are_told_by_harm_and_the_rest_is_counted() -> None:
    report = Stage().run(200, merged(*reversed(STAGED[2:]))).report()

    assert [trouble.kind for trouble in report.troubles] == [3, 4, 5, 6]
    assert report.more_troubles == 3
    assert report.well == ""


def test_of_one_kind_those_come_first_for_which_most_messages_wait() -> None:
    rows = [Unserved(name, "default", ready, 0) for name, ready in (("few", 3), ("most", 900), ("some", 40))]
    report = Stage().run(150, lambda _: Facts(unserved=rows)).report(max_troubles=2)

    assert [trouble.queue for trouble in report.troubles] == ["most", "some"]
    assert report.more_troubles == 1


# --- all is well ------------------------------------------------------------------------------


def rolling_restart(s: float) -> Facts:
    """Every five minutes nobody is there for 40 s."""
    return Facts(unserved=[Unserved("orders", "default", 500, int(s))] if s % 300 < 40 else [])


def polled_each_minute(s: float) -> Facts:
    """A worker pulls ten messages each minute, and waits for none."""
    return Facts(unserved=[Unserved("reports", "default", 200, 10 * int(s // 60))])


def few_fail(s: float) -> Facts:
    return Facts(failing=[Failing("orders", int(50 * s), int(2 * s), 0, 0, 0, 0, s)])


def one_dead_letter_a_minute(s: float) -> Facts:
    return Facts(failing=[Failing("orders", int(5 * s), int(s // 20), int(s // 60), 0, 0, 0, s)])


def burst_at_a_limit(s: float) -> Facts:
    """Two thousand come at once each ten minutes, and ten a second pass."""
    messages = max(2000 - int(10 * (s % 600)), 0)
    places = (("mail", "default", messages),)
    passed = 2000 * int(s // 600) + 2000 - messages
    return Facts(limits=[Limit("sendgrid", 10.0, 10.0, passed, messages, places)] if messages else [])


def limit_that_is_used_up(s: float) -> Facts:
    """As many come as pass, and a few seconds' worth wait."""
    return Facts(
        limits=[Limit("sendgrid", 10.0, 10.0, int(10 * s), 100 + int(s) % 7, (("mail", "default", 100),))]
    )


def slowed_flooder(s: float) -> Facts:
    """An operator gave it a rate: it waits for that, and for it nobody."""
    acme = key(
        "acme",
        held=1e6 * s,
        pending=int(40 * s),
        arrived=int(50 * s),
        delivered=int(5 * s),
        oldest_ms=900_000,
    )
    other = key("globex", share=10 * s, pending=2, arrived=int(s), delivered=int(s), oldest_ms=100)
    return Facts(keys=[acme, other], channels={(b"orders", b"default"): channel(ready=int(40 * s) + 2)})


def slowed_beside_one_who_waits(s: float) -> Facts:
    """As before, and the consumers are slow for another one."""
    facts = slowed_flooder(s)
    waits = key("globex", share=1e3 * s, pending=20, arrived=int(s), delivered=int(s), oldest_ms=12_000)
    return Facts(keys=[facts.keys[0], waits], channels=facts.channels)


def others_wait_for_tokens(s: float) -> Facts:
    """One sends faster than it is served, and the others wait for their provider and not for it."""
    facts = flood(s)
    others = [
        key(
            each.fairness_key.decode(),
            throttle=1e4 * s,
            pending=20,
            arrived=int(s),
            delivered=int(s),
            oldest_ms=12_000,
        )
        for each in facts.keys[1:]
    ]
    return Facts(keys=[facts.keys[0], *others], channels=facts.channels)


def others_wait_a_little(s: float) -> Facts:
    facts = flood(s)
    others = [
        key(name, share=10 * s, pending=2, arrived=int(s), delivered=int(s), oldest_ms=3_000) for name in "ab"
    ]
    return Facts(keys=[facts.keys[0], *others], channels=facts.channels)


def alone_with_its_backlog(s: float) -> Facts:
    """One tenant has all of what waits, and nobody waits for it."""
    acme = key(
        "acme",
        share=1e6 * s,
        pending=int(40 * s),
        arrived=int(50 * s),
        delivered=int(10 * s),
        oldest_ms=90_000,
    )
    return Facts(keys=[acme], channels={(b"orders", b"default"): channel(ready=int(40 * s))})


def four_equal_tenants_at_a_bucket(s: float) -> Facts:
    """Each has a quarter, and waits for tokens."""
    names = ("initech", "hooli", "acme", "globex")
    keys = [
        key(
            name,
            throttle=1e6 * s,
            share=10 * s,
            pending=200,
            arrived=int(2 * s),
            delivered=int(s),
            oldest_ms=30_000,
        )
        for name in names
    ]
    return Facts(keys=keys, channels={(b"orders", b"default"): channel(ready=800)})


def largest_waits_for_tokens(s: float) -> Facts:
    """It has most of what waits, because its provider is slow; who waits besides does so for the same."""
    keys = [
        key("initech", throttle=1e6 * s, pending=900, arrived=int(2 * s), delivered=int(s), oldest_ms=30_000),
        key("hooli", throttle=1e5 * s, pending=90, arrived=int(2 * s), delivered=int(s), oldest_ms=30_000),
    ]
    return Facts(keys=keys, channels={(b"orders", b"default"): channel(ready=990)})


def drained_backlog(s: float) -> Facts:
    """The largest is served faster than it sends, and the other waits a little."""
    left = 90_000 - int(20 * s)
    acme = key(
        "acme", share=1e6 * s, pending=left, arrived=int(5 * s), delivered=int(25 * s), oldest_ms=600_000
    )
    other = key("globex", share=1e3 * s, pending=5, arrived=int(s), delivered=int(s), oldest_ms=11_000)
    return Facts(keys=[acme, other], channels={(b"orders", b"default"): channel(ready=left + 5)})


def equal_backlogs(s: float) -> Facts:
    keys = [
        key(name, share=1e5 * s, pending=500, arrived=int(9 * s), delivered=int(8 * s), oldest_ms=20_000)
        for name in ("a", "b", "c")
    ]
    return Facts(keys=keys, channels={(b"orders", b"default"): channel(ready=1500)})


def nothing(_s: float) -> Facts:
    return Facts()


HEALTHY: dict[str, State] = {
    "nothing happens (also: a delay of an hour, retention, old dead letters, an idle pause give no facts)": nothing,
    "workers are restarted one by one": rolling_restart,
    "workers poll once a minute": polled_each_minute,
    "a few deliveries in a hundred fail": few_fail,
    "a dead letter now and then": one_dead_letter_a_minute,
    "a burst that a limit lets through in some minutes": burst_at_a_limit,
    "a limit that is just used up": limit_that_is_used_up,
    "a flooder that was slowed": slowed_flooder,
    "a flooder that was slowed, and another who waits": slowed_beside_one_who_waits,
    "others wait for tokens of their own": others_wait_for_tokens,
    "others wait three seconds for one who sends much": others_wait_a_little,
    "a tenant alone with a backlog": alone_with_its_backlog,
    "four equal tenants wait for one bucket": four_equal_tenants_at_a_bucket,
    "the largest waits for tokens": largest_waits_for_tokens,
    "a backlog that is being worked off": drained_backlog,
    "equal backlogs": equal_backlogs,
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_state_is_told_to_be_well_at_every_look_of_an_hour(name: str, told: Told) -> None:
    stage = Stage().run(3600, HEALTHY[name])

    assert told == []
    assert stage.texts == []
    assert stage.report().well == "All is well."


# --- when it begins and ends ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "kind", "after_s"),
    [(nobody, kinds.NOBODY_CONSUMES, 120), (limit, kinds.LIMIT_BEHIND, 122), (flood, kinds.FLOOD, 26)],
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
    assert [each.throttle_key for each in stage.report(queue="sms").troubles] == ["sendgrid"]


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
