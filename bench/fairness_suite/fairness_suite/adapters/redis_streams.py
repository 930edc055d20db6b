"""Redis streams with a consumer group: one for all tenants, or one each, of which a reader takes in turn."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import redis

from fairness_suite.adapter import Ability, Message, Taken, Tenant, decoded, encoded

_GROUP, _READER, _FIELD = "suite", "reader", "m"


class OneStream:
    abilities: frozenset[Ability] = frozenset()

    def __init__(self, address: str) -> None:
        self._streams: list[str] = []
        self._next = 0
        self.reconnect(address)

    def reconnect(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._client: Any = redis.Redis(host=host, port=int(port), socket_timeout=None)

    def close(self) -> None:
        self._client.close()

    def stream_of(self, tenant: str) -> str:
        """Where a tenant's messages go."""
        del tenant
        return "all"

    def open(self, tenants: Mapping[str, Tenant]) -> None:
        self._client.flushall()
        self._streams = list(dict.fromkeys(self.stream_of(name) for name in tenants))
        for stream in self._streams:
            self._client.xgroup_create(stream, _GROUP, id="0", mkstream=True)

    def send(self, messages: Sequence[Message]) -> None:
        with self._client.pipeline(transaction=False) as pipe:
            for each in messages:
                pipe.xadd(self.stream_of(each.tenant), {_FIELD: encoded(each)})
            pipe.execute()

    def take(self, most: int, wait_s: float) -> list[Taken]:
        # One command reads several streams, but so many of each: a few streams at a time, the next ones next time.
        until = time.monotonic() + wait_s
        while True:
            chosen = [
                self._streams[(self._next + i) % len(self._streams)]
                for i in range(min(most, len(self._streams)))
            ]
            self._next = (self._next + len(chosen)) % len(self._streams)
            each = most if len(chosen) == 1 else 1
            taken = self._read(dict.fromkeys(chosen, ">"), each)
            if taken or time.monotonic() > until:
                return taken

    def _read(self, streams: dict[str, str], each: int) -> list[Taken]:
        wait_ms = None if len(self._streams) > len(streams) else 20
        reply = self._client.xreadgroup(_GROUP, _READER, streams, count=each, block=wait_ms)
        return [
            Taken(decoded(fields[_FIELD.encode()]), (stream, entry))
            for stream, entries in _listed(reply)
            for entry, fields in entries
        ]

    def settle(self, taken: Sequence[Taken]) -> None:
        with self._client.pipeline(transaction=True) as pipe:
            for each in taken:
                stream, entry = each.handle
                pipe.xack(stream, _GROUP, entry)
                pipe.xdel(stream, entry)
            pipe.execute()

    def give_back(self, taken: Sequence[Taken], after_s: float) -> None:
        del after_s  # a stream delays nothing
        self.send([each.message for each in taken])
        self.settle(taken)


class StreamEach(OneStream):
    def stream_of(self, tenant: str) -> str:
        return f"t:{tenant}"


def _listed(reply: Any) -> list[Any]:
    """redis-py answers with a list in RESP2 and a dict of lists of lists in RESP3."""
    if isinstance(reply, dict):
        return [(stream, entries[0] if entries else []) for stream, entries in reply.items()]
    return reply or []
