"""What nobody should send: frames cut short, garbage, huge lengths and numbers, one beyond every limit.

Each gets an answer that names field and bound, nothing of it is stored, its neighbours are, and the broker is
as fast afterwards as before. tests/e2e/test_statuses.py has the status table and the unary calls.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from fila.v1 import admin_pb2, service_pb2
from tests.e2e.conftest import RunningServer

pytestmark = pytest.mark.e2e

Code = grpc.StatusCode
Session = service_pb2.ConsumeSessionRequest


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _depth(server: RunningServer, queue: str) -> int:
    return int(server.admin.GetStats(admin_pb2.GetStatsRequest(queue=queue), timeout=10).depth)


def _raw_unary(server: RunningServer, method: str, frame: bytes) -> bytes:
    channel: Any = server.channel()
    return bytes(channel.unary_unary(f"/fila.v1.FilaService/{method}")(frame, timeout=10))


def _raw_stream(server: RunningServer, method: str, frames: list[bytes]) -> Iterator[bytes]:
    channel: Any = server.channel()
    calls: Iterator[bytes] = channel.stream_stream(f"/fila.v1.FilaService/{method}")(iter(frames), timeout=10)
    return calls


def _refused(call: Callable[[], Any]) -> str:
    with pytest.raises(grpc.RpcError) as raised:
        call()
    error: Any = raised.value
    assert error.code() is Code.INVALID_ARGUMENT, f"{error.code()}: {error.details()}"
    assert error.details()
    return str(error.details())


def _invalid_at_most(call: Callable[[], Any]) -> Any:
    """What it answered, or None where it was refused as an invalid argument."""
    try:
        return call()
    except grpc.RpcError as error:
        if error.code() is not Code.INVALID_ARGUMENT:
            raise
        return None


def _batch(queue: str, *payloads: bytes) -> bytes:
    messages = [service_pb2.EnqueueMessage(headers={"k": "v"}, payload=payload) for payload in payloads]
    return service_pb2.EnqueueBatchRequest(queue=queue, messages=messages).SerializeToString()


# --- frames that are none -------------------------------------------------------------------


def test_a_batch_cut_short_anywhere_inside_a_field_stores_nothing(server: RunningServer, queue: str) -> None:
    whole = _batch(queue, b"one", b"two", b"three")
    ends = {len(_batch(queue, *[b"one", b"two", b"three"][:count])) for count in range(4)}
    stored = 0
    channel: Any = server.channel()
    call = channel.unary_unary("/fila.v1.FilaService/EnqueueBatch")
    for length in range(1, len(whole)):
        if length in ends:  # between two fields: a shorter batch, and a good one
            stored += len(
                service_pb2.EnqueueBatchResponse.FromString(call(whole[:length], timeout=10)).results
            )
        else:
            _refused(lambda length=length: call(whole[:length], timeout=10))  # type: ignore[misc]

    assert _depth(server, queue) == stored == 3


MESSAGE_GARBAGE = {
    "a length beyond its parent": _field(2, b"\x1a\x7fshort"),
    "a length of 2^63": _field(2, b"\x1a" + _varint(2**63)),
    "a length of 2^32 - 1": _field(2, b"\x1a" + _varint(2**32 - 1)),
    "a varint without an end": _field(2, b"\x1a" + b"\xff" * 11),
    "field number 0": _field(2, b"\x02\x01x"),
    "an end of a group that never began": _field(2, b"\x1c"),
    "wire type 7": _field(2, b"\x1f"),
    "the payload as a number": _field(2, b"\x18\x07"),
    "the headers as a fixed64": _field(2, b"\x11" + bytes(8)),
    "a header key that is no UTF-8": _field(2, _field(2, _field(1, b"\xff\xfe") + _field(2, b"v"))),
    "a header value that is no UTF-8": _field(2, _field(2, _field(1, b"k") + _field(2, b"\xc3\x28"))),
    "a header key that is no UTF-8, and a good one after it": _field(
        2, _field(2, _field(1, b"\xff") + _field(2, b"v") + _field(1, b"k"))
    ),
    "a header value as a number": _field(2, _field(2, _field(1, b"k") + b"\x10\x07")),
    "options that are garbage": _field(2, _field(4, b"\xff" * 5)),
    "a queue name that is no UTF-8": _field(1, b"\xff"),
}


@pytest.mark.parametrize("kind", MESSAGE_GARBAGE)
@pytest.mark.parametrize("way", ["EnqueueBatch", "EnqueueStream"])
def test_garbage_in_a_message_is_refused_and_the_messages_of_other_frames_are_kept(
    server: RunningServer, queue: str, kind: str, way: str
) -> None:
    bad = _batch(queue, b"before") + MESSAGE_GARBAGE[kind]
    good = _batch(queue, b"good")

    stored = 0
    if way == "EnqueueBatch":
        _raw_unary(server, way, good)
        answer = _invalid_at_most(lambda: _raw_unary(server, way, bad))
        results = list(service_pb2.EnqueueBatchResponse.FromString(answer).results) if answer else []
        _raw_unary(server, way, good)
        stored = 2
    else:
        frames = [b"\x08\x01" + _field(2, good), b"\x08\x02" + _field(2, bad), b"\x08\x03" + _field(2, good)]
        answers = _raw_stream(server, way, frames)
        results = []
        while (frame := _invalid_at_most(lambda: next(answers, None))) is not None:
            response = service_pb2.EnqueueStreamResponse.FromString(frame)
            if response.sequence == 2:
                results = list(response.results)
            else:
                stored += sum(not result.error.code for result in response.results)
    # Either the whole frame is no frame, or the bad message alone is refused.
    if results:
        assert [result.error.code != 0 for result in results] == [False, True]
    assert stored >= 1
    assert _depth(server, queue) == stored + (1 if results else 0)


def test_random_bytes_and_random_flips_never_stop_the_broker(server: RunningServer, queue: str) -> None:
    chance = random.Random(7)
    whole = _batch(queue, b"one", b"two", b"three")
    channel: Any = server.channel()
    allowed = (Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.FAILED_PRECONDITION, Code.RESOURCE_EXHAUSTED)
    for method in ("EnqueueBatch", "AckBatch", "NackBatch", "Lease", "ExtendLease"):
        call = channel.unary_unary(f"/fila.v1.FilaService/{method}")
        for _ in range(150):
            frame = bytearray(whole)
            for _ in range(chance.randrange(1, 4)):
                frame[chance.randrange(len(frame))] = chance.randrange(256)
            if chance.random() < 0.3:
                frame = bytearray(chance.randbytes(chance.randrange(64)))
            try:
                call(bytes(frame), timeout=10)
            except grpc.RpcError as error:
                if error.code() not in allowed:
                    pytest.fail(f"{method} {bytes(frame)!r}: {error}")
    assert server.process.poll() is None
    assert server.service.Enqueue(service_pb2.EnqueueRequest(queue=queue), timeout=10).message_id


def test_a_session_that_sends_garbage_ends_alone(server: RunningServer, queue: str) -> None:
    opening = Session(open={"queue": queue}).SerializeToString()
    neighbour = server.service.ConsumeSession(iter([Session(open={"queue": queue})]), timeout=10)
    garbage = [
        b"\xff" * 8,
        _field(3, b"\x12" + _varint(2**40)),  # an ack whose lease ids are longer than the frame
        _field(3, _field(2, b"\xff" * 11)),  # a packed varint without an end
        _field(4, _field(3, b"\xff\xfe")),  # an error text that is no UTF-8
        opening,  # open a second time
    ]
    for frame in garbage:
        _refused(lambda frame=frame: list(_raw_stream(server, "ConsumeSession", [opening, frame])))  # type: ignore[misc]
    for first in (b"", b"\xff", _field(3, b"")):
        _refused(lambda first=first: list(_raw_stream(server, "ConsumeSession", [first])))  # type: ignore[misc]
    assert next(neighbour).opened.consumer_id


def test_a_session_says_one_thing_a_frame(server: RunningServer, queue: str) -> None:
    opening = Session(open={"queue": queue}).SerializeToString()
    an_alive, an_ack = _field(9, b""), _field(3, b"")

    for frame in (an_alive * 2, an_ack + an_alive, an_alive * 500_000):
        text = _refused(lambda frame=frame: list(_raw_stream(server, "ConsumeSession", [opening, frame])))  # type: ignore[misc]
        assert "one thing a frame" in text

    session = _raw_stream(server, "ConsumeSession", [opening, an_alive])
    assert len(list(itertools.islice(session, 2))) == 2  # it is opened, and heard


def test_numbers_without_measure_settle_nothing_and_harm_nothing(server: RunningServer, queue: str) -> None:
    server.service.Enqueue(service_pb2.EnqueueRequest(queue=queue, payload=b"x"))
    largest = 2**64 - 1
    frames = [
        Session(open={"queue": queue, "max_in_flight": 65_535, "initial_credit": 2**32 - 1}),
        Session(credit=2**32 - 1),
        Session(credit=2**32 - 1),
        Session(ack={"sequence": largest, "lease_ids": [0, largest]}),
        Session(nack={"sequence": 0, "lease_ids": [0, largest], "delay_ms": largest}),
    ]
    responses = server.service.ConsumeSession(iter(frames), timeout=10)
    settled = [
        (response.settled.sequence, [failure.lease_id for failure in response.settled.failures])
        for response in responses
        if response.HasField("settled")
    ]
    assert sorted(settled) == [(0, [0, largest]), (largest, [0, largest])]

    with pytest.raises(grpc.RpcError, match="max_in_flight: at most 65535"):
        list(
            server.service.ConsumeSession(
                iter([Session(open={"queue": queue, "max_in_flight": 65_536})]), timeout=10
            )
        )

    odd: list[Any] = [
        {"delay_ms": largest},
        {"ttl_ms": largest},
        {"deliver_at": {"seconds": -(2**62)}},
        {"deliver_at": {"seconds": 2**62}},
        {"deliver_at": {"nanos": -1}},
    ]
    for options in odd:
        request = service_pb2.EnqueueRequest(queue=queue, options=options)
        _invalid_at_most(lambda request=request: server.service.Enqueue(request, timeout=10))  # type: ignore[misc]
    assert server.process.poll() is None


# --- one beyond -----------------------------------------------------------------------------


def _create(server: RunningServer, name: str, **config: Any) -> None:
    request = admin_pb2.CreateQueueRequest(name=name, config=admin_pb2.QueueConfig(**config))
    server.admin.CreateQueue(request, timeout=10)


def _enqueue(server: RunningServer, queue: str, **fields: Any) -> Any:
    return server.service.Enqueue(service_pb2.EnqueueRequest(queue=queue, **fields), timeout=10)


_names = itertools.count()


def _named(length: int) -> str:
    return f"limit{next(_names)}-".ljust(length, "x")[:length]


def _hours(hours: int) -> int:
    return hours * 3_600_000


LIMITS: dict[str, tuple[str, Callable[[RunningServer, str, int], Any], int]] = {
    # what, the bound's text: how to reach a value, the last that is good
    "queue name": ("251", lambda s, _, n: _create(s, _named(n)), 251),
    "script": ("65536", lambda s, _, n: _create(s, _named(20), on_enqueue_script=_script(n)), 65_536),
    "config key": ("300", lambda s, _, n: _set(s, "k" * n, "v"), 300),
    "config value": ("65536", lambda s, _, n: _set(s, "k", "v" * n), 65_536),
    "dedup key": ("128", lambda s, q, n: _enqueue(s, q, options={"dedup_key": "d" * n}), 128),
    "pull": (
        "10000",
        lambda s, q, n: s.service.Lease(service_pb2.LeaseRequest(queue=q, max_messages=n), timeout=10),
        10_000,
    ),
    "visibility timeout": (
        "43200000",
        lambda s, _, n: _create(s, _named(20), visibility_timeout_ms=n),
        _hours(12),
    ),
    "settle batch": (
        "10000",
        lambda s, q, n: s.service.AckBatch(
            service_pb2.AckBatchRequest(queue=q, items=[{"message_id": _NOBODY}] * n), timeout=10
        ),
        10_000,
    ),
}
_NOBODY = "01890000-0000-7000-8000-000000000000"


def _script(length: int) -> str:
    body = "function on_enqueue(msg) return {} end --"
    return body + "x" * (length - len(body))


def _set(server: RunningServer, key: str, value: str) -> Any:
    return server.admin.SetConfig(admin_pb2.SetConfigRequest(key=key, value=value), timeout=10)


@pytest.mark.parametrize("what", LIMITS)
def test_each_limit_holds_at_its_value_and_refuses_one_beyond(
    server: RunningServer, queue: str, what: str
) -> None:
    bound, reach, last = LIMITS[what]
    reach(server, queue, last)

    text = _refused(lambda: reach(server, queue, last + 1))

    assert bound in text.replace(",", ""), text


def test_throttle_keys_out_of_headers_have_their_limits(server: RunningServer) -> None:
    headers = [f"t{n}" for n in range(17)]
    _create(server, "throttled", throttle_key_headers=headers[:16])
    _enqueue(server, "throttled", headers={name: f"{name}-value" for name in headers[:16]})
    _enqueue(server, "throttled", headers={"t0": "v" * 256})

    assert "256" in _refused(lambda: _enqueue(server, "throttled", headers={"t0": "v" * 257}))
    assert "16" in _refused(lambda: _create(server, "throttled17", throttle_key_headers=headers))


def test_a_batch_of_16_mib_is_stored_and_a_larger_one_is_refused(server: RunningServer, queue: str) -> None:
    payload = bytes(1_000_000)
    batch = service_pb2.EnqueueBatchRequest(queue=queue, messages=[{"payload": payload}] * 16)
    room = (16 << 20) - batch.ByteSize()
    batch.messages.add(payload=bytes(room - 20))
    assert (16 << 20) - 32 < batch.ByteSize() <= 16 << 20
    assert len(server.service.EnqueueBatch(batch, timeout=20).results) == 17
    batch.messages[-1].payload += bytes(64)

    with pytest.raises(grpc.RpcError) as refused:
        server.service.EnqueueBatch(batch, timeout=20)

    assert refused.value.code() in (Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED)
    assert _depth(server, queue) == 17


def test_a_large_message_is_delivered_to_a_client_with_default_limits(
    server: RunningServer, queue: str
) -> None:
    """Frames stay under 4 MiB: here 12 messages of 1 MiB, and the client's limit is gRPC's own."""
    for _ in range(3):
        messages = [{"payload": bytes(1 << 20)}] * 4
        batch = service_pb2.EnqueueBatchRequest(queue=queue, messages=messages)
        server.service.EnqueueBatch(batch, timeout=20)
    from fila.v1 import service_pb2_grpc

    stub: Any = service_pb2_grpc.FilaServiceStub(grpc.insecure_channel(server.addresses["grpc"]))
    count = 0
    for response in stub.Consume(service_pb2.ConsumeRequest(queue=queue, max_batch=100), timeout=20):
        count += len(response.messages)
        if count == 12:
            break
    assert count == 12


def test_the_broker_is_as_fast_after_bad_input_as_before(server: RunningServer, queue: str) -> None:
    def fastest_s() -> float:
        took = []
        for _ in range(60):
            began_s = time.perf_counter()
            server_stub.Enqueue(service_pb2.EnqueueRequest(queue=queue, payload=b"x"), timeout=10)
            took.append(time.perf_counter() - began_s)
        return min(took)

    server_stub = server.service
    before_s = fastest_s()
    channel: Any = server.channel()
    call = channel.unary_unary("/fila.v1.FilaService/EnqueueBatch")
    chance = random.Random(3)
    for _ in range(300):
        with pytest.raises(grpc.RpcError):
            call(b"\x12" + _varint(2**50) + chance.randbytes(20_000), timeout=10)

    assert fastest_s() < before_s * 2 + 0.001
