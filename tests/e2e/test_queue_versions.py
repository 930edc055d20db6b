"""Versions of a queue's settings: written with each change, kept over restarts, read back and gone back to."""

from __future__ import annotations

import grpc
import pytest

from fila.v1 import admin_pb2 as pb
from fila.v1 import version_pb2

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def update(server, queue: str, *, expected: int = 0, comment: str = "", **settings):
    request = pb.UpdateQueueRequest(
        queue=queue,
        config=pb.QueueConfig(**settings),
        update_mask={"paths": list(settings)},
        expected_version=expected,
        comment=comment,
    )
    return server.admin.UpdateQueue(request)


def versions(server, queue: str, **asked):
    request = version_pb2.ListQueueVersionsRequest(queue=queue, **asked)
    return list(server.admin.ListQueueVersions(request).versions)


def one(server, queue: str, number: int = 0):
    return server.admin.GetQueueVersion(version_pb2.GetQueueVersionRequest(queue=queue, number=number))


def test_each_change_is_a_version_with_what_why_and_from_where(server, queue):
    assert update(server, queue, max_depth=5, comment="too deep").version == 2
    update(server, queue, max_attempts=3, max_bytes=9)

    newest, second, first = versions(server, queue)

    assert (newest.number, list(newest.changed)) == (3, ["max_attempts", "max_bytes"])
    assert (second.comment, list(second.changed), first.number) == ("too deep", ["max_depth"], 1)
    assert newest.peer == "127.0.0.1"
    assert first.at.ToMilliseconds() <= second.at.ToMilliseconds() <= newest.at.ToMilliseconds()
    assert [one(server, queue, number).config.max_depth for number in (1, 2, 3)] == [0, 5, 5]
    assert one(server, queue).config == server.admin.GetQueue(pb.GetQueueRequest(queue=queue)).config
    assert [each.number for each in versions(server, queue, before=3, limit=1)] == [2]


def test_a_change_that_expects_another_version_is_refused_and_changes_nothing(server, queue):
    assert server.admin.GetQueue(pb.GetQueueRequest(queue=queue)).version == 1
    update(server, queue, max_depth=5, expected=1)

    with pytest.raises(grpc.RpcError) as refused:
        update(server, queue, max_depth=6, expected=1)

    assert refused.value.code() is grpc.StatusCode.ABORTED
    assert "has version 2 of its settings by now, not 1" in refused.value.details()
    assert server.admin.GetQueue(pb.GetQueueRequest(queue=queue)).config.max_depth == 5
    assert len(versions(server, queue)) == 2


def test_a_change_that_is_refused_leaves_no_version(server, queue):
    nonsense = pb.UpdateQueueRequest(queue=queue, update_mask={"paths": ["max_attempt"]})
    with pytest.raises(grpc.RpcError, match="max_attempt"):
        server.admin.UpdateQueue(nonsense)
    assert len(versions(server, queue)) == 1


def test_the_last_hundred_are_kept(server, queue):
    for depth in range(1, 105):
        update(server, queue, max_depth=depth)

    kept = versions(server, queue)

    assert [kept[0].number, kept[-1].number, len(kept)] == [105, 6, 100]
    assert one(server, queue, 6).config.max_depth == 5
    with pytest.raises(grpc.RpcError, match="has no version 5, or it is not kept any more"):
        one(server, queue, 5)


def test_a_queue_made_again_begins_anew(server, queue):
    update(server, queue, max_depth=5)
    server.admin.DeleteQueue(pb.DeleteQueueRequest(queue=queue))
    with pytest.raises(grpc.RpcError, match="does not exist"):
        versions(server, queue)
    server.admin.CreateQueue(pb.CreateQueueRequest(name=queue))

    assert [each.number for each in versions(server, queue)] == [1]


def test_versions_outlive_a_restart(start_server):
    first = start_server()
    first.admin.CreateQueue(pb.CreateQueueRequest(name="orders"))
    update(first, "orders", max_depth=5, comment="why not")
    first.stop()

    again = start_server()

    assert [each.comment for each in versions(again, "orders")] == ["why not", ""]
    assert update(again, "orders", max_depth=6, expected=2).version == 3


def test_a_dead_letter_queue_has_its_settings_of_before_as_its_first_version(server, queue):
    dlq = f"{queue}.dlq"
    assert (versions(server, dlq), one(server, dlq).version.number) == ([], 1)
    update(server, dlq, max_depth=5)
    newest, first = versions(server, dlq)
    assert (newest.number, first.number, first.HasField("at")) == (2, 1, False)
    assert one(server, dlq, 1).config.max_depth == 0


def test_a_client_cannot_write_what_the_broker_keeps(server, queue):
    update(server, queue, max_depth=5)
    # Fields 12 and 13, which only the broker's own frames have.
    forged = b"\x62" + bytes([len(b"version/")]) + b"version/"
    frame = pb.DeleteQueueRequest(queue="nowhere").SerializeToString() + forged
    call = server.channel().unary_unary("/fila.v1.FilaAdmin/DeleteQueue")
    with pytest.raises(grpc.RpcError):
        call(frame)
    frame = pb.CreateQueueRequest(name=f"{queue}-other").SerializeToString() + forged
    server.channel().unary_unary("/fila.v1.FilaAdmin/CreateQueue")(frame)
    assert len(versions(server, queue)) == 2
