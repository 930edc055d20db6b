"""What takes bytes of strangers: each target is a function of bytes, and inputs to begin with."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fila.v1 import service_pb2 as service
from fila.v1 import sink_pb2 as sink
from fila_server import errors
from fila_server.core.protocol import commands
from fila_server.hooks.packed import Routing
from tests.core.driven_engine import DrivenEngine
from tests.core.test_parsed_frame import pack_routings
from tests.redis.raw_client import command
from tests.redis.test_decoder import cut, decode, expected


class Target(NamedTuple):
    """`run` is called with each input, `judge` with those that reached something new."""

    begin: tuple[bytes, ...]
    run: Callable[[bytes], None]
    judge: Callable[[bytes], None]


KINDS = (
    commands.ENQUEUE,
    commands.ENQUEUE_BATCH,
    commands.ENQUEUE_STREAM,
    commands.ENQUEUE_ATOMIC,
    commands.ACK,
    commands.NACK,
    commands.ACK_BATCH,
    commands.NACK_BATCH,
    commands.EXTEND_LEASE,
    commands.LEASE,
    commands.CONSUME_OPEN,
    commands.SESSION_OPEN,
    commands.SESSION,
    commands.STAGE,
    commands.PUBLISH,
    commands.OPEN_SINK,
)


def _nothing(_data: bytes) -> None:
    pass


def wire() -> Target:
    """The one parse of every frame that clients send; the first byte says what kind."""
    engine = DrivenEngine()

    def run(data: bytes) -> None:
        if not data:
            return
        try:
            parsed = engine.core.parse(KINDS[data[0] % len(KINDS)], data[1:])
        except errors.FilaServerError:
            return
        if data[0] % len(KINDS) < 4:
            parsed.queues()
            parsed.pack(list(parsed.unrefused()), 0, 100, 1 << 20)

    message = service.EnqueueMessage(
        queue="q",
        payload=b"payload",
        headers={"k": "v", "traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"},
        options=service.EnqueueOptions(delay_ms=5, ttl_ms=1000, dedup_key="d"),
    )
    many = service.EnqueueBatchRequest(queue="q", messages=[message, message])
    item = service.SettleItem(message_id="0190a3f4-0000-7000-8000-000000000001", lease_id=7, delay_ms=1)
    settle = service.Settle(sequence=1, lease_ids=[1, 2, 3], error="no", delay_ms=5)
    opened = service.ConsumeSessionRequest.Open(queue="q", channel="c", max_in_flight=5, tracks_begun=True)
    begin = {
        commands.ENQUEUE: service.EnqueueRequest(queue="q", payload=b"p", headers=message.headers),
        commands.ENQUEUE_BATCH: many,
        commands.ENQUEUE_STREAM: service.EnqueueStreamRequest(sequence=3, batch=many),
        commands.ENQUEUE_ATOMIC: many,
        commands.ACK: service.AckRequest(queue="q", message_id=item.message_id, lease_id=7),
        commands.NACK: service.NackRequest(queue="q", message_id=item.message_id, lease_id=7, error="no"),
        commands.ACK_BATCH: service.AckBatchRequest(queue="q", items=[item]),
        commands.NACK_BATCH: service.NackBatchRequest(queue="q", items=[item, item]),
        commands.EXTEND_LEASE: service.ExtendLeaseRequest(queue="q", lease_id=7, extend_ms=1000),
        commands.LEASE: service.LeaseRequest(queue="q", max_messages=10, wait_ms=100),
        commands.CONSUME_OPEN: service.ConsumeRequest(queue="q", max_in_flight=10, max_batch=5),
        commands.SESSION_OPEN: service.ConsumeSessionRequest(open=opened),
        commands.SESSION: service.ConsumeSessionRequest(nack=settle),
        commands.STAGE: sink.StageRequest(queue="q", messages=[message], sink_id="s", epoch=1),
        commands.PUBLISH: sink.PublishRequest(sink_id="s", epoch=1, batch=2),
        commands.OPEN_SINK: sink.OpenSinkRequest(sink_id="s", run_id="r"),
    }
    seeds = [bytes((KINDS.index(kind),)) + request.SerializeToString() for kind, request in begin.items()]
    return Target(tuple(seeds), run, _nothing)


def routing() -> Target:
    """What a script's answer is packed into, on its way back to the core."""
    engine = DrivenEngine()
    frame = service.EnqueueBatchRequest(messages=[messages_of("a"), messages_of("b"), messages_of("c")])
    bytes_of_frame = frame.SerializeToString()

    def run(data: bytes) -> None:
        parsed = engine.core.parse(commands.ENQUEUE_BATCH, bytes_of_frame)
        at, start = 0, 0
        while at < 3:
            try:
                taken, problem, start = parsed.route([0, 1, 2], at, 3 - at, data, start)
            except ValueError:
                return  # its promise for what is cut short
            if problem is not None or not taken:
                return
            at += taken

    full = Routing(b"key", 5, 2.5, (b"mail", b"sms"))
    seeds = (pack_routings([full] * 3), pack_routings([Routing(), full, Routing(None, None, None, ())]))
    return Target(seeds, run, _nothing)


def messages_of(key: str) -> service.EnqueueMessage:
    """One message, to be routed."""
    return service.EnqueueMessage(queue="q", payload=b"p", headers={"k": key})


def resp() -> Target:
    """The Redis protocol's decoder; the slow one judges what is new, whole and cut in two."""

    def run(data: bytes) -> None:
        decode([data])

    def judge(data: bytes) -> None:
        asked = expected(data)
        assert decode([data]) == asked
        assert decode(cut(data, [len(data) // 2])) == asked

    seeds = (
        command("RPUSH", "q", "one") + command("HMGET", "q", "c", 10, "0.5"),
        command("HDEL", "q", "c", 1, 2, 3) + command("PING"),
        b"echo 'a b' \"c\\x41\\n\"\r\nRPUSH q inline\r\n",
        b"*1\r\n$-1\r\n",
    )
    return Target(seeds, run, judge)


TARGETS: dict[str, Callable[[], Target]] = {"wire": wire, "routing": routing, "resp": resp}
