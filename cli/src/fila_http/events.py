"""What a response of the broker's stream becomes on a stream of server-sent events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import orjson
from google.protobuf.message import Message

from fila_http.route import Events
from fila_http.written_json import as_json


def events_of(events: Events, response: Message) -> Iterator[bytes]:
    """Its events, each with its place where the stream can be resumed."""
    for item in _items(events, response):
        place = b""
        if events.id:
            place = b"id: %d\n" % (_at(item, events.id) + events.ahead)
        yield b"event: %b\n%bdata: %b\n\n" % (
            events.name.encode(),
            place,
            orjson.dumps(as_json(item)),
        )
    if events.mark:
        # An id without data is no event, and remembered all the same.
        yield b"id: %d\n\n" % _at(response, events.mark)


def _items(events: Events, response: Message) -> Iterator[Message]:
    if not events.of:
        yield response
    for name in events.of:
        if response.DESCRIPTOR.fields_by_name[name].is_repeated:
            yield from getattr(response, name)
        elif response.HasField(name):
            yield getattr(response, name)


def _at(message: Message, path: str) -> int:
    for name in path.split("."):
        message = getattr(message, name)
    return cast("int", message)
