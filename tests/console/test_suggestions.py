"""Numbers that the console suggests, and dues it tells, each alone: where they come from, and where there is none."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from fila.answers import KeyState
from fila.explanation import (
    ChannelConsumers,
    Forecast,
    ForecastChange,
    KeyExplanation,
    KeyPolicyPreview,
    ServedKey,
    ServedMeanwhile,
    WaitCauses,
)
from fila.observations import LateKey, LateKeys
from fila.watched import KeySeries, KeySeriesPoint, Series, SeriesPoint
from fila_console.broker_clock import BrokerClock
from fila_console.dues import due_lately, due_now, due_then
from fila_console.pages.key import KeyTopic, _headline, preview
from fila_console.pages.overview import _free_at, _late_count, _late_row
from fila_console.pages.queue import _cause_rows
from fila_console.pages.tenant import _headline as tenant_headline
from fila_console.settings import Broker
from fila_console.suggestions import Pace, grows, last_minute, suggestions
from fila_console.wording import UNKNOWN, cause

WEIGHT_MAX = 1_000


def hour(*points: KeySeriesPoint) -> Series:
    return Series(
        step_ms=10_000,
        points=[SeriesPoint(recorded=True)] * len(points),
        keys=[KeySeries(fairness_key="a", points=[*points])],
        recorded_keys=["a"],
    )


def step(served: float, arrived: float = 0.0, due: float = 0.0, pending: int = 0) -> KeySeriesPoint:
    return KeySeriesPoint(recorded=True, served=served, arrived=arrived, due=due, pending=pending)


def texts(**given) -> dict[str, str]:
    asked = {
        "pace": None,
        "told": None,
        "weight": 1,
        "consumers": None,
        "weight_max": WEIGHT_MAX,
        "channels": 1,
    }
    return {name: each["t"] for name, each in suggestions(**asked | given).items()}


# The last minute.


def test_the_last_minute_is_a_minute_and_no_gap_counts_as_nothing():
    busy_before = [step(9_000, 9_000)] * 3
    minute = [step(150, 310)] * 4 + [KeySeriesPoint()] * 2
    assert last_minute(hour(*busy_before, *minute)) == Pace(arrived=31.0, served=15.0)


def test_where_nothing_was_recorded_there_is_no_pace():
    assert last_minute(hour(*[KeySeriesPoint()] * 6)) is None
    assert last_minute(Series(step_ms=10_000, points=[], keys=[], recorded_keys=[])) is None


# What is suggested.


def test_a_rate_is_suggested_from_what_the_key_got_and_says_so():
    told = texts(pace=Pace(arrived=31.0, served=15.0))
    assert (told["rate-half"], told["rate-same"]) == ("7.5", "15")
    assert told["rate-from"] == "half of what it got in the last minute, or as much (15.0/s; 31.0/s arrived)"


def test_a_rate_counts_messages_where_they_cost_more_than_one():
    key = KeyState(fairness_key="a", state="not_its_turn", delivered_total=100, served_total=1_000.0)
    assert texts(pace=Pace(arrived=2.0, served=40.0), told=key)["rate-same"] == "4"


@pytest.mark.parametrize(
    ("got", "read"), [(0.004, "0.004"), (0.25, "0.25"), (9.96, "10"), (12.6, "13"), (1_234.0, "1200")]
)
def test_a_suggested_rate_is_a_number_that_its_field_takes(got, read):
    assert texts(pace=Pace(arrived=got, served=got))["rate-same"] == read


def test_a_key_that_got_nothing_is_suggested_no_rate():
    told = texts(pace=Pace(arrived=5.0, served=0.0))
    assert (told["rate-half"], told["rate-same"]) == ("", "")
    assert "got nothing" in told["rate-from"]


def test_weights_are_suggested_within_their_bounds():
    assert [texts(weight=8)[f"weight-{each}"] for each in ("less", "more")] == ["4", "16"]
    assert [texts(weight=1)[f"weight-{each}"] for each in ("less", "more")] == ["", "2"]
    assert "a rate slows it" in texts(weight=1)["weight-from"]
    assert [texts(weight=600)[f"weight-{each}"] for each in ("less", "more")] == ["300", ""]


def test_a_cap_is_suggested_from_what_consumers_may_hold():
    told = texts(consumers=ChannelConsumers(count=2, window=9, held=9))
    assert (told["cap-half"], told["cap-from"]) == ("4", "half of the 9 messages that consumers may hold")
    assert texts(consumers=ChannelConsumers())["cap-half"] == ""


@pytest.mark.parametrize(
    ("consumers", "read"),
    [
        (None, "Nobody consumes that a cap could go by."),
        (ChannelConsumers(), "Nobody consumes that a cap could go by."),
        (ChannelConsumers(count=1, window=1), "Consumers hold too little for a cap to go by."),
        (ChannelConsumers(waiting_pulls=2), "Consumers hold too little for a cap to go by."),
    ],
)
def test_where_no_cap_is_suggested_consumers_are_told_from_none(consumers, read):
    told = texts(consumers=consumers)
    assert (told["cap-half"], told["cap-from"]) == ("", read)


def test_a_rate_below_what_arrives_is_told_to_grow_the_backlog():
    pace = Pace(arrived=31.0, served=15.0)
    assert grows(5.0, pace, 1).endswith("its backlog grows by 1,560 messages a minute.")
    assert grows(31.0, pace, 1).endswith("its backlog does not grow.")
    assert grows(0.0, pace, 1) == grows(None, pace, 1) == grows(5.0, None, 1) == ""


# A key's page, in front of a broker that tells what it is given.


class Told:
    """A broker with one key that got 15 a second in the channel that is asked about, and what is told of it."""

    broker = Broker("broker", "http://localhost:1")
    clock = BrokerClock()

    def __init__(self, channels: list[str], behind_higher: int = 0) -> None:
        self._channels = channels
        self._behind_higher = behind_higher

    def follow(self, *_: object) -> SimpleNamespace:
        async def done() -> None:
            return

        return SimpleNamespace(news=asyncio.Event(), keys={}, ready=done, close=done)

    def color(self, *_: object) -> int:
        return 0

    async def channels(self, queue: str) -> list[str]:
        return self._channels

    async def key_policies(self, *_: object) -> list[object]:
        return []

    async def series(self, *_: object) -> Series:
        return hour(*[step(150, 100)] * 6)

    async def explain(self, *_: object) -> KeyExplanation:
        served = ServedMeanwhile(keys=[ServedKey(fairness_key="globex", share=1.0, cost=9.0)])
        return KeyExplanation(
            state="not_its_turn",
            pending=3,
            weight=1,
            served_meanwhile=served,
            behind_higher=self._behind_higher,
        )

    async def preview_key_policy(self, *_: object) -> KeyPolicyPreview:
        same = ForecastChange(before=Forecast(), after=Forecast())
        return KeyPolicyPreview(head=same, tail=same, losing=[])


async def key_page(channels: list[str], channel: str, **told: int) -> Any:
    topic = KeyTopic("orders", channel, "a")
    state = await topic.look(Told(channels, **told))  # type: ignore[arg-type]
    await topic.close()
    return state


async def previewed(channels: list[str], rate: str) -> str:
    asked = {"key": "a", "rate": rate}
    visit = SimpleNamespace(
        upstream=Told(channels),
        path=lambda _: "orders",
        query=lambda name: asked.get(name, ""),
        page=lambda _, **shown: shown,
    )
    return str((await preview(visit))["sentence"])  # type: ignore[arg-type, index]


async def test_a_rate_over_all_channels_is_not_suggested_from_the_pace_of_one():
    one, three = await key_page(["default"], ""), await key_page(["audit", "bills", "default"], "")
    assert (one.texts["rate-half"]["t"], one.texts["rate-same"]["t"]) == ("7.5", "15")
    assert (three.texts["rate-half"]["t"], three.texts["rate-same"]["t"]) == ("", "")
    assert three.texts["rate-from"]["t"] == "A rate counts all channels together; this page knows one."


async def test_what_a_rate_does_to_the_backlogs_of_several_channels_is_not_told_from_the_pace_of_one():
    assert "its backlog does not grow." in await previewed(["default"], "15")
    told = await previewed(["audit", "default"], "15")
    assert told.startswith("At most 15.0/s delivered, over all channels. Nothing of it waits now")


async def test_who_was_served_meanwhile_is_linked_in_the_channel_that_is_looked_at():
    def href(state: Any) -> str:
        return str(state.tables["meanwhile"][0]["cells"][0]["href"])

    assert href(await key_page(["audit", "default"], "audit")).endswith("/key?key=globex&channel=audit")
    assert href(await key_page(["audit", "default"], "")).endswith("/key?key=globex")


async def test_a_page_of_a_key_says_how_many_of_its_messages_wait_behind_higher_ones():
    none, two = await key_page(["default"], ""), await key_page(["default"], "", behind_higher=2)
    assert none.texts["waiting"]["t"] == "3 messages"
    assert two.texts["waiting"]["t"] == "3 messages, 2 of them behind a higher priority of this key"


# What a key is due.


@pytest.mark.parametrize(
    "state", ["throttled", "rate_limited", "capped", "paused", "delayed", "empty", "leased"]
)
def test_no_part_is_due_by_weight_to_a_key_that_takes_no_turns(state):
    assert "%" not in due_now(KeyExplanation(state=state, due_share=1.0))["t"]


def test_a_part_is_due_by_weight_to_a_key_that_takes_turns():
    assert due_now(KeyExplanation(state="not_its_turn", due_share=0.25))["t"] == "25 % by weight"


def test_of_a_limited_key_the_table_says_so_instead_of_all_of_it():
    def key(state: str, **more) -> KeyState:
        return KeyState(fairness_key="a", state=state, **more)

    assert due_lately(key("throttled"), 1.0)["t"] == "limited"
    assert due_lately(key("not_its_turn"), 0.25)["t"] == "25 %"
    assert due_lately(key("paused", paused=True), 1.0)["t"] == due_lately(key("empty"), None)["t"] == UNKNOWN


def test_an_hours_due_has_a_gap_where_a_limit_decided():
    limited = SeriesPoint(recorded=True, waits=WaitCauses(throttle_ms=9_000))
    free = SeriesPoint(recorded=True, waits=WaitCauses(share_ms=9_000))
    starved = step(served=12.0, due=50.0, pending=3)
    assert due_then(starved, limited) is None
    assert due_then(starved, free) == 50.0
    # Another key of the channel was limited; this one got what it was due.
    assert due_then(step(served=49.0, due=50.0, pending=3), limited) == 50.0
    assert due_then(KeySeriesPoint(), free) is None


# Why a key waits, in a sentence.


@pytest.mark.parametrize(
    ("consumers", "read"),
    [
        (ChannelConsumers(), "and nobody consumes"),
        (ChannelConsumers(count=1, window=4, held=4), "until its consumer has room"),
        (ChannelConsumers(count=3, window=4, held=4), "until its 3 consumers have room"),
    ],
)
def test_consumers_that_are_full_are_told_from_none(consumers, read):
    told = KeyExplanation(state="no_consumer", pending=3, oldest_age_ms=2_000, consumers=consumers)
    assert (
        _headline("acme", told, 0.0)["headline"]["t"] == f"acme waits {read}: 3 messages, the oldest 2.0 s."
    )


@pytest.mark.parametrize("pending", [1, 2])
def test_a_message_that_replaces_a_leased_one_goes_when_that_lease_ends_and_has_no_delay(pending: int):
    unknown = Forecast(unknown="delayed")
    told = KeyExplanation(state="succeeds", pending=pending, head_forecast=unknown, tail_forecast=unknown)
    said = {name: each["t"] for name, each in _headline("acme", told, 0.0).items()}

    assert said["headline"].startswith("acme goes when the lease of the message that it replaces ends: ")
    assert said["head"] == "Next message: when the lease of the message that it replaces ends."
    assert not any("its delay is over" in text for text in said.values())


def test_a_tenants_page_tells_only_a_key_that_has_a_committed_rate_of_such_rates():
    told = KeyExplanation(state="beyond_committed", pending=3)
    own = replace(told, until=datetime.now(UTC))

    assert tenant_headline("acme", "q", told).startswith("acme in q waits for its turn: ")
    assert tenant_headline("acme", "q", own).startswith("acme in q is beyond its committed rate: ")
    assert "beyond" not in cause("beyond_committed")


# Late keys.


def late(cause: str, until_s: float | None = None) -> LateKey:
    until = None if until_s is None else datetime.fromtimestamp(until_s, UTC)
    return LateKey(queue="orders", channel="default", fairness_key="a", cause=cause, until=until)


def test_a_key_that_nothing_of_its_own_holds_back_is_free_now():
    now_s = 4_102_441_200.0

    def free_at(cause: str, until_s: float | None = None) -> str:
        return _free_at(late(cause, until_s), now_s)

    assert free_at("not_its_turn") == "now"
    assert free_at("throttled", now_s - 5) == "now"
    assert free_at("throttled", now_s + 0.9) == "within 1 s"
    assert free_at("throttled", now_s + 3_605) == "00:00:05 UTC"
    assert free_at("paused") == free_at("no_consumer") == UNKNOWN


def test_a_late_key_that_nobody_consumes_does_not_wait_for_room():
    full = late("no_consumer")
    nobody = replace(full, nobody_consumes=True)
    words = ["nobody consumes this channel", "no consumer has room"]

    assert [_late_row("b", each, 0.0)["cells"][3]["t"] for each in (nobody, full)] == words
    rows = _cause_rows("b", "orders", LateKeys(keys=[nobody, full], waiting_keys=2))
    assert [each["cells"][0]["t"] for each in rows] == words


def test_how_many_are_late_is_a_sentence():
    keys = [
        LateKey(queue="q", channel="c", fairness_key=each, cause="paused", waiting_ms=20_000) for each in "ab"
    ]
    assert (
        _late_count(LateKeys(keys=keys, waiting_keys=7)) == "2 of 7 keys that wait have waited 10 s or longer"
    )
    assert _late_count(LateKeys(keys=keys[:1], waiting_keys=7)).startswith("1 of 7 keys that wait has waited")
