"""A recording under another policy: who would have waited less; what a model cannot tell is refused in a sentence."""

import struct
from collections.abc import Iterator

import pyarrow as pa
import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.history_files import columns
from fila_server.modelling import course
from fila_server.modelling.policy import PER_TENANT, Policy, PolicyRefused, read_policy
from fila_server.modelling.routings import without_keys
from fila_server.modelling.served import NOT_RECORDED, Served, Tenants
from tests.core.driven_session import DrivenSession
from tests.core.sink_client import SinkClient
from tests.recording.recorded import RecordedEngine
from tests.recording.test_replay import busy


def tables(engine: RecordedEngine):
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    engine.remove()
    return inputs, decisions


def came(recorded, policy: str | None = None, seed: int = 0, slowness: float = 1.0) -> course.Came:
    inputs, decisions = recorded
    return course.run([inputs], [decisions], read_policy(policy) if policy else Policy(), seed, slowness)


def rows(came_of: course.Came):
    return {row["fairness_key"]: row for row in came_of.served}


def happened(recorded):
    served = Served()
    served.take(recorded[1])
    return {row["fairness_key"]: row for row in served.rows()}


def contended(settings: dict[str, str] | None = None, **config) -> RecordedEngine:
    """Two tenants with a backlog, and one consumer that takes a message each 100 ms."""
    engine = RecordedEngine(settings)
    engine.create_queue("orders", fairness_key_header="tenant", **config)
    for _ in range(30):
        for tenant in ("acme", "globex"):
            engine.enqueue("orders", headers={"tenant": tenant, "provider": "openai"})
    engine.sleep(50)
    for _ in range(60):
        leased = engine.lease("orders", most=1)
        engine.sleep(100)
        if leased:
            engine.ack("orders", leased)
    return engine


@pytest.fixture
def two_tenants():
    return tables(contended())


def test_under_the_recorded_policy_the_model_is_what_happened(two_tenants):
    recorded, model = happened(two_tenants), rows(came(two_tenants))
    for tenant in ("acme", "globex"):
        assert model[tenant]["delivered"] == recorded[tenant]["delivered"] == 30
        assert model[tenant]["acked"] == 30
        assert model[tenant]["p99_ms"] == pytest.approx(recorded[tenant]["p99_ms"], abs=100)


def test_a_larger_weight_lets_a_tenant_wait_less(two_tenants):
    before = rows(came(two_tenants))
    after = rows(came(two_tenants, "[queues.orders]\nweights = { acme = 9 }\n"))
    assert after["acme"]["mean_ms"] < 0.75 * before["acme"]["mean_ms"]
    assert after["globex"]["mean_ms"] > 1.2 * before["globex"]["mean_ms"]


def flooded(**config) -> RecordedEngine:
    """A tenant with thirty messages, then another one with five, and one consumer that takes a message each 100 ms."""
    engine = RecordedEngine()
    engine.create_queue("orders", fairness_key_header="tenant", **config)
    for tenant in ["flood"] * 30 + ["acme"] * 5:
        engine.enqueue("orders", headers={"tenant": tenant})
    for _ in range(35):
        leased = engine.lease("orders", most=1)
        engine.sleep(100)
        engine.ack("orders", leased)
    return engine


def fifo(recorded) -> course.Came:
    inputs, decisions = recorded
    return course.run([inputs], [decisions], Policy(fifo=True), 0)


def test_first_in_first_out_the_last_tenant_waits_for_all_before_it_and_keeps_its_name():
    recorded = tables(flooded(weights={"acme": 3}))
    fair, came_fifo = rows(came(recorded)), fifo(recorded)
    assert fair["acme"]["max_ms"] < 1_000
    assert set(rows(came_fifo)) == {"acme", "flood"}
    acme = rows(came_fifo)["acme"]
    assert (acme["delivered"], acme["acked"], acme["max_ms"]) == (5, 5, 3_400)
    assert rows(came_fifo)["flood"]["max_ms"] == 2_900
    assert came_fifo.waited_before == 0


def test_first_in_first_out_leaves_out_every_setting_that_is_about_a_key():
    """A new one that belongs here, or to those that hold in any order, has to be named."""
    settings = admin.QueueConfig.DESCRIPTOR.fields_by_name
    about_keys = {name for name in settings if "key" in name or "weight" in name} - {"throttle_key_headers"}
    assert about_keys == set(PER_TENANT)
    recorded = admin.QueueConfig(
        fairness_key_header="tenant", weight_header="w", weights={"acme": 3}, key_order=admin.KEY_ORDER_STRICT
    )
    recorded.key_defaults.max_in_flight = 1
    recorded.key_limit = "tenant:"
    left = Policy(fifo=True).config("orders", recorded)
    nothing = Policy().config("orders", admin.QueueConfig())
    assert not [name for name in PER_TENANT if getattr(left, name) != getattr(nothing, name)]


def test_what_an_operator_set_for_a_tenant_does_not_hold_first_in_first_out():
    engine = RecordedEngine()
    engine.create_queue("orders", fairness_key_header="tenant")
    pause = admin.SetKeyPolicyRequest(queue="orders", fairness_key="default", paused=True)
    engine.call(commands.SET_KEY_POLICY, pause, admin.SetKeyPolicyResponse)
    engine.enqueue("orders", headers={"tenant": "acme"})
    engine.ack("orders", engine.lease("orders"))
    recorded = tables(engine)
    assert rows(fifo(recorded))["acme"]["acked"] == 1


def test_a_key_that_a_hook_gave_does_not_count_first_in_first_out():
    engine = RecordedEngine()
    engine.create_queue("orders")
    for key in [b"flood"] * 5 + [b"acme"]:
        request = service.EnqueueRequest(queue="orders", payload=b"x")
        parsed = engine.core.parse(commands.ENQUEUE, request.SerializeToString())
        routing = struct.pack(">BBHdH", 1, 0, 1, 1.0, len(key)) + key
        parsed.route([0], 0, 1, routing, 0)
        engine.tokens += 1
        engine.core.submit_parsed(engine.tokens, parsed)
        engine.settle_down()
    for _ in range(6):
        engine.ack("orders", engine.lease("orders", most=1))
        engine.sleep(100)
    recorded = tables(engine)
    assert rows(came(recorded))["acme"]["max_ms"] <= 100
    assert rows(fifo(recorded))["acme"]["max_ms"] == 500


def test_messages_that_waited_before_are_counted_since_they_keep_their_turn():
    engine = RecordedEngine()
    engine.create_queue("orders", fairness_key_header="tenant")
    for tenant, size in (("acme", 1), ("globex", 125), ("acme", 20_000)):
        engine.enqueue("orders", b"x" * size, headers={"tenant": tenant})
    engine.take()
    engine.kill()
    engine.kept.clear()
    engine.reopen()
    engine.ack("orders", engine.lease("orders", most=3))
    found = fifo(tables(engine))
    assert found.waited_before == 3
    assert {tenant: row["acked"] for tenant, row in rows(found).items()} == {"acme": 2, "globex": 1}


def test_whose_message_nobody_recorded_is_told_as_that():
    _, decisions = tables(flooded())
    others = decisions.set_column(
        decisions.column_names.index("queue"), "queue", pa.array(["other"] * len(decisions))
    )
    served, tenants = Served(known := Tenants()), known
    tenants.take(others)
    served.take(decisions)
    assert {row["fairness_key"] for row in served.rows()} == {NOT_RECORDED}


def test_what_was_served_while_two_tenants_waited_is_counted_apart(two_tenants):
    """Both have a backlog until the last second: nearly all of it is contended, half of it each."""
    found = happened(two_tenants)
    assert found["acme"]["contended_cost"] == pytest.approx(found["globex"]["contended_cost"], abs=1)
    assert 25 <= found["acme"]["contended_cost"] < found["acme"]["cost"] == 30
    alone = happened(tables(contended_by_one()))
    assert alone["acme"]["contended_cost"] == 0 < alone["acme"]["cost"]


def contended_by_one() -> RecordedEngine:
    engine = RecordedEngine()
    engine.create_queue("orders", fairness_key_header="tenant")
    for _ in range(30):
        engine.enqueue("orders", headers={"tenant": "acme"})
    for _ in range(30):
        engine.ack("orders", engine.lease("orders", most=1))
        engine.sleep(100)
    return engine


def test_a_routing_loses_its_fairness_key_and_nothing_else():
    def routing(given: int, key: bytes) -> bytes:
        return struct.pack(">BBHdH", given, 1, 7, 2.5, len(key)) + key + b"\x00\x06openai"

    def command(*routings: bytes) -> bytes:
        each = b"".join(bytes([number, len(one)]) + one for number, one in enumerate(routings))
        return bytes([len(routings)]) + each + b"\x00the bytes"

    keyed, plain = routing(15, b"acme"), routing(14, b"")
    assert without_keys(command(keyed, plain)) == command(plain, plain)
    assert without_keys(command()) == command()
    long = routing(15, b"a" * 200)
    packed = b"\x01\x00" + bytes([len(long) & 0x7F | 0x80, len(long) >> 7]) + long + b"rest"
    assert without_keys(packed) == b"\x01\x00" + bytes([len(plain)]) + plain + b"rest"


def test_a_limit_that_was_not_there_holds_messages_back():
    recorded = tables(contended(throttle_key_headers=["provider"]))
    assert rows(came(recorded))["acme"]["throttle_ms"] == 0
    limited = rows(came(recorded, "[limits]\nopenai = { rate = 4, burst = 1 }\n"))
    assert 15 < limited["acme"]["delivered"] + limited["globex"]["delivered"] < 30
    assert limited["acme"]["throttle_ms"] > 10_000


def test_what_was_recorded_of_the_named_limit_is_left_out():
    engine = contended(throttle_key_headers=["provider"])
    engine.set_config("throttle.openai", "1,1")
    for _ in range(5):
        engine.enqueue("orders", headers={"tenant": "acme", "provider": "openai"})
        engine.lease("orders")
        engine.sleep(10)
    recorded = tables(engine)
    assert rows(came(recorded))["acme"]["delivered"] < 35
    assert rows(came(recorded, '[limits]\nopenai = "none"\n'))["acme"]["delivered"] == 35


def test_fewer_attempts_make_dead_letters_of_what_failed():
    engine = RecordedEngine()
    engine.create_queue("orders", max_attempts=5)
    engine.enqueue("orders")
    engine.nack("orders", engine.lease("orders"))
    engine.sleep(60_000)
    engine.ack("orders", engine.lease("orders"))
    recorded = tables(engine)
    assert rows(came(recorded))["default"]["acked"] == 1
    given_up = rows(came(recorded, "[queues.orders]\nmax_attempts = 1\n"))["default"]
    assert (given_up["dead_lettered"], given_up.get("acked", 0)) == (1, 0)


def test_a_stream_keeps_its_room_and_is_served_again_when_it_has_settled():
    engine = RecordedEngine()
    engine.create_queue("q", fairness_key_header="tenant")
    session = DrivenSession(engine, max_in_flight=2, tracks_begun=False)
    for _ in range(8):
        engine.enqueue("q", headers={"tenant": "acme"})
    for number in range(8):
        session.read()
        engine.sleep(200)
        session.say(ack={"sequence": number + 1, "lease_ids": session.lease_ids(number)})
    recorded = tables(engine)
    model = rows(came(recorded))["acme"]
    assert (model["delivered"], model["acked"]) == (8, 8)
    assert model["p99_ms"] == pytest.approx(happened(recorded)["acme"]["p99_ms"], abs=200)


def test_a_stream_stays_until_as_many_were_delivered_though_consumers_are_slower():
    """It left when all was served; slower ones are not as far by then, and who waits longest would be left out."""
    engine = RecordedEngine()
    engine.create_queue("q", fairness_key_header="tenant")
    session = DrivenSession(engine, max_in_flight=1, tracks_begun=False)
    for _ in range(20):
        engine.enqueue("q", headers={"tenant": "acme"})
    for number in range(20):
        session.read()
        engine.sleep(5_000)
        session.say(ack={"sequence": number + 1, "lease_ids": session.lease_ids(number)})
    session.breaks()
    engine.sleep(1_000)
    recorded = tables(engine)
    model = {slowness: rows(came(recorded, slowness=slowness))["acme"] for slowness in (1.0, 1.5)}
    assert [model[slowness]["delivered"] for slowness in model] == [20, 20]
    assert model[1.0]["max_ms"] == pytest.approx(95_000, abs=200)
    assert model[1.5]["max_ms"] == pytest.approx(142_500, abs=200)


def test_a_stream_stays_for_as_long_again_at_most():
    engine = RecordedEngine()
    engine.create_queue("q")
    session = DrivenSession(engine, max_in_flight=1, tracks_begun=False)
    for _ in range(10):
        engine.enqueue("q")
    for number in range(10):
        session.read()
        engine.sleep(1_000)
        session.say(ack={"sequence": number + 1, "lease_ids": session.lease_ids(number)})
    session.breaks()
    assert rows(came(tables(engine), slowness=4.0))["default"]["delivered"] == 5


def test_a_busy_recording_is_modelled_to_its_end():
    engine = RecordedEngine()
    busy(engine)
    recorded = tables(engine)
    one, same, other = came(recorded), came(recorded), came(recorded, seed=3)
    assert one == same
    delivered = sum(row["delivered"] for row in happened(recorded).values())
    for model in (one, other):
        assert sum(row.get("delivered", 0) for row in model.served) == pytest.approx(delivered, rel=0.2)


def in_single_rows(inputs: pa.Table) -> Iterator[pa.Table]:
    """As blocks would hand it over that were full after each row, and in the middle of each command's bytes."""
    for row in inputs.to_pylist():
        data = row["data"] or b""
        halves = [row]
        if row["kind"] == "command" and len(data) > 1:
            halves = [row | {"data": data[:1], "goes_on": True}, row | {"data": data[1:]}]
        for half in halves:
            yield pa.Table.from_pylist([half], schema=inputs.schema)


def test_a_pass_that_stands_in_several_blocks_is_modelled_as_one():
    """A pull for two gets both messages of the pass in which they came, and not the first of them alone."""
    engine = RecordedEngine()
    engine.create_queue("orders", fairness_key_header="tenant")
    pull = service.LeaseRequest(queue="orders", max_messages=2, wait_ms=60_000)
    engine.submit(commands.LEASE, pull)
    engine.settle_down()
    engine.advance(50)
    for tenant in ("acme", "globex"):
        request = service.EnqueueRequest(queue="orders", payload=b"x", headers={"tenant": tenant})
        engine.submit(commands.ENQUEUE, request)
    engine.settle_down()
    engine.sleep(100)
    inputs, decisions = tables(engine)
    whole = came((inputs, decisions))

    parts = course.run(in_single_rows(inputs), [decisions], Policy(), 0)
    assert {tenant: row["delivered"] for tenant, row in rows(whole).items()} == {"acme": 1, "globex": 1}
    assert parts == whole


SCRIPT = """
[queues.orders]
on_enqueue_script = "function on_enqueue(msg) return { fairness_key = 'all' } end"
"""


def test_a_script_is_tried_in_the_sandbox_where_headers_were_recorded():
    recorded = tables(contended({"history.headers": "all"}))
    assert set(rows(came(recorded, SCRIPT))) == {"all"}


def test_a_script_without_the_headers_that_it_reads_is_refused_in_a_sentence(two_tenants):
    with pytest.raises(PolicyRefused, match=r'made with history\.headers = "policy"; record with "all"'):
        came(two_tenants, SCRIPT)


def test_a_recording_with_a_sink_is_refused_in_a_sentence():
    engine = RecordedEngine()
    engine.create_queue("q")
    SinkClient(engine).open()
    with pytest.raises(course.NotModelled, match="a sink wrote to the recorded broker"):
        came(tables(engine))


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("", "the policy changes nothing"),
        ("[queues.orders]\nmax_atempts = 1\n", r"queues\.orders\.max_atempts: a queue has no such setting"),
        ("[queues.orders]\nmax_attempts = 'x'\n", "max_attempts"),
        ("[queues.orders]\nchannels = ['a']\n", "is set when a queue is made"),
        ("[limits]\nopenai = { rate = -1, burst = 1 }\n", r"limits\.openai must be"),
        ("[limits]\nopenai = 5\n", r"limits\.openai must be"),
        ("[buckets]\n", "a policy has the tables queues and limits"),
        ("queues =", "the policy is no TOML"),
    ],
)
def test_a_policy_that_is_none_is_refused_with_its_field(policy, said):
    with pytest.raises(PolicyRefused, match=said):
        read_policy(policy)


def test_a_setting_that_no_queue_may_have_is_refused(two_tenants):
    with pytest.raises(PolicyRefused, match=r"queues\.orders: .*visibility_timeout_ms"):
        came(two_tenants, "[queues.orders]\nvisibility_timeout_ms = 1\n")


def test_short_words_are_taken_for_settings_that_have_names():
    retry = read_policy("[queues.q]\nretry = { kind = 'fixed', base_ms = 5 }\n").queues["q"].retry
    assert (retry.kind, retry.base_ms) == (2, 5)
