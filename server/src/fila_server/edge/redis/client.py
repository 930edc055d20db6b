"""What commands know of a client, and of the port it is connected to.

Commands are carried out for a Client, and edge/redis/socket_client.py has the only one there is; that it calls the
commands, and they it, needs no circle of imports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from fila_server.access.admission import Admission
from fila_server.broker.calls import Broker
from fila_server.config.schema import Limits
from fila_server.edge.redis.entry import Entry
from fila_server.edge.redis.overrides import Overrides
from fila_server.edge.redis.reply_bytes import RESP2
from fila_server.edge.redis.sentinel import Group


class _Ids:
    """Numbers of clients: the Unix microsecond in which each came, or the next that nobody has.

    They grow and none comes twice, also over a restart, as Redis promises. A count would tell every stranger how many
    clients others have.
    """

    def __init__(self) -> None:
        self._last = 0

    def take(self, now_s: float) -> int:
        self._last = max(self._last + 1, int(now_s * 1_000_000))
        return self._last


_ids = _Ids()


class Session:
    """What a client has told us about itself."""

    def __init__(self, peer: tuple[str, int], connected_at_s: float) -> None:
        self.id = _ids.take(connected_at_s)
        self.address = f"{peer[0]}:{peer[1]}"
        self.connected_at_s = connected_at_s
        self.protocol = RESP2
        self.name = ""
        self.library = ""
        self.library_version = ""
        self.channels: set[bytes] = set()
        """What it subscribed to."""

    def describe(self, now_s: float, user: str) -> str:
        """One line of CLIENT LIST."""
        age = int(now_s - self.connected_at_s)
        return (
            f"id={self.id} addr={self.address} name={self.name} age={age} flags=N db=0 user={user} "
            f"lib-name={self.library} lib-ver={self.library_version} resp={self.protocol}"
        )


class Client(Protocol):
    """One client, as commands see it."""

    session: Session
    entry: Entry
    broker: Broker

    @property
    def server(self) -> Host: ...

    def await_key(self) -> None:
        """Close after a while unless a key comes, where one is needed."""
        ...

    def quit(self) -> None:
        """Start nothing more; the connection closes when the replies that are owed have left."""
        ...

    def end(self) -> None:
        """The server stops: end a waiting read, answer what runs, close."""
        ...

    def abort(self) -> None:
        """Close at once, whatever is owed."""
        ...


class Host(Protocol):
    """What all clients share."""

    broker: Broker
    admission: Admission
    limits: Limits
    overrides: Overrides
    data_dir: str
    started_at_s: float
    connections_total: int
    address: tuple[str, int]
    may_be_kept: Callable[[int], bool]
    """Whether there are enough descriptors besides this one."""
    group: Callable[[], Group] | None
    """Of a node what it knows of its group; None: this server is a broker alone."""

    @property
    def connections(self) -> Iterable[Client]: ...
    @property
    def client_count(self) -> int: ...
    @property
    def blocked_count(self) -> int: ...
    @property
    def commands_total(self) -> int: ...
    def now(self) -> float: ...
    def admit(self, client: Client) -> bool: ...
    def forget(self, client: Client) -> None: ...
