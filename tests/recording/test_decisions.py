"""What the core decides is in the history: each step of a message's life, and for what reason."""

import json
import re
from pathlib import Path

import pytest

from fila.v1 import admin_pb2 as admin
from fila_server.core.protocol import commands
from fila_server.history_files import columns, replaying
from tests.core.driven_session import DrivenSession
from tests.recording.recorded import RecordedEngine

CORE = Path(__file__).resolve().parents[2] / "server/src/fila_server/core/history"


@pytest.fixture
def engine():
    driven = RecordedEngine()
    driven.create_queue("orders", fairness_key_header="tenant")
    yield driven
    driven.remove()


def test_a_message_that_is_acked_was_enqueued_and_delivered_first(engine):
    offset = engine.enqueue("orders", headers={"tenant": "acme"})
    engine.advance(250)
    leased = engine.lease("orders")
    engine.advance(40)
    engine.ack("orders", leased)

    assert engine.story(offset) == ["enqueued", "delivered", "acked"]
    delivered, acked = engine.decisions("delivered", "acked")
    assert delivered["fairness_key"] == "acme"
    assert delivered["wait_no_consumer_ms"] == 250
    assert (delivered["wait_share_ms"], delivered["wait_throttle_ms"], delivered["wait_delay_ms"]) == (
        0,
        0,
        0,
    )
    assert acked["held_ms"] == 40
    assert delivered["cost"] == 1.0


def test_messages_of_one_key_in_one_frame_are_one_row(engine):
    for _ in range(3):
        engine.enqueue("orders", headers={"tenant": "acme"})
    leased = engine.lease("orders")
    engine.ack("orders", leased)

    assert [len(row["offsets"]) for row in engine.rows("delivered", "acked")] == [3, 3]


def test_what_all_messages_of_a_row_are_alike_in_is_written_once(engine):
    engine.enqueue("orders", headers={"tenant": "acme"})
    engine.advance(30)
    engine.enqueue("orders", headers={"tenant": "acme"})
    engine.advance(20)
    leased = engine.lease("orders", most=2)
    engine.advance(5)
    engine.ack("orders", leased)

    (delivered,) = engine.rows("delivered")
    assert delivered["offsets"] == [1, 2]
    assert (delivered["costs"], delivered["attempts"]) == ([1.0], [0])
    assert delivered["wait_no_consumer_ms"] == [50, 20]
    assert delivered["wait_share_ms"] == [0]
    (acked,) = engine.rows("acked")
    assert acked["held_ms"] == [5]
    assert acked["wait_share_ms"] is None
    assert delivered["held_ms"] is None


def test_messages_of_several_keys_in_turn_are_a_row_each_and_keep_their_order(engine):
    for tenant in ("acme", "acme", "acme", "globex", "globex", "globex"):
        engine.enqueue("orders", headers={"tenant": tenant})
    engine.take()
    engine.kept.clear()
    leased = engine.lease("orders", most=6)
    engine.ack("orders", leased)

    delivered = engine.rows("delivered")
    assert [(row["fairness_key"], row["offsets"], row["places"]) for row in delivered] == [
        ("acme", [1, 2, 3], [0, 2, 4]),
        ("globex", [4, 5, 6], [1, 3, 5]),
    ]
    in_order = replaying.flat(engine.table(columns.DECISIONS)).to_pylist()
    assert [row["offset"] for row in in_order if row["kind"] == "delivered"] == [1, 4, 2, 5, 3, 6]
    assert [row["offset"] for row in in_order if row["kind"] == "acked"] == [1, 4, 2, 5, 3, 6]


def test_messages_of_a_key_that_name_other_buckets_are_rows_of_their_own(engine):
    engine.create_queue("calls", fairness_key_header="tenant", throttle_key_headers=["provider"])
    for provider in ("openai", "other", "openai"):
        engine.enqueue("calls", headers={"tenant": "acme", "provider": provider})
    engine.lease("calls", most=3)

    delivered = engine.rows("delivered")
    assert sum(len(row["offsets"]) for row in delivered) == 3
    told = {offset: row["throttle_keys"] for row in delivered for offset in row["offsets"]}
    assert told == {1: ["openai"], 2: ["other"], 3: ["openai"]}


def test_a_failure_is_told_with_its_reason_and_the_delay_that_follows(engine):
    offset = engine.enqueue("orders", headers={"tenant": "acme"})
    engine.nack("orders", engine.lease("orders"), delay_ms=500)
    engine.sleep(500)
    engine.lease("orders")

    assert engine.story(offset) == ["enqueued", "delivered", "nacked", "delayed", "delivered"]
    nacked, delayed = engine.decisions("nacked", "delayed")
    assert nacked["reason"] == "no"
    assert delayed["held_ms"] == 500
    again = engine.decisions("delivered")[1]
    assert (again["attempt"], again["wait_delay_ms"]) == (1, 500)


def test_a_lease_that_runs_out_is_told_as_expired(engine):
    offset = engine.enqueue("orders")
    engine.lease("orders")
    engine.sleep(120_000)

    assert engine.story(offset)[:3] == ["enqueued", "delivered", "expired"]


def test_a_dead_letter_ends_in_one_queue_and_begins_in_the_other(engine):
    engine.create_queue("jobs", max_attempts=1)
    offset = engine.enqueue("jobs")
    engine.nack("jobs", engine.lease("jobs"))

    assert engine.story(offset, queue="jobs") == ["enqueued", "delivered", "nacked", "dead_lettered"]
    assert [row["kind"] for row in engine.decisions() if row["queue"] == "jobs.dlq"] == ["enqueued"]
    assert engine.decisions("dead_lettered")[0]["reason"] == "max_attempts"


def test_what_a_bucket_holds_is_told_once_and_released_with_its_wait(engine):
    engine.set_config("throttle.openai", "1,1")
    engine.create_queue("calls", throttle_key_headers=["provider"])
    offsets = [engine.enqueue("calls", headers={"provider": "openai"}) for _ in range(3)]
    for _ in offsets:
        engine.lease("calls")
        engine.sleep(1001)

    throttled = engine.rows("throttled")
    held = sum(row["messages"] or len(row["offsets"]) for row in throttled)
    released = engine.decisions("released")
    delivered = engine.decisions("delivered")
    assert held == len(released) == 2
    assert {row["bucket"] for row in throttled} == {"openai"}
    assert [row["wait_throttle_ms"] for row in delivered if row["wait_throttle_ms"]] == [
        row["held_ms"] for row in released
    ]
    assert delivered[0]["throttle_keys"] == ["openai"]


def test_the_wait_of_a_paused_key_is_nobodys_but_the_pauses(engine):
    engine.enqueue("orders", headers={"tenant": "acme"})
    policy = admin.SetKeyPolicyRequest(queue="orders", fairness_key="acme", paused=True)
    engine.call(commands.SET_KEY_POLICY, policy, admin.SetKeyPolicyResponse)
    engine.sleep(700)
    policy.paused = False
    engine.call(commands.SET_KEY_POLICY, policy, admin.SetKeyPolicyResponse)
    engine.lease("orders")
    (row,) = engine.decisions("delivered")

    assert (row["wait_held_ms"], row["wait_throttle_ms"], row["wait_no_consumer_ms"]) == (700, 0, 0)


def test_a_limit_is_a_change(engine):
    engine.set_config("throttle.openai", "4.5,10")
    row = engine.table(columns.CHANGES).to_pylist()[-1]
    assert (row["kind"], row["name"], row["rate"], row["burst"]) == ("limit", "openai", 4.5, 10.0)


def test_what_is_dropped_says_why(engine):
    purged = engine.enqueue("orders")
    engine.call(commands.PURGE_QUEUE, admin.PurgeQueueRequest(queue="orders"), admin.PurgeQueueResponse)
    short_lived = engine.enqueue("orders", ttl_ms=1000)
    engine.sleep(1500)

    assert engine.story(purged) == ["enqueued", "dropped"]
    assert engine.story(short_lived) == ["enqueued", "dropped"]
    assert [row["reason"] for row in engine.decisions("dropped")] == ["purge", "ttl"]


def _changes(engine, *kinds):
    return [row for row in engine.table(columns.CHANGES).to_pylist() if row["kind"] in kinds]


def test_a_queues_settings_are_told_whenever_they_change(engine):
    update = admin.UpdateQueueRequest(
        queue="orders", config=admin.QueueConfig(max_attempts=7, weights={"acme": 3})
    )
    engine.call(commands.UPDATE_QUEUE, update, admin.UpdateQueueResponse)
    engine.call(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="orders"), admin.DeleteQueueResponse)

    created, updated, deleted = (
        row
        for row in _changes(engine, "queue_created", "queue_updated", "queue_deleted")
        if row["queue"] == "orders"
    )
    assert json.loads(created["value"])["fairness_key_header"] == "tenant"
    settings = json.loads(updated["value"])
    assert (settings["max_attempts"], settings["weights"]) == (7, {"acme": 3})
    assert deleted["value"] is None


def test_channels_and_where_they_begin_are_told(engine):
    for _ in range(3):
        engine.enqueue("orders")
    made = admin.CreateChannelRequest(queue="orders", channel="audit", oldest=True)
    engine.call(commands.CREATE_CHANNEL, made, admin.CreateChannelResponse)
    sought = admin.SeekChannelRequest(queue="orders", channel="audit", offset=3)
    engine.call(commands.SEEK_CHANNEL, sought, admin.SeekChannelResponse)
    gone = admin.DeleteChannelRequest(queue="orders", channel="audit")
    engine.call(commands.DELETE_CHANNEL, gone, admin.DeleteChannelResponse)

    told = _changes(engine, "channel_created", "channel_sought", "channel_deleted")
    assert [(row["kind"], row["channel"], row["value"]) for row in told] == [
        ("channel_created", "audit", "1"),
        ("channel_sought", "audit", "3"),
        ("channel_deleted", "audit", None),
    ]


def test_a_keys_policy_is_told(engine):
    wanted = admin.SetKeyPolicyRequest(
        queue="orders", fairness_key="acme", weight=5, paused=True, max_in_flight=9, rate_per_second=2.5
    )
    engine.call(commands.SET_KEY_POLICY, wanted, admin.SetKeyPolicyResponse)

    (row,) = _changes(engine, "key")
    assert (row["queue"], row["name"], row["rate"], row["burst"]) == ("orders", "acme", 2.5, 2.5)
    assert json.loads(row["value"]) == {"weight": 5, "paused": True, "cap": 9}


def test_consumers_and_their_room_are_told(engine):
    session = DrivenSession(engine, "orders", max_in_flight=100, name="worker-7")
    session.say(window={"size": 30})
    session.say(window={"size": 30})
    session.say(close={})

    told = _changes(engine, "consumer_joined", "consumer_room", "consumer_left")
    assert [(row["kind"], json.loads(row["value"])["room"]) for row in told] == [
        ("consumer_joined", 100),
        ("consumer_room", 30),
        ("consumer_left", 30),
    ]
    assert {(row["queue"], row["channel"], row["name"]) for row in told} == {
        ("orders", "default", "worker-7")
    }
    assert {json.loads(row["value"])["consumer"] for row in told} == {session.opened.consumer_id}


def test_a_seek_drops_what_waits_and_brings_it_back(engine):
    engine.create_queue("log", retention=admin.Retention(soft_period_ms=3_600_000))
    offset = engine.enqueue("log")
    engine.ack("log", engine.lease("log"))
    request = admin.SeekChannelRequest(queue="log", channel="default", offset=offset)
    engine.call(commands.SEEK_CHANNEL, request, admin.SeekChannelResponse)

    assert engine.story(offset, queue="log") == ["enqueued", "delivered", "acked", "rewound"]
    assert engine.pending("log", "default") == 1


def test_the_history_adds_up_to_what_the_broker_says_is_pending(engine):
    for number in range(40):
        engine.enqueue("orders", headers={"tenant": f"t{number % 4}"})
    leased = engine.lease("orders", most=20)
    engine.ack("orders", leased[:10])
    engine.nack("orders", leased[10:15], delay_ms=1000)
    stats = engine.stats("orders")

    assert engine.pending("orders", "default") == stats.depth + stats.in_flight == 30


def test_one_message_in_so_many_has_all_that_was_decided_about_it():
    engine = RecordedEngine({"history.sample": 4})
    engine.create_queue("orders")
    for _ in range(400):
        engine.enqueue("orders")
    while leased := engine.lease("orders", most=100):
        engine.ack("orders", leased)
    stories = {row["offset"]: engine.story(row["offset"]) for row in engine.decisions("enqueued")[:5]}
    assert 60 < len(engine.decisions("enqueued")) < 140
    assert set(map(tuple, stories.values())) == {("enqueued", "delivered", "acked")}
    engine.remove()


def test_a_full_ring_of_blocks_is_emptied_counted_and_told_in_the_next_block(engine):
    recording = engine.core.recording
    for _ in range(12):
        engine.enqueue("orders")
        recording.cut()
        engine.run_pass()
        engine.advance(1000)
    gaps = []
    while (block := recording.take()) is not None:
        gaps.append(block.gap[0])
        block.give_back()
    engine.enqueue("orders")
    recording.cut()
    engine.run_pass()
    block = recording.take()

    assert recording.dropped > 0
    assert sum(gaps) == 0
    assert block.gap[0] == recording.dropped
    assert block.gap[1] < block.gap[2] <= block.times[0]
    block.give_back()


def test_a_core_without_a_history_records_nothing():
    engine = RecordedEngine({"history.enabled": False})
    assert engine.core.recording is None
    engine.remove()


def _enum(page: str, name: str) -> list[str]:
    text = (CORE / page).read_text().partition(f"cdef enum {name}:\n")[2].partition("\n\n")[0]
    return re.findall(r"^    (\w+) = \d+", text, re.MULTILINE)


def test_the_numbers_of_the_core_are_the_words_of_the_files():
    kinds = [
        word.lower().replace("delayed_for", "delayed") for word in _enum("decisions.pxd", "DecisionKind")
    ]
    inputs = [word.lower().removeprefix("input_") for word in _enum("inputs.pxd", "InputKind")]
    changes = [word.lower().removeprefix("changed_") for word in _enum("changes.pxd", "ChangeKind")]
    assert ("", *kinds) == columns.KINDS
    assert ("", *inputs) == columns.INPUT_KINDS
    assert ("", *changes) == columns.CHANGE_KINDS
