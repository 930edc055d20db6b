"""Settings that a client changed with CONFIG SET server.*: kept over a restart, stronger than the file.

They live in the broker's runtime config below a reserved prefix, so there is one durable place for
what is set while running, and `fila config list` shows them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from fila.v1 import admin_pb2
from fila_server.access.admission import Caller
from fila_server.broker.calls import Broker
from fila_server.config.kinds import KIB, Duration, Size
from fila_server.config.schema import Redis
from fila_server.core.protocol import commands
from fila_server.errors import Invalid
from fila_server.operations.changes import carry_out_and_report

PREFIX = "_fila.redis."
QUEUE_DEFAULTS = (
    "message_timeout", "segment_size", "retention_period", "retention_size",
    "hard_retention_period", "hard_retention_size",
)  # fmt: skip
MAX_CONNECTIONS_MAX = 1_000_000


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_CONNECTIONS_MAX):
        raise ValueError
    return int(text)


_READERS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "max_connections": (_count, f"must be from 1 to {MAX_CONNECTIONS_MAX}"),
    "maintenance_interval": (Duration.parse, f"must be {Duration.expected}"),
    "monitor_interval": (Duration.parse, f"must be {Duration.expected}"),
    **{
        name: (kind.parse, f"must be {kind.expected}")
        for name in QUEUE_DEFAULTS
        for kind in (Size if name.endswith("size") else Duration,)
    },
}


def read_setting(name: str, text: str) -> Any:
    """Return the value that `text` means for the setting `name`, or refuse it."""
    reader = _READERS.get(name)
    if reader is None:
        raise Invalid(name, f"is not a setting that can be changed; there are {', '.join(_READERS)}")
    read, expected = reader
    try:
        return read(text)
    except ValueError:
        raise Invalid(name, f'{expected}, got "{text}"') from None


class Overrides:
    """The Redis section as it holds now: the file's, with what was set since."""

    def __init__(self, broker: Broker, from_file: Redis) -> None:
        self._broker = broker
        self._from_file = from_file
        self._forgetting: set[asyncio.Task[None]] = set()

    @property
    def settings(self) -> Redis:
        """The effective section."""
        changed = {name: read_setting(name, text) for name, text in self._kept().items()}
        return msgspec.structs.replace(self._from_file, **changed) if changed else self._from_file

    @property
    def names(self) -> list[str]:
        """Settings whose value is not the file's."""
        return sorted(self._kept())

    async def set(self, name: str, text: str, caller: Caller | None = None) -> None:
        """Make a new value durable; it holds from then on."""
        read_setting(name, text)
        await self._keep(f"{PREFIX}{name}", text, caller)

    def segment_size(self, queue: str) -> int:
        """What clients were told to see as the queue's segment size; storage has none."""
        kept = self._broker.runtime_config.get(f"{PREFIX}segment_size/{queue}")
        return int(kept) if kept else int(self.settings.segment_size)

    async def set_segment_size(self, queue: str, text: str, caller: Caller | None = None) -> None:
        """Keep a queue's segment size, for show; it is forgotten with the queue."""
        await self._keep(
            f"{PREFIX}segment_size/{queue}", str(int(read_setting("segment_size", text))), caller
        )

    async def forget_queue(self, queue: str) -> None:
        """Drop what is kept about a queue that is gone."""
        key = f"{PREFIX}segment_size/{queue}"
        if key in self._broker.runtime_config:
            await self._keep(key, "")

    def follow(self) -> None:
        """Forget each queue as a client, an operator or its own idle time ends it. Those that went while
        nobody was here are forgotten now."""
        kept = f"{PREFIX}segment_size/"
        for key in [key for key in self._broker.runtime_config if key.startswith(kept)]:
            if key.removeprefix(kept) not in self._broker.queue_configs:
                self._forget_soon(key.removeprefix(kept))
        self._broker.mirror.listen(lambda queue, config: self._forget_soon(queue) if config is None else None)

    def _forget_soon(self, queue: str) -> None:
        forgetting = asyncio.get_running_loop().create_task(self.forget_queue(queue))
        self._forgetting.add(forgetting)
        forgetting.add_done_callback(self._forgetting.discard)

    def _kept(self) -> dict[str, str]:
        kept = self._broker.runtime_config
        return {name: kept[key] for name in _READERS if (key := f"{PREFIX}{name}") in kept}

    async def _keep(self, key: str, value: str, caller: Caller | None = None) -> None:
        request = admin_pb2.SetConfigRequest(key=key, value=value)
        await carry_out_and_report(self._broker.call, "SetConfig", commands.SET_CONFIG, request, caller)


def duration_text(milliseconds: int) -> str:
    """`30s`: the form that CONFIG SET takes, in the largest unit that is exact."""
    for unit, factor in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds % factor == 0 and milliseconds >= factor:
            return f"{milliseconds // factor}{unit}"
    return f"{milliseconds}ms" if milliseconds else "0s"


def size_text(size: int) -> str:
    """`16mb`: the form that CONFIG SET takes, in the largest unit that is exact."""
    for unit, factor in (("gb", KIB**3), ("mb", KIB**2), ("kb", KIB)):
        if size % factor == 0 and size >= factor:
            return f"{size // factor}{unit}"
    return f"{size}b"
