"""Seeded runs of the whole core, recorded: whatever happens in them, each start's recording is followed to its end."""

from __future__ import annotations

import pyarrow as pa
import pytest

from fila_server.core.runtime.engine import CoreEngine
from fila_server.history_files import columns, replaying
from tests.core import driven_engine
from tests.recording.recorded import in_flight, kept
from tests.simulation.simulate import simulate

SEEDS = (5, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 12)))


def recording_core(runs: list[dict[str, list[pa.Table]]]) -> type[CoreEngine]:
    """An engine that records, and leaves each of its starts' tables in `runs`."""

    class Recording(CoreEngine):
        def __init__(self, data_dir, settings, **clocks):
            super().__init__(
                data_dir, {**settings, "history.enabled": True, "history.headers": "all"}, **clocks
            )
            self.tables: dict[str, list[pa.Table]] = {}
            runs.append(self.tables)

        def run_pass(self, mono_ns, wall_ns):
            self.recording.cut()  # what the pass before left: nothing is lost by a crash
            wanted = super().run_pass(mono_ns, wall_ns)
            kept(self.recording, self.tables)
            return wanted

    return Recording


@pytest.mark.parametrize("policy", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.timeout(180)
@pytest.mark.costly("a simulation of a whole core, twice")
def test_what_a_simulation_recorded_is_decided_again_and_each_delivery_ends_once(seed, policy, monkeypatch):
    runs: list[dict[str, list[pa.Table]]] = []
    monkeypatch.setattr(driven_engine, "CoreEngine", recording_core(runs))
    simulate(seed, policy=policy)

    assert runs
    for tables in runs:
        others = (tables.get(name, []) for name in (columns.DECISIONS, columns.CHANGES))
        outcome = replaying.verify(tables[columns.INPUTS], *others)
        assert outcome.difference is None, (runs.index(tables), outcome)
        in_flight(tables.get(columns.DECISIONS, []))
