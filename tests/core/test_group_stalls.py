"""A log that stands harms nobody: no lease runs out, and what waits is bounded, and in memory until it is stored."""

from __future__ import annotations

import threading

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server import errors
from fila_server.core.log.record import KIND_BARRIER
from fila_server.core.protocol import commands
from fila_server.core.runtime.store_copy import OWNS, RESIGNS
from tests.core.driven_group import Serving, asks, lands, passes, stand

MINUTE_MS = 60_000


# --- a log that stands ---------------------------------------------------------------------------


def test_no_lease_runs_out_while_the_log_stands_and_no_attempt_counts(group):
    owner = group.owner()
    owner.enqueue("q", b"held")
    held = owner.lease("q")
    asks(owner)["stats"]()
    assert stand(owner, 5 * MINUTE_MS) == []

    lands(owner)
    assert owner.ack("q", held) == [0]
    assert owner.stats("q").depth == 0


def test_a_lease_has_its_time_behind_a_log_that_stood(group):
    owner = group.owner()
    owner.enqueue("q", b"held")
    owner.lease("q")
    asks(owner)["stats"]()
    stand(owner, 5 * MINUTE_MS)
    lands(owner)
    owner.advance(300)
    owner.settle_down()
    assert owner.stats("q").in_flight == 1
    owner.advance(200)
    owner.settle_down()
    assert owner.stats("q").in_flight == 0
    owner.sleep(MINUTE_MS, 100)
    (again,) = owner.lease("q")
    assert again.metadata.attempt_count == 1


def test_a_delivery_that_has_not_left_goes_back_uncounted_when_its_consumer_goes(group):
    owner = group.owner()
    owner.submit(commands.CONSUME_OPEN, service.ConsumeRequest(queue="q", max_in_flight=10), token=77)
    owner.settle_down()
    owner.enqueue("q", b"one")  # its delivery may have left
    owner.submit(commands.WRITTEN, b"", token=77)
    owner.settle_down()
    owner.lands = False
    owner.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"two"))
    owner.run_pass()
    while owner.node.end.turn(group.clock.now_ms, 999):
        pass
    owner.core.commit()
    owner.run_pass()  # "two" is leased, and its record waits
    stand(owner, 1_500)
    owner.submit(commands.CONSUMER_CLOSE, b"release", token=77)
    stand(owner, 1_000)
    owner.others.clear()
    lands(owner)
    left = {message.payload: message.metadata for message in owner.lease("q")}
    assert left[b"two"].attempt_count == 0
    assert not left[b"two"].redelivered


def test_a_waiting_pull_is_not_told_that_nothing_came_while_the_log_stands(group):
    owner = group.owner()
    pull = owner.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=1, wait_ms=1_500))
    owner.settle_down()
    owner.lands = False
    owner.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"came"))
    owner.run_pass()
    assert stand(owner, MINUTE_MS) == []
    told = {token: payload for token, kind, _, payload in lands(owner)}
    assert [m.payload for m in service.LeaseResponse.FromString(told[pull]).messages] == [b"came"]


def test_new_work_is_refused_when_the_log_has_stood_for_two_seconds_and_nothing_of_it_is_appended(group):
    owner = group.owner()
    kept = asks(owner)["enqueue"]()
    assert passes(owner) + stand(owner, 2_000) == []
    owner.advance(1)
    refused = owner.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"refused"))
    (told,) = passes(owner)
    assert told[:3:2] == (refused, 8)
    assert messages.ItemStatus.FromString(told[3]).reason == "OVERLOADED"

    assert [out[0] for out in lands(owner)] == [kept]
    assert owner.payloads("q") == [b"asked"]
    assert not any(b"refused" in group.log.content(offset) for offset in range(len(group.log)))


def test_where_more_waits_than_the_refusal_the_mailbox_is_not_read_and_enqueues_are_refused_before_it(group):
    owner = group.owner()
    asks(owner)["stats"]()
    stand(owner, 2_500)
    asks(owner)["stats"]()
    stand(owner, 100)
    with pytest.raises(errors.Overloaded, match="log"):
        owner.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"refused"))
    assert len(lands(owner)) == 2
    owner.enqueue("q", b"taken")


def test_what_waits_is_bounded(group):
    owner = group.owner()
    owner.lands = False
    tokens = 0
    while owner.node.copy.waiting[1] <= 64 << 20:
        big = service.EnqueueBatchRequest()
        for _ in range(12):
            big.messages.append(service.EnqueueMessage(queue="q", payload=bytes(1_000_000)))
        owner.submit(commands.ENQUEUE_BATCH, big)
        owner.run_pass()
        tokens += 1
    assert 5 <= tokens <= 7
    refused = owner.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"refused"))
    assert [(out[0], out[2]) for out in passes(owner)] == [(refused, 8)]
    assert owner.node.copy.waiting[1] < 80 << 20


def test_all_goes_on_by_itself_behind_a_log_that_stood(group):
    owner = group.owner()
    for _ in range(4):
        for ask in asks(owner).values():
            ask()
        owner.run_pass()
    stand(owner, 3_000)
    lands(owner)
    assert owner.enqueue("q", b"behind")
    assert owner.node.copy.waiting == (0, 0)


def test_an_owner_resigns_when_a_log_that_can_be_read_confirms_nothing_for_five_seconds(group):
    owner = group.owner()
    token = asks(owner)["enqueue"]()
    passes(owner)
    for _ in range(50):
        owner.advance(100)
        assert [out for out in passes(owner, 1) if out[0] == token] == []
        assert owner.node.copy.state == OWNS
    owner.advance(100)
    assert passes(owner, 2) == []
    assert owner.node.copy.state == RESIGNS


def test_an_owner_whose_log_nobody_can_read_stays_one_until_it_can_be_read(group):
    owner = group.owner()
    asks(owner)["enqueue"]()
    stand(owner, 5 * MINUTE_MS)
    assert owner.node.copy.state == OWNS
    group.log.stall(False)
    owner.advance(500)
    passes(owner, 2)
    assert owner.node.copy.state == RESIGNS


def test_an_idle_owner_does_not_resign(group):
    owner = group.owner()
    for _ in range(100):
        owner.advance(100)
        lands(owner)
    assert owner.node.copy.state == OWNS


# --- the log of a queue ------------------------------------------------------------------------


def log_reader(owner: Serving, queue: str = "q") -> tuple[threading.Thread, list[object]]:
    """A thread that reads the log of a queue, and what came of it."""
    told: list[object] = []

    def read() -> None:
        reader = owner.core.log_reader(admin.ReadLogRequest(queue=queue).SerializeToString())
        try:
            piece = reader.read()
            told.append([m.payload for m in admin.ReadLogResponse.FromString(piece or b"").messages])
        except errors.FilaServerError as error:
            told.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    return thread, told


def test_the_log_of_a_queue_is_shown_once_a_record_behind_the_question_is_in_the_groups_log(group):
    owner = group.owner()
    owner.enqueue("q", b"stored")
    owner.lands = False
    thread, told = log_reader(owner)
    thread.join(0.1)
    passes(owner)
    thread.join(0.1)
    assert thread.is_alive()
    first = len(group.log)

    while thread.is_alive():  # it may not have asked before
        lands(owner)
        thread.join(0.01)
    assert told == [[b"stored"]]
    assert group.kinds(first) == [KIND_BARRIER]


@pytest.mark.parametrize("queue", ["q", "nowhere"])
def test_an_owner_that_was_deposed_shows_no_log_and_does_not_say_that_a_queue_is_missing(group, queue):
    owner, standby = group.owner(), group.node()
    standby.take_over(2).create_queue("nowhere")
    thread, told = log_reader(owner, queue)
    while thread.is_alive():
        lands(owner)
        thread.join(0.01)
    (error,) = told
    assert isinstance(error, errors.Unavailable)
    assert "does not confirm that this node still serves" in str(error)


# --- bytes in memory -------------------------------------------------------------------------------


def test_what_the_store_does_not_have_yet_is_not_given_up_from_memory(group):
    """It would be asked of the store, not be there, and be taken for lost."""
    owner = group.owner(storage_hot_payload_bytes=1)
    owner.lands = False
    owner.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"kept"))
    passes(owner)
    assert owner.core.counters()["hot_bytes"]
    lands(owner)
    owner.run_pass()
    assert owner.core.counters()["hot_bytes"] == 0
    assert owner.payloads("q") == [b"kept"]


def test_a_frame_written_anew_stays_in_memory_until_the_store_has_it(group):
    """Until then the store has the longer version."""
    owner = group.owner(storage_hot_payload_bytes=850_000)
    batch = service.EnqueueBatchRequest()
    for number in range(8):
        batch.messages.append(service.EnqueueMessage(queue="q", payload=b"%d" % number + bytes(100_000)))
    owner.call(commands.ENQUEUE_BATCH, batch, service.EnqueueBatchResponse)
    assert owner.ack("q", owner.lease("q", 7)) == [0] * 7
    for _ in range(100):
        owner.advance(100)
        passes(owner, 1)
        if owner.core.counters()["rewrites"]:
            break
        lands(owner)
    assert owner.core.counters()["rewrites"] == 1
    owner.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=bytes(900_000)))
    passes(owner)
    lease = owner.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=1))
    for _ in range(3):
        owner.core.load()
        passes(owner)
    told = {token: payload for token, _, _, payload in lands(owner)}
    (message,) = service.LeaseResponse.FromString(told[lease]).messages
    assert message.payload[:1] == b"7"
    assert owner.core.counters()["lost_messages"] == 0


# --- a log that has confirmed nothing: passes wait for it ------------------------------------------


def turns(owner: Serving, times: int = 20) -> int:
    """How many of so many passes, on a log that stays as it is, want another one at once."""
    owner.lands = False
    wanted = 0
    for _ in range(times):
        again = owner.run_pass()
        owner.core.commit()
        owner.core.drain()
        wanted += again is not None and again <= owner.mono_ns
    return wanted


def taken_over(group, *messages: bytes) -> Serving:
    """Another node serves, and its first record is not confirmed."""
    first = group.owner()
    for payload in messages:
        first.enqueue("q", payload)
    first.settle_down()
    first.node.kill()
    serving: Serving = group.node().take_over(nonce=2)
    return serving


def test_who_took_over_and_may_lease_nothing_yet_does_not_turn(group):
    owner = taken_over(group, b"one", b"two")
    owner.submit(commands.CONSUME_OPEN, service.ConsumeRequest(queue="q", max_in_flight=10), token=77)
    assert turns(owner) <= 1
    assert b"one" in b"".join(payload for _, _, _, payload in lands(owner))


@pytest.mark.parametrize("ms", [600, 1_100, 5_000])
def test_an_owner_whose_beat_is_due_does_not_turn_while_its_log_stands(group, ms):
    owner = taken_over(group)
    assert turns(owner) <= 1
    owner.advance(ms)
    assert turns(owner) <= 1
    owner.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=10))
    assert turns(owner) <= 1
