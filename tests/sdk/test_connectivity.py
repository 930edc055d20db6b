"""When a client takes gRPC's word for whether its connection stands, and when it asks again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from fila import ClientClosed, ClientOptions, Unavailable
from fila.connection import FAIR_S, Connection
from tests.sdk.conftest import ManualClock, until

IDLE, CONNECTING, READY, FAILED = (
    grpc.ChannelConnectivity.IDLE,
    grpc.ChannelConnectivity.CONNECTING,
    grpc.ChannelConnectivity.READY,
    grpc.ChannelConnectivity.TRANSIENT_FAILURE,
)


class FakeChannel:
    """A channel in a state that the test sets, and that may do something when it is asked to connect."""

    def __init__(self, state: grpc.ChannelConnectivity) -> None:
        self.state = state
        self.when_asked: Callable[[], None] = lambda: None
        self.watches: list[asyncio.Event] = []

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        state = self.state
        if state is IDLE and try_to_connect:
            self.when_asked()
        return state

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        if self.state is last_observed_state:
            self.watches.append(asyncio.Event())
            await self.watches[-1].wait()

    def becomes(self, state: grpc.ChannelConnectivity) -> None:
        self.state = state
        for watch in self.watches:
            watch.set()
        self.watches.clear()

    async def close(self) -> None:
        self.becomes(grpc.ChannelConnectivity.SHUTDOWN)


class StalledClock(ManualClock):
    """Time in which the whole process, gRPC's threads with it, stands still once for a minute, as a machine does that
    was paused. Only what is slept afterwards is time in which anything could connect."""

    def __init__(self, channel: FakeChannel) -> None:
        super().__init__()
        self._channel = channel
        self._since_s = -1.0

    async def sleep(self, seconds: float) -> None:
        if self._since_s < 0:
            self._since_s = 0.0
            self.advance(60.0)
        else:
            self._since_s += seconds
        if self._since_s >= 1.0:
            self._channel.becomes(READY)
        await super().sleep(seconds)


class EndlessClock(ManualClock):
    """Sleeps never end."""

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        await asyncio.Event().wait()


def connection_over(channel: FakeChannel, **options: Any) -> Connection:
    connection = Connection("127.0.0.1:1", ClientOptions(**options))
    here = connection._places.here
    here.channel = here.connectivity._channel = channel  # type: ignore[assignment]
    return connection


async def test_a_process_that_stood_still_past_its_patience_looks_again_before_it_gives_up() -> None:
    channel = FakeChannel(FAILED)
    connection = connection_over(channel, clock=StalledClock(channel))

    await connection.ready(30.0)


async def test_a_call_that_is_tried_again_after_its_patience_looks_again_too() -> None:
    channel, clock = FakeChannel(FAILED), ManualClock()
    connection = connection_over(channel, clock=clock)

    with pytest.raises(Unavailable):
        await connection.ready(30.0, since_s=clock.now_s() - 40.0)

    assert sum(clock.slept_s) == pytest.approx(FAIR_S, abs=0.11)


async def test_a_connection_is_noticed_while_the_client_waits_to_look_again() -> None:
    channel, clock = FakeChannel(FAILED), EndlessClock()
    connection = connection_over(channel, clock=clock)
    waiting = asyncio.ensure_future(connection.ready(30.0))
    await until(lambda: clock.slept_s)

    channel.becomes(READY)

    await waiting


async def test_a_connection_that_broke_before_anybody_watched_is_asked_for_again() -> None:
    channel = FakeChannel(IDLE)
    asked = 0

    def connects_and_breaks_once() -> None:
        nonlocal asked
        asked += 1
        if asked > 2:  # before that it stood and was gone, with nobody watching: IDLE as before
            channel.becomes(READY)

    channel.when_asked = connects_and_breaks_once

    await connection_over(channel).ready(None)


@pytest.mark.parametrize("patience_s", [0.5, 1.0, 5.0, 30.0])
async def test_a_broker_that_stays_away_is_given_up_when_patience_ends(patience_s: float) -> None:
    clock = ManualClock()
    connection = connection_over(FakeChannel(FAILED), clock=clock)
    began_at_s = clock.now_s()

    with pytest.raises(Unavailable, match=r"no Fila broker answers at 127\.0\.0\.1:1"):
        await connection.ready(patience_s)

    assert clock.now_s() - began_at_s == pytest.approx(patience_s, abs=0.11)


async def test_without_patience_the_last_attempt_counts_and_one_under_way_is_waited_for() -> None:
    channel, clock = FakeChannel(FAILED), ManualClock()
    connection = connection_over(channel, clock=clock)
    with pytest.raises(Unavailable):
        await connection.ready(0)

    channel.state = CONNECTING
    waiting = asyncio.ensure_future(connection.ready(0))
    await until(lambda: channel.watches)
    channel.becomes(READY)
    await waiting

    assert not clock.slept_s


async def test_who_gives_up_leaves_no_watch_behind_but_one_for_all() -> None:
    channel, clock = FakeChannel(FAILED), ManualClock()
    connection = connection_over(channel, clock=clock)

    for _ in range(3):
        with pytest.raises(Unavailable):
            await connection.ready(1.0)

    assert len(channel.watches) == 1


async def test_closing_ends_waiting_also_for_connections_of_other_keys() -> None:
    channel = FakeChannel(FAILED)
    connection = connection_over(channel, clock=EndlessClock())
    waits = [asyncio.ensure_future(each.ready(None)) for each in (connection, connection.with_key("another"))]
    await until(lambda: channel.watches)

    await connection.close()

    assert [type(ended) for ended in await asyncio.gather(*waits, return_exceptions=True)] == [
        ClientClosed,
        ClientClosed,
    ]
