"""The checksum of the log and of payloads: the standard's value, by both ways, and used by RocksDB too."""

import os
import platform
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila_server.core.structures.checksum import calls_by_rocksdb, extend
from tests.native.storeprobe import StoreProbe, scan_wal_of

FRAMES = 1


@pytest.mark.parametrize(
    ("content", "checksum"),
    [
        (b"", 0x00000000),
        (b"a", 0xC1D04330),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_the_checksum_is_the_one_of_rfc_3720(content: bytes, checksum: int) -> None:
    assert extend(0, content) == checksum
    assert extend(0, content, by_table=True) == checksum


@given(head=st.binary(max_size=70), tail=st.binary(max_size=70))
def test_a_checksum_goes_on_where_it_ended(head: bytes, tail: bytes) -> None:
    whole = extend(0, head + tail)

    assert extend(extend(0, head), tail) == whole
    assert extend(extend(0, head, by_table=True), tail, by_table=True) == whole


NOT_X86 = platform.machine() != "x86_64" and not os.environ.get("CI")


@pytest.mark.skipif(NOT_X86, reason="other processors: RocksDB has its own checksum; in CI this fails")
def test_rocksdb_takes_our_checksum(tmp_path: Path) -> None:
    store = StoreProbe(str(tmp_path))
    before = calls_by_rocksdb()

    store.write([(FRAMES, b"k", b"x" * 100_000)])

    assert calls_by_rocksdb() > before
    store.close()
    assert scan_wal_of(str(tmp_path))["damaged_regions"] == 0
