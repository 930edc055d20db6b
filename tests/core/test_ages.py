"""How old the oldest message is that waits, and since when the oldest lease runs: what counts, and what it costs."""

import random
from dataclasses import dataclass, field

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila.v1 import watch_pb2 as watch
from fila_server.core.protocol import commands, seam_frames
from fila_server.telemetry.snapshot import decode
from tests.core.driven_engine import MS, DrivenEngine
from tests.core.test_bounded_work import count
from tests.native.coreprobe import wrong_ages


def ages(engine: DrivenEngine, queue: str = "q", channel: str = "") -> tuple[int, int]:
    """Of the oldest that waits, and of the lease that began first."""
    told = engine.stats(queue, channel)
    return told.oldest_age_ms, told.oldest_lease_age_ms


def test_a_message_ages_from_its_enqueue_until_it_is_leased_and_again_when_it_comes_back(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q")
    engine.enqueue("q", b"first")
    engine.sleep(1_000)
    engine.enqueue("q", b"second")
    engine.sleep(1_000)
    assert ages(engine) == (2_000, 0)

    first = engine.lease("q", most=1)
    engine.sleep(500)
    assert ages(engine) == (1_500, 500)

    engine.nack(
        "q", first, delay_ms=5_000
    )  # it waits for its retry, and then for a consumer: no failure makes it young
    assert ages(engine) == (2_500, 0)
    engine.sleep(10_000)
    assert ages(engine) == (12_500, 0)
    engine.ack("q", engine.lease("q"))
    assert ages(engine) == (0, 0)


def test_a_delay_does_not_age_and_a_message_counts_from_its_end_whatever_fails_later(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q")
    engine.enqueue("q", b"x", delay_ms=60_000)
    engine.sleep(59_000)
    assert ages(engine) == (0, 0)
    engine.sleep(3_000)
    assert ages(engine) == (2_000, 0)

    engine.nack("q", engine.lease("q"), delay_ms=5_000)
    engine.sleep(1_000)

    assert ages(engine) == (3_000, 0)


def test_messages_that_were_delayed_to_one_moment_age_until_the_last_of_them_is_leased(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q")
    for _ in range(3):
        engine.enqueue("q", b"x", delay_ms=1_000)
    engine.sleep(1_500)

    for left in (2, 1, 0):
        assert ages(engine)[0] == 500
        assert len(engine.lease("q", most=1)) == 1
        assert engine.stats("q").depth == left
    assert ages(engine) == (0, 0)


def test_what_a_pause_or_a_bucket_holds_waits(engine: DrivenEngine) -> None:
    engine.create_queue("q", fairness_key_header="k", throttle_key_headers=["t"])
    engine.set_config("throttle.none", "1e-12,1")
    engine.enqueue("q", b"takes the token", {"t": "none"})
    engine.ack("q", engine.lease("q"))
    engine.enqueue("q", b"x", {"t": "none", "k": "held"})
    engine.sleep(1_000)
    pause = admin.SetKeyPolicyRequest(queue="q", fairness_key="paused", paused=True)
    engine.call(commands.SET_KEY_POLICY, pause, admin.SetKeyPolicyResponse)
    engine.enqueue("q", b"x", {"k": "paused"})
    assert engine.lease("q") == []
    engine.sleep(1_000)
    assert ages(engine)[0] == 2_000

    purge = admin.PurgeQueueRequest(queue="q", fairness_key="held")
    engine.call(commands.PURGE_QUEUE, purge, admin.PurgeQueueResponse)

    assert ages(engine)[0] == 1_000


def test_what_is_done_and_only_retained_has_no_age(engine: DrivenEngine) -> None:
    engine.create_queue("q", retention={"soft_period_ms": 3_600_000})
    for _ in range(10):
        engine.enqueue("q")
    engine.ack("q", engine.lease("q"))
    engine.sleep(600_000)
    engine.enqueue("q")
    engine.sleep(1_000)

    assert ages(engine) == (1_000, 0)


def test_a_dead_letter_counts_from_its_death_and_a_redriven_message_from_the_redrive(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q", max_attempts=1)
    engine.enqueue("q")
    engine.sleep(1_000)
    engine.nack("q", engine.lease("q"))
    engine.sleep(300)
    assert ages(engine, "q.dlq") == (300, 0)

    redrive = admin.RedriveRequest(dlq_queue="q.dlq", count=256)
    engine.call(commands.REDRIVE_MOVE, redrive, admin.RedriveResponse)
    engine.sleep(20)

    assert ages(engine) == (20, 0)
    assert ages(engine, "q.dlq") == (0, 0)


def test_each_channel_has_its_own_ages_and_the_queue_those_of_the_oldest(engine: DrivenEngine) -> None:
    engine.create_queue("q", channels=["a", "b"])
    engine.enqueue("q")
    engine.sleep(1_000)
    engine.enqueue("q")
    leased = engine.lease("q", most=1, channel="a")
    engine.sleep(100)

    assert ages(engine, channel="a") == (100, 100)
    assert ages(engine, channel="b") == (1_100, 0)
    assert ages(engine) == (1_100, 100)
    engine.ack("q", leased, channel="a")
    engine.lease("q", channel="b")
    assert ages(engine) == (100, 0)


def test_all_who_tell_an_age_tell_the_same(engine: DrivenEngine) -> None:
    engine.create_queue("q", retention={"soft_period_ms": 3_600_000})
    for _ in range(3):
        engine.enqueue("q")
        engine.sleep(1_000)
    engine.ack("q", engine.lease("q", most=1))
    engine.lease("q", most=1)
    engine.sleep(700)

    (listed,) = (
        queue
        for queue in engine.call(commands.LIST_QUEUES, b"", admin.ListQueuesResponse).queues
        if queue.name == "q"
    )
    page = seam_frames.WatchPage(queue=b"q", most=10, cells=1000)
    watched = watch.QueueState.FromString(
        engine.call(commands.WATCH_ROWS, page, seam_frames.WatchedRows).channel
    )
    token = engine.submit(commands.METRICS)
    engine.others += engine.settle_down()
    measured = next(queue for queue in decode(engine.answer_of(token)[1]).queues if queue.name == b"q")
    explained = engine.call(
        commands.EXPLAIN_KEY,
        admin.ExplainKeyRequest(queue="q", fairness_key="default"),
        admin.ExplainKeyResponse,
    )

    assert ages(engine) == (1_700, 700)
    assert (listed.oldest_age_ms, listed.oldest_lease_age_ms) == (1_700, 700)
    assert (watched.oldest_age_ms, watched.oldest_lease_age_ms) == (1_700, 700)
    assert (measured.oldest_ms, measured.oldest_lease_ms) == (1_700, 700)
    assert (measured.channels[0].oldest_ms, measured.channels[0].oldest_lease_ms) == (1_700, 700)
    assert explained.oldest_age_ms == 1_700


def test_ages_are_the_same_after_a_restart(engine: DrivenEngine) -> None:
    engine.create_queue("q", visibility_timeout_ms=60_000)
    engine.enqueue("q", b"leased")
    engine.enqueue("q", b"failed", delay_ms=1_000)
    engine.sleep(2_000)
    for message in engine.lease("q"):
        if message.payload == b"failed":
            engine.nack("q", [message], delay_ms=60_000)
    engine.sleep(500)
    before = ages(engine)

    engine.kill()
    engine.reopen()

    assert before == (1_500, 500)
    assert ages(engine) == before


@pytest.mark.parametrize("set_back_ms", [0, 10_000])
def test_ages_stay_where_a_frame_is_written_anew(set_back_ms: int, engine: DrivenEngine) -> None:
    engine.create_queue("q", visibility_timeout_ms=3_600_000)
    engine.enqueue("q")
    engine.ack("q", engine.lease("q"))
    engine.wall_ns -= set_back_ms * MS
    request = service.EnqueueBatchRequest(queue="q")
    for number in range(60):
        request.messages.add(payload=b"x" * 20_000, options={"delay_ms": 1_000 if number == 59 else 0})
    engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)
    leased = engine.lease("q")
    engine.sleep(3_000)
    engine.ack("q", leased[1:])
    engine.sleep(60_000, step_ms=1_000)
    assert count(engine, "rewrites") == 1

    assert ages(engine) == (62_000, 63_000)
    engine.nack("q", leased[:1])
    assert ages(engine) == (63_000, 0)
    engine.kill()
    engine.reopen()
    assert ages(engine) == (63_000, 0)
    engine.lease("q", most=1)
    assert wrong_ages(engine.core) == []


# --- against a slow twin ---------------------------------------------------------------------


@dataclass
class Waits:
    """One message in one channel, as it is seen from outside."""

    since_ms: int
    leased_ms: int | None = None
    lease: messages.Message | None = None


@dataclass
class Twin:
    """Every message by its offset, for each of two channels."""

    channels: dict[str, dict[int, Waits]] = field(default_factory=lambda: {"a": {}, "b": {}})

    def ages(self, channel: str, now_ms: int) -> tuple[int, int]:
        known = self.channels[channel].values()
        waiting = [now_ms - each.since_ms for each in known if each.lease is None and each.since_ms <= now_ms]
        leased = [now_ms - each.leased_ms for each in known if each.leased_ms is not None]
        return max(waiting, default=0), max(leased, default=0)


@pytest.mark.parametrize("seed", range(12))
def test_ages_agree_with_a_twin_that_looks_at_every_message(seed: int, engine: DrivenEngine) -> None:
    chance = random.Random(seed)
    engine.create_queue(
        "q", channels=["a", "b"], fairness_key_header="k", max_attempts=1_000, visibility_timeout_ms=3_600_000,
        retention={"soft_period_ms": 60_000},
    )  # fmt: skip
    twin = Twin()
    for step in range(250):
        channel = chance.choice("ab")
        own = twin.channels[channel]
        held = [each for each in own.values() if each.lease is not None]
        chance.shuffle(held)
        some = held[: chance.randrange(1, 4)]
        match chance.randrange(8):
            case 0 | 1 | 2:
                delay_ms = chance.choice([0, 0, 0, 300, 300, 2_000])
                offset = engine.enqueue("q", b"x", {"k": chance.choice("xyz")}, delay_ms=delay_ms)
                for waiting in twin.channels.values():
                    waiting[offset] = Waits(engine.wall_ms + delay_ms)
            case 3 | 4:
                for message in engine.lease("q", chance.randrange(1, 6), channel):
                    each = own[message.metadata.offset]
                    each.leased_ms, each.lease = engine.wall_ms, message
            case 5:
                assert set(engine.ack("q", [each.lease for each in some if each.lease], channel)) <= {0}
                twin.channels[channel] = {o: each for o, each in own.items() if each not in some}
            case 6:
                given_back = [each.lease for each in some if each.lease]
                assert set(engine.nack("q", given_back, chance.choice([0, 700, 700]), channel)) <= {0}
                for each in some:
                    each.leased_ms = each.lease = None
            case 7:
                engine.sleep(chance.choice([1, 50, 400, 3_000]))
        if step == 120:
            engine.kill()
            engine.reopen()
        for name in "ab":
            assert ages(engine, channel=name) == twin.ages(name, engine.wall_ms), (step, name)
        assert wrong_ages(engine.core) == []


def test_totals_count_from_the_start_or_from_the_queues_creation(engine: DrivenEngine) -> None:
    engine.sleep(1_000)
    engine.create_queue("q")
    created_ms = engine.wall_ms
    assert engine.stats("q").totals_since.ToMilliseconds() == created_ms

    engine.kill()
    engine.reopen(away_ms=5_000)

    assert engine.stats("q").totals_since.ToMilliseconds() == created_ms + 5_000
    listed = engine.call(commands.LIST_QUEUES, b"", admin.ListQueuesResponse).queues[0]
    assert listed.totals_since.ToMilliseconds() == created_ms + 5_000


# --- what it costs ---------------------------------------------------------------------------


@pytest.mark.parametrize("in_front", ["retained", "leased", "delayed"])
def test_an_age_is_found_without_a_look_at_what_stands_in_front(in_front: str, engine: DrivenEngine) -> None:
    engine.create_queue("q", retention={"soft_period_ms": 3_600_000}, visibility_timeout_ms=3_600_000)
    for _ in range(2_000):
        engine.enqueue("q", delay_ms=3_600_000 if in_front == "delayed" else 0)
    leased = engine.lease("q", 5_000) if in_front != "delayed" else []
    if in_front == "retained":
        engine.ack("q", leased)
    engine.sleep(60_000)
    engine.enqueue("q")
    engine.sleep(1_000)
    ages(engine)  # the channel's tail is looked for once
    before = count(engine, "walked")

    for _ in range(10):
        assert ages(engine)[0] == 1_000

    assert count(engine, "walked") - before < 100
