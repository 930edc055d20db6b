"""What a limit learned from settlements, a replay learns from the same settlements."""

from fila.v1 import limit_pb2 as limits
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.history_files import columns, replaying
from tests.recording.recorded import RecordedEngine


def test_a_limit_that_learned_from_what_was_settled_learns_the_same_again():
    engine = RecordedEngine()
    engine.create_queue("orders", fairness_key_header="tenant", throttle_key_headers=["provider"])
    rate = limits.Rate(per_second=20, burst=2, unit=limits.Limit.UNIT_MESSAGES)
    limit = limits.Limit(name="openai", rates=[rate], learn=limits.Learn(min=1, max=100))
    engine.call(commands.SET_LIMIT, limits.SetLimitRequest(limit=limit), limits.SetLimitResponse)
    for _ in range(200):
        engine.enqueue("orders", headers={"tenant": "t1", "provider": "openai"})
    refused = service.LimitFeedback(kind=service.LimitFeedback.KIND_LIMITED, retry_after_ms=300)
    for second in range(60):
        for message in engine.lease("orders", most=20):
            item = service.SettleItem(message_id=message.id, lease_id=message.metadata.lease_id)
            if second in (3, 4, 30):
                item.feedback.append(refused)
                nacks = service.NackBatchRequest(queue="orders", items=[item])
                engine.call(commands.NACK_BATCH, nacks, service.SettleBatchResponse)
            else:
                engine.ack("orders", [message])
        engine.sleep(1000, 100)
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    engine.remove()

    outcome = replaying.verify([inputs], [decisions])
    assert outcome.difference is None
    assert outcome.messages_delivered > 50


def test_the_limit_of_each_key_is_named_again_from_what_is_kept_of_headers():
    engine = RecordedEngine({"history.headers": "policy"})
    engine.create_queue("orders", fairness_key_header="tenant", key_limit="tenant:")
    rate = limits.Rate(per_second=2, burst=2, unit=limits.Limit.UNIT_MESSAGES)
    limit = limits.Limit(name="tenant:*", rates=[rate], max_in_flight=3)
    engine.call(commands.SET_LIMIT, limits.SetLimitRequest(limit=limit), limits.SetLimitResponse)
    for i in range(60):
        engine.enqueue("orders", headers={"tenant": f"t{i % 3}", "secret": "kept by nobody"})
    for _ in range(20):
        engine.ack("orders", engine.lease("orders", most=5))
        engine.sleep(1000, 100)
    inputs, decisions = engine.table(columns.INPUTS), engine.table(columns.DECISIONS)
    engine.remove()

    outcome = replaying.verify([inputs], [decisions])
    assert outcome.difference is None
    assert outcome.messages_delivered == 60
    assert {tuple(keys) for keys in decisions["throttle_keys"].to_pylist() if keys} >= {("tenant:t1",)}
