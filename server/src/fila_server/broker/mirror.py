"""The edge's copy of what admins set: queue configs and runtime config.

The core owns both. Hooks, field masks and the Redis protocol need to read them without a
round trip, so every change goes through here: the core makes it durable first, then the
copy is brought up to date, and only then is the caller answered. A caller told "done"
therefore finds the new value, in every edge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fila.v1 import admin_pb2, limit_pb2
from fila_server import errors
from fila_server.broker.gate import Gate
from fila_server.core.protocol import commands

ConfigListener = Callable[[str, "admin_pb2.QueueConfig | None"], None]
"""Gets (queue, config) after each change, config None when the queue is gone."""

ValueListener = Callable[[str, str], None]
"""Gets (config key, value) after each change, an empty value when the key is gone."""

DLQ_SUFFIX = ".dlq"

DEFAULT_CHANNEL = "default"
"""What a consumer reads where it names no channel; a queue without channels of its own has it alone."""

CHANGES_AT_ONCE = 8
"""Each is up to four commands to the core, and enough are under way to share a sync."""


class QueueMirror:
    """Sends admin commands on and keeps the copies current."""

    kinds = frozenset(
        {
            commands.CREATE_QUEUE,
            commands.UPDATE_QUEUE,
            commands.DELETE_QUEUE,
            commands.CREATE_CHANNEL,
            commands.DELETE_CHANNEL,
            commands.SET_CONFIG,
            commands.SET_LIMIT,
            commands.DELETE_LIMIT,
        }
    )

    def __init__(self, call: Callable[[int, bytes], Awaitable[bytes]]) -> None:
        self._call = call
        self._listeners: list[ConfigListener] = []
        self._value_listeners: list[ValueListener] = []
        self._changes: set[asyncio.Task[bytes]] = set()
        self._gate = Gate("changes of queues, channels and config", at_once=CHANGES_AT_ONCE)
        self.queue_configs: dict[str, admin_pb2.QueueConfig] = {}
        self.runtime_config: dict[str, str] = {}
        self.update_lock = asyncio.Lock()
        """Held by a call that reads a config, changes it, and sends it back whole."""

    def listen(self, listener: ConfigListener) -> None:
        """Tell `listener` of every queue there is and of every change from now on."""
        self._listeners.append(listener)
        for queue, config in self.queue_configs.items():
            listener(queue, config)

    def listen_config(self, listener: ValueListener) -> None:
        """Tell `listener` of every runtime config value there is and of every change from now on."""
        self._value_listeners.append(listener)
        for config_key, value in self.runtime_config.items():
            listener(config_key, value)

    async def load(self) -> None:
        """Read everything once, at start."""
        listed = admin_pb2.ListQueuesResponse.FromString(await self._call(commands.LIST_QUEUES, b""))
        for queue in listed.queues:
            await self._refresh(queue.name)
        try:
            reply = await self._call(commands.LIST_CONFIG, b"")
        except errors.Unimplemented:
            return
        for entry in admin_pb2.ListConfigResponse.FromString(reply).entries:
            self._take_value(entry.key, entry.value)

    async def call(self, kind: int, frame: bytes) -> bytes:
        """Send one admin command; on success the copy is current before this returns.

        Raises errors.Overloaded when too many wait already.
        """
        # A caller may hang up between the core's answer and the refresh. The core has
        # changed all the same, so the copy must follow without the caller.
        async with self._gate:
            change = asyncio.ensure_future(self._apply(kind, frame))
            self._changes.add(change)
            change.add_done_callback(self._forget_change)
            return await asyncio.shield(change)

    def _forget_change(self, change: asyncio.Task[bytes]) -> None:
        self._changes.discard(change)
        if not change.cancelled():
            change.exception()  # read, so that an error nobody waits for any more is not logged as lost

    async def _apply(self, kind: int, frame: bytes) -> bytes:
        reply = await self._call(kind, frame)
        if kind == commands.SET_CONFIG:
            await self._set_config(admin_pb2.SetConfigRequest.FromString(frame))
            return reply
        if kind in (commands.SET_LIMIT, commands.DELETE_LIMIT):
            await self._set_limit(kind, frame)
            return reply
        if kind == commands.CREATE_QUEUE:
            queue = admin_pb2.CreateQueueRequest.FromString(frame).name
        elif kind == commands.UPDATE_QUEUE:
            queue = admin_pb2.UpdateQueueRequest.FromString(frame).queue
        else:
            # The remaining requests all name their queue in field 1.
            queue = admin_pb2.DeleteQueueRequest.FromString(frame).queue
        await self._refresh(queue)
        if not queue.endswith(DLQ_SUFFIX):
            # Made and deleted with its queue, unless it was adopted: only the core knows.
            await self._refresh(queue + DLQ_SUFFIX)
        return reply

    async def look_again(self, queue: str) -> None:
        """Bring the copy up to date with a change that nobody asked for: a queue or channel that expired."""
        await self._refresh(queue)

    async def _set_limit(self, kind: int, frame: bytes) -> None:
        if kind == commands.SET_LIMIT:
            name = limit_pb2.SetLimitRequest.FromString(frame).limit.name
        else:
            name = limit_pb2.DeleteLimitRequest.FromString(frame).limit_name
        if not name.endswith("*"):
            await self._look_at_forms(throttle_forms(f"throttle.{name}"))

    async def _set_config(self, request: admin_pb2.SetConfigRequest) -> None:
        forms = throttle_forms(request.key)
        if not forms:
            self._take_value(request.key, request.value)
        await self._look_at_forms(forms)

    async def _look_at_forms(self, forms: tuple[str, ...]) -> None:
        for config_key in forms:
            # The core keeps the forms of a throttle in step; what it made of them only it knows.
            asked = admin_pb2.GetConfigRequest(key=config_key)
            try:
                reply = await self._call(commands.GET_CONFIG, asked.SerializeToString())
            except errors.NotFound:
                self._take_value(config_key, "")
            else:
                self._take_value(config_key, admin_pb2.GetConfigResponse.FromString(reply).value)

    def _take_value(self, config_key: str, value: str) -> None:
        if value:
            self.runtime_config[config_key] = value
        else:
            self.runtime_config.pop(config_key, None)
        for listener in self._value_listeners:
            listener(config_key, value)

    async def _refresh(self, queue: str) -> None:
        request = admin_pb2.GetQueueRequest(queue=queue)
        config: admin_pb2.QueueConfig | None
        try:
            reply = await self._call(commands.GET_QUEUE, request.SerializeToString())
        except errors.NotFound:
            config = None
            if self.queue_configs.pop(queue, None) is None:
                return
        else:
            config = admin_pb2.GetQueueResponse.FromString(reply).config
            self.queue_configs[queue] = config
        for listener in self._listeners:
            listener(queue, config)


def throttle_forms(config_key: str) -> tuple[str, ...]:
    """Return the three keys under which the same token bucket is set; nothing when it is no throttle's."""
    if config_key.startswith("throttle."):
        bucket = config_key.removeprefix("throttle.")
    elif config_key.startswith("throttle:") and config_key.endswith((":rate", ":burst")):
        bucket = config_key.removeprefix("throttle:").rpartition(":")[0]
    else:
        return ()
    return (f"throttle.{bucket}", f"throttle:{bucket}:rate", f"throttle:{bucket}:burst") if bucket else ()
