"""A change of settings that is only tried: it says what enqueuing the same messages really does."""

from __future__ import annotations

import random

import grpc
import pytest

from fila.v1 import admin_pb2 as pb
from fila.v1 import service_pb2
from fila.v1.messages_pb2 import Message
from fila_server.operations.dry_run import newest

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SCRIPT = """
function on_enqueue(m)
  if m.headers.tenant == "bad" then error("no such tenant") end
  if m.headers.tenant == "acme" then
    return {fairness_key = "vip", weight = 7, cost = 2.5, throttle_keys = {"mail", "sms"}}
  end
  return {weight = 5000}
end
"""
HEADERS = [
    {},
    {"tenant": "acme", "w": "3", "c": "2"},
    {"tenant": "bravo", "w": "1e3", "c": "0.0004", "to": "mail"},
    {"tenant": "bad", "w": "0", "c": "x", "to": ""},
    {"tenant": "charlie", "w": " 9", "c": "1000001", "to": "mail", "also": "sms"},
    {"tenant": "delta", "w": "nan", "c": "-1", "to": "sms", "also": "sms"},
    {"tenant": "echo", "fila-tenant": "bound", "w": "9", "to": "mail"},
    {"tenant": "fox", "w": "2.9", "c": "2.0005"},
    {"tenant": "ail", "to": "mail"},
]
DECLARED = {
    "fairness_key_header": "tenant",
    "weight_header": "w",
    "cost_header": "c",
    "throttle_key_headers": ["to", "also"],
}


def enqueue(server, queue: str) -> None:
    messages = [service_pb2.EnqueueMessage(headers=each, payload=b"x") for each in HEADERS]
    server.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(queue=queue, messages=messages))


def routed(server, queue: str):
    log = server.admin.ReadLog(pb.ReadLogRequest(queue=queue))
    return [
        (
            each.metadata.fairness_key,
            each.metadata.weight,
            each.metadata.cost,
            list(each.metadata.throttle_keys),
        )
        for piece in log
        for each in piece.messages
    ]


def shown(routing: pb.DryRunRouting):
    return (routing.fairness_key, routing.weight, routing.cost, list(routing.throttle_keys))


LIMITED = {**DECLARED, "key_limit": "m"}
"""With its key `ail`, a message names `mail` once, whatever its headers say."""


@pytest.mark.parametrize(
    "settings",
    [
        DECLARED,
        {**DECLARED, "on_enqueue_script": SCRIPT},
        {},
        LIMITED,
        {**LIMITED, "on_enqueue_script": SCRIPT},
    ],
)
def test_what_a_dry_run_says_is_what_an_enqueue_does(server, queue, settings):
    enqueue(server, queue)
    before = routed(server, queue)

    told = server.admin.DryRunPolicy(
        pb.DryRunPolicyRequest(
            queue=queue, config=pb.QueueConfig(**settings), update_mask={"paths": list(settings)}
        )
    )

    assert [shown(each.before) for each in told.messages] == before
    other = f"{queue[:200]}-real"
    server.admin.CreateQueue(pb.CreateQueueRequest(name=other, config=pb.QueueConfig(**settings)))
    enqueue(server, other)
    after = routed(server, other)
    # A key's weight is that of its newest message: compare each message's own.
    assert [shown(each.after)[:1] + shown(each.after)[2:] for each in told.messages] == [
        each[:1] + each[2:] for each in after
    ]
    newest = {each[0]: each[1] for each in after}
    assert {shown(each.after)[0]: shown(each.after)[1] for each in told.messages} == newest
    errors = [each.error for each in told.messages if each.error]
    assert len(errors) == (1 if "on_enqueue_script" in settings else 0)
    assert (told.retained, told.cut) == (len(HEADERS), False)
    assert routed(server, queue) == before, "nothing has changed"


def test_dead_letters_are_judged_by_the_new_script(server, queue):
    enqueue(server, queue)
    leased = server.service.Lease(service_pb2.LeaseRequest(queue=queue, max_messages=9)).messages
    items = [
        service_pb2.SettleItem(
            message_id=each.id, lease_id=each.metadata.lease_id, dead_letter=True, error="gone"
        )
        for each in leased
    ]
    server.service.NackBatch(service_pb2.NackBatchRequest(queue=queue, items=items))
    script = """
    function on_failure(m)
      if m.headers.tenant == "acme" then return {action = "retry", delay_ms = 700} end
      if m.headers.tenant == "bravo" then error("what now") end
      return {action = "dlq"}
    end
    """
    told = server.admin.DryRunPolicy(
        pb.DryRunPolicyRequest(
            queue=queue,
            config=pb.QueueConfig(on_failure_script=script),
            update_mask={"paths": ["on_failure_script"]},
        )
    )
    said = sorted((each.action, each.delay_ms, bool(each.error)) for each in told.dead_letters)
    assert said == sorted([("retry", 700, False), ("", 0, True), *[("dlq", 0, False)] * 7])


def test_what_is_wrong_with_a_dry_run_is_said(server, queue):
    broken = pb.QueueConfig(on_enqueue_script="function on_enqueue(")
    for request, sentence in (
        (pb.DryRunPolicyRequest(queue="nowhere"), "does not exist"),
        (pb.DryRunPolicyRequest(queue=queue, last=1001), "last must be at most 1000, got 1001"),
        (
            pb.DryRunPolicyRequest(queue=queue, config=broken, update_mask={"paths": ["on_enqueue_script"]}),
            "on_enqueue",
        ),
    ):
        with pytest.raises(grpc.RpcError, match=sentence):
            server.admin.DryRunPolicy(request)


def test_after_a_crash_the_newest_messages_are_found_across_the_offsets_it_left_out(start_server, tmp_path):
    server = start_server()
    server.admin.CreateQueue(pb.CreateQueueRequest(name="q", config=pb.QueueConfig(max_attempts=1)))
    enqueue(server, "q")
    (leased,) = server.service.Lease(service_pb2.LeaseRequest(queue="q", max_messages=1)).messages
    server.service.Nack(
        service_pb2.NackRequest(queue="q", message_id=leased.id, lease_id=leased.metadata.lease_id)
    )
    server.process.kill()
    server.process.wait()
    server = start_server()
    asked = pb.DryRunPolicyRequest(
        queue="q",
        config=pb.QueueConfig(on_failure_script="function on_failure(m) return {action = 'dlq'} end"),
        update_mask={"paths": ["on_failure_script"]},
    )

    told = server.admin.DryRunPolicy(asked)
    assert [each.offset for each in told.messages] == list(range(1, len(HEADERS) + 1))
    assert (told.retained, len(told.dead_letters)) == (len(HEADERS), 1)

    enqueue(server, "q")
    asked.last = len(HEADERS) + 2
    offsets = [each.offset for each in server.admin.DryRunPolicy(asked).messages]
    assert offsets[:2] == [len(HEADERS) - 1, len(HEADERS)]
    assert len(offsets) == len(HEADERS) + 2
    assert offsets[2] > 1_000, "or there is no gap to be crossed"


@pytest.mark.parametrize("seed", range(20))
async def test_the_newest_messages_are_the_last_of_all_whatever_gaps_there_are(seed: int):
    chance = random.Random(seed)
    head = chance.choice([2, 30, 3_000])
    there = sorted(chance.sample(range(1, head), chance.randrange(0, min(head - 1, 40))))
    if chance.random() < 0.5:
        head += 1_000_000
    reads: list[int] = []

    async def read(first: int, most: int) -> list[Message]:
        reads.append(first)
        found = [offset for offset in there if offset >= first][:most]
        return [Message(metadata={"offset": offset}) for offset in found]

    for most in (1, 2, 7, 100):
        oldest = there[0] if there and chance.random() < 0.5 else 1
        reads.clear()
        found = await newest(read, oldest, head, most)
        assert [each.metadata.offset for each in found] == there[-most:]
        assert len(reads) < 50
