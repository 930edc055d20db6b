"""States of a broker, staged as the facts of the looks there would have been: each kind of trouble, and health."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fila.v1 import events_pb2 as pb
from fila.v1.limit_pb2 import LIMIT_PART_BUDGET, LIMIT_PART_SLOTS
from fila_server.operations.trouble_facts import (
    Circuit,
    Disk,
    Facts,
    Failing,
    Found,
    Limit,
    Pause,
    Unserved,
)
from fila_server.operations.troubles import Troubles
from fila_server.telemetry.snapshot import Channel, Key

LOOK_S = 2.0
START_MS = 1_700_000_000_000
MINUTE = 60.0
State = Callable[[float], Facts]
"""The facts of a look so many seconds after the beginning."""


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


def paused_channel(_s: float) -> Facts:
    channel = Pause(
        "orders",
        "",
        9,
        since_ms=START_MS - 600_000,
        by="bob",
        comment="its table is rebuilt",
        channel="audit",
    )
    return Facts(pauses=[channel])


def limit(s: float) -> Facts:
    """Two a second pass, and four a second come; two queues wait."""
    messages = int(2 * s)
    places = (("mail", "default", messages - 5), ("sms", "default", 5))
    return Facts(limits=[Limit("sendgrid", 2.0, 2.0, int(2 * s), messages, places)] if messages > 5 else [])


def slots(s: float) -> Facts:
    """Both slots are taken, by work of 40 s; one comes every ten seconds."""
    messages = int(s / 10) - int(s / 20)
    places = (("render", "default", messages),)
    row = Limit("gpu", 0, 0, int(s / 20), messages, places, is_compound=True, part=LIMIT_PART_SLOTS, slots=2)
    return Facts(limits=[row] if messages else [])


def budget(_s: float) -> Facts:
    """All of the day is spent; it ends in five hours."""
    places = (("mail", "default", 30), ("sms", "default", 10))
    row = Limit(
        "openai", 0, 0, 1000, 40, places,
        is_compound=True, part=LIMIT_PART_BUDGET, amount=1000, period_ms=86_400_000,
        ends_ms=START_MS + 5 * 3_600_000,
    )  # fmt: skip
    return Facts(limits=[row])


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
    "a paused channel": (
        paused_channel, 2, "PAUSED",
        'The channel audit of orders has been paused by bob for 10 min ("its table is rebuilt"): 9 messages wait.',
        "fila channel resume orders audit",
    ),
    "a limit that falls behind": (
        limit, 180, "LIMIT_BEHIND",
        ("sendgrid has fallen behind for 1 min: 4 a second need it, and it lets 2 through; "
         "360 messages wait in mail, sms."),
        "fila config set throttle.sendgrid 5,5",
    ),
    "a limit whose slots are taken": (
        slots, 700, "LIMIT_BEHIND",
        ("gpu has fallen behind for 10 min: 0.1 a second need it, and it lets 0.067 through, with its 2 slots in use; "
         "35 messages wait in render."),
        "fila limit show gpu",
    ),
    "a budget that is spent": (
        budget, 720, "BUDGET_SPENT",
        ("openai has spent its budget of 1,000 messages in 24 h 0 min for 12 min: 40 messages wait in mail, sms for "
         "the next one, in 4 h 48 min."),
        "fila limit show openai",
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


STAGED = (lost, damaged, disk, circuit, nobody, poison, paused_key, limit, budget, flood)


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


def slots_with_long_work(s: float) -> Facts:
    """Two hundred wait behind five slots, which each takes for two minutes, and no more come."""
    passed = 5 * int(s // 120)
    waiting = max(200 - passed, 0)
    places = (("render", "default", waiting),)
    row = Limit("gpu", 0, 0, passed, waiting, places, is_compound=True, part=LIMIT_PART_SLOTS, slots=5)
    return Facts(limits=[row] if waiting else [])


def budget_of_seconds(s: float) -> Facts:
    """What may go in each half minute is spent in its first seconds, and goes in the next one."""
    if s % 30 < 2:
        return Facts()
    row = Limit(
        "openai", 0, 0, 10 * int(s // 30), 5, (("mail", "default", 5),),
        is_compound=True, part=LIMIT_PART_BUDGET, amount=10, period_ms=30_000,
        ends_ms=START_MS + 30_000 * (int(s // 30) + 1),
    )  # fmt: skip
    return Facts(limits=[row])


def budget_as_short_as_a_look(s: float) -> Facts:
    """At each look a new period is spent already."""
    row = budget(s).limits[0]
    return Facts(limits=[row._replace(period_ms=1000, ends_ms=START_MS + int(s * 1000) + 500)])


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
    "slots that are taken for minutes": slots_with_long_work,
    "a budget of half a minute": budget_of_seconds,
    "a budget that is spent anew at each look": budget_as_short_as_a_look,
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
