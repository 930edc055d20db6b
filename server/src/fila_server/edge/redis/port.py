"""The Redis port: the edge's threads read and answer, and what no message passes is carried out here.

    OPENED ──► RedisClient: may it stay, and who is it? ──► redis_reply()
    COMMAND ─► the handlers beside this module, in their turn ──► redis_reply()
    GONE ────► what it held is given back

A client has one command here at a time, so its replies keep their order by themselves. What all of them ask for in one
turn of the loop ends after SLICE_NS, and goes on in the next: the loop serves others, too.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

import structlog

from fila_server import errors
from fila_server.access.admission import Admission
from fila_server.broker.calls import Broker
from fila_server.config.schema import Limits, Redis
from fila_server.edge.listening import bound
from fila_server.edge.redis.client import Client
from fila_server.edge.redis.overrides import Overrides
from fila_server.edge.redis.sentinel import Group
from fila_server.edge.redis.socket_client import Orders, RedisClient

log = structlog.get_logger("fila_server.edge")

REDIS_OPENED: Final = 9
REDIS_COMMAND: Final = 10
REDIS_GONE: Final = 11
"""As bridge.pxd has them."""

CLOSE_TIMEOUT_S = 5.0
SLICE_NS = 2_000_000
"""A command that began in time may end later: the longest takes about 1 ms."""
_LENGTH = struct.Struct(">I")


class Edge(Orders, Protocol):
    """The threads, as this module talks to them (edge.pyi)."""

    def listen_redis(self, listeners: list[int]) -> None: ...
    def counters(self) -> dict[str, int]: ...


class RedisPort:
    """What its clients share. Belongs to the loop's thread."""

    def __init__(
        self,
        edge: Edge,
        broker: Broker,
        settings: Redis,
        limits: Limits,
        data_dir: str,
        may_be_kept: Callable[[int], bool],
        admission: Admission,
        now_ns: Callable[[], int] = time.monotonic_ns,
        group: Callable[[], Group] | None = None,
    ) -> None:
        """`data_dir` is only shown, by CONFIG GET. `may_be_kept` says of a new connection's descriptor whether there
        are enough besides it. `now_ns` is the clock that a turn's slice goes by. `group` is what a node knows of its
        group; None: this server is a broker alone."""
        self.broker = broker
        self.admission = admission
        self.data_dir = data_dir
        self.limits = limits
        self.overrides = Overrides(broker, settings)
        self.started_at_s = self.now()
        self.connections_total = 0
        self.may_be_kept = may_be_kept
        self.group = group
        self.address = ("", 0)
        """Where it listens; the port that was really bound."""
        self._edge = edge
        self._now_ns = now_ns
        self._clients: dict[int, RedisClient] = {}
        self._connections: set[Client] = set()
        self._none_left = asyncio.Event()
        self._asked: deque[tuple[RedisClient, list[bytes], int]] = deque()

    @staticmethod
    def now() -> float:
        """Unix seconds, for what people read."""
        return time.time()

    def listen(self) -> None:
        """Bind the port; the threads take clients once they run. Raises PortTaken."""
        address = self.overrides.settings.listen_addr
        try:
            listeners = bound(address, "redis.listen_addr")
        except OSError as error:
            raise errors.PortTaken.of("redis.listen_addr", address, error) from error
        host, port = address.host, listeners[0].getsockname()[1]
        self.address = (host, port)
        self.overrides.follow()
        self._edge.listen_redis([listener.detach() for listener in listeners])
        log.info("redis.started", address=f"{host}:{port}")

    @property
    def connections(self) -> Iterable[Client]:
        """Every client that was taken in."""
        return self._connections

    @property
    def client_count(self) -> int:
        return len(self._connections)

    @property
    def blocked_count(self) -> int:
        """Clients whose read waits for a message."""
        return self._edge.counters()["redis_blocked"]

    @property
    def commands_total(self) -> int:
        """Carried out since the start."""
        return self._edge.counters()["redis_commands"]

    def admit(self, client: Client) -> bool:
        """Count a new client in, unless there are max_connections already."""
        if len(self._connections) >= self.overrides.settings.max_connections:
            return False
        self._connections.add(client)
        self.connections_total += 1
        return True

    def forget(self, client: Client) -> None:
        """A client is gone."""
        self._connections.discard(client)
        if not self._connections:
            self._none_left.set()

    def take(self, what: int, token: int, number: int, payload: bytes) -> None:
        """Do what the threads ask for."""
        if what == REDIS_OPENED:
            client = self._clients[token] = RedisClient(self, self._edge, token, pieces(payload))
            client.come_in(number)
        elif token not in self._clients:
            return
        elif what == REDIS_COMMAND:
            if not self._asked:
                asyncio.get_running_loop().call_soon(self._carry_out)
            self._asked.append((self._clients[token], pieces(payload), number))
        else:
            self._clients.pop(token).gone()

    def _carry_out(self) -> None:
        """What was asked, in turn, as far as the slice goes."""
        until_ns = self._now_ns() + SLICE_NS
        while self._asked and self._now_ns() <= until_ns:
            client, args, argc = self._asked.popleft()
            client.carry_out(args, argc)
        if self._asked:
            asyncio.get_running_loop().call_soon(self._carry_out)

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
