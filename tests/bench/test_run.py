"""`bench/run.py`: what is on the page after a run that was interrupted."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import run
from fila_bench import registry, report, scenarios
from fila_bench.registry import Benchmark, Budget
from fila_bench.report import Finding

scenarios.register_all()  # before a test replaces the register


def found(name: str, case: str, value: float) -> Finding:
    return Finding(benchmark=name, case=case, value=value, unit="msg/s")


def test_an_interrupted_run_keeps_what_it_found_and_what_stood_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def whole(_: Budget) -> Iterator[Finding]:
        yield found("whole", "a", 2)

    def stopped(_: Budget) -> Iterator[Finding]:
        yield found("stopped", "a", 3)
        sys.exit("stopped")

    results, page = tmp_path / "results.json", tmp_path / "page.md"
    earlier = [
        found("whole", "gone", 1),
        found("stopped", "a", 1),
        found("stopped", "b", 1),
        found("other", "a", 1),
    ]
    results.write_text(report.as_json(earlier, report.this_machine()))
    page.write_text(report.markdown(earlier, report.this_machine(), {}) + "\n## by hand\n\nstays\n")
    benchmarks = {
        name: Benchmark(name, "", do, f"How {name} was measured.")
        for name, do in (("whole", whole), ("stopped", stopped))
    }
    monkeypatch.setattr(registry, "BENCHMARK_BY_NAME", benchmarks)
    monkeypatch.setattr(run, "BENCHMARK_BY_NAME", benchmarks)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr("resource.setrlimit", lambda *_: None)
    options = ["--only", "whole,stopped", "--keep", "--json", str(results), "--markdown", str(page)]
    monkeypatch.setattr(sys, "argv", ["run.py", *options])

    with pytest.raises(SystemExit, match="stopped"):
        run.main()

    kept = {
        (one["benchmark"], one["case"]): one["value"] for one in json.loads(results.read_text())["findings"]
    }
    assert kept == {("whole", "a"): 2, ("stopped", "a"): 3, ("stopped", "b"): 1, ("other", "a"): 1}
    assert "| a | 3 msg/s |" in page.read_text()
    assert "\n\nHow whole was measured.\n\n| case |" in page.read_text()
    assert page.read_text().endswith("## by hand\n\nstays\n")
