"""What is asked of a broker that changes something there."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from fila import Unavailable
from fila.answers import QueueConfig
from fila.dead_letters import DeadLetterFilter, Operation
from fila.explanation import SkippedMessage
from fila.limits import LimitOptions, LimitState
from fila.methods import MOVE_OWNER, REMOVE_NODE
from fila.schedules import Schedule, ScheduleOptions
from fila.v1 import cluster_pb2
from fila_console.line import Line, ResultT
from fila_console.trouble import Trouble

_PERHAPS = "The change may have been made, or not: the broker was away before it could say so."
_LOOK = "Load the page again once it answers, and look, before you press again."


class NewKeyPolicy(NamedTuple):
    """What an operator asks for one key; None: as it is."""

    weight: int | None = None
    cap: int | None = None
    rate: float | None = None
    paused: bool | None = None
    comment: str = ""
    """Why."""
    burst: float | None = None
    cap_by_default: bool = False
    """Take the operator's cap back."""
    rate_by_default: bool = False
    committed: float | None = None
    """Messages a second that go before those of keys beyond theirs."""
    committed_by_default: bool = False


class Changes(Line):
    """The calls. Each raises Trouble."""

    async def carried_out(self, call: Coroutine[Any, Any, ResultT]) -> ResultT:
        """What a change answers. Raises Trouble: where nothing came back it may have been made all the same."""
        try:
            return await self.told(call)
        except Trouble as trouble:
            if isinstance(trouble.__cause__, Unavailable):
                raise Trouble(503, "No answer came", _PERHAPS, _LOOK) from trouble.__cause__
            raise

    async def set_key_policy(self, queue: str, key: str, policy: NewKeyPolicy) -> None:
        """Weigh, cap, slow, pause or resume one key; what is None stays."""
        client = await self.connect()
        await self.carried_out(
            client.set_key_policy(
                queue,
                key,
                weight=policy.weight,
                max_in_flight=policy.cap,
                rate_per_second=policy.rate,
                paused=policy.paused,
                comment=policy.comment,
                burst=policy.burst,
                cap_by_default=policy.cap_by_default,
                rate_by_default=policy.rate_by_default,
                committed_per_second=policy.committed,
                committed_by_default=policy.committed_by_default,
            )
        )

    async def set_limit(self, name: str, parts: LimitOptions) -> None:
        """Set a limit as a whole."""
        client = await self.connect()
        await self.carried_out(client.set_limit(name, **parts))

    async def delete_limit(self, name: str) -> None:
        """Take a limit away."""
        client = await self.connect()
        await self.carried_out(client.delete_limit(name))

    async def reset_limit(self, throttle_key: str, spent: float) -> LimitState:
        """Say how much of its budget a throttle key has spent."""
        client = await self.connect()
        return await self.carried_out(client.reset_limit(throttle_key, spent=spent))

    async def skip_message(self, queue: str, key: str, channel: str) -> SkippedMessage:
        """Make the first message of a key a dead letter."""
        client = await self.connect()
        return await self.carried_out(client.skip_message(queue, key, channel=channel or None))

    async def create_schedule(self, queue: str, name: str, settings: ScheduleOptions) -> Schedule:
        """Make a schedule."""
        client = await self.connect()
        return await self.carried_out(client.create_schedule(queue, name, **settings))

    async def pause_schedule(self, queue: str, name: str, comment: str, *, paused: bool) -> Schedule:
        """Let a schedule rest, or go on."""
        client = await self.connect()
        return await self.carried_out(client.pause_schedule(queue, name, paused=paused, comment=comment))

    async def delete_schedule(self, queue: str, name: str) -> None:
        """Delete a schedule."""
        client = await self.connect()
        await self.carried_out(client.delete_schedule(queue, name))

    async def move_owner(self, node: str) -> cluster_pb2.MoveOwnerResponse:
        """Let another node of the group serve; "" for the one that has read most."""
        client = await self.connect()
        asked = cluster_pb2.MoveOwnerRequest(node=node)
        return await self.carried_out(client._connection.call(MOVE_OWNER, asked, {}))

    async def remove_node(self, node: str) -> cluster_pb2.RemoveNodeResponse:
        """Count a node of the group no more that is gone for good."""
        client = await self.connect()
        asked = cluster_pb2.RemoveNodeRequest(node=node)
        return await self.carried_out(client._connection.call(REMOVE_NODE, asked, {}))

    async def create_key(self, name: str, expires_ms: int, tenant: str) -> str:
        """Make a key, which nobody can read again."""
        client = await self.connect()
        return await self.carried_out(client.create_key(name, expires_after=expires_ms, as_tenant=tenant))

    async def rotate_key(self, key_id: str, overlap_ms: int) -> str:
        """Make another key for the same name; the old one ends after `overlap_ms`."""
        client = await self.connect()
        return await self.carried_out(client.rotate_key(key_id, overlap=overlap_ms))

    async def revoke_key(self, key_id: str) -> None:
        """Take a key away."""
        client = await self.connect()
        await self.carried_out(client.revoke_key(key_id))

    async def grant(self, name: str, rights: Mapping[str, Any]) -> None:
        """Give rights."""
        client = await self.connect()
        await self.carried_out(client.grant(name, **rights))

    async def revoke_grant(self, name: str, rights: Mapping[str, Any]) -> None:
        """Take rights back."""
        client = await self.connect()
        await self.carried_out(client.revoke_grant(name, **rights))

    async def create_queue(self, queue: str, **settings: Any) -> None:
        """Make a queue."""
        client = await self.connect()
        await self.carried_out(client.create_queue(queue, **settings))

    async def delete_queue(self, queue: str) -> None:
        """Delete a queue with all that is in it."""
        client = await self.connect()
        await self.carried_out(client.delete_queue(queue))

    async def purge(self, queue: str, channel: str = "", key: str = "") -> int:
        """Drop what waits in one channel, or in all, of one key, or of all; how many messages."""
        client = await self.connect()
        return await self.carried_out(client.purge(queue, channel=channel or None, fairness_key=key or None))

    async def create_channel(
        self, queue: str, channel: str, start: Literal["head", "oldest"], idle_ms: int
    ) -> int:
        """Add a channel; the first offset that it will see."""
        client = await self.connect()
        return await self.carried_out(
            client.create_channel(queue, channel, start=start, expires_after_idle_ms=idle_ms)
        )

    async def pause_channel(self, queue: str, channel: str, comment: str, *, paused: bool) -> None:
        """Deliver nothing in a channel, or go on; who changes the queue at the same time is told of this one."""
        client = await self.connect()
        told = await self.carried_out(client.get_queue(queue))
        names = [each for each in told.config.paused_channels if each != channel]
        await self.carried_out(
            client.update_queue(
                queue,
                paused_channels=[*names, channel] if paused else names,
                comment=comment,
                expected_version=told.version,
            )
        )

    async def delete_channel(self, queue: str, channel: str) -> None:
        """Delete a channel, its leases and what it had pending."""
        client = await self.connect()
        await self.carried_out(client.delete_channel(queue, channel))

    async def enqueue(
        self,
        queue: str,
        payload: bytes,
        headers: Mapping[str, str],
        *,
        delay_ms: int | None = None,
        at: datetime | None = None,
        dedup_key: str | None = None,
        replaces: bool = False,
    ) -> str:
        """Store one message; its id."""
        client = await self.connect()
        return await self.carried_out(
            client.enqueue(
                *(queue, payload, headers),
                delay_ms=delay_ms,
                deliver_at=at,
                dedup_key=dedup_key,
                replace=replaces,
            )
        )

    async def update_queue(self, queue: str, **settings: Any) -> QueueConfig:
        """Change settings of a queue."""
        client = await self.connect()
        return await self.carried_out(client.update_queue(queue, **settings))

    async def redrive(self, dlq: str, offsets: Sequence[int]) -> int:
        """Move dead letters back."""
        client = await self.connect()
        return await self.carried_out(client.redrive(dlq, offsets=offsets))

    async def cancel(self, queue: str, message_ids: Sequence[str], channel: str = "") -> list[str]:
        """Take messages back; what became of each."""
        client = await self.connect()
        return await self.carried_out(
            client.cancel_messages(queue, list(message_ids), channel=channel or None)
        )

    async def drop(self, dlq: str, offsets: Sequence[int]) -> int:
        """Drop dead letters for good."""
        client = await self.connect()
        return await self.carried_out(client.drop_dead_letters(dlq, offsets))

    async def start_operation(
        self, dlq: str, kind: Literal["redrive", "delete"], wanted: DeadLetterFilter, per_second: float
    ) -> Operation:
        """Let the broker move dead letters back, or drop them; 0 a second: as fast as it goes."""
        client = await self.connect()
        return await self.carried_out(
            client.start_operation(dlq, kind, filter=wanted, rate_per_second=per_second)
        )

    async def cancel_operation(self, dlq: str, identity: str) -> Operation:
        """End an operation; what it did is done."""
        client = await self.connect()
        return await self.carried_out(client.cancel_operation(dlq, identity))

    async def edit_letter(self, dlq: str, offset: int, payload: bytes, headers: Mapping[str, str]) -> str:
        """Send a dead letter back with this payload and these headers; the new message's id."""
        client = await self.connect()
        return await self.carried_out(client.edit_dead_letter(dlq, offset, payload=payload, headers=headers))

    async def seek(self, queue: str, channel: str, target: int | datetime) -> int:
        """Move a channel."""
        client = await self.connect()
        return await self.carried_out(client.seek_channel(queue, channel or None, target))
