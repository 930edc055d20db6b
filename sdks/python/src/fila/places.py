"""The addresses that lead to one broker, and which of them is used now.

A broker that is one node serves at one address. Of a group one node serves, and the others say where it is (NotOwner):
then the client goes there, also where nobody gave it that address. A node that does not answer is left for the next.

Each address has a gRPC channel of its own, which is made when it is gone to. What stands on an earlier one ends by
itself: its node is gone, or refuses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import grpc

from fila.connectivity import Connectivity
from fila.methods import Method
from fila.options import Clock

ADDRESSES_MAX = 16
LEFT_CALLS_S = 5.0
"""Calls that are under way at an address that is left may end by themselves for so long."""


def parse_target(target: str) -> tuple[str, bool]:
    """Return gRPC's `host:port` and whether TLS was asked for, from `host:port` with or without a scheme."""
    if "://" not in target:
        return target, False
    parts = urlsplit(target)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path not in ("", "/"):
        raise ValueError(f"target must look like localhost:5555 or http://localhost:5555, got {target!r}")
    return parts.netloc, parts.scheme == "https"


def parse_targets(targets: str) -> tuple[list[str], bool]:
    """The same of several with commas between them; TLS is asked for if one of them says so."""
    parsed = [parse_target(each.strip()) for each in targets.split(",")]
    hosts = list(dict.fromkeys(host for host, _ in parsed))
    if len(parsed) > 1 and not all(hosts):
        raise ValueError(
            f"target must look like fila-1:5555,fila-2:5555, got {targets!r}: an address is empty"
        )
    if len(hosts) > ADDRESSES_MAX:
        raise ValueError(f"target must have at most {ADDRESSES_MAX} addresses, got {len(hosts)}")
    return hosts, any(secure for _, secure in parsed)


class Place:
    """One address, once it was gone to."""

    def __init__(self, target: str, channel: grpc.aio.Channel, clock: Clock) -> None:
        self.target = target
        self.channel = channel
        self.connectivity = Connectivity(channel, clock)
        self.unary_by_method: dict[Method[Any, Any], Any] = {}


class Places:
    """All of them; `here` is the one in use."""

    def __init__(
        self, targets: Sequence[str], open_channel: Callable[[str], grpc.aio.Channel], clock: Clock
    ) -> None:
        self._targets = list(targets)
        self._open_channel, self._clock = open_channel, clock
        self._known: dict[str, Place] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self.here = self._place(self._targets[0])

    def __len__(self) -> int:
        return len(self._targets)

    @property
    def names(self) -> str:
        """The addresses that were given, for people."""
        return ", ".join(self._targets)

    def _place(self, target: str) -> Place:
        if target not in self._known:
            self._known[target] = Place(target, self._open_channel(target), self._clock)
        return self._known[target]

    def go_on(self) -> None:
        """To the next address that was given; from one that was not given, to the first."""
        targets, now = self._targets, self.here.target
        self._go(targets[(targets.index(now) + 1) % len(targets)] if now in targets else targets[0])

    def go_to(self, target: str) -> None:
        """To the address that a node names."""
        self._go(target)

    def _go(self, target: str) -> None:
        left = self.here
        if target == left.target:
            return
        self.here = self._place(target)
        if left.channel.get_state() is not grpc.ChannelConnectivity.READY or left.target not in self._targets:
            # Else gRPC would go on knocking there for as long as the client lives.
            self._end(left)

    def _end(self, place: Place) -> None:
        del self._known[place.target]
        place.connectivity.close()
        ending = asyncio.ensure_future(place.channel.close(LEFT_CALLS_S))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """Close every channel; calls still open end as lost."""
        for place in [*self._known.values()]:
            place.connectivity.close()
            await place.channel.close()
        if self._ending:
            await asyncio.wait(self._ending)
