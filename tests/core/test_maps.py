"""The hash maps against Python's dict, and the text hash against the ways in which hashes are bad."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila_server.core.structures.maps import NumberMap, TextTable, hash_text, seed_text_hash
from tests.core.at_length import LONG_SCRIPTS

keys = st.one_of(st.integers(0, 60), st.integers(0, 60).map(lambda n: n << 40), st.integers(0, 2**64 - 1))
number_steps = st.one_of(
    *[st.tuples(st.just("put"), keys, st.integers(1, 2**64 - 1))] * 2,
    st.tuples(st.just("remove"), keys),
    st.tuples(st.just("get"), keys),
)
texts = st.one_of(st.integers(0, 60).map(lambda n: b"tenant-%d" % n), st.binary(max_size=40))
text_steps = st.one_of(
    *[st.tuples(st.just("put"), texts)] * 2,
    st.tuples(st.just("remove"), texts),
    st.tuples(st.just("get"), texts),
)


@settings(max_examples=LONG_SCRIPTS)
@given(st.lists(number_steps, min_size=60, max_size=300))
def test_the_number_map_agrees_with_a_dict(script):
    numbers, reference = NumberMap(), {}
    for name, key, *value in script:
        if name == "put":
            numbers.put(key, *value)
            reference[key] = value[0]
        elif name == "remove":
            assert numbers.remove(key) == reference.pop(key, 0)
        assert len(numbers) == len(reference)
        assert all(numbers.get(known) == value for known, value in reference.items())
        assert numbers.get(key) == reference.get(key, 0)
    assert sorted(numbers.values()) == sorted(reference.values())


@settings(max_examples=LONG_SCRIPTS)
@given(st.lists(text_steps, min_size=60, max_size=300))
def test_the_text_map_agrees_with_a_dict(script):
    table, reference = TextTable(), {}
    for number, (name, text) in enumerate(script):
        if name == "put":
            table.put(number, text)
            reference[text] = number
        elif name == "remove" and text in reference:
            assert table.remove(reference.pop(text))
        assert len(table) == len(reference)
        assert table.get(text) == reference.get(text)
    assert sorted(table.numbers()) == sorted(reference.values())
    assert all(table.get(text) == number for text, number in reference.items())


@pytest.mark.parametrize("stride", [1, 8, 1 << 12, 1 << 32, 0x9E3779B97F4A7C15])
def test_a_map_that_grew_and_shrank_has_lost_nothing(stride):
    chance = random.Random(stride)
    numbers, reference = NumberMap(), {}
    for upwards in (0.95, 0.05, 0.7, 0.02):
        for _ in range(6_000):
            if chance.random() < upwards:
                key = chance.randrange(20_000) * stride % 2**64
                numbers.put(key, key | 1)
                reference[key] = key | 1
            elif reference:
                key = chance.choice(list(reference)) if len(reference) < 50 else next(iter(reference))
                assert numbers.remove(key) == reference.pop(key)
        assert len(numbers) == len(reference)
        assert all(numbers.get(key) == value for key, value in reference.items())
        assert sorted(numbers.values()) == sorted(reference.values())


def test_key_zero_is_a_key_like_any_other():
    numbers = NumberMap()
    assert numbers.get(0) == 0
    assert numbers.remove(0) == 0
    numbers.put(0, 9)
    assert numbers.get(0) == 9
    assert numbers.remove(0) == 9
    assert len(numbers) == 0


def test_a_map_is_never_more_than_three_quarters_full_and_gives_memory_back():
    numbers = NumberMap()
    for key in range(10_000):
        numbers.put(key, 1)
        assert len(numbers) <= 0.75 * numbers.capacity
    grown = numbers.capacity
    for key in range(10_000):
        numbers.remove(key)

    assert grown == 16_384
    assert numbers.capacity == 8


def test_a_text_map_gives_memory_back():
    table = TextTable()
    for number in range(1000):
        table.put(number, b"key-%d" % number)
        assert len(table) <= 0.75 * table.capacity
    assert sorted(table.numbers()) == list(range(1000))
    for number in range(1000):
        assert table.remove(number)

    assert (len(table), table.capacity) == (0, 8)


def test_only_the_very_text_that_is_in_the_map_can_be_removed():
    table = TextTable()
    table.put(1, b"same bytes")
    table.put(2, b"same bytes")

    assert not table.remove(1)
    assert table.get(b"same bytes") == 2
    assert table.remove(2)
    assert table.get(b"same bytes") is None


def test_a_text_of_the_same_hash_is_not_taken_for_another():
    table = TextTable()
    table.put(1, b"abcd")
    collision = hash_text(b"abcd")

    assert table.get_hashed(b"abcd", collision) == 1
    for other in (b"abce", b"abc", b"", b"abcde"):
        assert table.get_hashed(other, collision) is None


def test_texts_that_differ_only_past_a_zero_byte_or_in_length_are_different():
    table = TextTable()
    similar = [b"", b"\0", b"\0\0", b"a", b"a\0", b"a\0b", b"a\0c", b"a" * 16, b"a" * 17, b"a" * 33]
    for number, text in enumerate(similar):
        table.put(number, text)
    assert [table.get(text) for text in similar] == list(range(len(similar)))


def similar_texts() -> Iterator[bytes]:
    yield b""
    yield from (bytes([a]) for a in range(256))
    yield from (bytes([a, b]) for a in range(256) for b in range(256))
    yield from (b"\0" * length for length in range(3, 300))
    yield from (b"tenant-%d" % n for n in range(50_000))
    yield from (b"a-rather-long-prefix-shared-by-all/%d/x" % n for n in range(50_000))


def test_similar_texts_have_different_hashes():
    hashes = {hash_text(text) for text in similar_texts()}
    assert len(hashes) == sum(1 for _ in similar_texts())


def test_every_bit_of_a_text_moves_about_half_the_bits_of_its_hash():
    chance = random.Random(1)
    for length in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100):
        moved = [0] * (8 * length)
        for _ in range(40):
            text = chance.randbytes(length)
            for bit in range(8 * length):
                other = bytearray(text)
                other[bit // 8] ^= 1 << bit % 8
                moved[bit] += (hash_text(text) ^ hash_text(bytes(other))).bit_count()
        assert all(22 < count / 40 < 42 for count in moved), length


def test_the_low_bits_spread_names_evenly():
    cells = [0] * 4096
    for n in range(40_960):
        cells[hash_text(b"customer:%05d" % n) & 4095] += 1
    # Ten to a cell on average; chance gives 30 to one cell in two million.
    assert max(cells) < 35
    assert cells.count(0) < 10


def test_another_seed_gives_other_hashes():
    seed_text_hash(0)  # an engine opened earlier in this process has set its own
    before = hash_text(b"tenant")
    try:
        seed_text_hash(12345)
        assert hash_text(b"tenant") != before
    finally:
        seed_text_hash(0)
    assert hash_text(b"tenant") == before


LITTLE = """
import resource
from fila_server.core.structures.maps import NumberMap, TextTable
from fila_server.core.structures.timers import TimerHeap
CELLS = 1 << 19

def grow(many, add, upto):
    \"\"\"Add as many as there is room for, then one more with less memory left than growing takes.\"\"\"
    number = 0
    while number < CELLS // 2 or number < upto():
        add(number)
        number += 1
    pages = int(open("/proc/self/statm").read().split()[0])
    most = pages * resource.getpagesize() + (1 << 20)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    add(number)
    print("goes on")
"""
GROWING = {
    "numbers": "m = NumberMap(); grow(m, lambda n: m.put(n, 1), lambda: m.capacity * 3 // 4)",
    "texts": "m = TextTable(); grow(m, lambda n: m.put(n, b'%d' % n), lambda: m.capacity * 3 // 4)",
    "timers": "m = TimerHeap(2 * CELLS); grow(m, lambda n: m.set(n, n), lambda: m.capacity)",
}


def plain_environment() -> dict[str, str]:
    """Beside a sanitized core (tests/sanitized.py) the child takes the tree's own: where memory ends, a sanitizer ends
    the process itself, or hangs for want of memory to say so."""
    taken = {"LD_PRELOAD", "PYTHONPATH"} if "LD_PRELOAD" in os.environ else set()
    return {name: value for name, value in os.environ.items() if name not in taken}


@pytest.mark.parametrize("what", GROWING)
def test_what_finds_no_memory_to_grow_ends_the_process_and_loses_no_entry_in_silence(what: str):
    """A lease that was not in its table would be unknown to its ack, and one without a timer would never end."""
    ended = subprocess.run(
        [sys.executable, "-c", LITTLE + GROWING[what]],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=plain_environment(),
    )

    assert ended.returncode == -signal.SIGABRT, ended.stderr
    assert ended.stdout == ""
