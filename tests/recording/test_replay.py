"""A recording fed to the core gives the decisions that were recorded; an altered one is refused."""

import json
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.core.replay.replay import NotReplayable
from fila_server.history_files import columns, replaying
from tests.core.sink_client import SinkClient
from tests.native.storeprobe import StoreProbe
from tests.recording.recorded import ENDS, RecordedEngine, in_flight


def busy(engine: RecordedEngine, seed: int = 3, steps: int = 150, *, makes: bool = True) -> None:
    """Tenants, a bucket, failures, delays, restarts of nothing: something of each kind of command.

    makes: make the queue first.
    """
    chance = random.Random(seed)
    if makes:
        engine.create_queue(
            "orders", fairness_key_header="tenant", throttle_key_headers=["provider"], max_attempts=3
        )
        engine.set_config("throttle.openai", "20,5")
    leased = []
    for _ in range(steps):
        action = chance.random()
        tenant = f"t{chance.randrange(5)}"
        if action < 0.5:
            headers = {"tenant": tenant, "secret": "not to be kept"}
            if chance.random() < 0.3:
                headers["provider"] = "openai"
            engine.enqueue("orders", b"x" * chance.randrange(2000), headers)
        elif action < 0.7:
            leased += engine.lease("orders", most=chance.randrange(1, 10))
        elif action < 0.85 and leased:
            engine.ack("orders", [leased.pop()])
        elif action < 0.92 and leased:
            engine.nack("orders", [leased.pop()], delay_ms=chance.choice([0, 200]))
        else:
            engine.sleep(chance.randrange(1, 400))


@pytest.fixture
def recorded():
    engine = RecordedEngine()
    busy(engine)
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    engine.remove()
    return inputs, decisions


def test_a_recording_is_followed_decision_by_decision(recorded):
    inputs, decisions = recorded
    outcome = replaying.verify([inputs], [decisions])
    assert outcome.difference is None
    assert outcome.decisions > 150
    assert outcome.messages_delivered > 30


def test_each_delivery_ends_once_or_is_in_flight_as_the_broker_says():
    engine = RecordedEngine()
    busy(engine)
    stats = engine.stats("orders")
    decisions = engine.table(columns.DECISIONS)
    engine.remove()

    counted = Counter(replaying.flat(decisions).column("kind").to_pylist())
    out = in_flight([decisions])
    assert 0 < len(out) == stats.in_flight
    assert counted["delivered"] == stats.leased_total == sum(counted[kind] for kind in ENDS) + len(out)


def test_a_delivery_or_an_end_that_the_history_lacks_is_found(recorded):
    """Whether the books above can fail at all."""
    _, decisions = recorded

    def lacking(kind: str) -> tuple[pa.Table, int]:
        rows = decisions.to_pylist()
        chosen = next(row for row in rows if row["kind"] == kind)
        rows.remove(chosen)
        return pa.Table.from_pylist(rows, schema=decisions.schema), len(chosen["offsets"])

    without_delivery, _ = lacking("delivered")
    with pytest.raises(AssertionError, match="nobody had it"):
        in_flight([without_delivery])
    without_end, messages = lacking("acked")
    assert len(in_flight([without_end])) == len(in_flight([decisions])) + messages


def test_a_broker_whose_first_start_ended_early_is_replayed_as_one_that_did_not_make_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    StoreProbe(str(tmp_path)).close()  # its format is written down, and no lease id is reserved yet
    monkeypatch.setattr("tests.core.driven_engine._families", lambda: tmp_path / "rocksdb")
    engine = RecordedEngine()
    busy(engine)
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    engine.remove()

    assert replaying.verify([inputs], [decisions]).difference is None


def test_a_broker_that_was_started_again_is_replayed_from_what_it_found():
    engine = RecordedEngine()
    busy(engine)
    engine.table(columns.INPUTS)
    engine.kill()
    engine.kept.clear()
    engine.reopen()
    for _ in range(5):
        engine.ack("orders", engine.lease("orders", most=5))
        engine.sleep(1000)
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    engine.remove()

    assert replaying.verify([inputs], [decisions]).difference is None


def test_payloads_and_headers_that_nobody_named_are_not_in_a_recording(recorded):
    inputs, _ = recorded
    data = b"".join(value for value in inputs.column("data").to_pylist() if value)
    assert b"not to be kept" not in data
    assert b"xxxxxxxx" not in data
    assert b"openai" in data


def altered(inputs: pa.Table, kind: str, change) -> pa.Table:
    """The same rows, the one in the middle of its kind changed."""
    rows = inputs.to_pylist()
    of_kind = [row for row in rows if row["kind"] == kind]
    change(of_kind[len(of_kind) // 2])
    return pa.Table.from_pylist(
        [row for row in rows if row.get("kind")], schema=columns.SCHEMAS[columns.INPUTS]
    )


def _command_of(inputs: pa.Table, kind: int, change) -> pa.Table:
    rows = inputs.to_pylist()
    of_kind = [row for row in rows if row["kind"] == "command" and row["a"] == kind]
    change(of_kind[len(of_kind) // 2])
    return pa.Table.from_pylist(
        [row for row in rows if row.get("kind")], schema=columns.SCHEMAS[columns.INPUTS]
    )


def _refused(inputs: pa.Table, decisions: pa.Table) -> str:
    try:
        outcome = replaying.verify([inputs], [decisions])
    except (NotReplayable, replaying.NoBase) as error:
        return str(error)
    assert outcome.difference is not None
    return str(outcome.difference)


ALTERATIONS = {
    "a pass that is missing": lambda inputs: altered(inputs, "pass", lambda row: row.update(kind=None)),
    "a pass whose clock stood still": lambda inputs: altered(
        inputs, "pass", lambda row: row.update(a=row["a"] - 10_000_000_000)
    ),
    "a pass that saw more on disk": lambda inputs: altered(
        inputs, "pass", lambda row: row.update(b=row["b"] + 1000)
    ),
    "a command that is missing": lambda inputs: _command_of(
        inputs, commands.ENQUEUE, lambda row: row.update(kind=None)
    ),
    "a message of another tenant": lambda inputs: _command_of(
        inputs,
        commands.ENQUEUE,
        lambda row: row.update(data=row["data"].replace(b"\x12\x02t", b"\x12\x02u")),
    ),
    "an ack that is missing": lambda inputs: _command_of(
        inputs, commands.ACK_BATCH, lambda row: row.update(kind=None)
    ),
    "a command's token": lambda inputs: _command_of(
        inputs, commands.LEASE, lambda row: row.update(token=row["token"] + 1_000_000)
    ),
    "bytes that are cut short": lambda inputs: _command_of(
        inputs, commands.ENQUEUE, lambda row: row.update(data=row["data"][:-3])
    ),
    "a write that failed": lambda inputs: altered(
        inputs, "command", lambda row: row.update(kind="write", a=0, b=2)
    ),
    "a frame that was never read": lambda inputs: altered(
        inputs, "command", lambda row: row.update(kind="load", a=1, b=10, c=0, data=b"")
    ),
    "a base without its end": lambda inputs: altered(inputs, "base_ends", lambda row: row.update(kind=None)),
    "a base with another seed": lambda inputs: altered(
        inputs,
        "base",
        lambda row: row.update(data=json.dumps(json.loads(row["data"]) | {"seed": 12345}).encode()),
    ),
    "a base with another quantum": lambda inputs: altered(
        inputs,
        "base",
        lambda row: row.update(
            data=json.dumps(
                json.loads(row["data"])
                | {"settings": json.loads(row["data"])["settings"] | {"limits.fairness_key_bytes_max": 1}}
            ).encode()
        ),
    ),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_an_altered_input_is_refused(recorded, name):
    inputs, decisions = recorded
    changed = ALTERATIONS[name](inputs)
    assert changed.num_rows < inputs.num_rows or not changed.equals(inputs)
    assert _refused(changed, decisions)


def test_a_lease_that_asked_for_less_is_refused(recorded):
    inputs, decisions = recorded
    delivered = [row for row in decisions.to_pylist() if row["kind"] == "delivered"]
    pulls = Counter(row["consumer"] for row in delivered for _ in row["offsets"])
    got = next(row for row in delivered if pulls[row["consumer"]] > 1)
    rows = inputs.to_pylist()
    lease = next(row for row in rows if row["kind"] == "command" and row["token"] == got["consumer"])
    lease["data"] = lease["data"][:-1] + b"\x01"
    changed = pa.Table.from_pylist(rows, schema=columns.SCHEMAS[columns.INPUTS])

    assert f"in pass {got['pass']}" in _refused(changed, decisions)


def test_a_recording_of_a_core_that_favoured_a_key_is_refused(recorded):
    """As if the core had served somebody else's message first."""
    inputs, decisions = recorded
    rows = decisions.to_pylist()
    delivered = [row for row in rows if row["kind"] == "delivered"]
    one = delivered[len(delivered) // 2]
    one["fairness_key"] = "t9"
    one["offsets"] = [offset + 1 for offset in one["offsets"]]
    planted = pa.Table.from_pylist(rows, schema=columns.SCHEMAS[columns.DECISIONS])

    said = _refused(inputs, planted)
    assert str(one["pass"]) in said
    assert str(one["offsets"][0]) in said


def test_a_recording_without_its_base_says_so(recorded):
    inputs, decisions = recorded
    rest = inputs.filter(pc.greater(inputs.column("pass"), 5))
    with pytest.raises(replaying.NoBase, match="no base"):
        replaying.verify([rest], [decisions])


def test_a_dead_letter_that_is_redriven_after_a_restart_is_followed():
    engine = RecordedEngine()
    engine.create_queue("orders", max_attempts=1)
    engine.enqueue("orders", b"payload", {"a": "b"})
    engine.nack("orders", engine.lease("orders"))
    engine.kill()
    engine.kept.clear()
    engine.reopen()
    engine.sleep(10)
    fields = admin.RedriveRequest(dlq_queue="orders.dlq").SerializeToString()
    engine.submit(commands.REDRIVE_MOVE, fields)
    engine.others += engine.settle_down()
    engine.lease("orders")
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    assert "load" in inputs.column("kind").to_pylist()
    assert "redriven" in decisions.column("kind").to_pylist()
    engine.remove()

    assert replaying.verify([inputs], [decisions]).difference is None


def _staged_and_published(engine: RecordedEngine, *, restart: bool) -> None:
    """A batch in two frames; with `restart` the broker is killed between what is staged and its publication."""
    engine.create_queue("q", fairness_key_header="tenant")
    messages = [
        service.EnqueueMessage(payload=b"private" * 20, headers={"tenant": f"t{n % 3}", "secret": "not kept"})
        for n in range(50)
    ]
    client = SinkClient(engine)
    client.open()
    client.staged(0, messages[:25])
    listed = client.staged(0, messages[25:], frame=1)
    if restart:
        engine.kill()
        engine.kept.clear()
        engine.reopen()
    client.publish(0, [listed])


@pytest.mark.parametrize("restart", [False, True])
def test_what_a_sink_published_is_followed(restart):
    engine = RecordedEngine()
    _staged_and_published(engine, restart=restart)
    engine.ack("q", engine.lease("q"))
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    engine.remove()
    data = b"".join(value for value in inputs.column("data").to_pylist() if value)
    assert b"private" not in data
    assert b"not kept" not in data

    outcome = replaying.verify([inputs], [decisions])
    assert outcome.difference is None
    assert outcome.messages_delivered == 50


def test_a_batch_that_was_on_its_way_at_the_start_is_followed():
    """Killed behind the commit point: the next start finds an intent, and moves what it names."""
    engine = RecordedEngine()
    engine.create_queue("q", fairness_key_header="tenant")
    client = SinkClient(engine)
    client.open()
    listed = client.staged(0, [b"private" * 20] * 30)
    engine.submit(commands.PUBLISH, client.publish_request(0, [listed]))
    engine.run_pass()
    engine.commit()
    engine.kill()
    engine.kept.clear()
    engine.reopen()
    engine.settle_down()
    engine.lease("q")
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    engine.remove()
    assert b"private" not in b"".join(value for value in inputs.column("data").to_pylist() if value)
    assert [row["c"] >= 256 for row in inputs.to_pylist() if row["kind"] == "load"] == [True]

    outcome = replaying.verify([inputs], [decisions])
    assert outcome.difference is None
    assert outcome.messages_delivered == 30


@pytest.mark.parametrize("number", [0, 1])
def test_a_staged_frame_that_was_altered_is_refused(number):
    """Another checksum is a batch that cannot be published; another tenant is served in another turn."""
    engine = RecordedEngine()
    _staged_and_published(engine, restart=False)
    engine.lease("q")
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    engine.remove()

    def change(row):
        if number:
            row.update(data=row["data"].replace(b"\x12\x02t1", b"\x12\x02u1"))
        else:
            row.update(c=row["c"] ^ 1)

    changed = altered(inputs, "load", change) if number else _command_of(inputs, commands.STAGE, change)
    assert not changed.equals(inputs)
    assert _refused(changed, decisions)


def test_a_core_that_gave_a_tenant_more_than_its_weight_is_found_out():
    """The fault is real: the core served by a weight that its recording does not give."""
    engine = RecordedEngine()
    engine.create_queue("orders", fairness_key_header="tenant")
    favoured = admin.SetKeyPolicyRequest(queue="orders", fairness_key="acme", weight=5)
    engine.call(commands.SET_KEY_POLICY, favoured, admin.SetKeyPolicyResponse)
    for _ in range(20):
        for tenant in ("acme", "globex"):
            engine.enqueue("orders", headers={"tenant": tenant})
    for _ in range(10):
        engine.lease("orders", most=1)
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    engine.remove()
    honest = _command_of(
        inputs,
        commands.SET_KEY_POLICY,
        lambda row: row.update(data=row["data"].replace(b"\x18\x05", b"\x18\x01")),
    )

    assert replaying.verify([inputs], [decisions]).difference is None
    assert "weight recorded 5, replayed 1, of enqueued" in _refused(honest, decisions)
    unweighted = decisions.drop_columns(["weight"])
    assert "recorded delivered of orders/default key 'acme'" in _refused(honest, unweighted)


def test_a_record_of_the_base_that_was_altered_is_refused():
    """Another name for the header that the fairness key is read from."""
    engine = RecordedEngine()
    engine.create_queue("orders", fairness_key_header="tenant")
    engine.enqueue("orders", headers={"tenant": "acme"})
    engine.kill()
    engine.kept.clear()
    engine.reopen()
    engine.enqueue("orders", headers={"tenant": "acme"})
    engine.lease("orders")
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    engine.remove()
    rows = inputs.to_pylist()
    of_queue = [row for row in rows if row["kind"] == "record" and b"tenant" in row["data"]]
    assert of_queue
    for row in of_queue:
        row["data"] = row["data"].replace(b"tenant", b"tenanx")
    changed = pa.Table.from_pylist(rows, schema=inputs.schema)

    assert replaying.verify([inputs], [decisions]).difference is None
    assert "key 'acme'" in _refused(changed, decisions)


@pytest.mark.parametrize("status", [0, 8])
def test_a_frame_that_was_read_and_altered_is_refused(status):
    """Shorter than it was, or not found: what it held would be lost, and was delivered."""
    engine = RecordedEngine()
    engine.create_queue("orders")
    engine.enqueue("orders", b"payload")
    engine.kill()
    engine.kept.clear()
    engine.reopen()
    engine.sleep(10)
    engine.ack("orders", engine.lease("orders"))
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    engine.remove()
    changed = altered(
        inputs, "load", lambda row: row.update(b=-1, c=8, data=b"") if status else row.update(b=1)
    )

    assert not changed.equals(inputs)
    assert replaying.verify([inputs], [decisions]).difference is None
    assert _refused(changed, decisions)


def _taken(engine: RecordedEngine, kind: int, request) -> None:
    """Have it done, however often the store must be asked: so many bytes it writes out at the disk's own pace."""
    token = engine.submit(kind, request)
    while token not in (owner for owner, *_ in engine.others):
        engine.others += engine.settle_down()
    assert engine.answer_of(token)[0] == 0


@pytest.fixture
def found_much():
    """An engine that has just opened, and found more than all blocks hold."""
    engine = RecordedEngine()
    config = admin.QueueConfig(on_enqueue_script="-- " + "x" * 60_000)
    for number in range(400):
        _taken(engine, commands.CREATE_QUEUE, admin.CreateQueueRequest(name=f"q{number}", config=config))
        engine.take(cut=False)
    _taken(engine, commands.ENQUEUE, service.EnqueueRequest(queue="q7", payload=b"payload"))
    engine.kill()
    engine.kept.clear()
    engine.reopen()
    yield engine
    engine.remove()


BLOCKS = 8
"""As many as there are of the scheduler's (core/threads/blocks.pxd): one that it fills, and seven that are full."""


def test_blocks_that_an_opening_needed_are_none_of_the_schedulers(found_much):
    """Right behind the base it has as many as ever, though nobody has taken one yet; and never more."""
    engine, recording = found_much, found_much.core.recording
    for _ in range(2):
        dropped = recording.dropped
        for number in range(BLOCKS + 2):
            engine.enqueue("q7", b"payload")
            recording.cut()
            engine.run_pass()
            assert (recording.dropped == dropped) == (number < BLOCKS - 1)
        engine.take(cut=False)


def test_a_base_that_is_larger_than_all_blocks_is_there_in_whole(found_much):
    """Nobody takes blocks while the core opens: what it found must not be dropped for that."""
    engine = found_much
    engine.take(cut=False)  # as the recorder does, once it runs
    engine.sleep(10)
    engine.ack("q7", engine.lease("q7"))
    recording = engine.core.recording
    assert recording is not None
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    assert recording.dropped == 0
    assert sum(len(value) for value in inputs.column("data").to_pylist() if value) > 20_000_000

    outcome = replaying.verify([inputs], [decisions])
    assert outcome.difference is None
    assert outcome.messages_delivered == 1


def test_a_recording_of_before_places_were_told_is_followed():
    """Each of its rows was one key's then, so they stood in the order of decisions."""
    engine = RecordedEngine()
    engine.create_queue("orders", fairness_key_header="tenant")
    for tenant in ("acme", "globex"):
        engine.enqueue("orders", headers={"tenant": tenant})
    engine.ack("orders", engine.lease("orders", most=2))
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    engine.remove()

    outcome = replaying.verify([inputs], [decisions.drop_columns("places")])
    assert outcome.difference is None
    assert outcome.messages_delivered == 2
