"""The version that GetQueue tells is never newer than the settings beside it: who expects it undoes no change."""

from types import SimpleNamespace
from typing import Any, cast

from fila.v1 import admin_pb2 as pb
from fila.v1 import version_pb2
from fila_server.access.admission import Caller
from fila_server.config.schema import Limits
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations.queues import Queues
from fila_server.operations.requests import AdminRules

ANNA = Caller(7, "anna", key_id="", tenant="", is_admin=False, peer="")


class Changing:
    """A queue that somebody changes behind each look: version 2 has 2 as its depth, and so on."""

    def __init__(self) -> None:
        self.version = 2

    async def call(self, kind: int, _frame: bytes) -> bytes:
        seen, self.version = self.version, self.version + 1
        if kind == commands.GET_QUEUE:
            return pb.GetQueueResponse(config=pb.QueueConfig(max_depth=seen)).SerializeToString()
        records = seam_frames.OperationRecords()
        if kind == commands.OPERATION_RECORDS_READ:
            kept = version_pb2.QueueVersion(number=seen).SerializeToString()
            records.records.add(key=b"version/q/%d" % seen, value=kept)
        return bytes(records.SerializeToString())


async def test_a_change_between_two_looks_makes_the_version_told_too_old_and_never_too_new():
    broker = cast("Any", SimpleNamespace(call=Changing().call, queue_configs={}))
    queues = Queues(broker, Limits(), AdminRules(Limits()), "fsync", cast("Any", None))

    got = pb.GetQueueResponse.FromString(await queues.get(pb.GetQueueRequest(queue="q"), ANNA))

    assert got.version < got.config.max_depth, (
        "an update that expects this version is refused, and tried again"
    )
