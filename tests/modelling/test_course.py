"""A recording under another policy: who would have waited less; what a model cannot tell is refused in a sentence."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.history_files import columns
from fila_server.modelling import course
from fila_server.modelling.policy import Policy, PolicyRefused, read_policy
from fila_server.modelling.served import Served
from tests.core.driven_session import DrivenSession
from tests.core.sink_client import SinkClient
from tests.recording.recorded import RecordedEngine
from tests.recording.test_replay import busy


def tables(engine: RecordedEngine):
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    engine.remove()
    return inputs, decisions


def came(recorded, policy: str | None = None, seed: int = 0) -> course.Came:
    inputs, decisions = recorded
    return course.run([inputs], [decisions], read_policy(policy) if policy else Policy(), seed)


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
