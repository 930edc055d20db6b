"""Corners of the core that a hostile reader found, each once wrong: what is named so may not come back."""

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server import errors
from fila_server.core.protocol import commands
from tests.core.conftest import Make
from tests.core.driven_engine import MS, DrivenEngine, Refused

GRPC_DEFAULT_BYTES = 4 << 20


def text_field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


def enqueue_many(engine: DrivenEngine, queue: str, count: int, **message: object) -> None:
    request = service.EnqueueBatchRequest(queue=queue)
    for _ in range(count):
        request.messages.add(**message)
    engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)


def a_second_later(engine: DrivenEngine) -> None:
    """With a client that reads whatever it is sent."""
    engine.advance(1000)
    for token, kind, _, _ in engine.settle_down():
        if kind == commands.DELIVERY:
            engine.submit(commands.WRITTEN, b"", token=token)
    engine.others += engine.settle_down()


# --- throttles ---------------------------------------------------------------------------------


def test_a_deleted_channel_leaves_no_line_in_front_of_a_bucket_it_shared(opened: Make) -> None:
    engine = opened()
    engine.set_config("throttle.k", "1,1")
    for queue, count in (("gone", 2), ("kept", 4)):
        engine.create_queue(queue, throttle_key_headers=["t"])
        for _ in range(count):
            engine.enqueue(queue, b"x", {"t": "k"})
    for queue in ("gone", "kept"):
        engine.submit(commands.CONSUME_OPEN, service.ConsumeRequest(queue=queue, max_batch=10))
    a_second_later(engine)
    a_second_later(engine)
    engine.call(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="gone"), admin.DeleteQueueResponse)
    engine.create_queue("another")
    for _ in range(6):
        a_second_later(engine)
    assert engine.stats("kept").in_flight == 4


def test_a_bucket_that_fills_in_a_thousand_centuries_does_not_keep_the_core_busy(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q", throttle_key_headers=["t"])
    engine.set_config("throttle.k", "1e-12,1")
    for _ in range(2):
        engine.enqueue("q", b"x", {"t": "k"})
    engine.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=10, wait_ms=1000))
    engine.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=10, wait_ms=1000))
    engine.settle_down()
    again = engine.run_pass()
    assert again is not None
    assert again > engine.mono_ns


# --- what is stored ----------------------------------------------------------------------------


def test_a_batch_whose_first_message_has_scattered_fields_survives_a_restart(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    scattered = text_field(3, b"old") + text_field(3, b"new")
    frame = text_field(1, b"q") + text_field(2, scattered) + text_field(2, text_field(3, b"plain"))
    engine.call(commands.ENQUEUE_BATCH, frame, service.EnqueueBatchResponse)
    engine.kill()
    engine.reopen()
    assert engine.payloads("q") == [b"new", b"plain"]


def test_soft_retention_by_size_drops_the_oldest_only_until_it_fits(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q", retention=admin.Retention(soft_bytes=100_000))
    for _ in range(60):
        engine.enqueue("q", b"x" * 2000)
    engine.ack("q", engine.lease("q"))
    engine.sleep(500, 100)
    assert 95_000 < engine.stats("q").stored_bytes <= 104_000


def test_a_redriven_message_whose_channel_is_deleted_before_it_is_durable_gives_its_disk_back(
    opened: Make,
) -> None:
    engine = opened()
    engine.create_queue("q", channels=["a", "b"], max_attempts=1)
    engine.enqueue("q")
    engine.nack("q", engine.lease("q", channel="a"), channel="a")
    engine.ack("q", engine.lease("q", channel="b"), channel="b")
    engine.submit(commands.REDRIVE_MOVE, text_field(1, b"q.dlq"))
    engine.run_pass()
    engine.submit(commands.DELETE_CHANNEL, admin.DeleteChannelRequest(queue="q", channel="a"))
    engine.settle_down()
    engine.sleep(500, 100)
    assert engine.stats("q").stored_bytes == 0


@pytest.mark.parametrize(
    "header",
    [
        text_field(1, b"\xff") + text_field(2, b"v") + text_field(1, b"k"),
        text_field(1, b"k") + text_field(2, b"\xff") + text_field(2, b"v"),
        text_field(1, b"k") + b"\x10\x07",
    ],
    ids=["a name before the last", "a value before the last", "a value that is a number"],
)
def test_a_header_that_clients_could_not_read_is_refused_however_well_it_ends(
    opened: Make, header: bytes
) -> None:
    engine = opened()
    engine.create_queue("q")
    frame = text_field(1, b"q") + text_field(2, text_field(2, header)) + text_field(2, text_field(3, b"good"))

    answers = engine.call(commands.ENQUEUE_BATCH, frame, service.EnqueueBatchResponse)

    assert [result.error.code != 0 for result in answers.results] == [True, False]
    assert engine.payloads("q") == [b"good"]


@pytest.mark.parametrize(
    "header",
    [
        text_field(1, b"") + text_field(2, b"v"),
        text_field(2, b"v"),
        text_field(1, b"k") + text_field(1, b""),
        b"",
    ],
    ids=["an empty name", "a value alone", "an empty name after another", "nothing at all"],
)
def test_a_header_without_a_name_is_refused_and_the_refusal_says_what_is_wrong(
    opened: Make, header: bytes
) -> None:
    engine = opened()
    engine.create_queue("q")
    one = text_field(1, b"q") + text_field(2, header)

    with pytest.raises(errors.Invalid, match=r"headers: keys .* no key may be empty"):
        engine.submit(commands.ENQUEUE, one)
    batch = text_field(1, b"q") + text_field(2, text_field(2, header)) + text_field(2, text_field(3, b"good"))
    answers = engine.call(commands.ENQUEUE_BATCH, batch, service.EnqueueBatchResponse)

    assert [result.error.code for result in answers.results] == [errors.INVALID_ARGUMENT, 0]
    assert engine.payloads("q") == [b"good"]


def test_a_header_without_a_value_is_kept(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")

    engine.enqueue("q", headers={"flag": ""})

    assert dict(engine.lease("q")[0].headers) == {"flag": ""}


# --- clocks ------------------------------------------------------------------------------------


def test_a_wall_clock_set_back_does_not_prolong_a_delay(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    engine.enqueue("q", b"x", delay_ms=1000)
    engine.wall_ns -= 3_600_000 * MS
    engine.sleep(1001)
    assert engine.payloads("q") == [b"x"]


def test_a_wall_clock_set_back_does_not_prolong_a_time_to_live(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    engine.enqueue("q", b"x", ttl_ms=1000)
    engine.wall_ns -= 3_600_000 * MS
    engine.sleep(1001)
    assert engine.payloads("q") == []


def test_a_delay_beyond_a_timers_reach_is_reached_in_steps(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    day_ms = 86_400_000
    engine.enqueue("q", b"x", delay_ms=75 * day_ms)
    engine.sleep(74 * day_ms, 10 * day_ms)
    assert engine.payloads("q") == []
    engine.sleep(day_ms + 1)
    assert engine.payloads("q") == [b"x"]


# --- what goes out -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [commands.LEASE, commands.PEEK_MESSAGES])
def test_a_reply_stays_readable_for_default_clients_whatever_its_metadata_weighs(
    opened: Make, kind: int
) -> None:
    engine = opened()
    names = [f"h{i}" for i in range(16)]
    engine.create_queue("q", throttle_key_headers=names)
    headers = {name: name * 80 for name in names}
    for _ in range(3):
        enqueue_many(engine, "q", 1000, payload=b"x", headers=headers)
    wanted = service.LeaseRequest if kind == commands.LEASE else admin.PeekMessagesRequest
    engine.submit(kind, wanted(queue="q", max_messages=10_000 if kind == commands.LEASE else 1000))
    replies = [payload for _, kind, _, payload in engine.settle_down() if kind == commands.REPLY]
    assert GRPC_DEFAULT_BYTES // 2 < len(replies[0]) <= GRPC_DEFAULT_BYTES


def test_credit_beyond_any_bound_is_all_the_credit_there_is(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    enqueue_many(engine, "q", 20)
    request = service.ConsumeSessionRequest()
    request.open.queue = "q"
    request.open.initial_credit = 5
    token = engine.submit(commands.SESSION_OPEN, request)
    engine.settle_down()
    engine.submit(commands.SESSION, b"\x10" + b"\xff" * 9 + b"\x01", token=token)
    engine.settle_down()
    assert engine.stats("q").in_flight == 20


# --- a key's cap -------------------------------------------------------------------------------


def test_a_capped_key_goes_on_when_hard_retention_drops_what_was_being_decided(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q", on_failure_script="x", retention=admin.Retention(hard_period_ms=5000))
    policy = admin.SetKeyPolicyRequest(queue="q", fairness_key="default", max_in_flight=1)
    engine.call(commands.SET_KEY_POLICY, policy, admin.SetKeyPolicyResponse)
    engine.enqueue("q", b"decided")
    [leased] = engine.lease("q")
    nack = service.NackRequest(queue="q", message_id=leased.id, lease_id=leased.metadata.lease_id)
    engine.submit(commands.NACK, nack)
    engine.settle_down()
    engine.sleep(3000, 100)
    engine.enqueue("q", b"waiting")
    assert engine.payloads("q") == []
    engine.sleep(2500, 100)
    assert engine.payloads("q") == [b"waiting"]


# --- atomic batches ----------------------------------------------------------------------------


def test_an_atomic_batch_that_is_refused_takes_and_leaves_nothing_of_its_neighbours(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q", max_depth=4, fairness_key_header="k")
    tokens = []
    for kind, payloads in (
        (commands.ENQUEUE_BATCH, [b"a", b"b"]),
        (commands.ENQUEUE_ATOMIC, [b"1", b"2", b"3"]),  # the third one finds no room
        (commands.ENQUEUE_BATCH, [b"c", b"d"]),
    ):
        batch = service.EnqueueBatchRequest(queue="q")
        for payload in payloads:
            batch.messages.add(payload=payload, headers={"k": payload.decode()})
        tokens.append(engine.submit(kind, batch))
    engine.others += engine.settle_down()

    answers = [service.EnqueueBatchResponse.FromString(engine.answer_of(token)[1]) for token in tokens]
    stored = [[not result.error.code for result in answer.results] for answer in answers]
    assert stored == [[True] * 2, [False] * 3, [True] * 2]
    assert sorted(engine.payloads("q")) == [b"a", b"b", b"c", b"d"]


# --- dedup -------------------------------------------------------------------------------------


def test_dedup_keys_that_are_over_make_room_for_other_queues(opened: Make) -> None:
    engine = opened(limits__dedup_keys_max=2)
    for queue in ("busy", "quiet"):
        engine.create_queue(queue)
    engine.enqueue("busy", dedup_key="1")
    engine.enqueue("busy", dedup_key="2")
    engine.sleep(301_000, 10_000)
    assert engine.enqueue("quiet", dedup_key="3") == 1


def test_a_shorter_dedup_window_holds_for_keys_behind_older_ones(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q", dedup_window_ms=600_000)
    engine.enqueue("q", dedup_key="older")
    config = admin.QueueConfig(dedup_window_ms=1000)
    update = admin.UpdateQueueRequest(queue="q", config=config)
    engine.call(commands.UPDATE_QUEUE, update, admin.UpdateQueueResponse)
    first = engine.enqueue("q", dedup_key="newer")
    assert engine.enqueue("q", dedup_key="newer") == first
    engine.sleep(2000)
    second = engine.enqueue("q", dedup_key="newer")
    assert second != first
    assert engine.enqueue("q", dedup_key="newer") == second


# --- retention ---------------------------------------------------------------------------------


def test_retention_that_is_taken_back_gives_the_disk_back(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q", retention=admin.Retention(soft_bytes=100_000))
    engine.enqueue("q", b"x" * 2000)
    engine.ack("q", engine.lease("q"))
    assert engine.stats("q").stored_bytes > 0
    update = admin.UpdateQueueRequest(queue="q", config=admin.QueueConfig())
    engine.call(commands.UPDATE_QUEUE, update, admin.UpdateQueueResponse)
    engine.sleep(300, 100)
    assert engine.stats("q").stored_bytes == 0


def test_a_long_backlog_at_the_front_does_not_keep_what_is_done_behind_it(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q", fairness_key_header="k", retention=admin.Retention(soft_period_ms=10_000))
    policy = admin.SetKeyPolicyRequest(queue="q", fairness_key="paused", paused=True)
    engine.call(commands.SET_KEY_POLICY, policy, admin.SetKeyPolicyResponse)
    for _ in range(2100):
        engine.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", headers={"k": "paused"}))
        engine.run_pass()
    engine.enqueue("q", b"x" * 100_000, {"k": "done"})
    engine.ack("q", engine.lease("q"))
    assert engine.stats("q").stored_bytes > 100_000
    engine.sleep(11_000, 1000)
    assert engine.stats("q").stored_bytes < 100_000


def test_appended_at_does_not_fall_behind_what_was_acked_before_a_crash(opened: Make) -> None:
    engine = opened()
    engine.create_queue("q")
    engine.sleep(100_000)
    engine.enqueue("q")
    [before] = engine.lease("q")
    engine.ack("q", [before])
    engine.kill()
    engine.reopen(away_ms=-50_000)
    engine.enqueue("q")
    [after] = engine.lease("q")
    assert after.timestamps.appended_at.ToMilliseconds() >= before.timestamps.appended_at.ToMilliseconds()
    assert after.id > before.id


# --- settling ------------------------------------------------------------------------------------


def test_a_batch_of_nacks_with_an_error_that_is_no_text_is_refused(engine: DrivenEngine) -> None:
    """It would be kept with the dead letter, and no client could read an answer that it is in."""
    engine.create_queue("q", max_attempts=1)
    engine.enqueue("q", b"x")
    [leased] = engine.lease("q")
    item = service.SettleItem(message_id=leased.id, lease_id=leased.metadata.lease_id).SerializeToString()
    request = service.NackBatchRequest(queue="q").SerializeToString()

    with pytest.raises(errors.Invalid, match=r"items\.error: must be valid UTF-8"):
        engine.submit(commands.NACK_BATCH, request + text_field(3, item + text_field(3, b"\xff")))
    engine.submit(commands.NACK_BATCH, request + text_field(3, item + text_field(3, "\u00e9".encode())))
    engine.settle_down()

    [letter] = engine.lease("q.dlq")
    assert letter.metadata.dead_letter.last_error == "\u00e9"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("throttle.*", "1,1"),
        ("throttle.tenant:*", "1,1"),
        ("throttle:ten*ant:rate", "1"),
        ("throttle:*:burst", "1"),
    ],
)
def test_a_throttle_with_a_star_is_refused_with_what_to_do(opened: Make, key: str, value: str) -> None:
    engine = opened()

    with pytest.raises(Refused, match=r"no pattern; fila limit set"):
        engine.set_config(key, value)

    engine.set_config(key, "")  # one of before can be taken away
