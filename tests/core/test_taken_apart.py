"""A seek, a deleted channel, a deleted queue: done at once for everybody outside, in pieces for what they held."""

from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine, Refused
from tests.core.driven_session import DrivenSession
from tests.core.test_bounded_work import PASS_WORK_MAX, batch_of, count, fill, run_dry

MANY = 60_000
DELETE_QUEUE = (commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="q"))
DELETE_CHANNEL = (commands.DELETE_CHANNEL, admin.DeleteChannelRequest(queue="q", channel="b"))
SEEK = (commands.SEEK_CHANNEL, admin.SeekChannelRequest(queue="q", channel="b", offset=1))
WAYS = {"delete queue": DELETE_QUEUE, "delete channel": DELETE_CHANNEL, "seek": SEEK}


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    driven = DrivenEngine({"limits.dedup_keys_max": 1000})
    driven.create_queue(
        "q",
        channels=["default", "b"],
        visibility_timeout_ms=60_000,
        fairness_key_header="k",
        throttle_key_headers=["t"],
    )
    yield driven
    driven.remove()


@pytest.fixture
def cold() -> Iterator[DrivenEngine]:
    """Payloads are read back each time."""
    driven = DrivenEngine({"storage.hot_payload_bytes": 1})
    yield driven
    driven.remove()


def held(engine: DrivenEngine) -> dict[str, int]:
    """What messages, keys and leases take in memory; the timer that is left is housekeeping's."""
    return {name: count(engine, name) for name in ("index_bytes", "keys", "leases", "consumers", "timers")}


def begin(engine: DrivenEngine, way: str) -> int:
    """One pass: the change is accepted and its batch is written."""
    token = engine.submit(*WAYS[way])
    engine.run_pass()
    return token


def all_sorts(engine: DrivenEngine) -> None:
    """Messages that are leased, delayed, throttled, paused, expiring and dead; half of channel b acked."""
    engine.set_config("throttle.t", "1,1")
    for i in range(40):
        engine.enqueue("q", b"m", {"k": f"k{i % 7}"}, dedup_key=f"d{i}")
    for i in range(10):
        engine.enqueue("q", b"late", {"k": f"l{i}"}, delay_ms=50_000)
        engine.enqueue("q", b"slow", {"k": "slow", "t": "t"})
        engine.enqueue("q", b"short", ttl_ms=40_000)
    engine.call(
        commands.SET_KEY_POLICY,
        admin.SetKeyPolicyRequest(queue="q", fairness_key="k1", weight=3, paused=True),
        admin.SetKeyPolicyResponse,
    )
    engine.ack("q", engine.lease("q", 15, "b"), "b")
    engine.nack("q", engine.lease("q", 5, "b"), 30_000, "b")
    engine.lease("q", 5, "b")
    engine.lease("q", 3)


@pytest.mark.parametrize("way", WAYS)
def test_a_change_of_a_long_queue_keeps_every_pass_within_its_bound(engine: DrivenEngine, way: str) -> None:
    fill(engine, "q", MANY)
    before = count(engine, "pass_work_max")
    assert before <= PASS_WORK_MAX

    token = engine.submit(*WAYS[way])
    passes = run_dry(engine)

    assert engine.answer_of(token)[0] == 0
    assert count(engine, "pass_work_max") <= PASS_WORK_MAX
    assert passes > MANY // PASS_WORK_MAX


@pytest.mark.parametrize("way", WAYS)
def test_what_is_left_in_memory_is_what_a_restart_would_find(engine: DrivenEngine, way: str) -> None:
    all_sorts(engine)
    engine.submit(*WAYS[way])
    engine.sleep(2_000)  # the bucket's own timer fires once more
    after = held(engine)

    engine.kill()
    engine.reopen()
    engine.sleep(1_000)

    found = held(engine)
    assert found["leases"] == after["leases"]
    assert found["keys"] == after["keys"]
    if way == "delete queue":
        # Frames are gone, and so is what pointed to them.
        assert (after["index_bytes"], after["keys"], after["leases"]) == (0, 0, 0)
        assert found["index_bytes"] == 0
    assert found["timers"] == after["timers"]


@pytest.mark.parametrize("way", WAYS)
def test_a_crash_in_the_middle_finds_it_done(engine: DrivenEngine, way: str) -> None:
    fill(engine, "q", MANY)
    engine.ack("q", engine.lease("q", 10, "b"), "b")
    begin(engine, way)
    engine.run_pass()
    engine.kill()
    engine.reopen()

    if way == "delete queue":
        with pytest.raises(Refused, match="QUEUE_NOT_FOUND"):
            engine.stats("q")
    else:
        assert engine.stats("q", "default").depth == MANY
    if way == "delete channel":
        with pytest.raises(Refused, match="CHANNEL_NOT_FOUND"):
            engine.lease("q", 1, "b")
    if way == "seek":
        assert engine.lease("q", 1, "b")[0].metadata.offset == 1
    assert engine.core.open_report()["lost_ranges"] == 0


def test_the_name_of_a_deleted_queue_is_free_at_once_and_the_new_one_is_empty(engine: DrivenEngine) -> None:
    fill(engine, "q", MANY)
    begin(engine, "delete queue")
    token = engine.submit(commands.CREATE_QUEUE, admin.CreateQueueRequest(name="q"))
    put = engine.submit(commands.ENQUEUE_BATCH, batch_of("q", 3, payload=b"new"))
    for _ in range(3):
        engine.run_pass()
        engine.commit()
    engine.others += engine.core.drain()
    assert [engine.answer_of(each)[0] for each in (token, put)] == [0, 0]
    assert count(engine, "index_bytes") > 1_000_000, "the old one is still being taken apart"

    engine.kill()
    engine.reopen()
    assert engine.payloads("q") == [b"new"] * 3


def test_a_channel_that_starts_anew_delivers_at_once_and_its_old_leases_are_lost(
    engine: DrivenEngine,
) -> None:
    fill(engine, "q", MANY)
    session = DrivenSession(engine, channel="b", max_in_flight=20)
    old = session.lease_ids()
    begin(engine, "seek")
    engine.submit(
        commands.SESSION,
        service.ConsumeSessionRequest(ack={"sequence": 1, "lease_ids": old[:2]}),
        session.token,
    )
    run_dry(engine)
    session.read()

    (settled,) = [frame.settled for frame in session.answers if frame.HasField("settled")]
    assert [failure.status.reason for failure in settled.failures] == ["LEASE_LOST"] * 2
    assert sorted(id_ for reason, ids in session.revoked if reason == "SEEK" for id_ in ids) == sorted(old)
    again = [m.metadata.offset for m in session.messages[len(old) :]]
    assert again[:2] == [1, 2]
    assert engine.stats("q", "b").depth == MANY - 20


def test_a_pull_that_waits_goes_on_in_the_channel_that_starts_anew(engine: DrivenEngine) -> None:
    engine.enqueue("q", b"m")
    engine.ack("q", engine.lease("q", 1, "b"), "b")
    waiting = engine.submit(
        commands.LEASE, service.LeaseRequest(queue="q", channel="b", max_messages=5, wait_ms=9_000)
    )
    engine.others += engine.settle_down()
    engine.call(*SEEK, admin.SeekChannelResponse)

    answered = service.LeaseResponse.FromString(engine.answer_of(waiting)[1]).messages
    assert [message.payload for message in answered] == [b"m"]


def test_consumers_of_what_is_deleted_are_told_and_their_leases_end(engine: DrivenEngine) -> None:
    fill(engine, "q", MANY)
    sessions = [DrivenSession(engine, channel="b", max_in_flight=5_000) for _ in range(12)]
    token = begin(engine, "delete channel")
    run_dry(engine)
    for session in sessions:
        session.read()

    assert engine.answer_of(token)[0] == 0
    assert {session.ended for session in sessions} == {(5, "CHANNEL_NOT_FOUND")}
    assert count(engine, "leases") == count(engine, "consumers") == 0
    assert count(engine, "pass_work_max") <= PASS_WORK_MAX + 5_000


def test_timers_of_what_is_being_taken_apart_do_nothing(engine: DrivenEngine) -> None:
    for i in range(30):
        engine.enqueue("q", b"%d" % i, {"k": f"k{i}"}, ttl_ms=5_000)
        engine.enqueue("q", b"late", delay_ms=5_000)
    engine.lease("q", 20, "b")
    fill(engine, "q", MANY)
    for way in ("seek", "delete channel", "delete queue"):
        begin(engine, way)
        engine.advance(70_000)
        run_dry(engine)
    with pytest.raises(Refused, match="QUEUE_NOT_FOUND"):
        engine.stats("q")
    assert count(engine, "index_bytes") == count(engine, "leases") == 0


def test_a_dead_letter_that_waits_for_its_bytes_outlives_the_seek(cold: DrivenEngine) -> None:
    engine = cold
    engine.create_queue("q", channels=["default", "b"], max_attempts=1)
    engine.enqueue("q", b"bad")
    (message,) = engine.lease("q", 1, "b")
    for way in ("seek", "seek"):
        engine.submit(
            commands.NACK,
            service.NackRequest(
                queue="q", channel="b", message_id=message.id, lease_id=message.metadata.lease_id, error="no"
            ),
        )
        engine.run_pass()
        begin(engine, way)
        run_dry(engine)
        (message,) = engine.lease("q", 1, "b")
    assert engine.payloads("q.dlq") == [b"bad", b"bad"]


def test_what_was_picked_before_a_seek_and_waits_for_its_bytes_is_not_delivered(cold: DrivenEngine) -> None:
    engine = cold
    engine.create_queue("q", channels=["default", "b"])
    engine.enqueue("q", b"old")
    pull = service.LeaseRequest(queue="q", channel="b", max_messages=5, wait_ms=9_000)
    waiting = engine.submit(commands.LEASE, pull)
    engine.run_pass()
    end = admin.SeekChannelRequest(queue="q", channel="b", offset=1 << 60)
    engine.submit(commands.SEEK_CHANNEL, end)
    engine.others += engine.settle_down()
    with pytest.raises(LookupError):
        engine.answer_of(waiting)

    engine.enqueue("q", b"new")
    assert [m.payload for m in service.LeaseResponse.FromString(engine.answer_of(waiting)[1]).messages] == [
        b"new"
    ]


def test_a_pull_whose_wait_was_ended_is_answered_once_nothing_of_what_it_waited_for_is_left(
    cold: DrivenEngine,
) -> None:
    """As a client does that closes its side behind a read that waits."""
    engine = cold
    engine.create_queue("q", channels=["default", "b"])
    engine.enqueue("q", b"old")
    pull = service.LeaseRequest(queue="q", channel="b", max_messages=5, wait_ms=60_000)
    waiting = engine.submit(commands.LEASE, pull)
    engine.run_pass()
    engine.submit(commands.CANCEL, b"over", token=waiting)
    engine.run_pass()
    engine.others += engine.core.drain()
    with pytest.raises(LookupError):  # it was given a message, whose bytes are on their way
        engine.answer_of(waiting)

    end = admin.SeekChannelRequest(queue="q", channel="b", offset=1 << 60)
    engine.submit(commands.SEEK_CHANNEL, end)
    engine.others += engine.settle_down()

    assert engine.answer_of(waiting) == (0, b"")


def test_a_seek_says_how_far_it_has_come_while_it_brings_messages_back(engine: DrivenEngine) -> None:
    fill(engine, "q", 20_000, batch=1000)

    def replay_offset() -> int:
        token = engine.submit(commands.LIST_CHANNELS, admin.ListChannelsRequest(queue="q"))
        engine.run_pass()
        engine.commit()
        engine.run_pass()
        engine.others += engine.core.drain()
        told = admin.ListChannelsResponse.FromString(engine.answer_of(token)[1])
        return next(channel.replay_offset for channel in told.channels if channel.name == "b")

    assert replay_offset() == 0
    engine.submit(*SEEK)
    engine.run_pass()
    first, second = replay_offset(), replay_offset()
    assert 1 < first < second < 20_001
    run_dry(engine)
    assert replay_offset() == 0
    assert engine.stats("q", "b").depth == 20_000
