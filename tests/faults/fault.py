"""What a fault is: one change of a module of the core, and the tests that have found it."""

from __future__ import annotations

from typing import NamedTuple

SIMULATED = "simulation/test_simulation.py"
LYING = "simulation/test_planted_faults.py::test_a_core_that_lies_is_found_out"


class Fault(NamedTuple):
    """One change of a module of the core: `text`, which stands there once, becomes `planted`."""

    name: str
    module: str
    text: str
    planted: str
    found_by: tuple[str, ...]
    """Tests, or files of tests, that have found it; they are asked first, and all others when they find too little."""
