"""What operators do with a client, without `await`; told in `fila.admin`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar, Unpack

from fila import client as asynchronous
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
)
from fila.errors import ClientClosed
from fila.explanation import KeyExplanation, KeyPolicyPreview, SkippedMessage
from fila.messages import StoredMessage
from fila.settings import Duration, QueueSettings
from fila.sync.loop_thread import LoopThread
from fila.tried import DryRun
from fila.whereabouts import MessageStatus, PendingMessage

ResultT = TypeVar("ResultT")
ItemT = TypeVar("ItemT")

READ_AHEAD_MAX = 500
"""Messages of the log, or events, fetched from the loop's thread in one go."""


class AdminCalls:
    """The calls of FilaAdmin, as methods of a client."""

    _client: asynchronous.FilaClient
    _thread: LoopThread
    _closed: bool

    def _run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        if self._closed:
            work.close()
            raise ClientClosed("this client was closed; connect a new one")
        return self._thread.run(work)

    def _iterate(self, items: AsyncIterator[ItemT], ahead_max: int = READ_AHEAD_MAX) -> Iterator[ItemT]:
        failure: Exception | None = None

        async def read_ahead() -> list[ItemT]:
            nonlocal failure
            batch: list[ItemT] = []
            try:
                async for item in items:
                    batch.append(item)
                    if len(batch) >= ahead_max:
                        break
            except Exception as error:  # noqa: BLE001 - raised below, after what came before it
                failure = error
            return batch

        while failure is None and (batch := self._run(read_ahead())):
            yield from batch
        if failure is not None:
            raise failure

    def create_queue(self, queue: str, *, exist_ok: bool = False, **settings: Unpack[QueueSettings]) -> None:
        """Make a queue and its dead-letter queue `<queue>.dlq`. Raises QueueExists, Invalid.

        With `exist_ok` a queue that exists stays as it is, with the settings it has.
        """
        self._run(self._client.create_queue(queue, exist_ok=exist_ok, **settings))

    def get_queue(self, queue: str) -> QueueDetails:
        """Return a queue's settings, defaults filled in. Raises QueueNotFound."""
        return self._run(self._client.get_queue(queue))

    def update_queue(
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
        return self._run(
            self._client.update_queue(queue, expected_version=expected_version, comment=comment, **settings)
        )

    def dry_run_policy(self, queue: str, *, last: int = 0, **settings: Unpack[QueueSettings]) -> DryRun:
        """Say how these settings would route the `last` newest messages (0: 100, up to 1,000) and judge the newest dead
        letters; nothing is changed. Raises QueueNotFound, Invalid."""
        return self._run(self._client.dry_run_policy(queue, last=last, **settings))

    def list_queue_versions(self, queue: str, *, before: int = 0, limit: int = 0) -> list[QueueVersion]:
        """Return the versions of a queue's settings, newest first; the last 100 are kept. Raises QueueNotFound."""
        return self._run(self._client.list_queue_versions(queue, before=before, limit=limit))

    def get_queue_version(self, queue: str, number: int = 0) -> QueueVersionDetails:
        """Return one version of a queue's settings, the newest for 0. Raises QueueNotFound, NotFound."""
        return self._run(self._client.get_queue_version(queue, number))

    def delete_queue(self, queue: str, *, force: bool = False) -> None:
        """Delete a queue, its own dead-letter queue, and everything in them. Raises QueueNotFound.

        While a published batch of a sink is still on its way into it, only with `force`; else it raises Conflict.
        """
        self._run(self._client.delete_queue(queue, force=force))

    def list_queues(
        self, *, prefix: str = "", containing: str = "", page_size: int = 0, page_token: str = ""
    ) -> list[QueueInfo]:
        """Return queues with their depth, in flight and consumers, sorted by name: all; those whose names begin so, or
        have that in them, in letters of either case; at most `page_size`, behind the name `page_token`."""
        return self._run(
            self._client.list_queues(
                prefix=prefix, containing=containing, page_size=page_size, page_token=page_token
            )
        )

    def get_stats(self, queue: str, *, channel: str | None = None, max_keys: int = 0) -> Stats:
        """Return a queue in numbers: over all channels, or of one. At most `max_keys` keys (0: 1,000).
        Raises QueueNotFound, ChannelNotFound."""
        return self._run(self._client.get_stats(queue, channel=channel, max_keys=max_keys))

    def list_consumers(self, queue: str, *, channel: str | None = None) -> list[ConsumerInfo]:
        """Return who consumes a queue, over all channels or of one: what each holds, has begun, and gave back.
        Raises QueueNotFound, ChannelNotFound."""
        return self._run(self._client.list_consumers(queue, channel=channel))

    def purge(
        self,
        queue: str,
        *,
        fairness_key: str | None = None,
        channel: str | None = None,
        timeout_s: float | None = None,
    ) -> int:
        """Drop pending messages: all, or of one key, in every channel or in one. Return how many.
        Raises QueueNotFound, ChannelNotFound."""
        return self._run(
            self._client.purge(queue, fairness_key=fairness_key, channel=channel, timeout_s=timeout_s)
        )

    def peek(
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
        return self._run(
            self._client.peek(
                queue,
                max_messages=max_messages,
                after_offset=after_offset,
                fairness_key=fairness_key,
                channel=channel,
            )
        )

    def redrive(
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
        return self._run(
            self._client.redrive(
                dlq, count=count, rate_per_second=rate_per_second, offsets=offsets, timeout_s=timeout_s
            )
        )

    def create_channel(
        self,
        queue: str,
        channel: str,
        *,
        start: Literal["head", "oldest"] | int | datetime = "head",
        expires_after_idle_ms: Duration = 0,
        exist_ok: bool = False,
    ) -> int:
        """Add a channel that starts at the head, the oldest retained message, an offset or a moment.
        Return the first offset it will see. Raises QueueNotFound, ChannelExists. As the asynchronous one."""
        return self._run(
            self._client.create_channel(
                queue, channel, start=start, expires_after_idle_ms=expires_after_idle_ms, exist_ok=exist_ok
            )
        )

    def delete_channel(self, queue: str, channel: str) -> None:
        """Delete a channel, its leases and what it had pending. Raises QueueNotFound, ChannelNotFound."""
        self._run(self._client.delete_channel(queue, channel))

    def list_channels(self, queue: str) -> list[ChannelInfo]:
        """Return a queue's channels in numbers, sorted by name. Raises QueueNotFound."""
        return self._run(self._client.list_channels(queue))

    def seek_channel(self, queue: str, channel: str | None, target: int | datetime) -> int:
        """Move a channel to an offset or a moment; its leases end. Return the offset it is at now.
        Raises QueueNotFound, ChannelNotFound."""
        return self._run(self._client.seek_channel(queue, channel, target))

    def preview_seek(self, queue: str, channel: str | None, target: int | datetime) -> SeekPreview:
        """Say what `seek_channel` would do, and do nothing. Raises QueueNotFound, ChannelNotFound."""
        return self._run(self._client.preview_seek(queue, channel, target))

    def purge_channel(
        self, queue: str, channel: str | None = None, *, fairness_key: str | None = None
    ) -> int:
        """Drop what is pending in one channel; others keep theirs. Return how many messages.
        Raises QueueNotFound, ChannelNotFound."""
        return self._run(self._client.purge_channel(queue, channel, fairness_key=fairness_key))

    def set_config(self, key: str, value: str) -> None:
        """Set a runtime config value, visible to hooks when this returns; empty deletes it. Raises Invalid."""
        self._run(self._client.set_config(key, value))

    def get_config(self, key: str) -> str:
        """Return a runtime config value. Raises ConfigKeyNotFound."""
        return self._run(self._client.get_config(key))

    def list_config(self, prefix: str = "") -> dict[str, str]:
        """Return the runtime config values whose key starts with `prefix`, sorted by key."""
        return self._run(self._client.list_config(prefix))

    def set_key_policy(
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
        return self._run(
            self._client.set_key_policy(
                queue,
                fairness_key,
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
        )

    def preview_key_policy(
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
        return self._run(
            self._client.preview_key_policy(
                queue,
                fairness_key,
                channel=channel,
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
        )

    def explain_key(self, queue: str, fairness_key: str, *, channel: str | None = None) -> KeyExplanation:
        """Say what holds a fairness key's next message, and where its last hour of waiting went.
        Raises QueueNotFound, ChannelNotFound."""
        return self._run(self._client.explain_key(queue, fairness_key, channel=channel))

    def skip_message(
        self, queue: str, fairness_key: str, *, channel: str | None = None, message_id: str = ""
    ) -> SkippedMessage:
        """Make the first message of a key a dead letter, with the reason `skipped`, so that those behind it go on;
        given `message_id`, only if it is that one. For queues with `key_order="strict"`.
        Raises QueueNotFound, ChannelNotFound, and a FilaError where the key has no message or another one is its
        first."""
        return self._run(
            self._client.skip_message(queue, fairness_key, channel=channel, message_id=message_id)
        )

    def get_message(
        self,
        queue: str,
        message_id: str = "",
        *,
        dedup_key: str = "",
        channel: str | None = None,
        with_past: bool = False,
    ) -> MessageStatus:
        """Say where one message is, named by its id or its dedup key: it waits, is delayed or leased, failed, is dead,
        or is not known any more. `with_past`: also what happened to it, as far as the broker's history has it.
        Raises QueueNotFound, ChannelNotFound, Invalid."""
        return self._run(
            self._client.get_message(
                queue, message_id, dedup_key=dedup_key, channel=channel, with_past=with_past
            )
        )

    def list_pending(
        self,
        queue: str,
        *,
        max_messages: int = 100,
        after_offset: int = 0,
        fairness_key: str = "",
        channel: str | None = None,
    ) -> list[PendingMessage]:
        """List messages that are not done, in offset order: what each is doing and since when (at most 1,000;
        `after_offset` turns the page). The right `view` is enough. Raises QueueNotFound, ChannelNotFound."""
        return self._run(
            self._client.list_pending(
                queue,
                max_messages=max_messages,
                after_offset=after_offset,
                fairness_key=fairness_key,
                channel=channel,
            )
        )

    def cancel_messages(
        self,
        queue: str,
        message_ids: Sequence[str] = (),
        *,
        dedup_keys: Sequence[str] = (),
        channel: str | None = None,
    ) -> list[str]:
        """Take messages back that are not done, named by their ids or dedup keys, at most 10,000 a call. As
        `fila.FilaClient.cancel_messages`."""
        return self._run(
            self._client.cancel_messages(queue, message_ids, dedup_keys=dedup_keys, channel=channel)
        )

    def read_log(
        self,
        queue: str,
        *,
        from_offset: int = 0,
        to_offset: int = 0,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
        fairness_key: str = "",
        max_batch: int = 0,
    ) -> Iterator[StoredMessage]:
        """Loop over retained messages in offset order, leasing nothing.

        All the bounds given must hold: `from` is included, `to` is not; none reads from the oldest
        retained message to the head as of the call. A broken stream is resumed where it was. Raises
        QueueNotFound; Unavailable when the broker stays away for `retry_for_s`.
        """
        yield from self._iterate(
            self._client.read_log(
                queue,
                from_offset=from_offset,
                to_offset=to_offset,
                from_time=from_time,
                to_time=to_time,
                fairness_key=fairness_key,
                max_batch=max_batch,
            )
        )
