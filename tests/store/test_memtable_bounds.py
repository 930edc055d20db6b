"""What RocksDB holds in memory of what was written: each family has a bound, and comes to it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from tests.native.storeprobe import StoreProbe, StoreRefused

MIB = 1 << 20
FRAMES, STAGED = 1, 12
SMALL = {"INDEX": 2, "SETTLED": 3, "LEASES": 4, "STATES": 5, "KEYS": 7, "DEDUP": 10}
FULL_BYTES = {FRAMES: 28 * MIB, STAGED: 8 * MIB, **dict.fromkeys(SMALL.values(), 4 * MIB)}
"""A memtable of each family; then it is written to a table, and its memory is given back."""
AT_MOST = {FRAMES: 3, STAGED: 6, **dict.fromkeys(SMALL.values(), 4)}
"""Memtables of a family, those included that are being written to a table."""
RECORD_BYTES = 30_000
A_LITTLE = 1.1
"""RocksDB takes memory for a memtable in pieces, so the last one may go beyond."""


@pytest.mark.parametrize("family", FULL_BYTES)
def test_a_family_fills_a_memtable_and_never_holds_more_than_its_number_of_them(
    tmp_path: Path, family: int
) -> None:
    store = StoreProbe(str(tmp_path), blob_min_bytes=0)
    full, empty, most = FULL_BYTES[family], store.held()["memtables"], 0
    body = os.urandom(RECORD_BYTES)
    for number in range(int(2.5 * full) // RECORD_BYTES):
        with suppress(StoreRefused):  # it is written to a table more slowly than it fills
            store.write([(family, b"%08d" % number, body)])
        most = max(most, store.held()["memtables"] - empty)
    store.close()

    assert 0.9 * full < most < A_LITTLE * AT_MOST[family] * full
