"""After a life: read everything the broker still holds, and let the witness judge it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from fila.v1 import admin_pb2
from tests.crash.load import Load
from tests.crash.witness import Found, QueueBook


async def check(load: Load) -> None:
    """Wait until nothing is leased, then let the witness judge everything that is left."""
    await _check_config(load)
    listed = await load.admin.ListQueues(admin_pb2.ListQueuesRequest())
    await _nothing_leased(load, {queue.name for queue in listed.queues})
    names = {queue.name for queue in listed.queues}
    load.resolve_doubts(names)
    for book in (load.work, load.orders, load.drained, load.log, *load.temporary.values()):
        if book is not None:
            load.witness.judge(book, [found async for found in _found(load, book)])
    load.witness.count("checks")


async def _check_config(load: Load) -> None:
    listed = await load.admin.ListConfig(admin_pb2.ListConfigRequest(prefix="crash."))
    here = {entry.key: entry.value for entry in listed.entries}
    for key, may_be in load.witness.config.items():
        value = here.get(key, "")
        if value not in may_be and load.witness.keeps_answered:
            load.witness.wrong(f"config {key} is {value!r}, not {may_be}")
        load.witness.config[key] = {value}


async def _nothing_leased(load: Load, names: Iterable[str]) -> None:
    for name in names:
        async with asyncio.timeout(10):
            while True:
                stats = await load.admin.GetStats(admin_pb2.GetStatsRequest(queue=name))
                if stats.in_flight == 0:
                    break
                await asyncio.sleep(0.02)
    # The last to expire may be on its way to the dead letters, where it is seen once it is durable; this
    # answer is given behind that.
    await load.admin.SetConfig(admin_pb2.SetConfigRequest(key="barrier", value="x"), timeout=10)


async def _found(load: Load, book: QueueBook) -> AsyncIterator[Found]:
    for channel in book.channels:
        async for message in _peek(load, book.name, channel):
            metadata = message.metadata
            yield Found(message.payload, channel, message.id, metadata.offset, metadata.attempt_count, False)
    async for message in _peek(load, f"{book.name}.dlq", "default"):
        letter = message.metadata.dead_letter
        yield Found(message.payload, letter.source_channel, message.id, 0, 0, True)


async def _peek(load: Load, queue: str, channel: str) -> AsyncIterator[Any]:
    after = 0
    while True:
        request = admin_pb2.PeekMessagesRequest(
            queue=queue, channel=channel, max_messages=1_000, after_offset=after
        )
        page = (await load.admin.PeekMessages(request)).messages
        for message in page:
            yield message
        if not page:
            return
        after = page[-1].metadata.offset
