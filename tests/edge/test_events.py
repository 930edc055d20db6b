"""The ring of events: bounded, in order, filtered, and honest about what is missed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fila.v1 import admin_pb2, events_pb2
from fila_server import events
from fila_server.errors import Invalid, Overloaded
from fila_server.events import FAMILIES, KINDS, MISSED, PER_KIND_A_SECOND, Ring, matches
from fila_server.operations import changes
from fila_server.services.watching import WATCHERS_MAX, Watching, on_the_wire

REPLIES = {
    "Redrive": admin_pb2.RedriveResponse(redriven=7).SerializeToString(),
    "DropDeadLetters": events_pb2.DropDeadLettersResponse(dropped=7).SerializeToString(),
}
ROOT = Path(__file__).parents[2]
SERVER = ROOT / "server/src/fila_server"
KIND = re.compile(r"[a-z_]+\.[a-z_]+")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ring(clock: Clock) -> Ring:
    return Ring(1_000, kept=5, now_s=clock)


def add(ring: Ring, count: int, kind: str = "queue.created", **about: str) -> None:
    for _ in range(count):
        ring.add(7, kind, 1, {}, **about)


def positions(found) -> list[int]:
    return [event.position for event in found]


def test_events_come_in_order_and_from_where_one_stopped(ring: Ring):
    add(ring, 3)

    first, missed = ring.after(0, 2)
    rest, _ = ring.after(first[-1].position, 10)

    assert (positions(first), positions(rest), missed) == ([1_000, 1_001], [1_002], 0)
    assert ring.after(1_002, 10) == ((), 0)


def test_who_falls_behind_is_told_how_many_were_missed(ring: Ring):
    add(ring, 8)

    found, missed = ring.after(1_000, 10)

    assert positions(found) == [1_003, 1_004, 1_005, 1_006, 1_007]
    assert missed == 2


def test_a_position_of_an_earlier_run_is_before_all_and_missed_nothing_of_this_one(ring: Ring):
    add(ring, 2)

    assert ring.after(17, 10)[1] == 0
    assert positions(ring.after(17, 10)[0]) == [1_000, 1_001]


def test_a_kind_that_happens_too_often_is_counted_and_told_with_the_next(clock: Clock):
    ring = Ring(1, now_s=clock)
    add(ring, PER_KIND_A_SECOND + 3, "consumer.joined")
    add(ring, 1, "queue.created")
    clock.now = 1.0
    add(ring, 1, "consumer.joined")

    found, _ = ring.after(0, 1_000)

    assert len(found) == PER_KIND_A_SECOND + 2
    assert found[-1].details == {"held_back": "3"}


@pytest.mark.parametrize(
    ("queue", "kinds", "key", "does"),
    [
        ("", (), "", True),
        ("orders", (), "", True),
        ("other", (), "", False),
        ("", ("key",), "", True),
        ("", ("key.paused", "queue"), "", False),
        ("", ("ke",), "", False),
        ("", (), "acme", True),
        ("", (), "globex", False),
    ],
)
def test_a_watcher_gets_what_it_asked_for(ring: Ring, queue, kinds, key, does):
    add(ring, 1, "key.policy_set", queue="orders", fairness_key="acme")

    assert matches(ring.after(0, 1)[0][0], queue, kinds, key) is does


async def heard(watching: Watching, **request) -> list[events_pb2.Event]:
    answers = [
        events_pb2.WatchEventsResponse.FromString(frame)
        async for frame in watching.watch(events_pb2.WatchEventsRequest(**request))
    ]
    return [event for answer in answers for event in answer.events]


def never_drains(_):
    return lambda: None


async def test_a_watcher_is_told_what_is_kept_and_then_the_stream_ends(ring: Ring):
    add(ring, 2, queue="orders")
    add(ring, 1, queue="other")

    assert [event.position for event in await heard(Watching(never_drains, ring), queue="orders")] == [
        1_000,
        1_001,
    ]


@pytest.mark.parametrize("kind", ["hook.failed", "hook.circuit_opened"])
async def test_what_an_event_quotes_of_messages_is_for_those_who_may_read_them(ring: Ring, kind: str):
    quoted = {"error": "bad acme", "headers": "tenant=acme", "hook": "on_enqueue"}
    ring.add(7, kind, 1, quoted, queue="orders")

    async def details(quotes: bool) -> dict[str, str]:
        stream = Watching(never_drains, ring).watch(
            events_pb2.WatchEventsRequest(), quotes=lambda _queue: quotes
        )
        (event,) = events_pb2.WatchEventsResponse.FromString(await anext(stream)).events
        await stream.aclose()
        return dict(event.details)

    assert set(await details(quotes=True)) == {"error", "headers", "hook"}
    assert await details(quotes=False) == {"hook": "on_enqueue"}


async def test_a_watcher_that_missed_some_hears_of_it_first(ring: Ring):
    add(ring, 8)

    found = await heard(Watching(never_drains, ring), after_position=1_000)

    assert (found[0].kind, found[0].count) == (MISSED, 2)
    assert len(found) == 6


async def test_a_watcher_that_follows_is_woken_by_the_next_event(ring: Ring):
    watching = Watching(never_drains, ring)
    stream = watching.watch(events_pb2.WatchEventsRequest(follow=True))
    assert not events_pb2.WatchEventsResponse.FromString(await anext(stream)).events

    add(ring, 1)

    told = events_pb2.WatchEventsResponse.FromString(await anext(stream))
    assert [event.position for event in told.events] == [1_000]
    await stream.aclose()


async def test_more_watchers_than_there_may_be_are_refused(ring: Ring):
    watching = Watching(never_drains, ring)
    streams = [watching.watch(events_pb2.WatchEventsRequest(follow=True)) for _ in range(WATCHERS_MAX)]
    for stream in streams:
        await anext(stream)

    with pytest.raises(Overloaded, match="100 watch already"):
        await anext(watching.watch(events_pb2.WatchEventsRequest()))
    for stream in streams:
        await stream.aclose()


@pytest.mark.parametrize(
    ("kind", "there_are"),
    [
        ("queue.craeted", "queue.created, queue.updated"),
        ("key.", "key.policy_set, key.message_skipped, key.throttled"),
        ("queues", ", ".join(FAMILIES)),
        ("que", ", ".join(FAMILIES)),
        ("", ", ".join(FAMILIES)),
        ("Queue", ", ".join(FAMILIES)),
        ("*", ", ".join(FAMILIES)),
    ],
)
async def test_a_kind_that_there_is_none_of_is_refused_with_those_that_there_are(ring: Ring, kind, there_are):
    with pytest.raises(Invalid) as told:
        await heard(Watching(never_drains, ring), kinds=["config", kind], follow=True)

    assert told.value.message.startswith(
        f'kinds must be kinds of events, got "{kind}": there are {there_are}'
    )


async def test_each_kind_and_each_family_of_kinds_can_be_asked_for(ring: Ring):
    for kind in KINDS:
        add(ring, 1, kind)
        asked = Watching(never_drains, ring)
        assert kind in [event.kind for event in await heard(asked, kinds=[kind])]
        assert kind in [event.kind for event in await heard(asked, kinds=[kind.partition(".")[0]])]


def emitted_in(tree: ast.Module) -> Iterator[str]:
    """What stands where a kind is told, or is chosen from: arguments of emit, and tables and tuples of kinds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            found = node.args[:1] if name.endswith(("emit", "_tell")) else []
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "").startswith("_"):
            of_table = node.value.values if isinstance(node.value, ast.Dict) else []
            found = node.value.elts if isinstance(node.value, ast.Tuple) else of_table
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "kind":
            found = [node.value, getattr(node.value, "body", None), getattr(node.value, "orelse", None)]
        else:
            continue
        for each in found:
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield each.value


def test_what_is_told_what_the_page_says_and_what_can_be_asked_for_are_the_same():
    sources = [file.read_text() for file in SERVER.rglob("*.py")]
    told = {
        kind
        for source in sources
        if "import emit" in source or "def emit" in source or ", emit" in source
        for kind in emitted_in(ast.parse(source))
        if KIND.fullmatch(kind)
    }
    table = (ROOT / "docs/events.md").read_text().partition("## Kinds")[2].partition("## Bounds")[0]
    described = {
        kind
        for line in table.splitlines()
        if line.startswith("| `")
        for kind in re.findall(r"`([a-z_.]+)`", line.split("|")[1])
    }
    of_keys = {"key.throttled", "key.starved", "key.released"}  # made of the state

    assert described == set(KINDS)
    assert told | of_keys | {MISSED} == set(KINDS)


def test_the_console_and_the_command_line_know_no_other_kinds():
    from fila_cli.commands.events import _HELD, _TROUBLE
    from fila_console.pages import events as page

    assert set(page.KINDS) < set(FAMILIES)
    assert {*_HELD, *_TROUBLE, *page._LOST} <= set(KINDS)


# --- what a call is told as ------------------------------------------------------------------


@pytest.fixture
def told(monkeypatch):
    ring = Ring(1)
    monkeypatch.setattr(events, "RING", ring)
    return lambda: ring.after(0, 10)[0]


def test_a_change_says_what_was_changed_and_from_where(told):
    request = admin_pb2.UpdateQueueRequest(queue="orders", config=admin_pb2.QueueConfig(max_depth=3))
    request.update_mask.paths.append("max_depth")

    changes.report("UpdateQueue", request, "ipv4:10.0.0.7:5021")

    (event,) = told()
    assert (event.kind, event.queue, event.peer) == ("queue.updated", "orders", "ipv4:10.0.0.7:5021")
    assert event.details == {"changed": "max_depth", "settings": "max_depth"}


def test_details_are_in_no_languages_own_notation(monkeypatch, ring: Ring):
    monkeypatch.setattr(events, "RING", ring)

    events.emit("hook.failed", headers={"tenant": "acme", "a": "1"}, paused=True, errors=3, error="x")

    ((happening,), _) = ring.after(0, 10)
    assert happening.details == {"headers": "a=1 tenant=acme", "paused": "true", "errors": "3", "error": "x"}


def test_a_value_or_a_script_is_told_by_its_length_alone(told):
    changes.report("SetConfig", admin_pb2.SetConfigRequest(key="token", value="secret"), "")
    config = admin_pb2.QueueConfig(on_enqueue_script="-- secret")
    changes.report("CreateQueue", admin_pb2.CreateQueueRequest(name="orders", config=config), "")
    changes.report("SetConfig", admin_pb2.SetConfigRequest(key="token"), "")

    assert [event.kind for event in told()] == ["config.set", "queue.created", "config.deleted"]
    assert "secret" not in str(told())


def test_every_call_that_changes_something_has_a_kind(told):
    for method, request_type in changes.REQUEST_BY_METHOD.items():
        changes.report(method, request_type(), "", reply=REPLIES.get(method, b""))

    assert len(told()) == min(10, len(changes.REQUEST_BY_METHOD))


@pytest.mark.parametrize("method", changes.REQUEST_BY_METHOD)
def test_whatever_a_request_says_its_event_can_be_sent(told, method):
    """A field that has the name of one of an event's own would end every watcher that comes to it."""
    request = changes.REQUEST_BY_METHOD[method]()
    for field in request.DESCRIPTOR.fields:
        if field.name == "validate_only":
            continue
        if field.message_type is not None:
            getattr(request, field.name).SetInParent()
        elif field.is_repeated:
            getattr(request, field.name).append(3)
        else:
            setattr(request, field.name, "x" if field.type == field.TYPE_STRING else 3)

    changes.report(method, request, "", reply=REPLIES.get(method, b""))

    (event,) = told()
    assert on_the_wire(event).count == (7 if method in REPLIES else 1)


def test_a_redrive_is_told_by_what_it_moved_and_one_that_moved_nothing_not_at_all(told):
    request = admin_pb2.RedriveRequest(dlq_queue="orders.dlq", count=10)

    changes.report("Redrive", request, "", reply=admin_pb2.RedriveResponse(redriven=3).SerializeToString())
    changes.report("Redrive", request, "", reply=admin_pb2.RedriveResponse().SerializeToString())

    (event,) = told()
    assert (event.queue, event.count, event.details) == ("orders.dlq", 3, {"at_most": "10"})
