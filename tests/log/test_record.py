"""A record's bytes: as they always were, as the slow twin writes and reads them; and none that is damaged is taken."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila_server.core.log import record
from tests.log import twin

U64 = st.integers(0, 2**64 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=60)
HEADS = st.fixed_dictionaries(
    {
        "node": U64,
        "term": st.tuples(st.integers(-1, 2**63 - 1), U64),
        "wall_ms": I64,
        "live_bytes": I64,
    }
)
ORDERED = st.fixed_dictionaries({"seq": U64, "chain": U64})
TAKEOVERS = st.fixed_dictionaries(
    {
        "kind": st.just(record.KIND_TAKEOVER),
        "nonce": U64,
        "cluster": st.binary(min_size=16, max_size=16),
        "flags": st.integers(0, 1),
        "incarnation": st.integers(0, 1),
        "format": st.integers(0, 2**16 - 1),
        "name": TEXTS,
        "peer_addr": TEXTS,
        "client_addr": TEXTS,
    }
)
PARTS = st.integers(1, 4096).flatmap(
    lambda parts: st.fixed_dictionaries(
        {
            "kind": st.just(record.KIND_PART),
            "part": st.integers(0, parts - 1),
            "parts": st.just(parts),
            "body": st.binary(max_size=300),
        }
    )
)
PASSES = st.fixed_dictionaries({"kind": st.just(record.KIND_PASS), "body": st.binary(max_size=300)})
BARRIERS = st.just({"kind": record.KIND_BARRIER})
LATER = st.fixed_dictionaries({"incarnation": st.integers(2, 2**32 - 1)})
RECORDS = st.one_of(
    st.builds(dict.__or__, HEADS, TAKEOVERS),
    st.builds(
        lambda head, takeover, ordered, later: head | takeover | ordered | later,
        HEADS,
        TAKEOVERS,
        ORDERED,
        LATER,
    ),
    st.builds(
        lambda head, ordered, body: head | ordered | body, HEADS, ORDERED, st.one_of(PASSES, PARTS, BARRIERS)
    ),
)

HEAD = {"node": 7, "term": (41, 0x1122334455667788), "wall_ms": 1_764_000_000_000, "live_bytes": 4096}
GOLDEN = {
    "takeover": (
        HEAD
        | {
            "kind": record.KIND_TAKEOVER,
            "nonce": 99,
            "cluster": b"0123456789abcdef",
            "incarnation": 1,
            "format": 2,
            "flags": 0,
        }
        | {"name": "fila-1", "peer_addr": "10.0.0.1:5556", "client_addr": "10.0.0.1:5555"},
        (
            "f10101000700000000000000290000000000000088776655443322110000000000000000000000000000000000e897b6"
            "9a01000000100000000000006300000000000000303132333435363738396162636465660100000002000666696c612d"
            "310d31302e302e302e313a353535360d31302e302e302e313a3535353528907c14"
        ),
    ),
    "pass": (
        HEAD | {"kind": record.KIND_PASS, "seq": 3, "chain": 5, "body": b"a batch"},
        (
            "f10102000700000000000000290000000000000088776655443322110300000000000000050000000000000000e897b6"
            "9a0100000010000000000000612062617463685a4d7b7d"
        ),
    ),
    "part": (
        HEAD | {"kind": record.KIND_PART, "seq": 3, "chain": 5, "part": 1, "parts": 2, "body": b"half"},
        (
            "f10103000700000000000000290000000000000088776655443322110300000000000000050000000000000000e897b6"
            "9a01000000100000000000000100020068616c667f7e6265"
        ),
    ),
    "barrier": (
        HEAD | {"kind": record.KIND_BARRIER, "seq": 3, "chain": 5},
        (
            "f10104000700000000000000290000000000000088776655443322110300000000000000050000000000000000e897b6"
            "9a010000001000000000000025d4a415"
        ),
    ),
}
MARK = 0x49A74E0A7F813EA1


@pytest.mark.parametrize("name", GOLDEN)
def test_a_record_has_the_bytes_it_always_had(name):
    fields, golden = GOLDEN[name]
    assert record.encode(**fields).hex() == golden
    assert record.decode(bytes.fromhex(golden)) == (twin.GOOD, {"seq": 0, "chain": 0} | fields)


def test_the_mark_of_a_record_is_the_one_it_always_was():
    assert record.mark(record.encode(**GOLDEN["pass"][0])) == MARK


@given(RECORDS)
def test_a_record_is_written_and_read_as_the_twin_does(fields):
    content = record.encode(**fields)
    assert content == twin.encode(**fields)
    assert record.decode(content) == twin.decode(content) == (twin.GOOD, {"seq": 0, "chain": 0} | fields)
    assert record.mark(content) == twin.mark(content)


@given(RECORDS, st.randoms(use_true_random=False))
def test_a_record_that_is_altered_or_cut_is_not_taken(fields, chance):
    content = record.encode(**fields)
    place, bit = chance.randrange(len(content)), 1 << chance.randrange(8)
    altered = bytearray(content)
    altered[place] ^= bit
    for damaged in (bytes(altered), content[: chance.randrange(len(content))], content + b"\0"):
        fault, found = record.decode(damaged)
        assert fault == twin.decode(damaged)[0] != twin.GOOD
        assert found == {}


@given(RECORDS, st.data())
def test_a_record_with_a_right_sum_and_other_fields_is_read_as_the_twin_does(fields, data):
    content = bytearray(record.encode(**fields)[:-4])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(2, len(content) - 1))] = data.draw(st.integers(0, 255))
    forged = twin.sealed(bytes(content[: data.draw(st.integers(60, len(content)))]))
    assert record.decode(forged) == twin.decode(forged)


def test_a_record_is_as_long_as_a_topic_takes_and_no_longer():
    piece = bytes(record.PIECE_BYTES_MAX)
    longest = record.encode(kind=record.KIND_PART, part=0, parts=1, body=piece)
    assert len(longest) == record.BYTES_MAX == 900_000
    assert record.decode(longest)[0] == twin.GOOD
    with pytest.raises(ValueError, match="at most 900000 bytes; give the pass in parts"):
        record.encode(kind=record.KIND_PART, part=0, parts=1, body=piece + b"x")
    assert record.decode(twin.sealed(longest))[0] == twin.LONG


def test_bytes_of_any_kind_are_none_of_ours():
    chance = random.Random(1)
    for _ in range(2_000):
        assert record.decode(chance.randbytes(chance.randrange(200)))[0] != twin.GOOD
