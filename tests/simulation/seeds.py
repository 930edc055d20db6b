"""Many seeds of one simulation, one after the other, and whether its oracles had enough to judge in them.

An oracle that hardly ever judges is green whatever the core does. `USUAL` says how often each judges in a run: the
median of many, or half the mean where most runs have none of it. In ENOUGH_SEEDS seeds or more each has to come to
half of that a run; a change after which one does not has taken it something to look at.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.simulation.oracles import Broken

ENOUGH_SEEDS = 20

USUAL: dict[str, dict[str, float]] = {}
"""`python -m tests.soak --medians` tells these numbers of the runs made so far; docs/proof.md says of how many."""


def too_little(world: str, judged: Counter[str], seeds: int) -> dict[str, int]:
    """The oracles that judged less in so many runs than they have to, and those nobody expected."""
    least = {oracle: usual * seeds / 2 for oracle, usual in USUAL[world].items()}
    unknown = {oracle: count for oracle, count in judged.items() if oracle not in least}
    return {oracle: judged[oracle] for oracle, count in least.items() if judged[oracle] < count} | unknown


def note_judged(world: str, seed: int, judged: Counter[str]) -> None:
    """Leave how often each oracle judged in one run, where FILA_SIM_JUDGED names a file for it (tests/soak.py)."""
    path = os.environ.get("FILA_SIM_JUDGED")
    if path:
        with Path(path).open("a") as file:
            file.write(json.dumps({"world": world, "seed": seed, "judged": judged}) + "\n")


def run_seeds(world: str, simulate: Callable[[int], Counter[str]], arguments: Sequence[str]) -> int:
    """Run the seeds that `FIRST [COUNT]` names, and tell what broke and what was judged; return the exit code."""
    first, count = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 1
    judged: Counter[str] = Counter()
    bad = 0
    for seed in range(first, first + count):
        try:
            found = simulate(seed)
            note_judged(world, seed, found)
            judged += found
        except Broken as error:
            bad += 1
            print(error if count == 1 else str(error).split("\n")[0][:300], flush=True)
    print(f"{count} seeds, {bad} bad; judged {dict(judged)}")
    missing = too_little(world, judged, count - bad) if count - bad >= ENOUGH_SEEDS else {}
    if missing:
        print(f"{count} seeds, {bad} bad; judged too little: {missing}")
    return 1 if bad or missing else 0
