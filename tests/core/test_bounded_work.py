"""Work is bounded and flat: counted, never timed. `work` is what was touched, `walked` what was looked through."""

import pytest
from google.protobuf import timestamp_pb2

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from tests.core.conftest import Make
from tests.core.driven_engine import DrivenEngine, Refused

# Stages of a pass, what each may touch, and the largest request, which is finished once it was begun.
STAGES = 9
WORK_PER_STAGE = 2048
REQUEST = 10_000
PASS_WORK_MAX = STAGES * WORK_PER_STAGE + 2 * REQUEST


def count(engine: DrivenEngine, name: str) -> int:
    number = engine.core.counters()[name]
    assert isinstance(number, int)
    return number


def run_dry(engine: DrivenEngine) -> int:
    """Passes until none wants another, however many: returns how many."""
    for passes in range(1, 100_000):
        again = engine.run_pass()
        busy = engine.commit() | bool(engine.core.load())
        found = engine.core.drain()
        engine.others += found
        if not (busy or found or (again is not None and again <= engine.mono_ns)):
            return passes
    raise AssertionError("the core never comes to rest")


def batch_of(to: str, payloads: int, **message: object) -> service.EnqueueBatchRequest:
    request = service.EnqueueBatchRequest(queue=to)
    for _ in range(payloads):
        request.messages.add(**message)
    return request


def fill(engine: DrivenEngine, queue: str, total: int, batch: int = REQUEST) -> None:
    for begin in range(0, total, batch):
        size = min(batch, total - begin)
        engine.submit(commands.ENQUEUE_BATCH, batch_of(queue, size, payload=b"x"))
        run_dry(engine)


# --- acks that come too late ---------------------------------------------------------------------


def test_a_stale_ack_looks_at_no_frame(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    fill(engine, "q", 300, batch=1)
    leased = engine.lease("q", 100)
    assert set(engine.ack("q", leased)) == {0}
    before = count(engine, "walked")
    assert set(engine.ack("q", leased)) == {9}
    assert count(engine, "walked") == before


def test_a_redriven_message_can_be_acked_by_its_id_alone(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q", max_attempts=1)
    engine.enqueue("q", b"x")
    (first,) = engine.lease("q")
    engine.nack("q", [first])
    (dead,) = engine.lease("q.dlq")
    request = service.AckRequest(queue="q.dlq", message_id=first.id)
    engine.call(commands.ACK, request, service.AckResponse)
    with pytest.raises(Refused, match="MESSAGE_NOT_FOUND"):
        engine.call(commands.ACK, request, service.AckResponse)
    assert dead.id == first.id


def test_two_channels_of_a_dlq_are_acked_apart_by_one_id(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q", max_attempts=1)
    engine.call(
        commands.CREATE_CHANNEL,
        admin.CreateChannelRequest(queue="q.dlq", channel="audit"),
        admin.CreateChannelResponse,
    )
    engine.enqueue("q", b"x")
    (first,) = engine.lease("q")
    engine.nack("q", [first])
    assert len(engine.lease("q.dlq")) == len(engine.lease("q.dlq", channel="audit")) == 1
    for channel in ("audit", ""):
        request = service.AckRequest(queue="q.dlq", channel=channel, message_id=first.id)
        engine.call(commands.ACK, request, service.AckResponse)
        with pytest.raises(Refused, match="MESSAGE_NOT_FOUND"):
            engine.call(commands.ACK, request, service.AckResponse)


# --- batches -------------------------------------------------------------------------------------


def test_a_batch_that_goes_to_two_queues_in_turn_becomes_one_frame_for_each(opened: Make) -> None:
    engine = opened()
    for queue in ("a", "b"):
        engine.create_queue(queue)
    request = service.EnqueueBatchRequest()
    for i in range(2000):
        request.messages.add(queue="ab"[i % 2], payload=b"%d" % i)
    before = count(engine, "frames_built")
    engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)
    assert count(engine, "frames_built") - before == 2
    assert engine.payloads("a", 3) == [b"0", b"2", b"4"]
    assert engine.payloads("b", 3) == [b"1", b"3", b"5"]


def test_a_batch_whose_messages_each_name_the_queue_is_one_frame(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    before = count(engine, "frames_built")
    engine.call(
        commands.ENQUEUE_BATCH, batch_of("", 1500, queue="q", payload=b"x"), service.EnqueueBatchResponse
    )
    assert count(engine, "frames_built") - before == 1


def atomic(engine: DrivenEngine, request: service.EnqueueBatchRequest) -> service.EnqueueBatchResponse:
    return engine.call(commands.ENQUEUE_ATOMIC, request, service.EnqueueBatchResponse)


def test_an_atomic_batch_of_two_queues_is_refused_before_it_is_posted(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    request = service.EnqueueBatchRequest()
    request.messages.add(queue="unknown", payload=b"1")
    request.messages.add(queue="q", payload=b"2")
    with pytest.raises(Exception, match="atomic batch go to one queue"):
        engine.submit(commands.ENQUEUE_ATOMIC, request)
    assert engine.payloads("q") == []


def test_an_atomic_batch_with_dedup_keys_is_refused_before_it_is_posted(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    options = service.EnqueueOptions(dedup_key="k")
    with pytest.raises(Exception, match="not in an atomic batch"):
        engine.submit(commands.ENQUEUE_ATOMIC, batch_of("q", 2, payload=b"x", options=options))
    assert engine.payloads("q") == []


def test_an_atomic_batch_to_an_unknown_queue_stores_nothing_and_says_so(opened: Make) -> None:
    engine = opened()
    answer = atomic(engine, batch_of("unknown", 3, payload=b"x"))
    assert [result.error.reason for result in answer.results] == ["QUEUE_NOT_FOUND"] * 3


def test_an_atomic_batch_with_one_bad_message_stores_none(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q", max_depth=2)
    answer = atomic(engine, batch_of("q", 3, payload=b"x"))
    assert all(result.error.reason for result in answer.results)
    assert engine.payloads("q") == []
    assert all(result.message_id for result in atomic(engine, batch_of("q", 2, payload=b"x")).results)
    assert engine.payloads("q") == [b"x", b"x"]


# --- a pass --------------------------------------------------------------------------------------


def test_one_pass_does_not_take_all_that_is_in_the_mailbox(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    batch = batch_of("q", REQUEST, payload=b"x").SerializeToString()
    tokens = [engine.submit(commands.ENQUEUE_BATCH, batch) for _ in range(16)]
    run_dry(engine)
    assert count(engine, "pass_work_max") <= PASS_WORK_MAX
    for token in tokens:
        assert engine.answer_of(token)[0] == 0
    assert engine.stats("q").depth == 16 * REQUEST


def test_pulls_of_thousands_of_messages_share_the_bounds_of_a_pass(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    fill(engine, "q", 60_000)
    pull = service.LeaseRequest(queue="q", max_messages=REQUEST)
    tokens = [engine.submit(commands.LEASE, pull) for _ in range(6)]
    run_dry(engine)
    assert count(engine, "pass_work_max") <= PASS_WORK_MAX
    answers = [service.LeaseResponse.FromString(engine.answer_of(token)[1]) for token in tokens]
    assert [len(answer.messages) for answer in answers] == [REQUEST] * 6


def open_session(engine: DrivenEngine, queue: str, most: int) -> int:
    request = service.ConsumeSessionRequest()
    request.open.queue, request.open.max_in_flight = queue, most
    return engine.submit(commands.SESSION_OPEN, request)


def take_all(engine: DrivenEngine, total: int) -> None:
    """Passes, with clients that read whatever they are sent, until so many were delivered."""
    while total > 0:
        engine.run_pass()
        engine.commit()
        engine.others += engine.core.drain()
        for token, kind, _, payload in engine.others:
            if kind == commands.DELIVERY:
                total -= len(service.ConsumeSessionResponse.FromString(payload).delivery.messages)
                engine.submit(commands.WRITTEN, b"", token=token)
        engine.others.clear()


def test_two_streams_that_close_with_all_their_leases_give_them_back_in_pieces_and_in_order(
    opened: Make,
) -> None:
    engine = opened()
    engine.create_queue("q")
    sessions = [open_session(engine, "q", 10_000) for _ in range(2)]
    run_dry(engine)
    for _ in range(2):
        engine.submit(commands.ENQUEUE_BATCH, batch_of("q", REQUEST, payload=b"x"))
    take_all(engine, 20_000)
    before, most = count(engine, "walked"), count(engine, "pass_work_max")
    close = service.ConsumeSessionRequest()
    close.close.release = True
    for token in sessions:
        engine.submit(commands.SESSION, close, token=token)
    run_dry(engine)
    assert count(engine, "walked") == before
    assert count(engine, "pass_work_max") <= max(most, PASS_WORK_MAX)
    ended = [token for token, kind, _, _ in engine.others if kind == commands.END]
    assert sorted(ended) == sorted(sessions)
    offsets = [m.metadata.offset for _ in range(20) for m in engine.lease("q", 1000)]
    assert offsets == list(range(1, 20_001))


@pytest.mark.parametrize("most", [65_536, 2**32 - 1])
def test_a_stream_may_not_ask_for_more_leases_than_can_end_with_it(opened: Make, most: int) -> None:
    engine = opened()
    engine.create_queue("q")
    with pytest.raises(Exception, match="max_in_flight: at most 65535"):
        engine.submit(commands.CONSUME_OPEN, service.ConsumeRequest(queue="q", max_in_flight=most))


def test_a_number_of_64_bits_is_no_stream_that_gets_nothing(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    frame = service.ConsumeRequest(queue="q").SerializeToString() + b"\x18\x80\x80\x80\x80\x10"
    with pytest.raises(Exception, match="max_in_flight: at most 65535"):
        engine.submit(commands.CONSUME_OPEN, frame)


# --- places found by a time ----------------------------------------------------------------------


def test_a_place_is_found_by_its_time_without_a_walk_over_what_is_stored(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    began_ms = engine.wall_ms
    for _ in range(300):
        engine.enqueue("q", b"x")
        engine.sleep(10)
    engine.ack("q", engine.lease("q", 300)[144:154])  # nothing is left of 145 to 154
    walked = count(engine, "walked")
    places = {1: 1, 2: 2, 144: 144, 145: 155, 150: 155, 155: 155, 156: 156, 300: 300, 301: 301}
    for offset, found in places.items():
        part = seam_frames.SeekPart(queue=b"q", from_offset=301)  # counts nothing
        moment = timestamp_pb2.Timestamp()
        moment.FromMilliseconds(began_ms + 10 * (offset - 1) - 5)
        part.time = moment.SerializeToString()
        assert engine.call(commands.SEEK_PREVIEW, part, seam_frames.SeekCount).offset == found
    assert count(engine, "walked") - walked <= len(places) * 40  # the gap, and a cell at each halving


# --- administration in pieces --------------------------------------------------------------------


def test_a_purge_of_a_long_queue_is_done_in_pieces_and_spares_what_comes_later(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    fill(engine, "q", 40_000)
    before = count(engine, "work")
    token = engine.submit(commands.PURGE_QUEUE, admin.PurgeQueueRequest(queue="q"))
    engine.run_pass()
    assert count(engine, "work") - before <= PASS_WORK_MAX
    late = engine.submit(commands.ENQUEUE_BATCH, batch_of("q", 5, payload=b"late"))
    run_dry(engine)
    assert admin.PurgeQueueResponse.FromString(engine.answer_of(token)[1]).purged == 40_000
    assert engine.answer_of(late)[0] == 0
    assert engine.payloads("q") == [b"late"] * 5


def test_changes_to_a_queue_that_is_being_purged_wait_for_their_turn(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    fill(engine, "q", 40_000)
    first = engine.submit(commands.PURGE_QUEUE, admin.PurgeQueueRequest(queue="q"))
    engine.run_pass()
    seek = engine.submit(
        commands.SEEK_CHANNEL, admin.SeekChannelRequest(queue="q", channel="default", offset=1)
    )
    again = engine.submit(commands.PURGE_QUEUE, admin.PurgeQueueRequest(queue="q"))
    gone = engine.submit(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="q"))
    run_dry(engine)
    assert [engine.answer_of(token)[0] for token in (first, seek, again, gone)] == [0, 0, 0, 0]
    with pytest.raises(Refused, match="QUEUE_NOT_FOUND"):
        engine.stats("q")


def test_a_crash_in_the_middle_of_a_purge_leaves_a_part_purged(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    fill(engine, "q", 40_000)
    engine.submit(commands.PURGE_QUEUE, admin.PurgeQueueRequest(queue="q"))
    for _ in range(2):
        engine.run_pass()
    engine.kill()
    engine.reopen()
    left = engine.stats("q").depth
    assert 0 < left < 40_000
    purged = engine.call(
        commands.PURGE_QUEUE, admin.PurgeQueueRequest(queue="q"), admin.PurgeQueueResponse
    ).purged
    assert purged == left


# --- failures that wait for bytes ----------------------------------------------------------------


@pytest.mark.parametrize("passes", [1, 2])
def test_cold_dead_letters_reach_the_dlq_in_the_order_in_which_they_failed(opened: Make, passes: int) -> None:
    engine = opened(storage__hot_payload_bytes=1)
    engine.create_queue("q", max_attempts=1)
    for i in range(8):
        engine.enqueue("q", b"%d" % i * 100)
    leased = engine.lease("q")
    engine.kill()
    engine.reopen()  # all bytes are cold again, and the leases are as they were
    items = [service.SettleItem(message_id=m.id, lease_id=m.metadata.lease_id) for m in leased]
    engine.submit(commands.NACK_BATCH, service.NackBatchRequest(queue="q", items=items))
    for _ in range(passes):  # before anything is read back
        engine.run_pass()
    run_dry(engine)
    assert [m.payload[:1] for m in engine.lease("q.dlq")] == [b"%d" % i for i in range(8)]


def test_failures_that_wait_for_bytes_cost_the_passes_meanwhile_nothing(opened: Make) -> None:
    engine = opened(storage__hot_payload_bytes=1)
    engine.create_queue("q", max_attempts=1)
    for _ in range(8):
        engine.enqueue("q", b"x" * 100)
    leased = engine.lease("q")
    engine.kill()
    engine.reopen()
    items = [service.SettleItem(message_id=m.id, lease_id=m.metadata.lease_id) for m in leased]
    engine.submit(commands.NACK_BATCH, service.NackBatchRequest(queue="q", items=items))
    engine.run_pass()
    engine.commit()
    engine.run_pass()
    work, walked = count(engine, "work"), count(engine, "walked")
    for _ in range(50):  # and the reader thread has brought nothing
        engine.run_pass()
    assert (count(engine, "work"), count(engine, "walked")) == (work, walked)


def test_bytes_that_are_read_back_wake_those_who_wait_for_them_and_nobody_else(opened: Make) -> None:
    engine = opened(storage__hot_payload_bytes=1)
    for queue in ("q", "idle"):
        engine.create_queue(queue)
    for _ in range(2):  # the first is given up for the second
        engine.enqueue("q", b"x" * 100)
    for _ in range(100):
        open_session(engine, "idle", 10)
    run_dry(engine)
    open_session(engine, "q", 1)
    engine.run_pass()  # it picks the first message and asks for its bytes
    assert engine.core.load() == 1
    work = count(engine, "work")
    engine.run_pass()
    assert [kind for _, kind, _, _ in engine.core.drain()].count(commands.DELIVERY) == 1
    assert count(engine, "work") - work <= 10


# --- many channels -------------------------------------------------------------------------------


def make_channels(engine: DrivenEngine, queue: str, channels: int) -> None:
    engine.create_queue(queue, channels=[f"c{i}" for i in range(channels)])


def test_revealing_to_many_channels_costs_each_message_once_for_each(opened: Make) -> None:
    engine = opened()
    make_channels(engine, "q", 200)
    fill(engine, "q", 100)
    walked, most = count(engine, "walked"), count(engine, "pass_work_max")
    fill(engine, "q", 100)
    assert count(engine, "walked") - walked <= 200 * 20
    assert most <= PASS_WORK_MAX
    for channel in ("c0", "c199"):
        leased = engine.lease("q", 1000, channel)
        assert [m.metadata.offset for m in leased] == list(range(1, 201))
        assert set(engine.ack("q", leased, channel)) == {0}
    assert engine.stats("q").depth == 200


def test_what_happens_while_a_frame_is_being_revealed_to_many_channels(opened: Make) -> None:
    """Acked, purged, sought, made and deleted in between: nothing is lost and nothing comes twice."""
    engine = opened()
    make_channels(engine, "q", 100)
    token = engine.submit(commands.ENQUEUE_BATCH, batch_of("q", 1000, payload=b"x"))
    pull = engine.submit(
        commands.LEASE, service.LeaseRequest(queue="q", channel="c99", max_messages=1000, wait_ms=1000)
    )
    engine.run_pass()
    engine.commit()
    for _ in range(3):
        engine.run_pass()
    engine.others += engine.core.drain()
    assert token not in [out[0] for out in engine.others]  # not answered before all have it
    got = service.LeaseResponse.FromString(engine.answer_of(pull)[1]).messages
    assert len(got) == 1000
    ack = service.AckBatchRequest(queue="q", channel="c99")
    for m in got:
        ack.items.add(message_id=m.id, lease_id=m.metadata.lease_id)
    engine.submit(commands.ACK_BATCH, ack)
    for channel in ("c98", "c5"):
        engine.submit(commands.SEEK_CHANNEL, admin.SeekChannelRequest(queue="q", channel=channel, offset=1))
    engine.submit(commands.DELETE_CHANNEL, admin.DeleteChannelRequest(queue="q", channel="c97"))
    engine.submit(commands.DELETE_CHANNEL, admin.DeleteChannelRequest(queue="q", channel="c4"))
    engine.submit(commands.CREATE_CHANNEL, admin.CreateChannelRequest(queue="q", channel="new"))
    run_dry(engine)
    assert engine.answer_of(token)[0] == 0
    for channel in ("c98", "c96", "c5", "c0"):
        assert len(engine.lease("q", 2000, channel)) == 1000, channel
    assert engine.lease("q", 10, "new") == engine.lease("q", 10, "c99") == []
    assert engine.stats("q").depth == 1000


def test_a_start_looks_at_a_frame_a_few_times_however_many_channels_want_it(opened: Make) -> None:
    engine = opened()
    make_channels(engine, "q", 200)
    fill(engine, "q", 50, batch=1)
    before = count(engine, "walked")
    engine.kill()
    engine.reopen()
    assert count(engine, "walked") - before <= 50 * 6
    for channel in ("c0", "c199"):
        assert [m.metadata.offset for m in engine.lease("q", 100, channel)] == list(range(1, 51))


def test_a_queue_may_have_a_thousand_channels_and_not_one_more(opened: Make) -> None:
    engine = opened()
    make_channels(engine, "q", 1000)
    with pytest.raises(Refused, match="has 1000 channels, the most a queue may have"):
        engine.call(
            commands.CREATE_CHANNEL,
            admin.CreateChannelRequest(queue="q", channel="more"),
            admin.CreateChannelResponse,
        )


# --- peeks ---------------------------------------------------------------------------------------


def test_peeks_that_wait_for_bytes_are_bounded_in_number_and_not_looked_at_every_pass(opened: Make) -> None:
    engine = opened(storage__hot_payload_bytes=1)
    engine.create_queue("q")
    for _ in range(20):
        engine.enqueue("q", b"x" * 100)
    engine.run_pass()
    peek = admin.PeekMessagesRequest(queue="q", max_messages=20)
    tokens = [engine.submit(commands.PEEK_MESSAGES, peek) for _ in range(300)]
    for _ in range(10):
        engine.run_pass()
    walked = count(engine, "walked")
    for _ in range(50):
        engine.run_pass()
    assert count(engine, "walked") == walked
    run_dry(engine)
    answers = [engine.answer_of(token) for token in tokens]
    assert [status for status, _ in answers].count(0) == 256
    refused = next(messages.ItemStatus.FromString(payload) for status, payload in answers if status)
    assert refused.reason == "OVERLOADED"
