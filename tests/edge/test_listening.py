"""What the broker tells the core of its consumers' sockets, and what it hears of things that end by themselves."""

from __future__ import annotations

import asyncio

from fila.v1 import admin_pb2
from fila_server import commands, errors, seam_frames
from fila_server.broker import notices
from fila_server.broker.calls import Broker
from tests.edge.fake_engine import FakeAdmin, FakeEngine, ok


async def test_the_core_hears_that_sockets_are_read_until_the_broker_drains(
    engine: FakeEngine, broker: Broker
) -> None:
    assert engine.of(commands.LISTENED) == []

    broker.listen()
    await engine.until(commands.LISTENED, 2)
    await broker.drain(0.1)
    heard = len(engine.of(commands.LISTENED))
    await asyncio.sleep(0.3)

    assert len(engine.of(commands.LISTENED)) == heard


async def test_a_full_mailbox_is_not_told_that_sockets_are_read(engine: FakeEngine, broker: Broker) -> None:
    engine.refuse_next.append(errors.Overloaded("full"))

    broker.listen()

    assert await engine.until(commands.LISTENED)  # the next one gets in


async def test_a_queue_that_expired_leaves_the_mirror(
    engine: FakeEngine, broker: Broker, admin: FakeAdmin
) -> None:
    create = admin_pb2.CreateQueueRequest(name="reply")
    await broker.call(commands.CREATE_QUEUE, create.SerializeToString())
    assert "reply" in broker.queue_configs
    del admin.configs["reply"]

    notice = seam_frames.Notice(what=notices.QUEUE_EXPIRED, queue=b"reply", number=3)
    engine.say(0, commands.NOTICE, notice.SerializeToString())
    async with asyncio.timeout(30):
        while "reply" in broker.queue_configs:  # noqa: ASYNC110 - the mirror tells nobody
            await asyncio.sleep(0)

    assert "reply" not in broker.queue_configs


async def test_a_consumer_of_a_broker_that_stops_is_not_gone(engine: FakeEngine, broker: Broker) -> None:
    engine.answers[commands.SESSION_OPEN] = ok(b"")
    stream = await broker.open_stream(commands.SESSION_OPEN, b"")
    await broker.drain(0.1)
    await stream.close()

    assert [word for _, word in engine.of(commands.CONSUMER_CLOSE)] == [b"drain"]
