"""A start reads both clocks at one moment, so that what was told to last until a moment does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fila_server import opening
from fila_server.config.schema import Config


def test_a_start_reads_the_wall_clock_right_before_the_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever took time between the two would be missing at the end of each lease and each delay."""
    reads: list[str] = []

    def read(clock: str) -> int:
        reads.append(clock)
        return len(reads)

    clocks = SimpleNamespace(time_ns=lambda: read("wall"), monotonic_ns=lambda: read("monotonic"))
    monkeypatch.setattr(opening, "time", clocks)
    monkeypatch.setattr(opening, "_reported_while_it_lasts", lambda _: read("prepared") and _Nothing())

    def engine(_: str, __: dict[str, Any], *, mono_ns: int, wall_ns: int, seed: int) -> SimpleNamespace:
        return SimpleNamespace(wall_ns=wall_ns, mono_ns=mono_ns)

    opened: Any = opening._open_once(engine, Config())  # type: ignore[arg-type]

    assert reads[:3] == ["wall", "monotonic", "prepared"]
    assert (opened.wall_ns, opened.mono_ns) == (1, 2)


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass
