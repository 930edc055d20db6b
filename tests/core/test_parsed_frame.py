"""What hooks see of a frame and what they decide, packed: against the same layout read and written by struct."""

from __future__ import annotations

import resource
import struct
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.core.requests.parsed_frame import ParsedFrame
from fila_server.hooks.packed import KeyLimits, Routing, pack_messages, unpack_routings
from tests.core.at_length import LONG_SCRIPTS
from tests.core.driven_engine import DrivenEngine

ALL_BYTES = 1 << 30
QUEUES = ("orders", "mail", "orders.eu")


@pytest.fixture(scope="module")
def engine() -> Iterator[DrivenEngine]:
    driven = DrivenEngine()
    for queue in QUEUES:
        driven.create_queue(queue)
    yield driven
    driven.remove()


def pack_routings(routings: Sequence[Routing]) -> bytes:
    packed = b""
    for key, weight, cost, throttle_keys in routings:
        given = (key is not None) | (weight is not None) << 1 | (cost is not None) << 2
        given |= (throttle_keys is not None) << 3
        packed += struct.pack(">BBHd", given, len(throttle_keys or ()), weight or 0, cost or 0)
        for text in (key or b"", *(throttle_keys or ())):
            packed += struct.pack(">H", len(text)) + text
    return packed


def frame_of(engine: DrivenEngine, items: Sequence[service.EnqueueMessage]) -> ParsedFrame:
    request = service.EnqueueBatchRequest(messages=items)
    return engine.core.parse(commands.ENQUEUE_BATCH, request.SerializeToString())


def enqueue(engine: DrivenEngine, parsed: ParsedFrame) -> service.EnqueueBatchResponse:
    engine.tokens += 1
    engine.core.submit_parsed(engine.tokens, parsed)
    engine.others += engine.settle_down()
    status, payload = engine.answer_of(engine.tokens)
    assert status == 0
    return service.EnqueueBatchResponse.FromString(payload)


def message(
    queue: str = "orders", headers: dict[str, str] | None = None, payload: bytes = b""
) -> service.EnqueueMessage:
    return service.EnqueueMessage(queue=queue, headers=headers, payload=payload)


items = st.builds(
    message,
    queue=st.sampled_from(QUEUES),
    headers=st.dictionaries(st.text(min_size=1, max_size=20), st.text(max_size=40), max_size=20),
    payload=st.binary(max_size=300),
)
keys = st.text(max_size=30).map(str.encode)
routings = st.builds(
    Routing,
    fairness_key=st.none() | keys,
    weight=st.none() | st.integers(1, 1000),
    cost=st.none() | st.integers(1, 10**9).map(lambda thousandths: thousandths / 1000),
    throttle_keys=st.none() | st.lists(keys, max_size=16).map(tuple),
)


def unpack_messages(packed: bytes, count: int) -> list[tuple[dict[str, str], int]]:
    messages, at = [], 0
    for _ in range(count):
        size, header_count = struct.unpack_from(">II", packed, at)
        at += 8
        texts = []
        for _ in range(2 * header_count):
            (length,) = struct.unpack_from(">I", packed, at)
            texts.append(packed[at + 4 : at + 4 + length].decode())
            at += 4 + length
        messages.append((dict(zip(texts[::2], texts[1::2], strict=True)), size))
    assert packed[at:] == bytes(8)
    return messages


def packed_bytes(run: Sequence[service.EnqueueMessage]) -> int:
    headers = [[(name.encode(), value.encode()) for name, value in item.headers.items()] for item in run]
    return len(pack_messages((found, 0) for found in headers)) - 8


@settings(max_examples=LONG_SCRIPTS)
@given(st.lists(items, min_size=1, max_size=12), st.integers(1, 12), st.integers(1, 400))
def test_a_run_of_messages_for_one_queue_is_packed_as_they_were_sent(engine, sent, count_max, bytes_max):
    parsed = frame_of(engine, sent)
    at = 0
    while at < len(sent):
        run = [sent[at]]
        for item in sent[at + 1 : at + count_max]:
            if item.queue != sent[at].queue or packed_bytes(run) >= bytes_max:
                break
            run.append(item)

        count, packed = parsed.pack(range(len(sent)), at, count_max, bytes_max)

        assert count == len(run)
        expected = [(dict(item.headers), len(item.payload)) for item in run]
        assert unpack_messages(packed, count) == expected
        assert parsed.queue(at) == sent[at].queue.encode()
        at += count


@given(st.lists(routings, min_size=1, max_size=8), st.data())
def test_what_a_hook_decides_is_what_the_message_is_shared_and_limited_by(engine, decided, data):
    parsed = frame_of(engine, [message() for _ in decided])
    at = 0
    while at < len(decided):  # several crossings for one frame
        count = data.draw(st.integers(1, len(decided) - at))
        packed = pack_routings(decided[at : at + count])
        assert unpack_routings(packed, 0, count, KeyLimits()) == (
            decided[at : at + count],
            None,
            len(packed),
        )
        assert parsed.route(range(len(decided)), at, count, packed, 0) == (count, None, len(packed))
        at += count

    answers = enqueue(engine, parsed)

    leased = engine.lease("orders")
    metadata_by_offset = {found.metadata.offset: found.metadata for found in leased}
    for result, routing in zip(answers.results, decided, strict=True):
        metadata = metadata_by_offset[result.offset]
        assert metadata.fairness_key.encode() == (routing.fairness_key or b"default")
        assert metadata.cost == pytest.approx(1 if routing.cost is None else routing.cost)
        assert set(metadata.throttle_keys) == {key.decode() for key in routing.throttle_keys or () if key}
    # A weight is its key's, and the newest counts.
    newest = {routing.fairness_key or b"default": routing.weight or 1 for routing in decided}
    for metadata in metadata_by_offset.values():
        assert metadata.weight == newest[metadata.fairness_key.encode()]
    engine.ack("orders", leased)


def test_a_message_nobody_routes_keeps_its_queues_own_policy(engine):
    engine.create_queue("by-tenant", fairness_key_header="tenant")
    parsed = frame_of(engine, [message("by-tenant", {"tenant": name}) for name in ("a", "b", "c")])
    parsed.route([1], 0, 1, pack_routings([Routing(b"hooked")]), 0)

    enqueue(engine, parsed)

    leased = engine.lease("by-tenant")
    assert sorted(found.metadata.fairness_key for found in leased) == ["a", "c", "hooked"]


def test_the_newest_of_two_routings_counts(engine):
    parsed = frame_of(engine, [message("mail")])
    for key in (b"first", b"second"):
        parsed.route([0], 0, 1, pack_routings([Routing(key)]), 0)

    enqueue(engine, parsed)

    (leased,) = engine.lease("mail")
    assert leased.metadata.fairness_key == "second"


@pytest.mark.parametrize(
    ("routing", "problem"),
    [
        (Routing(b"x" * 257), "fairness_key must be at most 256 bytes, got 257"),
        (Routing(b"\xff"), "fairness_key must be valid UTF-8"),
        (Routing(None, None, None, (b"x" * 257,)), "throttle_keys must be at most 256 bytes each, got 257"),
        (Routing(None, None, None, (b"fine", b"\xc3")), "throttle_keys must be valid UTF-8"),
    ],
)
def test_a_key_the_core_cannot_take_is_named_and_its_neighbours_are_routed(engine, routing, problem):
    parsed = frame_of(engine, [message(), message(), message()])
    packed = pack_routings([Routing(b"before"), routing, Routing(b"after")])
    behind = len(pack_routings([Routing(b"before"), routing]))

    assert parsed.route(range(3), 0, 3, packed, 0) == (1, problem, behind)
    assert parsed.route(range(3), 2, 1, packed, behind) == (1, None, len(packed))

    assert unpack_routings(packed, 0, 3, KeyLimits()) == ([Routing(b"before")], problem, behind)
    assert unpack_routings(packed, behind, 1, KeyLimits()) == ([Routing(b"after")], None, len(packed))
    enqueue(engine, parsed)
    leased = engine.lease("orders")
    assert sorted(found.metadata.fairness_key for found in leased) == ["after", "before", "default"]
    engine.ack("orders", leased)


def test_a_frame_that_waits_does_not_grow_with_every_answer_it_cannot_take(engine):
    parsed = frame_of(engine, [message()])
    packed = pack_routings([Routing(b"x" * 4096)])
    peak_kib_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    for _ in range(20_000):
        parsed.route([0], 0, 1, packed, 0)

    # Kept, these are 80 MiB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kib_before < 20_000


def test_a_tighter_limit_on_throttle_keys_holds_for_hooks_too():
    driven = DrivenEngine({"limits.throttle_keys_max": 1})
    driven.create_queue("orders")
    parsed = frame_of(driven, [message()])

    packed = pack_routings([Routing(None, None, None, (b"a", b"b"))])

    decided = parsed.route([0], 0, 1, packed, 0)

    assert decided == (0, "throttle_keys must be at most 1, got 2", len(packed))
    driven.remove()


def test_routings_that_are_cut_short_are_never_read_past_their_end(engine):
    packed = pack_routings([Routing(b"key", 3, 1.5, (b"one", b"two"))])
    for length in range(len(packed)):
        parsed = frame_of(engine, [message()])
        with pytest.raises(ValueError, match="cut short"):
            parsed.route([0], 0, 1, packed[:length], 0)


def test_what_a_waiting_frame_keeps_in_memory_is_all_of_it(engine):
    request = service.EnqueueBatchRequest(
        messages=[message(headers={"a": "x" * 4096}), message("no such name!", payload=b"x" * 1000)]
    )
    parsed = frame_of(engine, request.messages)

    assert parsed.frame_bytes() == request.ByteSize()


def test_a_message_outside_the_frame_or_refused_already_is_not_packed(engine):
    parsed = frame_of(engine, [message(), message("no such name!"), message()])

    assert list(parsed.unrefused()) == [0, 2]
    with pytest.raises(ValueError, match="refused already"):
        parsed.pack([1], 0, 1, ALL_BYTES)
    for i in (-1, 3):
        with pytest.raises(IndexError):
            parsed.pack([i], 0, 1, ALL_BYTES)
        with pytest.raises(IndexError):
            parsed.route([i], 0, 1, pack_routings([Routing()]), 0)
