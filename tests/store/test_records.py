"""Batches are atomic, reads see what was written, and a range is deleted without reading it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.native.storeprobe import StoreProbe

FRAMES, INDEX, CONFIG, FAMILIES = 1, 2, 8, range(11)
OK, NOT_FOUND = 0, 8


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreProbe]:
    store = StoreProbe(str(tmp_path))
    yield store
    store.close()


def test_families_do_not_see_each_other(store: StoreProbe) -> None:
    store.write([(family, b"same", b"%d" % family) for family in FAMILIES])

    assert [store.get(family, b"same") for family in FAMILIES] == [b"%d" % family for family in FAMILIES]


def test_a_missing_record_is_none_and_an_empty_one_is_empty(store: StoreProbe) -> None:
    store.write([(CONFIG, b"empty", b"")])

    assert store.get(CONFIG, b"empty") == b""
    assert store.get(CONFIG, b"missing") is None


def test_parts_become_one_value(store: StoreProbe) -> None:
    store.write_parts(FRAMES, b"frame", [b"header", b"", b"first ", b"second"])

    assert store.get(FRAMES, b"frame") == b"headerfirst second"


def test_a_range_ends_before_its_end(store: StoreProbe) -> None:
    store.write([(INDEX, b"q%d" % number, b"") for number in range(5)])

    store.write([(INDEX, b"q1", b"q3", "range")])

    assert [key for key, _ in store.scan(INDEX)] == [b"q0", b"q3", b"q4"]


def test_a_scan_starts_at_the_first_key_not_below_what_was_sought(store: StoreProbe) -> None:
    store.write([(INDEX, key, b"") for key in (b"a", b"c", b"e")])

    assert [key for key, _ in store.scan(INDEX, b"b")] == [b"c", b"e"]


def test_several_keys_are_read_at_one_moment(store: StoreProbe) -> None:
    store.write([(FRAMES, b"a", b"1"), (FRAMES, b"b", b"x" * 100_000)])

    assert store.get_many(FRAMES, [b"b", b"nothing", b"a"]) == [
        (OK, b"x" * 100_000),
        (NOT_FOUND, None),
        (OK, b"1"),
    ]


def test_large_values_come_back_from_their_blob_files(store: StoreProbe) -> None:
    store.write([(FRAMES, b"large", b"x" * 1_000_000), (FRAMES, b"small", b"y")])
    store.flush(FRAMES)

    assert store.get(FRAMES, b"large") == b"x" * 1_000_000
    assert store.get(FRAMES, b"small") == b"y"


keys = st.binary(min_size=1, max_size=3)
changes = st.one_of(
    st.tuples(st.just("put"), keys, st.binary(max_size=8)),
    st.tuples(st.just("delete"), keys, st.just(b"")),
    st.tuples(st.just("range"), keys, keys),
    st.tuples(st.just("flush"), st.just(b""), st.just(b"")),
    st.tuples(st.just("compact"), st.just(b""), st.just(b"")),
)


@settings(max_examples=10, deadline=None)
@given(script=st.lists(changes, max_size=30))
def test_the_store_agrees_with_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, script: list[tuple[str, bytes, bytes]]
) -> None:
    store = StoreProbe(str(tmp_path_factory.mktemp("twin")))
    twin: dict[bytes, bytes] = {}
    for kind, key, value in script:
        if kind == "put":
            store.write([(INDEX, key, value)])
            twin[key] = value
        elif kind == "delete":
            store.write([(INDEX, key, None)])
            twin.pop(key, None)
        elif kind == "range" and key <= value:
            store.write([(INDEX, key, value, "range")])
            twin = {held: twin[held] for held in twin if not key <= held < value}
        elif kind == "flush":
            store.flush(INDEX)
        elif kind == "compact":
            store.compact(INDEX)

    assert store.scan(INDEX) == sorted(twin.items())
    store.close()
