"""What a route is: a method and a path of HTTP, and the call of the broker that stands behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from google.protobuf.message import Message

from fila.methods import Method

WITHOUT_BODY = ("GET", "DELETE")


def _written(request: Message | bytes) -> bytes:
    return request if isinstance(request, bytes) else request.SerializeToString()


class WrittenMethod(Method[Any, Any]):
    """A call whose request may have been written elsewhere, and whose answer stays as it came."""

    __slots__ = ()

    @property
    def serialize(self) -> Callable[[Any], bytes]:
        """Return what turns a request into bytes."""
        return _written

    @property
    def parse(self) -> Callable[[bytes], Any]:
        """Return what an answer becomes."""
        return bytes


@dataclass(frozen=True, slots=True)
class Events:
    """How an answer that is a stream becomes server-sent events."""

    name: str
    """What the events are called."""

    of: tuple[str, ...] = ()
    """The fields of a response that hold the messages to tell, each an event; empty: the response itself is one."""

    id: str = ""
    """An event's place, as a path of fields from it; empty: the stream can't be resumed."""

    ahead: int = 0
    """How much further than an event's place a reader goes on."""

    mark: str = ""
    """The field of a response with the place after it."""

    resume: str = ""
    """The field of the request that the id of the last event seen becomes."""


@dataclass(frozen=True)
class Route:
    """One row of the table."""

    name: str
    """The RPC's name."""

    verb: str
    path: str
    """With the request's fields in braces."""

    call: str
    """The RPC's path."""

    request: type[Message]
    response: type[Message]
    in_path: tuple[str, ...] = ()
    """The fields that the path holds."""

    body: str = ""
    """The field that is the body; empty: the body holds all that stands nowhere else."""

    raw: bool = False
    """The body is a message's payload, whatever its type."""

    events: Events | None = None
    """Of a call that answers with a stream."""

    @cached_property
    def method(self) -> Method[Any, Any]:
        """The call. Only reads are repeated when an answer is lost."""
        kind = WrittenMethod if self.events is None else Method
        return kind(self.call, self.request, self.response, repeatable=self.verb == "GET")

    @property
    def has_body(self) -> bool:
        """Whether it takes a body at all."""
        return self.verb not in WITHOUT_BODY
