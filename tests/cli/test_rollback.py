"""`fila queue rollback`."""

from __future__ import annotations

from fila.v1 import admin_pb2
from tests.cli.fake_broker import FakeBroker


def test_a_channel_that_was_paused_in_that_version_is_paused_again(fila, broker: FakeBroker):
    broker.answers["GetQueueVersion"] = admin_pb2.GetQueueVersionResponse(
        config=admin_pb2.QueueConfig(paused_channels=["audit"])
    )
    broker.answers["GetQueue"] = admin_pb2.GetQueueResponse(version=3)

    ran = fila("queue", "rollback", "orders", "2", "--yes")

    assert ran.code == 0, ran.err
    request = broker.request("UpdateQueue")
    assert "paused_channels" in request.update_mask.paths
    assert list(request.config.paused_channels) == ["audit"]
