"""Whether one gRPC channel stands, and waiting for that to change.

    IDLE                nobody asked for a connection, or the one there was is gone; so it stays until somebody asks
    CONNECTING          an attempt is under way
    TRANSIENT_FAILURE   an attempt failed. gRPC goes on trying at its own pace, and says this until one succeeds:
                        the word may be seconds old
    READY               the channel stands

A channel that left a state and came back to it before anybody watched has not changed: a connection that stood for a
moment and broke leaves IDLE, as before it. So a waiter comes back every LOOK_S and asks again.
"""

from __future__ import annotations

import asyncio

import grpc

from fila.options import Clock

LOOK_S = 0.1

OLD_WORD = grpc.ChannelConnectivity.TRANSIENT_FAILURE


class Connectivity:
    """What is known of one channel's state."""

    def __init__(self, channel: grpc.aio.Channel, clock: Clock) -> None:
        self._channel = channel
        self._clock = clock
        self._watch: asyncio.Task[None] | None = None
        self._watched_state = grpc.ChannelConnectivity.IDLE

    def asked(self) -> grpc.ChannelConnectivity:
        """The state; where there is no connection and no attempt at one, this begins one."""
        return self._channel.get_state(try_to_connect=True)

    async def changes(self, state: grpc.ChannelConnectivity, within_s: float) -> None:
        """Return once the channel is in `state` no more, and at the latest after `within_s` seconds."""
        watch = self._watched(state)
        if state is not OLD_WORD:
            # In real time, as gRPC's own attempts are, and not by the client's clock.
            await asyncio.wait({watch}, timeout=within_s)
            return
        sleeping = asyncio.ensure_future(self._clock.sleep(within_s))
        try:
            await asyncio.wait({watch, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()

    async def broken(self) -> None:
        """Return when the channel does not stand any more, or did not for a moment."""
        ready = grpc.ChannelConnectivity.READY
        while self._channel.get_state() is ready:
            watch = self._watched(ready)
            is_of_ready = self._watched_state is ready
            await asyncio.wait({watch})
            if is_of_ready:
                return  # a new connection may stand by now, and the waiter must hear that it is another

    def close(self) -> None:
        """Wake all who wait, for good."""
        if self._watch is not None:
            self._watch.cancel()

    def _watched(self, state: grpc.ChannelConnectivity) -> asyncio.Task[None]:
        """One watch for all who wait: gRPC keeps a watch that was given up until the state changes, so that in a long
        outage they would pile up. A watch for another state than `state` is about to end."""
        if self._watch is None or self._watch.done():
            self._watched_state = state
            self._watch = asyncio.ensure_future(self._watching(state))
        return self._watch

    async def _watching(self, state: grpc.ChannelConnectivity) -> None:
        try:
            await self._channel.wait_for_state_change(state)
        except grpc.aio.UsageError:
            return  # the channel is closed, and its state says so
