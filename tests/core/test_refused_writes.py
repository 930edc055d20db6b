"""A disk that is full and a storage engine that stalls: what is refused, what waits, and what comes of it later."""

from collections.abc import Iterator

import pytest

from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.native.coreprobe import disk_becomes, store_stalls
from tests.native.storeprobe import StoreProbe

DEDUP = 10
ROOMY, LOW, CRITICAL = 0, 1, 2
RESOURCE_EXHAUSTED = 8


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    driven = DrivenEngine()
    driven.create_queue("q")
    yield driven
    driven.remove()


def enqueue(engine: DrivenEngine, payload: bytes, dedup_key: str = "") -> int:
    request = service.EnqueueRequest(
        queue="q", payload=payload, options=service.EnqueueOptions(dedup_key=dedup_key)
    )
    return engine.submit(commands.ENQUEUE, request)


def ack(engine: DrivenEngine, message: messages.Message) -> int:
    request = service.AckRequest(queue="q", message_id=message.id, lease_id=message.metadata.lease_id)
    return engine.submit(commands.ACK, request)


def pass_by(engine: DrivenEngine, ms: int) -> None:
    """Passes alone, 100 ms apart: nothing is synced while nothing can be written."""
    for _ in range(ms // 100):
        engine.advance(100)
        engine.run_pass()
        engine.others += engine.core.drain()


def answers(engine: DrivenEngine, token: int) -> list[int]:
    return [status for owner, kind, status, _ in engine.others if (owner, kind) == (token, commands.REPLY)]


def test_a_stall_of_less_than_a_second_refuses_nobody(engine: DrivenEngine) -> None:
    store_stalls(engine.core, True)
    token = enqueue(engine, b"m")
    pass_by(engine, 800)
    assert answers(engine, token) == []

    store_stalls(engine.core, False)
    engine.others += engine.settle_down()

    assert answers(engine, token) == [0]
    assert engine.payloads("q") == [b"m"]


def test_a_stall_that_lasts_refuses_new_messages_and_loses_nothing_that_settles_old_ones(
    engine: DrivenEngine,
) -> None:
    engine.enqueue("q", b"old")
    [old] = engine.lease("q")
    store_stalls(engine.core, True)
    settling, coming = ack(engine, old), enqueue(engine, b"new")
    pass_by(engine, 2_000)
    assert answers(engine, settling) == []

    store_stalls(engine.core, False)
    engine.others += engine.settle_down()
    assert answers(engine, settling) == [0]
    assert answers(engine, coming) == [RESOURCE_EXHAUSTED]
    engine.cut_power()
    engine.reopen()

    engine.sleep(60_000, 1_000)
    assert engine.payloads("q") == []
    assert engine.stats("q").stored_bytes == 0


@pytest.mark.parametrize("kind", [commands.ENQUEUE, commands.ENQUEUE_BATCH, commands.ENQUEUE_ATOMIC])
def test_a_stall_that_lasts_tells_what_it_refused_while_it_lasts(engine: DrivenEngine, kind: int) -> None:
    engine.enqueue("q", b"old")
    [old] = engine.lease("q")
    store_stalls(engine.core, True)
    one = service.EnqueueMessage(queue="q", payload=b"new")
    request = (
        service.EnqueueRequest(queue="q", payload=b"new")
        if kind == commands.ENQUEUE
        else service.EnqueueBatchRequest(queue="q", messages=[one, one])
    )
    settling, coming = ack(engine, old), engine.submit(kind, request)

    pass_by(engine, 1_500)
    told = [payload for owner, what, _, payload in engine.others if (owner, what) == (coming, commands.REPLY)]
    assert len(told) == 1
    if kind == commands.ENQUEUE:
        assert answers(engine, coming) == [RESOURCE_EXHAUSTED]
    else:
        results = service.EnqueueBatchResponse.FromString(told[0]).results
        assert [result.error.code for result in results] == [RESOURCE_EXHAUSTED] * 2
    assert answers(engine, settling) == [], "what settles is held until it is written"

    store_stalls(engine.core, False)
    engine.others += engine.settle_down()
    assert answers(engine, settling) == [0]
    assert len(answers(engine, coming)) == 1, "it is told once"
    assert engine.stats("q").depth == 0


def test_a_dedup_key_whose_message_was_refused_is_free(engine: DrivenEngine) -> None:
    engine.enqueue("q", b"before", dedup_key="older, and still in its window")
    store_stalls(engine.core, True)
    token = enqueue(engine, b"refused", dedup_key="k")
    pass_by(engine, 2_000)
    store_stalls(engine.core, False)
    engine.others += engine.settle_down()
    assert answers(engine, token) == [RESOURCE_EXHAUSTED]

    offset = engine.enqueue("q", b"stored", dedup_key="k")

    assert engine.payloads("q") == [b"before", b"stored"]
    assert engine.enqueue("q", b"again", dedup_key="k") == offset


def test_on_a_disk_that_is_low_messages_are_refused_and_acked(engine: DrivenEngine) -> None:
    engine.enqueue("q", b"old")
    disk_becomes(engine.core, LOW)
    [old] = engine.lease("q")
    settling, coming = ack(engine, old), enqueue(engine, b"new")
    engine.others += engine.settle_down()

    assert answers(engine, coming) == [RESOURCE_EXHAUSTED]
    assert answers(engine, settling) == [0]


@pytest.mark.parametrize("end", ["goes on", "killed"])
def test_on_a_full_disk_an_ack_waits_for_room_and_is_not_answered_before(
    engine: DrivenEngine, end: str
) -> None:
    engine.enqueue("q", b"old")
    [old] = engine.lease("q")
    disk_becomes(engine.core, CRITICAL)
    settling = ack(engine, old)
    pass_by(engine, 5_000)
    assert answers(engine, settling) == []

    if end == "killed":  # what was not answered did not happen
        engine.kill()
        engine.reopen()
        engine.sleep(60_000, 1_000)
        assert engine.payloads("q") == [b"old"]
        return
    disk_becomes(engine.core, ROOMY)
    engine.others += engine.settle_down()
    assert answers(engine, settling) == [0]
    assert engine.stats("q").stored_bytes == 0


@pytest.mark.parametrize("trouble", ["a full disk", "a stall"])
def test_a_stop_on_a_disk_that_takes_nothing_ends_and_what_was_not_answered_did_not_happen(
    engine: DrivenEngine, trouble: str
) -> None:
    engine.enqueue("q", b"old")
    [old] = engine.lease("q")
    if trouble == "a stall":
        store_stalls(engine.core, True)
    else:
        disk_becomes(engine.core, CRITICAL)
    settling, coming = ack(engine, old), enqueue(engine, b"new")

    engine.stop()
    engine.reopen()
    engine.sleep(60_000, 1_000)

    assert answers(engine, settling) == answers(engine, coming) == []
    assert engine.payloads("q") == [b"old"]


@pytest.mark.parametrize(("stalled_ms", "is_over"), [(3_000, False), (6_000, True)])
def test_a_dedup_window_ends_in_its_time_whether_the_disk_takes_writes_or_not(
    engine: DrivenEngine, stalled_ms: int, is_over: bool
) -> None:
    engine.create_queue("once", dedup_window_ms=5_000)
    first = engine.enqueue("once", b"first", dedup_key="k")
    engine.enqueue("q", b"old")
    [old] = engine.lease("q")

    store_stalls(engine.core, True)
    settling = ack(engine, old)
    pass_by(engine, stalled_ms)
    assert answers(engine, settling) == []
    store_stalls(engine.core, False)
    engine.others += engine.settle_down()
    second = engine.enqueue("once", b"second", dedup_key="k")
    assert (second != first) is is_over

    engine.cut_power()
    engine.reopen()
    assert engine.enqueue("once", b"third", dedup_key="k") == second
    assert engine.payloads("once") == ([b"first", b"second"] if is_over else [b"first"])


def dedup_rows_on_disk(engine: DrivenEngine) -> int:
    engine.kill()
    probe = StoreProbe(str(engine.directory))
    rows = len(probe.scan(DEDUP))
    probe.close()
    engine.reopen()
    return rows


def test_a_dedup_window_that_ends_while_its_message_waits_for_the_disk_leaves_no_record_behind(
    engine: DrivenEngine,
) -> None:
    """Its record is written with the message: were it deleted before that, it would stay."""
    engine.create_queue("once", dedup_window_ms=200)
    store_stalls(engine.core, True)
    request = service.EnqueueRequest(queue="once", options=service.EnqueueOptions(dedup_key="k"))
    token = engine.submit(commands.ENQUEUE, request)
    pass_by(engine, 800)
    store_stalls(engine.core, False)
    engine.others += engine.settle_down()
    assert answers(engine, token) == [0]

    engine.sleep(60_000, 1_000)
    assert dedup_rows_on_disk(engine) == 0


@pytest.mark.parametrize("end", ["killed", "power cut"])
def test_a_dedup_key_that_comes_again_in_the_pass_in_which_its_window_ends_is_known_after_a_crash(
    engine: DrivenEngine, end: str
) -> None:
    """One pass deletes the old row and puts the new one: of the two on disk the new one is to be the last."""
    engine.create_queue("once", dedup_window_ms=1_000)
    first = engine.enqueue("once", b"first", dedup_key="k")
    engine.advance(1_000)
    second = engine.enqueue("once", b"second", dedup_key="k")
    assert second != first

    engine.kill() if end == "killed" else engine.cut_power()
    engine.reopen()
    assert engine.enqueue("once", b"second", dedup_key="k") == second
    assert engine.payloads("once") == [b"first", b"second"]
