"""The compiled decoder against the slow one: valid and damaged streams, cut anywhere."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.native.decoderprobe import CLOSE, COMMAND, PUSHES, REPLY, CommandDecoder
from tests.redis.raw_client import command
from tests.redis.reference_decoder import Event, events_of_items, events_of_stream

PAYLOAD_MAX = 64
MESSAGES_MAX = 5
BYTES_MAX = 200

names = st.sampled_from([b"q", b"orders", b"a.b-c_d", b"", b".x", b"a b", b"q" * 251, b"q" * 255, b"q" * 256])
numbers = st.sampled_from(
    [b"0", b"1", b"10001", b"-1", b"x", b"", b"1.5", b"-", b"007"]
    + [str(n).encode() for n in (2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**25)]
)
seconds = st.sampled_from(
    [b"0", b"1", b"0.5", b"1e-9", b"1e999", b"-1", b"nan", b"inf", b"x", b"", b".", b"00"]
)
payloads = st.binary(max_size=PAYLOAD_MAX + 3)
verbs = st.sampled_from(
    [b"rpush", b"RPUSH", b"rPuSh", b"HMGET", b"hmget", b"HDEL", b"PING", b"RPUSH\x00", b"RPUS"]
)
commands = st.one_of(
    st.tuples(st.just(b"RPUSH"), names, payloads),
    st.tuples(st.just(b"RPUSH"), names, payloads),
    st.lists(payloads, max_size=8).map(lambda messages: (b"RPUSH", b"q", *messages)),
    st.tuples(st.just(b"HMGET"), names, names, numbers),
    st.tuples(st.just(b"HMGET"), names, st.just(b"c"), numbers, seconds),
    st.lists(numbers, max_size=12).map(lambda tickets: (b"HDEL", b"q", b"c", *tickets)),
    st.builds(lambda verb, rest: (verb, *rest), verbs, st.lists(payloads, max_size=6)),
).map(lambda args: command(*args))
lines = st.sampled_from(
    [b"PING\r\n", b"\r\n", b"\n", b"ping 'a b' \"c\\x41\\n\"\n", b"RPUSH q inline\r\n", b"hmget q c 3 0.5\n"]
)
damage = st.one_of(
    st.binary(min_size=1, max_size=8),
    st.sampled_from(
        [
            b"*-1\r\n",
            b"*0\r\n",
            b"$-1\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n*1\r\n",
            b"*1048577\r\n",
            b"*99999999999999\r\n",
            b"*1\r\n$536870913\r\n",
            b"*1\r\n$18446744073709551616\r\n",
            b"*1\r\n:1\r\n",
            b'echo "x\r\n',
            b"*2\r\n",
            b"*" + b"1" * 40,
            b"*1\n",
            b"*\r\n",
            b"*+1\r\n",
            b"$3\r\nabc\r\n",
            b"*-0\r\n",
            b"*1\r\n$3\r\nabcd\r\n",
        ]
    ),
)


def decode(
    pieces: list[bytes], limit: int = 3, bounds: tuple[int, int, int] = (PAYLOAD_MAX, MESSAGES_MAX, BYTES_MAX)
):
    decoder = CommandDecoder(*bounds)
    events: list[Event] = []
    for piece in pieces:
        decoder.feed(piece)
        while items := decoder.take(limit):
            events += events_of_items(items)
            if items[-1][0] == CLOSE:
                return events
            if len(items) < limit:
                break
    return events


def expected(stream: bytes) -> list[Event]:
    return events_of_stream(stream, PAYLOAD_MAX, MESSAGES_MAX, BYTES_MAX)


def cut(stream: bytes, at: list[int]) -> list[bytes]:
    points = [0, *sorted(point % (len(stream) + 1) for point in at), len(stream)]
    return [stream[a:b] for a, b in itertools.pairwise(points)]


@settings(max_examples=400, deadline=None)
@given(stream=st.lists(st.one_of(commands, commands, lines), max_size=12).map(b"".join),
       at=st.lists(st.integers(0, 10**6), max_size=6), limit=st.integers(1, 5))  # fmt: skip
def test_valid_streams_mean_the_same_however_they_are_cut(stream: bytes, at: list[int], limit: int):
    assert decode(cut(stream, at), limit) == expected(stream)


@settings(max_examples=600, deadline=None)
@given(stream=st.lists(st.one_of(commands, lines, damage), max_size=8).map(b"".join),
       at=st.lists(st.integers(0, 10**6), max_size=6))  # fmt: skip
def test_damaged_streams_break_at_the_same_command(stream: bytes, at: list[int]):
    assert decode(cut(stream, at)) == expected(stream)


@settings(max_examples=500, deadline=None)
@given(line=st.text("ab\"'\\ x4f\tn\x0b", max_size=24), at=st.integers(0, 30))
def test_lines_that_people_type_are_split_as_redis_splits_them(line: str, at: int):
    stream = b"echo " + line.encode() + b"\r\n" + command("PING")
    assert decode(cut(stream, [at])) == expected(stream)


@settings(max_examples=200, deadline=None)
@given(
    stream=st.lists(commands, min_size=1, max_size=6).map(b"".join),
    at=st.integers(0, 10**6),
    byte=st.integers(0, 255),
)
def test_one_wrong_byte_never_means_something_else_than_it_says(stream: bytes, at: int, byte: int):
    at %= len(stream)
    damaged = stream[:at] + bytes((byte,)) + stream[at + 1 :]
    assert decode([damaged]) == expected(damaged)


def test_a_stream_may_be_cut_at_every_byte():
    stream = b"".join((
        command("RPUSH", "q", "one"), command("RPUSH", "other", b"\r\n*$"), b"PING hello\r\n",
        command("HMGET", "q", "c", 10, "0.5"), command("RPUSH", "q", *range(5)), b"*0\r\n",
        command("RPUSH", "q", b"x" * (PAYLOAD_MAX + 1)), command("HDEL", "q", "c", *range(9)), b"\r\n",
        command("CLIENT", "SETNAME", "x"),
    ))  # fmt: skip
    whole = expected(stream)
    assert len(whole) == 8

    assert decode([bytes((byte,)) for byte in stream]) == whole
    for at in range(len(stream) + 1):
        assert decode([stream[:at], stream[at:]]) == whole, at


@pytest.mark.parametrize(
    "stream",
    [b"*1\r\n$536870913\r\n", b"*1\r\n$-1\r\n", b"*-1\r\n", b"*1048577\r\n", b"*1\r\n*1\r\n$4\r\nPING\r\n",
     b"*1\r\n+OK\r\n", b"x" * 65537, b'"' + b"\n", b"*9999999999999999999999999999999999"],
)  # fmt: skip
def test_broken_framing_is_a_protocol_error_and_ends_the_connection(stream: bytes):
    decoder = CommandDecoder(PAYLOAD_MAX, MESSAGES_MAX, BYTES_MAX)
    decoder.feed(command("PING") + stream)
    first, last = decoder.take(10)

    assert first[:2] == (COMMAND, [b"PING"])
    assert last[0] == CLOSE
    assert last[1].startswith(b"-ERR Protocol error: ")


def test_a_huge_declared_length_reserves_nothing_and_the_connection_goes_on():
    decoder = CommandDecoder(1024, 100, 4096)
    decoder.feed(b"*3\r\n$5\r\nRPUSH\r\n$1\r\nq\r\n$500000000\r\n")
    for _ in range(1000):
        decoder.feed(b"x" * 500_000)
        assert decoder.take(10) == []
        assert decoder.kept_bytes == 0
    decoder.feed(b"\r\n" + command("PING"))
    refused, ping = decoder.take(10)

    assert refused[0] == REPLY
    assert b"500000000 bytes is over limits.payload_bytes_max (1024)" in refused[1]
    assert ping[:2] == (COMMAND, [b"PING"])


def test_a_command_over_the_batch_limit_is_skipped_as_it_streams_by():
    decoder = CommandDecoder(1024, 100, 4096)
    decoder.feed(b"*1048576\r\n$5\r\nRPUSH\r\n$1\r\nq\r\n")
    kept_most = 0
    for _ in range(10):
        decoder.feed(b"$1000\r\n%b\r\n" % (b"x" * 1000) * 100)
        assert decoder.take(10) == []
        kept_most = max(kept_most, decoder.kept_bytes)
    assert kept_most < 4096 + 65536 + 1024


def test_a_million_arguments_to_a_command_that_takes_two_cost_no_million_objects():
    decoder = CommandDecoder(2**20, 10_000, 2**24)
    decoder.feed(b"*1000001\r\n$3\r\nDEL\r\n" + b"$1\r\nx\r\n" * 1_000_000)
    ((kind, args, argc),) = decoder.take(10)

    assert (kind, len(args), argc) == (COMMAND, 64, 1_000_001)


def test_pushes_are_merged_until_something_else_or_the_bound_comes():
    decoder = CommandDecoder(2**20, 10_000, 2**24)
    push = command("RPUSH", "q", "m")
    decoder.feed(push * 3 + command("PING") + push * 5000)
    kinds = [(kind, number) for kind, _, number in decoder.take(10)]

    assert kinds == [(PUSHES, 3), (COMMAND, 1), (PUSHES, 2048), (PUSHES, 2048), (PUSHES, 904)]


def test_large_pushes_are_not_merged_beyond_a_megabyte():
    decoder = CommandDecoder(2**20, 10_000, 2**24)
    decoder.feed(command("RPUSH", "q", b"x" * 400_000) * 5)

    assert [number for _, _, number in decoder.take(10)] == [2, 2, 1]


def test_noise_never_crashes_the_decoder():
    noise = random.Random(4)
    alphabet = [
        b"*",
        b"$",
        b"\r\n",
        b"1",
        b"3",
        b"-",
        b"RPUSH",
        b"HDEL",
        b"q",
        b"\x00",
        b"\xff",
        b'"',
        b" ",
        b"\n",
    ]
    for _ in range(3000):
        stream = b"".join(noise.choices(alphabet, k=noise.randrange(1, 60)))
        assert decode([stream]) == expected(stream), stream
