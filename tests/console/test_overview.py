"""Questions to the broker: how often each is asked, and what is shown before and between two answers."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from types import SimpleNamespace

import pytest

from fila.observations import BrokerStatus, BrokerTrouble, LateKey, LateKeys
from fila.watched import QueueState
from fila_console import questions
from fila_console.broker_clock import BrokerClock
from fila_console.cells import State
from fila_console.pages import overview
from fila_console.pages.overview import Overview
from fila_console.questions import Question
from fila_console.settings import Broker
from fila_console.trouble import Trouble
from fila_console.upstream import Upstream
from fila_console.watches import Asked as AskedAnew
from fila_console.watches import Watch
from fila_console.wrong import sentences


class Numbers:
    """A feed of one queue."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self.sums = None
        self.channels = {
            ("orders", "default"): QueueState(queue="orders", channel="default", ready=9, consumers=1)
        }

    async def ready(self) -> None:
        return

    async def close(self) -> None:
        return


class Asked:
    """A broker with one late key, which counts what it is asked."""

    broker = Broker("broker", "http://localhost:1")
    clock = BrokerClock()

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.troubles: list[BrokerTrouble] = []

    def follow(self, *_: object, **__: object) -> Numbers:
        return Numbers()

    async def late(self, max_keys: int) -> LateKeys:
        self.asked["late"] += 1
        key = LateKey(
            queue="orders", channel="default", fairness_key="acme", cause="throttled", waiting_ms=20_000
        )
        return LateKeys(keys=[key], waiting_keys=1)

    async def status(self, max_troubles: int) -> BrokerStatus:
        self.asked["status"] += 1
        told = self.troubles[:max_troubles]
        return BrokerStatus(version="1", commit="c", troubles=told, well="" if told else "All is well.")

    async def series(self, queue: str) -> None:
        return None


@pytest.fixture
def clock(monkeypatch):
    """Seconds, told to the page."""
    told = [1_000.0]
    for each in (overview, questions):
        monkeypatch.setattr(each, "time", SimpleNamespace(monotonic=lambda: told[0], time=time.time))
    return told


async def test_who_is_late_is_asked_every_other_second_and_ages_in_between(clock, monkeypatch):
    monkeypatch.setattr(overview, "_series", lambda upstream, queue: upstream.series(queue))
    page, broker = Overview(), Asked()
    waits = []
    for _ in range(10):
        state = await page.look(broker)  # type: ignore[arg-type]
        waits.append(state.tables["late"][0]["cells"][2]["t"])
        clock[0] += 1.0
    assert waits[:4] == ["▲ 20.0 s", "▲ 21.0 s", "▲ 20.0 s", "▲ 21.0 s"]
    assert broker.asked == {"late": 5, "status": 5}


async def test_a_page_does_not_wait_for_a_long_answer_and_says_that_it_is_read(clock, monkeypatch):
    """Who waits longest among a million keys takes the broker some tenths of a second."""
    monkeypatch.setattr(overview, "_series", lambda upstream, queue: upstream.series(queue))
    monkeypatch.setattr(questions, "WAIT_S", 0.0)
    page, broker, may_answer = Overview(), Asked(), asyncio.Event()
    late = broker.late

    async def slow(max_keys: int) -> LateKeys:
        await may_answer.wait()
        return await late(max_keys)

    broker.late = slow  # type: ignore[method-assign]
    state = await page.look(broker)  # type: ignore[arg-type]
    assert state.texts["sentence-0"]["t"] == "All is well."
    assert [each["cells"][0]["t"] for each in state.tables["late"]] == ["reading …"]
    may_answer.set()
    monkeypatch.setattr(questions, "WAIT_S", 30.0)
    state = await page.look(broker)  # type: ignore[arg-type]
    assert [each["cells"][0]["t"] for each in state.tables["late"]] == ["acme"]
    await page.close()


async def test_the_first_lines_are_the_brokers_sentences_with_a_lever_each(clock, monkeypatch):
    monkeypatch.setattr(overview, "_series", lambda upstream, queue: upstream.series(queue))
    page, broker = Overview(), Asked()
    state = await page.look(broker)  # type: ignore[arg-type]
    assert state.texts["sentence-0"] == {"t": "All is well."}

    broker.troubles = [
        BrokerTrouble(
            kind="disk", text="The disk is full.", lever="Make room on it", command="fila queue list"
        ),
        BrokerTrouble(
            kind="nobody_consumes", text="Nobody consumes orders.", queue="orders", lever="Start a consumer"
        ),
        BrokerTrouble(kind="failing", text="mail fails.", queue="mail", lever="See why"),
        BrokerTrouble(
            kind="paused", text="a\u202e is paused.", queue="orders", fairness_key="a/b", lever="Resume"
        ),
        *[BrokerTrouble(kind="flood", text="flooded", queue=f"q{number}") for number in range(3)],
    ]
    clock[0] += 2.0
    state = await page.look(broker)  # type: ignore[arg-type]
    said = [(state.texts[f"sentence-{place}"], state.texts[f"lever-{place}"]) for place in range(4)]
    assert said == [
        (
            {"t": "The disk is full.", "tone": "lost"},
            {"t": "Make room on it", "href": "/b/broker/events", "title": "fila queue list"},
        ),
        (
            {"t": "Nobody consumes orders.", "tone": "late"},
            {"t": "Start a consumer", "href": "/b/broker/queues/orders#consumers"},
        ),
        (
            {"t": "mail fails.", "tone": "late"},
            {"t": "See why", "href": "/b/broker/queues/mail.dlq/dead-letters"},
        ),
        (
            {"t": "a\\u{202e} is paused.", "tone": "paused"},
            {"t": "Resume", "href": "/b/broker/queues/orders/key?key=a%2Fb"},
        ),
    ]
    assert state.texts["more"]["t"] == "and 3 more"
    assert state.tables["queues"][0]["cells"][1]["t"] == "▲ nobody consumes"


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ({"fairness_key": "a"}, "/b/broker/queues/orders/key?key=a"),
        ({"channel": "audit"}, "/b/broker/queues/orders/manage#channels-title"),
        ({}, "/b/broker/queues/orders"),
    ],
)
def test_the_lever_of_a_pause_is_where_what_is_paused_is_resumed(place, path):
    trouble = BrokerTrouble(kind="paused", text="It is paused.", queue="orders", lever="Resume", **place)
    told = sentences("broker", BrokerStatus(version="1", commit="c", troubles=[trouble], well=""))
    assert told["lever-0"]["href"] == path


async def test_a_question_that_fails_says_so_once_and_is_asked_again(clock):
    fails = [True]

    async def answered() -> str:
        if fails.pop():
            raise Trouble(503, "The broker does not answer", "Nothing came.")
        return "told"

    question: Question[str] = Question(2.0)
    with pytest.raises(Trouble):
        await question.ask(answered)
    fails.append(False)
    assert await question.ask(answered) == "told"
    clock[0] += 1.0
    assert await question.ask(answered) == "told", "it is not asked again before its time"


async def test_a_question_that_nobody_waits_for_ends_with_its_page(clock, monkeypatch):
    monkeypatch.setattr(questions, "WAIT_S", 0.0)
    ended: list[str] = []

    async def never() -> str:
        try:
            await asyncio.Event().wait()
            return "never"
        finally:
            ended.append("ended")

    question: Question[str] = Question(2.0)
    assert await question.ask(never) is None
    await asyncio.sleep(0)
    question.close()
    await asyncio.sleep(0)
    assert ended == ["ended"]


async def test_a_question_that_is_closed_while_somebody_waits_for_it_tells_what_was_told_last(
    clock, monkeypatch
):
    monkeypatch.setattr(questions, "WAIT_S", 30.0)
    may_answer = asyncio.Event()
    may_answer.set()

    async def told() -> str:
        await may_answer.wait()
        return "told"

    question: Question[str] = Question(2.0)
    assert await question.ask(told) == "told"
    clock[0] += 2.0
    may_answer.clear()
    waiting = asyncio.create_task(question.ask(told))
    await asyncio.sleep(0)
    question.close()
    assert await waiting == "told"
    may_answer.set()
    assert await question.ask(told) == "told", "it is asked again"


@pytest.mark.parametrize(("rest", "asked_at"), [(20, [0.0, 6.3, 12.6]), (40, [0.0, 12.3])])
async def test_a_slow_answer_is_not_asked_for_back_to_back(clock, rest, asked_at):
    """The broker is at it a twentieth of the time at most, or a fortieth."""
    asked: list[float] = []

    async def slow() -> str:
        asked.append(clock[0] - 1_000.0)
        clock[0] += 0.3
        return "told"

    question: Question[str] = Question(2.0, rest)
    for _ in range(15):
        await question.ask(slow)
        clock[0] += 1.0
    assert asked == pytest.approx(asked_at)
    assert question.at_s == pytest.approx(1_000.0 + asked_at[-1]), (
        "what was told ages from when it was asked for"
    )


async def test_a_page_is_not_closed_while_it_is_made():
    """What it is made from would be gone: the browser that asked for it was told that the console failed."""
    making, may_end, order = asyncio.Event(), asyncio.Event(), []

    class Page(AskedAnew):
        async def look(self, upstream: Upstream) -> State:
            making.set()
            await may_end.wait()
            order.append("made")
            return State()

        async def close(self) -> None:
            order.append("closed")

    watch = Watch(Page(), Upstream(Asked.broker, ""))
    asking = asyncio.create_task(watch.current())
    await making.wait()
    watch.stop()
    for _ in range(3):
        await asyncio.sleep(0)
    may_end.set()
    await asking
    await asyncio.gather(watch._task, return_exceptions=True)
    assert order == ["made", "closed"]
