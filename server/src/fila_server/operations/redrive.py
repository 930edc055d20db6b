"""Dead letters back to where they failed, a page at a time, under today's policy.

    look   a page of the DLQ, when its source queue has a script (else the core moves unseen)
    ask    the script, through the same stage as an enqueue: its time, its circuit, its hold
    move   the page, each message atomically; what cannot be moved is left and stepped over
    pace   until the next page is due

Between two pages nothing is pending, so a caller that goes away stops it there, and a server
that drains does too. `count` bounds what is moved; the DLQ's head at the start bounds what is
looked at, so that messages which fail again during the redrive are not moved twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from fila.v1 import admin_pb2
from fila.v1.messages_pb2 import Message
from fila_server import errors
from fila_server.broker.calls import Broker, shutting_down
from fila_server.broker.mirror import DLQ_SUFFIX
from fila_server.core.protocol import commands, seam_frames
from fila_server.hooks.packed import KeyLimits, pack_messages, unpack_routings

PAGE_MESSAGES_MAX = 256
TENANT_HEADER = b"fila-tenant"
"""Binds a stored message to its tenant; core/requests/tenant.pyx puts it there."""
OWN_HEADERS = "fila-"
EDITED_FROM = "fila-edited-from"
PAGES_A_SECOND = 10
"""Of a paced redrive: a page then holds what is due in a tenth of a second, and at least one message."""


class Redrive:
    """One redrive. `run` returns what became of it; `moved` is how many were moved until now, however it ends."""

    def __init__(self, broker: Broker, request: admin_pb2.RedriveRequest, key_limits: KeyLimits) -> None:
        self._broker = broker
        self._key_limits = key_limits
        self._dlq = request.dlq_queue
        self._left = request.count
        self._rate = request.rate_per_second
        self._after_offset = request.after_offset
        self._up_to_offset = request.up_to_offset
        self._walks = request.after_offset > 0
        self._only = sorted(set(request.offsets))
        self._stuck = 0
        self.moved = 0

    async def run(self) -> admin_pb2.RedriveResponse:
        """Move what was asked for. Raises QueueNotFound, Invalid, SourceQueueGone, Conflict."""
        up_to_offset = await self._start()
        after_offset = self._after_offset
        began_s = time.monotonic()
        draining = asyncio.Event()
        stay = self._broker.at_drain(draining.set)
        try:
            while True:
                page = await self._page(after_offset, up_to_offset)
                if not page.moved and page.last_offset <= after_offset:
                    break
                after_offset = page.last_offset
                self.moved += page.moved
                self._stuck += page.stuck
                if self._left and self._left <= page.moved:
                    break
                if after_offset >= (self._only[-1] if self._only else up_to_offset):
                    break
                self._left -= page.moved if self._left else 0
                if self._rate:
                    await pause(began_s + self.moved / self._rate - time.monotonic(), draining)
        finally:
            stay()
        # A later page of a walk that moved others is no failure of the whole.
        if self._stuck and not self.moved and not self._walks:
            raise errors.Conflict(
                f'none of the {self._stuck} messages in "{self._dlq}" can be moved back: they were put there '
                "by hand, or the queue or channel they came from is gone, or its policy refuses them"
            )
        return admin_pb2.RedriveResponse(redriven=self.moved, last_offset=after_offset, stuck=self._stuck)

    async def move_named(self, offsets: Sequence[int]) -> AsyncIterator[tuple[int, int]]:
        """Move the dead letters with these offsets, sorted; tell of each page how many, and how many could not be."""
        self._only = list(offsets)
        after_offset = self._only[0] - 1
        while after_offset < self._only[-1]:
            page = await self._page(after_offset, self._only[-1])
            yield page.moved, page.stuck
            after_offset = page.last_offset

    async def look_at(self, offset: int) -> Message:
        """One dead letter. Raises NotFound."""
        asked = admin_pb2.PeekMessagesRequest(queue=self._dlq, max_messages=1, after_offset=offset - 1)
        reply = await self._broker.call(commands.PEEK_MESSAGES, asked.SerializeToString())
        found = list(admin_pb2.PeekMessagesResponse.FromString(reply).messages)
        if not found or found[0].metadata.offset != offset:
            raise errors.NotFound(
                f'offset: there is no dead letter {offset} in "{self._dlq}", or it is leased just now; PeekMessages '
                "shows which there are",
                reason="MESSAGE_NOT_FOUND",
            )
        return found[0]

    async def edit(self, before: Message, headers: dict[str, str], payload: bytes) -> str:
        """Move a dead letter with other headers and another payload, as a new message; return its id. Headers of the
        broker's stay. Raises Conflict."""
        offset = before.metadata.offset
        kept = {name: value for name, value in before.headers.items() if name.startswith(OWN_HEADERS)}
        edited = Message(payload=payload, metadata=before.metadata)
        edited.headers.update({**headers, **kept, EDITED_FROM: before.id})
        frame = seam_frames.RedrivePage(
            dlq_queue=self._dlq.encode(),
            count=PAGE_MESSAGES_MAX,
            after_offset=offset - 1,
            up_to_offset=offset,
            only_routed=True,
        )
        letter = _DeadLetters([edited], frame, self._key_limits)
        if self._broker.hooks.scripted and self._broker.hooks.concerns(letter):
            await self._broker.hooks.route(letter)
        frame.routings[0].body = Message(headers=edited.headers, payload=payload).SerializeToString()
        reply = await self._broker.call(commands.REDRIVE_MOVE, frame.SerializeToString())
        page = seam_frames.RedrivenPage.FromString(reply)
        if not page.moved:
            raise errors.Conflict(
                f'dead letter {offset} of "{self._dlq}" can\'t be sent back: it was put there by hand, or the queue or '
                "channel it came from is gone, or its policy refuses it"
            )
        return str(page.message_id.decode())

    async def _start(self) -> int:
        """Check that there is something to redrive to; return the last offset to look at."""
        request = admin_pb2.GetStatsRequest(queue=self._dlq, max_keys=1)
        reply = await self._broker.call(commands.GET_STATS, request.SerializeToString())
        source = self._dlq.removesuffix(DLQ_SUFFIX)
        if source == self._dlq:
            raise errors.Invalid(
                "dlq_queue", f'must be a dead-letter queue, named <queue>{DLQ_SUFFIX}, got "{self._dlq}"'
            )
        if source not in self._broker.queue_configs:
            raise errors.SourceQueueGone(self._dlq, source)
        last_offset = admin_pb2.GetStatsResponse.FromString(reply).head_offset - 1
        return min(last_offset, self._up_to_offset) if self._up_to_offset else last_offset

    async def _page(self, after_offset: int, up_to_offset: int) -> Any:
        count = self._page_size()
        named = self._named(after_offset, count)
        if named:
            # As far as the last one named and no further: what lies between is looked at and left.
            after_offset, up_to_offset = named[0] - 1, min(named[-1], up_to_offset)
        frame = seam_frames.RedrivePage(
            dlq_queue=self._dlq.encode(),
            count=PAGE_MESSAGES_MAX if named else count,
            up_to_offset=up_to_offset,
            after_offset=after_offset,
            only_routed=bool(named),
        )
        if self._broker.hooks.scripted:
            await self._ask_scripts(frame, named)
        if not frame.routings:
            for offset in named:
                frame.routings.add(offset=offset)
        reply = await self._broker.call(commands.REDRIVE_MOVE, frame.SerializeToString())
        page = seam_frames.RedrivenPage.FromString(reply)
        if named:
            # Those named that were not there count as looked at.
            page.last_offset = max(page.last_offset, named[-1])
        return page

    def _named(self, after_offset: int, count: int) -> list[int]:
        """The next offsets to move, of those that were named, as many as one page can hold."""
        left = [offset for offset in self._only if offset > after_offset][:count]
        return [offset for offset in left if offset < left[0] + PAGE_MESSAGES_MAX]

    def _page_size(self) -> int:
        size = PAGE_MESSAGES_MAX
        if self._left:
            size = min(size, self._left)
        if self._rate:
            size = min(size, max(1, int(self._rate / PAGES_A_SECOND)))
        return size

    async def _ask_scripts(self, frame: Any, named: list[int]) -> None:
        """Add to the page what today's scripts say about its messages."""
        request = admin_pb2.PeekMessagesRequest(
            queue=self._dlq, max_messages=frame.count, after_offset=frame.after_offset
        )
        reply = await self._broker.call(commands.PEEK_MESSAGES, request.SerializeToString())
        messages = [
            message
            for message in admin_pb2.PeekMessagesResponse.FromString(reply).messages
            if message.metadata.offset <= frame.up_to_offset
            and (not named or message.metadata.offset in named)
        ]
        page = _DeadLetters(messages, frame, self._key_limits)
        if messages and self._broker.hooks.concerns(page):
            frame.up_to_offset = messages[-1].metadata.offset
            frame.only_routed = True
            await self._broker.hooks.route(page)


async def drop(broker: Broker, dlq: str, offsets: Sequence[int]) -> AsyncIterator[int]:
    """Drop the dead letters with these offsets, sorted, for good; tell of each page how many there were."""
    at = 0
    while at < len(offsets):
        end = at
        while end < len(offsets) and offsets[end] < offsets[at] + PAGE_MESSAGES_MAX:
            end += 1
        page = seam_frames.RedrivePage(
            dlq_queue=dlq.encode(),
            count=PAGE_MESSAGES_MAX,
            after_offset=offsets[at] - 1,
            up_to_offset=offsets[end - 1],
            only_routed=True,
            drop=True,
        )
        for offset in offsets[at:end]:
            page.routings.add(offset=offset)
        reply = await broker.call(commands.REDRIVE_MOVE, page.SerializeToString())
        yield seam_frames.RedrivenPage.FromString(reply).moved
        at = end


class _DeadLetters:
    """A page of dead letters as the hooks stage sees a frame: routings go into the page that moves them."""

    def __init__(self, messages: list[Message], frame: Any, key_limits: KeyLimits) -> None:
        self._messages = messages
        self._key_limits = key_limits
        # Each is named, routed or not: what nobody asked about is not moved with this page.
        self._routings = [frame.routings.add(offset=message.metadata.offset) for message in messages]

    def queues(self) -> set[bytes]:
        return {self.queue(i) for i in self.unrefused()}

    def unrefused(self) -> range:
        return range(len(self._messages))

    def queue(self, i: int) -> bytes:
        return self._messages[i].metadata.dead_letter.source_queue.encode()

    def frame_bytes(self) -> int:
        return sum(message.ByteSize() for message in self._messages)

    def pack(
        self,
        indices: Sequence[int],
        at: int,
        _count_max: int,
        _bytes_max: int,
        fairness_header: bytes = b"",
    ) -> tuple[int, bytes]:
        # One at a time: a page is not a hot path, and its messages may be as long as they like.
        i = indices[at]
        reported = {name.encode(): value.encode() for name, value in self._messages[i].headers.items()}
        if fairness_header and (tenant := reported.get(TENANT_HEADER)):
            reported[fairness_header] = tenant
        headers = list(reported.items())
        return 1, pack_messages([(headers, len(self._messages[i].payload))])

    def route(
        self, indices: Sequence[int], at: int, count: int, routings: bytes, start: int
    ) -> tuple[int, str | None, int]:
        decided, problem, end = unpack_routings(routings, start, count, self._key_limits)
        for i, (fairness_key, weight, cost, throttle_keys) in zip(indices[at:], decided, strict=False):
            routing = self._routings[i]
            if fairness_key is not None:
                routing.fairness_key = fairness_key
            if weight is not None:
                routing.weight = weight
            if cost is not None:
                routing.cost = cost
            if throttle_keys is not None:
                routing.throttle_keys.extend(throttle_keys)
                routing.has_throttle_keys = True
        return len(decided), problem, end


async def pause(wait_s: float, draining: asyncio.Event) -> None:
    """Sleep so long. Raises Unavailable as soon as the server drains."""
    if wait_s > 0:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await draining.wait()
    else:
        await asyncio.sleep(0)
    if draining.is_set():
        raise shutting_down()
