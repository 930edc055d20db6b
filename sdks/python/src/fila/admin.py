"""What operators do with a client: queues, channels, statistics, runtime config, dead letters, the log.

Answers with more than one value are the dataclasses of `fila.answers`; settings are told in `fila.settings`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Literal, Unpack

from fila import methods
from fila.answers import (
    ChannelInfo,
    ConsumerInfo,
    KeyPolicy,
    QueueConfig,
    QueueDetails,
    QueueInfo,
    QueueVersion,
    QueueVersionDetails,
    SeekPreview,
    Stats,
    answer,
)
from fila.arguments import make, require_count, require_number, require_text
from fila.connection import Connection
from fila.errors import ChannelExists, QueueExists
from fila.explanation import KeyExplanation, KeyPolicyPreview, SkippedMessage
from fila.messages import StoredMessage
from fila.methods import Method, Request, Response
from fila.moments import to_timestamp
from fila.resumed import responses
from fila.settings import Duration, QueueSettings, encode_settings, mask_of, resolve
from fila.tried import DryRun
from fila.v1 import admin_pb2 as wire
from fila.v1 import version_pb2 as wire_version
from fila.values import duration_ms


class AdminCalls:
    """The calls of FilaAdmin, as methods of a client."""

    _connection: Connection

    async def _admin(
        self,
        method: Method[Request, Response],
        request: Request,
        *,
        timeout_s: float | None = None,
        repeatable: bool | None = None,
        **known: str,
    ) -> Response:
        return await self._connection.call(method, request, known, timeout_s=timeout_s, repeatable=repeatable)

    # Queues.

    async def create_queue(
        self, queue: str, *, exist_ok: bool = False, **settings: Unpack[QueueSettings]
    ) -> None:
        """Make a queue and its dead-letter queue `<queue>.dlq`. Raises QueueExists, Invalid.

        With `exist_ok` a queue that exists stays as it is, with the settings it has.
        """
        require_text("queue", queue)
        request = make(wire.CreateQueueRequest, name=queue, config=encode_settings(resolve(settings)))
        try:
            await self._admin(methods.CREATE_QUEUE, request, queue=queue)
        except QueueExists:
            if not exist_ok:
                raise

    async def get_queue(self, queue: str) -> QueueDetails:
        """Return a queue's settings, defaults filled in. Raises QueueNotFound."""
        request = make(wire.GetQueueRequest, queue=queue)
        told = await self._admin(methods.GET_QUEUE, request, queue=queue)
        return answer(QueueDetails, told)

    async def update_queue(
        self,
        queue: str,
        *,
        expected_version: int = 0,
        comment: str = "",
        **settings: Unpack[QueueSettings],
    ) -> QueueConfig:
        """Change the settings given, and no other; they apply at once to what waits. Return them all.

        `retry={"base_ms": 500}` changes the base and keeps the kind. With `expected_version` it is refused where
        somebody else changed them since (Conflict); `comment` is kept with the version, and with the pause
        where `paused` is set. Raises QueueNotFound, Invalid.
        """
        resolved = resolve(settings)
        request = make(
            wire.UpdateQueueRequest,
            queue=queue,
            config=encode_settings(resolved),
            update_mask=mask_of(resolved),
            expected_version=expected_version,
            comment=comment,
        )
        # A second run would find the version that the first one made.
        repeatable = False if expected_version else None
        told = await self._admin(methods.UPDATE_QUEUE, request, repeatable=repeatable, queue=queue)
        return answer(QueueConfig, told.config)

    async def dry_run_policy(self, queue: str, *, last: int = 0, **settings: Unpack[QueueSettings]) -> DryRun:
        """Say how these settings would route the `last` newest messages (0: 100, up to 1,000) and judge the newest dead
        letters; nothing is changed. Raises QueueNotFound, Invalid."""
        resolved = resolve(settings)
        request = make(
            wire.DryRunPolicyRequest,
            queue=queue,
            config=encode_settings(resolved),
            update_mask=mask_of(resolved),
            last=last,
        )
        told = await self._admin(methods.DRY_RUN_POLICY, request, queue=queue)
        return answer(DryRun, told)

    async def list_queue_versions(self, queue: str, *, before: int = 0, limit: int = 0) -> list[QueueVersion]:
        """Return the versions of a queue's settings, newest first; the last 100 are kept. Raises QueueNotFound."""
        request = make(wire_version.ListQueueVersionsRequest, queue=queue, before=before, limit=limit)
        told = await self._admin(methods.LIST_QUEUE_VERSIONS, request, queue=queue)
        return [answer(QueueVersion, version) for version in told.versions]

    async def get_queue_version(self, queue: str, number: int = 0) -> QueueVersionDetails:
        """Return one version of a queue's settings, the newest for 0. Raises QueueNotFound, NotFound."""
        request = make(wire_version.GetQueueVersionRequest, queue=queue, number=number)
        told = await self._admin(methods.GET_QUEUE_VERSION, request, queue=queue)
        return answer(QueueVersionDetails, told)

    async def delete_queue(self, queue: str, *, force: bool = False) -> None:
        """Delete a queue, its own dead-letter queue, and everything in them. Raises QueueNotFound.

        While a published batch of a sink is still on its way into it, only with `force`; else it raises Conflict.
        """
        request = make(wire.DeleteQueueRequest, queue=queue, force=force)
        await self._admin(methods.DELETE_QUEUE, request, queue=queue)

    async def list_queues(
        self, *, prefix: str = "", containing: str = "", page_size: int = 0, page_token: str = ""
    ) -> list[QueueInfo]:
        """Return queues with their depth, in flight and consumers, sorted by name: all; those whose names begin so, or
        have that in them, in letters of either case; at most `page_size`, behind the name `page_token`."""
        request = make(
            wire.ListQueuesRequest,
            prefix=prefix,
            containing=containing,
            page_size=page_size,
            page_token=page_token,
        )
        told = await self._admin(methods.LIST_QUEUES, request)
        return [answer(QueueInfo, info) for info in told.queues]

    async def get_stats(self, queue: str, *, channel: str | None = None, max_keys: int = 0) -> Stats:
        """Return a queue in numbers: over all channels, or of one. At most `max_keys` keys (0: 1,000).
        Raises QueueNotFound, ChannelNotFound."""
        request = make(wire.GetStatsRequest, queue=queue, channel=channel or "", max_keys=max_keys)
        told = await self._admin(methods.GET_STATS, request, queue=queue, channel=channel or "")
        return answer(Stats, told)

    async def list_consumers(self, queue: str, *, channel: str | None = None) -> list[ConsumerInfo]:
        """Return who consumes a queue, over all channels or of one: what each holds, has begun, and gave back.
        Raises QueueNotFound, ChannelNotFound."""
        request = make(wire.ListConsumersRequest, queue=queue, channel=channel or "")
        told = await self._admin(methods.LIST_CONSUMERS, request, queue=queue, channel=channel or "")
        return [answer(ConsumerInfo, info) for info in told.consumers]

    async def purge(
        self,
        queue: str,
        *,
        fairness_key: str | None = None,
        channel: str | None = None,
        timeout_s: float | None = None,
    ) -> int:
        """Drop pending messages: all, or of one key, in every channel or in one. Return how many.
        Raises QueueNotFound, ChannelNotFound."""
        request = make(wire.PurgeQueueRequest, queue=queue, fairness_key=fairness_key, channel=channel)
        told = await self._admin(
            methods.PURGE_QUEUE, request, timeout_s=timeout_s, queue=queue, channel=channel or ""
        )
        return told.purged

    async def peek(
        self,
        queue: str,
        *,
        max_messages: int = 10,
        after_offset: int = 0,
        fairness_key: str = "",
        channel: str | None = None,
    ) -> list[StoredMessage]:
        """Look at pending messages in offset order without leasing them (at most 1,000; `after_offset` turns
        the page). Raises QueueNotFound, ChannelNotFound."""
        require_count("max_messages", max_messages)
        request = make(
            wire.PeekMessagesRequest,
            queue=queue,
            channel=channel or "",
            max_messages=max_messages,
            after_offset=after_offset,
            fairness_key=fairness_key,
        )
        told = await self._admin(methods.PEEK_MESSAGES, request, queue=queue, channel=channel or "default")
        return [StoredMessage(message) for message in told.messages]

    async def redrive(
        self,
        dlq: str,
        *,
        count: int = 0,
        rate_per_second: float = 0,
        offsets: Sequence[int] = (),
        timeout_s: float | None = None,
    ) -> int:
        """Move dead letters back to the queue they came from, oldest first. Return how many.

        `count` 0 moves all that are there at the start; `offsets` (at most 1,000) just those. A paced redrive takes
        its time: give `timeout_s` (seconds). Raises QueueNotFound, Invalid (no dead-letter queue), SourceQueueGone.
        """
        require_text("dlq", dlq)
        request = make(
            wire.RedriveRequest, dlq_queue=dlq, count=count, rate_per_second=rate_per_second, offsets=offsets
        )
        return (await self._admin(methods.REDRIVE, request, timeout_s=timeout_s, queue=dlq)).redriven

    # Channels.

    async def create_channel(
        self,
        queue: str,
        channel: str,
        *,
        start: Literal["head", "oldest"] | int | datetime = "head",
        expires_after_idle_ms: Duration = 0,
        exist_ok: bool = False,
    ) -> int:
        """Add a channel that starts at the head, the oldest retained message, an offset or a moment.
        Return the first offset it will see. Raises QueueNotFound, ChannelExists.

        With `expires_after_idle_ms` (at least 1 s) it is deleted when nobody used it for that long. With `exist_ok` a
        channel that exists stays as it is, and the offset it is at is returned.
        """
        request = make(
            wire.CreateChannelRequest,
            queue=queue,
            channel=channel,
            expires_after_idle_ms=duration_ms("expires_after_idle_ms", expires_after_idle_ms),
        )
        if start == "head":
            request.head = True
        elif start == "oldest":
            request.oldest = True
        elif isinstance(start, datetime):
            request.time.CopyFrom(to_timestamp(start))
        elif isinstance(start, int):
            require_number("start", start)
            request.offset = start
        else:
            raise ValueError(f"start must be 'head', 'oldest', an offset or a datetime, got {start!r}")
        try:
            told = await self._admin(methods.CREATE_CHANNEL, request, queue=queue, channel=channel)
        except ChannelExists:
            if not exist_ok:
                raise
            (there,) = [info for info in await self.list_channels(queue) if info.name == channel]
            return there.tail_offset
        return told.start_offset

    async def delete_channel(self, queue: str, channel: str) -> None:
        """Delete a channel, its leases and what it had pending. Raises QueueNotFound, ChannelNotFound."""
        request = make(wire.DeleteChannelRequest, queue=queue, channel=channel)
        await self._admin(methods.DELETE_CHANNEL, request, queue=queue, channel=channel)

    async def list_channels(self, queue: str) -> list[ChannelInfo]:
        """Return a queue's channels in numbers, sorted by name. Raises QueueNotFound."""
        request = make(wire.ListChannelsRequest, queue=queue)
        told = await self._admin(methods.LIST_CHANNELS, request, queue=queue)
        return [answer(ChannelInfo, info) for info in told.channels]

    async def seek_channel(self, queue: str, channel: str | None, target: int | datetime) -> int:
        """Move a channel to an offset or a moment; its leases end. Return the offset it is at now.
        Raises QueueNotFound, ChannelNotFound."""
        request = _seek(queue, channel, target)
        told = await self._admin(methods.SEEK_CHANNEL, request, queue=queue, channel=channel or "default")
        return told.offset

    async def preview_seek(self, queue: str, channel: str | None, target: int | datetime) -> SeekPreview:
        """Say what `seek_channel` would do, and do nothing. Raises QueueNotFound, ChannelNotFound."""
        request = _seek(queue, channel, target)
        request.validate_only = True
        told = await self._admin(methods.SEEK_CHANNEL, request, queue=queue, channel=channel or "default")
        return answer(SeekPreview, told)

    async def purge_channel(
        self, queue: str, channel: str | None = None, *, fairness_key: str | None = None
    ) -> int:
        """Drop what is pending in one channel; others keep theirs. Return how many messages.
        Raises QueueNotFound, ChannelNotFound."""
        request = make(
            wire.PurgeChannelRequest, queue=queue, channel=channel or "", fairness_key=fairness_key
        )
        told = await self._admin(methods.PURGE_CHANNEL, request, queue=queue, channel=channel or "default")
        return told.purged

    # Runtime config.

    async def set_config(self, key: str, value: str) -> None:
        """Set a runtime config value, visible to hooks when this returns; empty deletes it. Raises Invalid."""
        await self._admin(
            methods.SET_CONFIG, make(wire.SetConfigRequest, key=key, value=value), config_key=key
        )

    async def get_config(self, key: str) -> str:
        """Return a runtime config value. Raises ConfigKeyNotFound."""
        return (
            await self._admin(methods.GET_CONFIG, make(wire.GetConfigRequest, key=key), config_key=key)
        ).value

    async def list_config(self, prefix: str = "") -> dict[str, str]:
        """Return the runtime config values whose key starts with `prefix`, sorted by key."""
        told = await self._admin(methods.LIST_CONFIG, make(wire.ListConfigRequest, prefix=prefix))
        return {entry.key: entry.value for entry in told.entries}

    # Fairness keys.

    async def set_key_policy(
        self,
        queue: str,
        fairness_key: str,
        *,
        weight: int | None = None,
        paused: bool | None = None,
        max_in_flight: int | None = None,
        rate_per_second: float | None = None,
        burst: float | None = None,
        cap_by_default: bool = False,
        rate_by_default: bool = False,
        committed_per_second: float | None = None,
        committed_by_default: bool = False,
        comment: str = "",
    ) -> KeyPolicy:
        """Weigh, pause, resume, cap or slow one fairness key; what is left out stays. Return its policy now.

        `weight` 0 takes the operator's weight away; `max_in_flight` 0 is no cap, `rate_per_second` 0 no rate and
        `committed_per_second` 0 none, also where the queue's `key_defaults` have one; `cap_by_default`,
        `rate_by_default` and `committed_by_default` go back to these defaults.
        `comment`, at most 1,024 bytes, says why, and is kept with the pause. Raises QueueNotFound, Invalid.
        """
        request = make(
            wire.SetKeyPolicyRequest,
            queue=queue,
            fairness_key=fairness_key,
            weight=weight,
            paused=paused,
            max_in_flight=max_in_flight,
            rate_per_second=rate_per_second,
            burst=burst,
            cap_by_default=cap_by_default,
            rate_by_default=rate_by_default,
            committed_per_second=committed_per_second,
            committed_by_default=committed_by_default,
            comment=comment,
        )
        told = await self._admin(methods.SET_KEY_POLICY, request, queue=queue)
        return answer(KeyPolicy, told)

    async def preview_key_policy(
        self,
        queue: str,
        fairness_key: str,
        *,
        channel: str | None = None,
        weight: int | None = None,
        paused: bool | None = None,
        max_in_flight: int | None = None,
        rate_per_second: float | None = None,
        burst: float | None = None,
        cap_by_default: bool = False,
        rate_by_default: bool = False,
        committed_per_second: float | None = None,
        committed_by_default: bool = False,
    ) -> KeyPolicyPreview:
        """Say what `set_key_policy` would do in one channel: when the key's messages would go, and who would wait
        longer; nothing is changed. Raises QueueNotFound, ChannelNotFound, Invalid."""
        policy = make(
            wire.SetKeyPolicyRequest,
            fairness_key=fairness_key,
            weight=weight,
            paused=paused,
            max_in_flight=max_in_flight,
            rate_per_second=rate_per_second,
            burst=burst,
            cap_by_default=cap_by_default,
            rate_by_default=rate_by_default,
            committed_per_second=committed_per_second,
            committed_by_default=committed_by_default,
        )
        request = make(wire.PreviewKeyPolicyRequest, queue=queue, channel=channel or "", policy=policy)
        told = await self._admin(
            methods.PREVIEW_KEY_POLICY, request, queue=queue, channel=channel or "default"
        )
        return answer(KeyPolicyPreview, told)

    async def explain_key(
        self, queue: str, fairness_key: str, *, channel: str | None = None
    ) -> KeyExplanation:
        """Say what holds a fairness key's next message, and where its last hour of waiting went.
        Raises QueueNotFound, ChannelNotFound."""
        request = make(wire.ExplainKeyRequest, queue=queue, channel=channel or "", fairness_key=fairness_key)
        told = await self._admin(methods.EXPLAIN_KEY, request, queue=queue, channel=channel or "default")
        return answer(KeyExplanation, told)

    async def skip_message(
        self, queue: str, fairness_key: str, *, channel: str | None = None, message_id: str = ""
    ) -> SkippedMessage:
        """Make the first message of a key a dead letter, with the reason `skipped`, so that those behind it go on;
        given `message_id`, only if it is that one. For queues with `key_order="strict"`.
        Raises QueueNotFound, ChannelNotFound, and a FilaError where the key has no message or another one is its
        first."""
        request = make(
            wire.SkipMessageRequest,
            queue=queue,
            channel=channel or "",
            fairness_key=fairness_key,
            message_id=message_id,
        )
        told = await self._admin(methods.SKIP_MESSAGE, request, queue=queue, channel=channel or "default")
        return answer(SkippedMessage, told)

    # The log.

    async def read_log(
        self,
        queue: str,
        *,
        from_offset: int = 0,
        to_offset: int = 0,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
        fairness_key: str = "",
        max_batch: int = 0,
    ) -> AsyncIterator[StoredMessage]:
        """Loop over retained messages in offset order, leasing nothing.

        All the bounds given must hold: `from` is included, `to` is not; none reads from the oldest
        retained message to the head as of the call. A broken stream is resumed where it was. Raises
        QueueNotFound; Unavailable when the broker stays away for `retry_for_s`.
        """
        request = make(
            wire.ReadLogRequest,
            queue=queue,
            from_offset=from_offset,
            to_offset=to_offset,
            from_time=None if from_time is None else to_timestamp(from_time),
            to_time=None if to_time is None else to_timestamp(to_time),
            fairness_key=fairness_key,
            max_batch=max_batch,
        )
        log = responses(self._connection, methods.READ_LOG, request, {"queue": queue})
        async with aclosing(log):
            async for response in log:
                # Before the messages: after a break, go on behind what was handed out.
                request.from_offset = response.next_offset
                for message in response.messages:
                    yield StoredMessage(message)


def _seek(queue: str, channel: str | None, target: int | datetime) -> wire.SeekChannelRequest:
    request = make(wire.SeekChannelRequest, queue=queue, channel=channel or "")
    if isinstance(target, datetime):
        request.time.CopyFrom(to_timestamp(target))
    else:
        require_number("target", target)
        request.offset = target
    return request
