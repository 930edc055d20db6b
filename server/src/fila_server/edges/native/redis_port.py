"""The Redis port of the native edge: its threads read and answer, and what no message passes is carried out here.

    OPENED ──► RedisClient: may it stay, and who is it? ──► redis_reply()
    COMMAND ─► the handlers of edges/redis, in their turn ──► redis_reply()
    GONE ────► what it held is given back

A client has one command here at a time, so its replies keep their order by themselves.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from fila_server import errors
from fila_server.access.door import Door
from fila_server.broker.calls import Broker
from fila_server.config.schema import Limits, Redis
from fila_server.edges.native.listening import bound
from fila_server.edges.native.redis_client import Orders, RedisClient
from fila_server.edges.redis.port import Port

log = structlog.get_logger("fila_server.edges.native")

REDIS_OPENED: Final = 9
REDIS_COMMAND: Final = 10
REDIS_GONE: Final = 11
"""As bridge.pxd has them."""

CLOSE_TIMEOUT_S = 5.0
_LENGTH = struct.Struct(">I")


class Edge(Orders, Protocol):
    """The threads, as this module talks to them (edge.pyi)."""

    def listen_redis(self, listeners: list[int]) -> None: ...
    def counters(self) -> dict[str, int]: ...


class RedisPort(Port):
    """Belongs to the loop's thread."""

    def __init__(
        self,
        edge: Edge,
        broker: Broker,
        settings: Redis,
        limits: Limits,
        data_dir: str,
        may_be_kept: Callable[[int], bool],
        door: Door,
    ) -> None:
        super().__init__(broker, settings, limits, data_dir, may_be_kept, door)
        self._edge = edge
        self._clients: dict[int, RedisClient] = {}
        self._asked: deque[tuple[RedisClient, list[bytes], int]] = deque()

    def listen(self) -> None:
        """Bind the port; the threads take clients once they run. Raises PortTaken."""
        address = self.overrides.settings.bind_address
        try:
            listeners = bound(address)
        except OSError as error:
            raise errors.PortTaken.of("redis.bind_address", address, error) from error
        host, port = address.host, listeners[0].getsockname()[1]
        self.address = (host, port)
        self.overrides.follow()
        self._edge.listen_redis([listener.detach() for listener in listeners])
        log.info("redis.started", address=f"{host}:{port}")

    @property
    def blocked_count(self) -> int:
        """Clients whose read waits for a message."""
        return self._edge.counters()["redis_blocked"]

    @property
    def commands_total(self) -> int:
        """Carried out since the start."""
        return self._edge.counters()["redis_commands"]

    def take(self, what: int, token: int, number: int, payload: bytes) -> None:
        """Do what the threads ask for."""
        if what == REDIS_OPENED:
            client = self._clients[token] = RedisClient(self, self._edge, token, pieces(payload))
            client.come_in(number)
        elif token not in self._clients:
            return
        elif what == REDIS_COMMAND:
            self._asked.append((self._clients[token], pieces(payload), number))
            self.turns.enter(self)
        else:
            self._clients.pop(token).gone()

    def work(self, until_ns: int) -> bool:
        """Carry out what was asked until `until_ns`; True when there is more. So says turns.py: all Redis clients
        together have a slice of a turn of the loop."""
        while self._asked:
            if self.turns.now_ns() > until_ns:
                return True
            client, args, argc = self._asked.popleft()
            client.carry_out(args, argc)
        return False

    async def close(self) -> None:
        """Let what runs be answered; the threads end the connections as they drain."""
        if self._clients:
            self._none_left.clear()
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await self._none_left.wait()
            except TimeoutError:
                log.warning("redis.close_timed_out", clients=len(self._clients))


def pieces(packed: bytes) -> list[bytes]:
    """What a thread has packed as u32 length, bytes, u32 length, bytes, ..."""
    found = []
    at = 0
    while at < len(packed):
        (length,) = _LENGTH.unpack_from(packed, at)
        at += _LENGTH.size
        found.append(packed[at : at + length])
        at += length
    return found
