"""Watching: one question for all who look at a page, what each is told, and what the broker tells as it changes."""

from __future__ import annotations

import asyncio
import contextlib
import time

import orjson
import pytest

from fila.answers import KeyState
from fila.watched import QueueState, StatsChange, WatchedChannel
from fila_console import streams, watches
from fila_console.cells import State, cell
from fila_console.feed import Feed
from fila_console.pages.tenant import TenantTopic
from fila_console.settings import Broker
from fila_console.streams import stream
from fila_console.trouble import Trouble
from fila_console.upstream import Upstream
from fila_console.watches import Asked, Watch

HERE = Broker("broker", "http://localhost:1")

# Words.


def state(**texts: str) -> State:
    made = State()
    made.texts = {name: cell(text) for name, text in texts.items()}
    return made


class Topic(Asked):
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.trouble: Trouble | None = None
        self.breaks = False

    async def look(self, upstream: Upstream) -> State:
        self.asked += 1
        assert not self.breaks
        if self.trouble is not None:
            raise self.trouble
        return state(asked=str(self.asked))


async def told(answer, events: list[str]) -> None:
    # One by one: their reader is cancelled, and what came before counts.
    async for chunk in answer.body_iterator:
        events.append(chunk.decode())  # noqa: PERF401


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(watches, "EVERY_S", 0.02)
    monkeypatch.setattr(watches, "LINGER_S", 0.05)


async def test_a_page_that_cannot_be_made_is_tried_again(quick):
    topic = Topic()
    watch = Watch(topic, Upstream(HERE, ""))
    await watch.current()
    topic.breaks = True
    await watch._ask()
    assert watch.trouble.status == 500
    topic.breaks = False
    assert (await watch.current()).texts["asked"]
    watch.stop()


async def test_twenty_browsers_ask_one_question(quick):
    topic = Topic()
    watch = Watch(topic, Upstream(HERE, ""))
    began_s = time.monotonic()
    events = await asyncio.gather(*(until_changes(stream(watch, lambda: True)) for _ in range(20)))

    assert topic.asked <= (time.monotonic() - began_s) / watches.EVERY_S + 2
    assert watch.watchers == 0
    assert all("event: whole" in each[1] for each in events)
    watch.stop()


async def until_changes(answer) -> list[str]:
    """What a browser is told, until it is told of a change."""
    events: list[str] = []
    async with contextlib.aclosing(answer.body_iterator) as told_it:
        async for chunk in told_it:
            events.append(chunk.decode())
            if "event: changes" in events[-1]:
                break
    return events


async def test_nobody_is_asked_when_nobody_looks(quick):
    topic = Topic()
    watch = Watch(topic, Upstream(HERE, ""))
    await watch.current()
    await watch._task
    assert topic.asked <= watches.LINGER_S / watches.EVERY_S + 2

    await watch.current()
    assert not watch._task.done(), "it goes on once somebody looks again"
    watch.stop()


async def test_a_browser_that_missed_a_state_gets_the_newest_whole(quick):
    topic = Topic()
    watch = Watch(topic, Upstream(HERE, ""))
    await watch.current()
    seq = watch.seq
    await watch._ask()
    assert watch.since(seq)[0] == "changes"
    await watch._ask()
    name, data = watch.since(seq)
    assert name == "whole"
    assert orjson.loads(data)["texts"]["asked"]["t"] == str(topic.asked)
    watch.stop()


async def test_a_failure_is_told_once_and_what_comes_after_it_is_whole(quick):
    topic = Topic()
    watch = Watch(topic, Upstream(HERE, ""))
    await watch.current()
    topic.trouble = Trouble(503, "Away", "text")
    await watch._ask()
    seq = watch.seq
    assert watch.since(0)[0] == "failed"
    await watch._ask()
    assert watch.seq == seq
    topic.trouble = None
    await watch._ask()
    assert watch.since(seq)[0] == "whole"
    watch.stop()


async def test_a_stream_says_that_the_console_is_there_while_the_broker_says_nothing(quick, monkeypatch):
    monkeypatch.setattr(streams, "STILL_HERE_S", 0.01)
    topic = Topic()
    watch = Watch(topic, Upstream(HERE, ""))
    await watch.current()
    never = asyncio.Event()

    async def silent(_: Upstream) -> State:
        await never.wait()
        return state()

    topic.look = silent  # type: ignore[assignment, method-assign]
    events: list[str] = []
    allowed = [True, True, True, False]
    await asyncio.wait_for(told(stream(watch, lambda: allowed.pop(0) if allowed else False), events), 5)
    assert "event: here" in "".join(events)
    watch.stop()


async def test_there_is_nothing_new_as_long_as_the_broker_has_never_answered():
    watch = Watch(Topic(), Upstream(HERE, ""))
    assert not await watch.after(0, 0.0)


async def test_a_stream_ends_with_its_login(quick):
    watch = Watch(Topic(), Upstream(HERE, ""))
    events: list[str] = []
    allowed = [True, True, False]
    await asyncio.wait_for(told(stream(watch, lambda: allowed.pop(0) if allowed else False), events), 5)
    assert "event: ended" in events[-1]
    watch.stop()


def key_state(name: str, ready: int = 0) -> KeyState:
    return KeyState(fairness_key=name, state="not_its_turn", ready=ready)


def change(leading: list[str], keys: list[KeyState], *, full: bool = False) -> StatsChange:
    channel = WatchedChannel(state=QueueState(queue="q", channel="default"), keys=keys, leading=leading)
    return StatsChange(sequence=1, full=full, channels=[channel], gone=[])


async def test_changes_are_put_together_again():
    async def told():
        yield change(["a", "b"], [key_state("a", 1), key_state("b", 2)], full=True)
        yield change(["b", "c"], [key_state("c", 3)])
        await asyncio.Event().wait()

    feed = Feed(told, ["a"])
    await feed.ready()
    await asyncio.sleep(0)
    keys = feed.keys["q", "default"]
    assert [(name, each.ready) for name, each in sorted(keys.items())] == [("a", 1), ("b", 2), ("c", 3)]
    assert feed.leading["q", "default"] == ["b", "c"]
    await feed.close()


async def test_a_feed_that_broke_says_so_and_begins_anew():
    begun = 0

    async def told():
        nonlocal begun
        begun += 1
        if begun == 1:
            raise Trouble(503, "Away", "text")
        yield change(["a"], [key_state("a")], full=True)

    feed = Feed(told)
    with pytest.raises(Trouble, match="Away"):
        await feed.ready()
    await feed.ready()
    assert feed.leading["q", "default"] == ["a"]
    await feed.close()


class SilentBroker(Upstream):
    """What a page asks when the broker does not answer, told as to an operator."""

    def __init__(self) -> None:
        """Nothing is connected."""

    def follow(self, *_: object) -> Feed:
        raise Trouble(503, "The broker does not answer", "Nothing came from 10.0.0.7:5555.")


async def test_a_tenant_is_not_told_where_a_silent_broker_is():
    with pytest.raises(Trouble) as told:
        await TenantTopic("orders", "acme").look(SilentBroker())

    assert told.value.status == 503
    assert "10.0.0.7" not in told.value.title + told.value.text + told.value.advice
