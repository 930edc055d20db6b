"""Places, delays and times to live of messages, over restarts too. Each test is a fault that the simulation found."""

from collections.abc import Callable
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine


def restarted(engine: DrivenEngine) -> None:
    engine.kill()
    engine.reopen()


def test_a_delayed_message_keeps_its_place_behind_others_over_a_restart(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    engine.enqueue("q", b"late", delay_ms=50)
    engine.enqueue("q", b"first")
    engine.sleep(60)

    restarted(engine)

    assert engine.payloads("q") == [b"first", b"late"]


def test_a_message_that_came_back_keeps_its_place_before_those_enqueued_later(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    engine.enqueue("q", b"failed")
    engine.nack("q", engine.lease("q"), delay_ms=0)
    engine.enqueue("q", b"newer")

    restarted(engine)

    assert engine.payloads("q") == [b"failed", b"newer"]


def test_a_moment_that_has_passed_is_no_delay(engine: DrivenEngine) -> None:
    from google.protobuf.timestamp_pb2 import Timestamp

    engine.create_queue("q")
    past = Timestamp()
    past.FromMilliseconds(engine.wall_ms - 500)
    engine.enqueue("q", b"one", deliver_at=past)
    engine.enqueue("q", b"two")

    assert engine.payloads("q") == [b"one", b"two"]


def due_in_ms(engine: DrivenEngine) -> list[int | None]:
    """How long from now each pending message is not ready, as a peek shows it; None where none is shown."""
    request = admin.PeekMessagesRequest(queue="q", max_messages=10)
    answer = engine.call(commands.PEEK_MESSAGES, request, admin.PeekMessagesResponse)
    return [
        each.timestamps.due_at.ToMilliseconds() - engine.wall_ms
        if each.timestamps.HasField("due_at")
        else None
        for each in answer.messages
    ]


def test_a_peek_shows_when_a_delayed_message_is_due_over_a_restart_too(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    engine.enqueue("q", b"tomorrow", delay_ms=86_400_000)
    engine.enqueue("q", b"soon", delay_ms=50)
    engine.enqueue("q", b"now")
    assert due_in_ms(engine) == [86_400_000, 50, None]

    engine.sleep(60)
    restarted(engine)

    assert due_in_ms(engine) == [86_400_000 - 60, None, None]


def test_a_peek_shows_when_a_failed_message_is_tried_again_and_a_delivery_shows_nothing(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q")
    engine.enqueue("q", b"x")
    (first,) = engine.lease("q")
    engine.nack("q", [first], delay_ms=300)
    assert due_in_ms(engine) == [300]

    engine.sleep(300)
    (again,) = engine.lease("q")
    assert not again.timestamps.HasField("due_at")


@pytest.mark.parametrize("end", ["nack", "expiry"])
def test_a_message_whose_time_to_live_ended_while_it_was_leased_is_not_retried(
    end: str, engine: DrivenEngine
) -> None:
    engine.create_queue("q", visibility_timeout_ms=1000)
    engine.enqueue("q", b"x", ttl_ms=500)
    leased = engine.lease("q")
    engine.sleep(600)

    if end == "nack":
        engine.nack("q", leased, delay_ms=0)
    else:
        engine.sleep(500)

    assert engine.stats("q").depth == 0
    assert engine.lease("q") == []


def test_a_message_whose_time_to_live_ends_cold_reaches_the_dlq() -> None:
    engine = DrivenEngine({"storage.hot_payload_bytes": 1})
    engine.create_queue("q", ttl_to_dlq=True)
    engine.enqueue("q", b"x" * 2000, ttl_ms=100)

    engine.sleep(200)

    assert engine.payloads("q.dlq") == [b"x" * 2000]
    assert engine.stats("q").depth == 0
    engine.remove()


@pytest.mark.parametrize(
    ("end", "told"), [("nack", "no"), ("lease", "visibility timeout expired"), ("", "time to live is over")]
)
def test_a_dead_letter_of_a_time_to_live_tells_what_its_last_consumer_said(
    engine: DrivenEngine, end: str, told: str
) -> None:
    engine.create_queue("q", ttl_to_dlq=True, visibility_timeout_ms=1_000)
    engine.enqueue("q", b"short", ttl_ms=400)
    leased = engine.lease("q") if end else []
    engine.sleep(500)
    if end == "nack":
        engine.nack("q", leased)
    engine.sleep(1_000)

    (letter,) = engine.lease("q.dlq")
    assert (letter.metadata.dead_letter.reason, letter.metadata.dead_letter.last_error) == ("ttl", told)


@pytest.mark.parametrize("kind", ["stream", "pull"])
def test_a_lease_that_runs_out_while_its_bytes_are_read_back_counts_no_attempt(kind: str) -> None:
    engine = DrivenEngine({"storage.hot_payload_bytes": 1})
    engine.create_queue("q", max_attempts=1, visibility_timeout_ms=1_000)
    engine.enqueue("q", b"x" * 2000)
    asking: Any = service.ConsumeRequest(queue="q")
    if kind == "pull":
        asking = service.LeaseRequest(queue="q", max_messages=1, wait_ms=60_000)
    engine.submit(commands.CONSUME_OPEN if kind == "stream" else commands.LEASE, asking)
    engine.run_pass()  # leased, and the bytes are asked for

    for _ in range(3):
        engine.advance(1_500)  # a disk that takes its time
        engine.run_pass()
    came = engine.settle_down()

    assert engine.stats("q").expired_total == 0
    assert engine.stats("q.dlq").depth == 0
    assert any(b"xxx" in out[3] for out in came) or engine.payloads("q") == [b"x" * 2000]
    engine.remove()


def test_a_redriven_message_is_acked_by_its_id_while_its_first_entry_is_still_stored(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q", max_attempts=1, channels=["a", "b"])
    engine.enqueue("q", b"x")  # b never takes it, so the frame stays
    leased = engine.lease("q", channel="a")
    engine.nack("q", leased, channel="a")
    moved = engine.call(
        commands.REDRIVE_MOVE, admin.RedriveRequest(dlq_queue="q.dlq", count=256), admin.RedriveResponse
    )
    again = engine.lease("q", channel="a")
    again[0].metadata.lease_id = 0

    assert moved.redriven == 1
    assert engine.ack("q", again, channel="a") == [0]


def test_an_ack_by_id_finds_the_copy_that_is_leased_when_a_seek_brought_the_first_one_back(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q", max_attempts=2, retention=admin.Retention(soft_period_ms=10**9))
    engine.enqueue("q", b"x")
    for _ in range(2):
        engine.nack("q", engine.lease("q"))
    moved = engine.call(
        commands.REDRIVE_MOVE, admin.RedriveRequest(dlq_queue="q.dlq", count=256), admin.RedriveResponse
    )
    assert moved.redriven == 1
    engine.call(
        commands.SEEK_CHANNEL, admin.SeekChannelRequest(queue="q", offset=1), admin.SeekChannelResponse
    )
    first, copy = engine.lease("q")
    assert (first.id, first.metadata.offset) == (copy.id, 1)
    engine.nack("q", [first], delay_ms=60_000)
    copy.metadata.lease_id = 0

    assert engine.ack("q", [copy]) == [0]


Change = Callable[[DrivenEngine], None]


def pause(engine: DrivenEngine) -> None:
    request = admin.SetKeyPolicyRequest(queue="q", fairness_key="one", paused=True)
    engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)


def cap(engine: DrivenEngine) -> None:
    engine.lease("q", 1)
    request = admin.SetKeyPolicyRequest(queue="q", fairness_key="one", max_in_flight=1)
    engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)


@pytest.mark.parametrize("change", [pause, cap])
def test_a_key_that_may_not_go_keeps_no_token_from_others(change: Change, engine: DrivenEngine) -> None:
    engine.create_queue("q", fairness_key_header="k", throttle_key_headers=["t"])
    engine.set_config("throttle.mail", "10,1")
    for key in ("one", "one", "one", "two", "two"):
        engine.enqueue("q", key.encode(), {"k": key, "t": "mail"})
    engine.lease("q", 5)  # the first token; all others wait in the bucket's line
    engine.sleep(150)  # somebody is woken for the next
    change(engine)
    engine.sleep(150)

    taken = engine.payloads("q", 5)

    assert b"two" in taken or b"two" in [m.payload for m in engine.lease("q", 5)]


def test_a_channel_without_consumers_keeps_no_token_from_another(engine: DrivenEngine) -> None:
    engine.create_queue("q", throttle_key_headers=["t"], channels=["a", "b"])
    engine.set_config("throttle.mail", "10,1")
    for _ in range(3):
        engine.enqueue("q", b"x", {"t": "mail"})
    for channel in ("a", "b"):
        engine.lease("q", channel=channel)

    got = 0
    for _ in range(6):
        engine.sleep(100)
        got += len(engine.lease("q", channel="b"))

    assert got == 3


def test_a_message_that_a_long_seek_has_yet_to_place_keeps_its_delay(engine: DrivenEngine) -> None:
    engine.create_queue("q", retention=admin.Retention(soft_period_ms=10**9))
    for i in range(80):  # more frames than a pass takes in
        engine.enqueue("q", b"%d" % i)
    engine.submit(commands.SEEK_CHANNEL, admin.SeekChannelRequest(queue="q", offset=0))
    engine.enqueue("q", b"later", delay_ms=5000)

    assert b"later" not in engine.payloads("q", 1000)
    engine.sleep(5000)
    assert engine.payloads("q", 1000) == [b"later"]


def test_seeking_a_second_time_while_the_first_seek_is_under_way_leaks_no_frame(engine: DrivenEngine) -> None:
    engine.create_queue("q", channels=["a", "b"])
    for i in range(200):
        engine.enqueue("q", b"%d" % i)
    for _ in range(3):
        engine.submit(commands.SEEK_CHANNEL, admin.SeekChannelRequest(queue="q", channel="a", offset=0))
    engine.submit(commands.SEEK_CHANNEL, admin.SeekChannelRequest(queue="q", channel="a", offset=1 << 60))
    engine.settle_down()

    engine.ack("q", engine.lease("q", 1000, channel="b"), channel="b")

    assert engine.stats("q").stored_bytes == 0


HOUR_MS = 3_600_000


def test_a_delay_is_no_longer_than_it_was_when_the_clock_was_set_back_while_the_broker_was_down(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q")
    engine.enqueue("q", b"failed")
    engine.nack("q", engine.lease("q"), delay_ms=10_000)
    engine.enqueue("q", b"enqueued", delay_ms=10_000)
    engine.sleep(4_000)
    engine.kill()
    engine.reopen(away_ms=-HOUR_MS)

    # How much of it had passed nobody knows any more: none of it counts, and no more than all of it is waited for.
    engine.sleep(9_000)
    assert engine.payloads("q") == []
    engine.sleep(1_001)
    # Both are due at the same moment, so they come in either order.
    assert sorted(engine.payloads("q")) == [b"enqueued", b"failed"]


def test_two_restarts_of_a_clock_set_back_make_no_delay_longer_or_shorter(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    for i in range(40):
        engine.enqueue("q", b"delayed" if i == 7 else b"done", delay_ms=10_000 if i == 7 else 0)
    engine.kill()
    engine.reopen(away_ms=-HOUR_MS)
    engine.ack("q", engine.lease("q"))
    engine.sleep(5_000)
    engine.kill()
    engine.reopen()

    engine.sleep(9_900)
    assert engine.payloads("q") == []
    engine.sleep(101)
    assert engine.payloads("q") == [b"delayed"]


def test_a_delay_goes_on_while_the_broker_is_down(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    engine.enqueue("q", b"late", delay_ms=10_000)
    engine.kill()
    engine.reopen(away_ms=7_000)

    engine.sleep(2_990)
    assert engine.payloads("q") == []
    engine.sleep(11)
    assert engine.payloads("q") == [b"late"]


def test_a_channel_that_waits_for_a_sync_keeps_the_scheduler_asleep(engine: DrivenEngine) -> None:
    engine.create_queue("q", channels=["a"])
    engine.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"before"))
    engine.run_pass()
    engine.submit(commands.CREATE_CHANNEL, admin.CreateChannelRequest(queue="q", channel="b", oldest=True))
    engine.run_pass()

    again = engine.run_pass()

    assert again is None or again > engine.mono_ns
    engine.settle_down()
    assert engine.payloads("q", channel="b") == [b"before"]


def test_a_message_on_its_way_when_a_channel_starts_keeps_its_delay(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    later = service.EnqueueOptions(delay_ms=5000)
    engine.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"later", options=later))
    engine.run_pass()
    engine.submit(commands.SEEK_CHANNEL, admin.SeekChannelRequest(queue="q", offset=0))
    engine.settle_down()

    assert engine.payloads("q") == []
    restarted(engine)
    assert engine.payloads("q") == []
    engine.sleep(5000)
    assert engine.payloads("q") == [b"later"]


def test_a_channel_made_at_the_oldest_has_the_same_messages_ready_after_a_restart(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q", channels=["a"])
    engine.enqueue("q", b"x", delay_ms=60_000)  # over for a channel that starts behind it
    made = admin.CreateChannelRequest(queue="q", channel="default", oldest=True)
    engine.call(commands.CREATE_CHANNEL, made, admin.CreateChannelResponse)
    ready = engine.stats("q", "default").depth

    restarted(engine)

    assert ready == 1
    assert engine.payloads("q") == [b"x"]


def test_a_message_whose_time_ends_before_a_long_seek_comes_to_it_is_dead_lettered(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q", ttl_to_dlq=True, retention=admin.Retention(soft_period_ms=10**9))
    for i in range(200):  # more frames than a pass takes in
        engine.enqueue("q", b"%d" % i)
    engine.enqueue("q", b"short", ttl_ms=100)
    engine.submit(commands.SEEK_CHANNEL, admin.SeekChannelRequest(queue="q", offset=0))
    engine.run_pass()
    engine.advance(200)
    engine.settle_down()

    assert b"short" not in engine.payloads("q", 1000)
    assert engine.payloads("q.dlq") == [b"short"]
    assert engine.stats("q").ttl_dropped_total == 1


def test_a_message_whose_time_ends_cold_and_not_yet_placed_reaches_the_dlq() -> None:
    engine = DrivenEngine({"storage.hot_payload_bytes": 1})
    engine.create_queue(
        "q", ttl_to_dlq=True, fairness_key_header="k", retention=admin.Retention(soft_period_ms=10**9)
    )
    for i in range(200):
        engine.enqueue("q", b"%d" % i)
    short = service.EnqueueRequest(queue="q", payload=b"short", headers={"k": "of its own"})
    short.options.ttl_ms = 100
    engine.submit(commands.ENQUEUE, short)
    engine.run_pass()
    engine.submit(commands.SEEK_CHANNEL, admin.SeekChannelRequest(queue="q", offset=0))
    engine.run_pass()
    engine.commit()
    engine.run_pass()  # it is visible, and the seek has not come to it
    engine.advance(200)
    engine.settle_down()

    assert engine.payloads("q.dlq") == [b"short"]
    engine.remove()


@pytest.mark.parametrize("to", [0, 1 << 60])
def test_a_message_whose_time_is_over_is_dead_lettered_though_a_seek_comes_before_its_bytes_do(
    to: int,
) -> None:
    engine = DrivenEngine({"storage.hot_payload_bytes": 1})
    engine.create_queue("q", ttl_to_dlq=True)
    engine.enqueue("q", b"short" * 400, ttl_ms=100)
    engine.advance(200)
    engine.run_pass()  # its bytes are asked for
    engine.submit(commands.SEEK_CHANNEL, admin.SeekChannelRequest(queue="q", offset=to))
    engine.settle_down()

    assert engine.payloads("q") == []
    assert engine.payloads("q.dlq") == [b"short" * 400]
    engine.sleep(2_000)  # housekeeping comes by
    assert engine.stats("q").stored_bytes == 0
    engine.remove()


def test_a_nack_is_answered_when_the_dead_letter_it_makes_is_written_and_not_before(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q", max_attempts=1)
    engine.enqueue("q", b"x")
    leased = engine.lease("q")[0]
    restarted(engine)  # its bytes are not in memory any more
    request = service.NackRequest(queue="q", message_id=leased.id, lease_id=leased.metadata.lease_id)
    token = engine.submit(commands.NACK, request)
    for _ in range(3):  # everything but the reads
        engine.run_pass()
        engine.commit()

    assert token not in {owner for owner, _, _, _ in engine.core.drain()}
    engine.others += engine.settle_down()
    assert engine.answer_of(token)[0] == 0
    assert engine.payloads("q.dlq") == [b"x"]
