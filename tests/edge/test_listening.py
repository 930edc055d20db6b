"""What the broker hears of things that end by themselves."""

from __future__ import annotations

import asyncio

from fila.v1 import admin_pb2
from fila_server.broker import notices
from fila_server.broker.calls import Broker
from fila_server.core.protocol import commands, seam_frames
from tests.edge.fake_engine import FakeAdmin, FakeEngine


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
