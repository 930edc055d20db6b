"""Queues and channels that go when nobody uses them, and what becomes of their dead letters."""

import pytest

from fila.v1 import admin_pb2 as admin
from fila_server.core.protocol import commands, seam_frames
from tests.core.driven_engine import DrivenEngine, Refused
from tests.core.driven_session import DrivenSession


def queues(engine: DrivenEngine) -> set[str]:
    listed = engine.call(commands.LIST_QUEUES, b"", admin.ListQueuesResponse)
    return {queue.name for queue in listed.queues}


def notices(engine: DrivenEngine) -> list[tuple[int, bytes, bytes, int]]:
    told = [
        seam_frames.Notice.FromString(payload)
        for _, kind, _, payload in engine.others
        if kind == commands.NOTICE
    ]
    return [(each.what, each.queue, each.channel, each.number) for each in told]


def test_a_queue_that_expires_has_no_dead_letter_queue(engine: DrivenEngine) -> None:
    engine.create_queue("reply", expires_after_idle_ms=1_000)

    assert queues(engine) == {"reply"}


def test_a_queue_that_nobody_uses_is_deleted_and_its_end_is_told(engine: DrivenEngine) -> None:
    engine.create_queue("reply", expires_after_idle_ms=2_000)
    engine.create_queue("kept")
    engine.enqueue("reply")

    engine.listen(1_800)
    assert "reply" in queues(engine)
    engine.listen(600)

    assert queues(engine) == {"kept", "kept.dlq"}
    assert notices(engine) == [(1, b"reply", b"", 1)]


@pytest.mark.parametrize("use", ["enqueue", "pull", "waiting pull", "stream", "lease"])
def test_a_queue_that_is_used_stays(use: str, engine: DrivenEngine) -> None:
    engine.create_queue("reply", expires_after_idle_ms=2_000)
    if use == "stream":
        DrivenSession(engine, "reply", tracks_begun=False)
    elif use == "lease":
        engine.enqueue("reply")
        engine.lease("reply")

    for _ in range(5):
        if use == "enqueue":
            engine.enqueue("reply")
        elif use == "pull":
            engine.lease("reply")
        elif use == "waiting pull":
            engine.submit(commands.LEASE, admin_lease("reply"))
        engine.listen(1_000)

    assert "reply" in queues(engine)


def admin_lease(queue: str) -> bytes:
    from fila.v1 import service_pb2 as service

    return service.LeaseRequest(queue=queue, wait_ms=900).SerializeToString()


def test_idleness_is_counted_anew_after_a_restart_and_not_while_the_broker_pauses(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("reply", expires_after_idle_ms=2_000)
    engine.listen(1_500)
    engine.kill()
    engine.reopen(away_ms=10**9)
    engine.sleep(60_000)
    engine.listen(1_500)
    assert queues(engine) == {"reply"}

    engine.listen(1_000)
    assert queues(engine) == set()
    engine.kill()
    engine.reopen()

    assert queues(engine) == set()


def test_a_channel_that_nobody_consumes_goes_and_the_queue_stays(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    made = admin.CreateChannelRequest(queue="q", channel="debug", expires_after_idle_ms=1_000)
    engine.call(commands.CREATE_CHANNEL, made, admin.CreateChannelResponse)
    engine.enqueue("q")
    engine.kill()
    engine.reopen()

    for _ in range(3):  # enqueues are no use of a channel
        engine.enqueue("q")
        engine.listen(500)

    with pytest.raises(Refused, match="CHANNEL_NOT_FOUND"):
        engine.stats("q", "debug")
    assert engine.stats("q", "default").depth == 4
    assert notices(engine)[0][:3] == (2, b"q", b"debug")


def test_dead_letters_of_a_queue_that_expires_are_dropped_counted_and_told(engine: DrivenEngine) -> None:
    engine.create_queue("reply", expires_after_idle_ms=60_000, max_attempts=1)
    engine.enqueue("reply")
    engine.nack("reply", engine.lease("reply"))

    engine.listen(300)

    assert engine.stats("reply").dead_letters_dropped_total == 1
    assert engine.stats("reply").depth == engine.stats("reply").in_flight == 0
    assert notices(engine) == [(3, b"reply", b"", 1)]
