"""What a handler sees of its call: the part of grpc.aio.ServicerContext that services/ use."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

import grpc

from fila_server.services.status import DETAILS_KEY

Metadatum = tuple[str, str | bytes]
Serialize = Callable[[Any], bytes]

COMPRESSED_FROM_BYTES = 4 << 10
"""Smaller answers fit into a packet or three as they are."""
BESIDE_FROM_BYTES = 256 << 10
"""Larger ones take milliseconds, and are compressed beside the loop."""
FAST = 1
_WINDOW_BITS = {"gzip": 31, "deflate": 15}
"""zlib's, by the name of an encoding: with gzip's header, and with its own (RFC 1950)."""


@dataclass(slots=True)
class Reported:
    """What the threads tell of a call when it begins."""

    path: str = ""
    peer: str = ""
    caller: int = 0
    """Of the table of rights; 0: nobody known, or keys are off."""
    metadata: list[Metadatum] = field(default_factory=list)
    names: dict[str, list[bytes]] = field(default_factory=dict)

    @property
    def encoding(self) -> str:
        """What the answer may be compressed with: the request's own encoding, unless the client reads others only."""
        given = {
            name: value for name, value in self.metadata if name in ("grpc-encoding", "grpc-accept-encoding")
        }
        encoding = str(given.get("grpc-encoding", ""))
        read = str(given.get("grpc-accept-encoding", encoding))
        return encoding if encoding in _WINDOW_BITS and encoding in map(str.strip, read.split(",")) else ""


class Orders(Protocol):
    """The threads, as a call orders them (edge.pyi)."""

    def send(self, token: int, message: bytes, compressed: bool = False) -> None: ...
    def end(self, token: int, status: int, message: bytes, details: bytes) -> None: ...
    def more(self, token: int) -> None: ...


class Aborted(Exception):
    """The handler has ended its call; nothing of it goes on."""


class CallContext:
    """One call's. Belongs to the loop's thread."""

    def __init__(
        self,
        edge: Orders,
        token: int,
        reported: Reported,
        serialize: Serialize | None,
        ended: Callable[[CallContext], object],
    ) -> None:
        """`ended` is told when the call's status is known, which its client may take long to read."""
        self._edge = edge
        self.token = token
        self._ended = ended
        self._reported = reported
        self._serialize = serialize
        self._sent: asyncio.Future[None] | None = None
        self._callbacks: list[Callable[[Any], object]] = []
        self._is_gone = False
        self.is_ended = False
        self.requests: asyncio.Queue[bytes | None] = asyncio.Queue()
        """Messages as they came; None once the client has no more to say."""

    # --- for handlers ---------------------------------------------------------------------

    def invocation_metadata(self) -> Sequence[Metadatum]:
        """What the client sent with its call."""
        return self._reported.metadata

    def peer(self) -> str:
        """The client's address, such as ipv4:127.0.0.1:4711."""
        return self._reported.peer

    def auth_context(self) -> Mapping[str, Sequence[bytes]]:
        """The names of the client's certificate, as grpc calls them."""
        return self._reported.names

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Call it when the call is over: its answer taken by the socket, or its client gone. At once when its status
        is known already: nothing is sent any more.
        """
        if self._is_gone or self.is_ended:
            callback(self)
        else:
            self._callbacks.append(callback)

    async def write(self, message: Any) -> None:
        """Send one message; returns when the socket has it."""
        self.send(message)
        self._sent = asyncio.get_running_loop().create_future()
        await self._sent

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Sequence[Metadatum] = ()
    ) -> NoReturn:
        """End the call with a status."""
        rich = next((value for key, value in trailing_metadata if key == DETAILS_KEY), b"")
        self.end(code.value[0], details, rich if isinstance(rich, bytes) else b"")
        raise Aborted

    # --- for the tasks that run them ------------------------------------------------------

    def send(self, message: Any) -> None:
        """Send one message and do not wait."""
        self._edge.send(self.token, self._serialize(message) if self._serialize else message)

    async def send_only(self, message: Any) -> None:
        """Send the one message of an answer, compressed where it is large and the client compresses, too."""
        payload = self._serialize(message) if self._serialize else message
        bits = _WINDOW_BITS.get(self._reported.encoding) if len(payload) >= COMPRESSED_FROM_BYTES else None
        if bits is None:
            self._edge.send(self.token, payload)
            return
        if len(payload) < BESIDE_FROM_BYTES:
            packed = zlib.compress(payload, FAST, bits)
        else:
            packed = await asyncio.to_thread(zlib.compress, payload, FAST, bits)
        if len(packed) < len(payload):
            self._edge.send(self.token, packed, compressed=True)
        else:
            self._edge.send(self.token, payload)

    def end(self, status: int, message: str = "", details: bytes = b"") -> None:
        """End the call; only the first end counts."""
        if not self.is_ended:
            self.is_ended = True
            self._reported.metadata = []
            self._ended(self)
            self._edge.end(self.token, status, message.encode(), details)

    async def next_request(self) -> bytes | None:
        """The client's next message, or None when there is none any more."""
        message = await self.requests.get()
        if message is not None:
            self._edge.more(self.token)
        return message

    @property
    def is_awaited(self) -> bool:
        """Somebody is told when the call is over."""
        return bool(self._callbacks)

    def written(self) -> None:
        """The socket has what was sent last."""
        if self._sent is not None and not self._sent.done():
            self._sent.set_result(None)

    def gone(self) -> None:
        """The call is over."""
        self._is_gone = True
        for callback in self._callbacks:
            callback(self)
        self._callbacks.clear()
