"""How often each oracle judges in a run: the median of many runs, or a third of the mean where most have none of it.

Runs leave their counts in a file of the tree (`FILA_SIM_JUDGED`). Those of whole slices of seeds, up to ENOUGH_RUNS of
each simulation, are packed into docs/proof/judged.jsonl, which is committed, so that several trees come to a number
that `USUAL` in seeds.py can stand on.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from pathlib import Path

from tests.ledger import ROOT, rows

PACKED = ROOT / "docs" / "proof" / "judged.jsonl"
ENOUGH_RUNS = 1_000

Counts = dict[str, dict[int, Counter[str]]]
"""By simulation and seed."""


def counts(packed: Path, judged: Path) -> Counts:
    """What was counted in each run that either file knows; the newest where a seed was run more than once."""
    found: Counts = defaultdict(dict)
    for row in rows(packed):
        world, first, lists = str(row["world"]), row["first"], row["judged"]
        assert isinstance(first, int)
        assert isinstance(lists, dict)
        for oracle, many in lists.items():
            for place, count in enumerate(many):
                found[world].setdefault(first + place, Counter())[oracle] = count
    for row in rows(judged):
        world, seed, judged_of = str(row["world"]), row["seed"], row["judged"]
        assert isinstance(seed, int)
        assert isinstance(judged_of, dict)
        found[world][seed] = Counter(judged_of)
    return found


def pack(found: Counts, seeds_a_slice: int) -> list[str]:
    """A line for each slice of seeds that ran as a whole: for each oracle its count in one seed after the other."""
    lines = []
    for world, runs in found.items():
        firsts = [
            first
            for first in range(1, max(runs, default=0) + 1, seeds_a_slice)
            if all(seed in runs for seed in range(first, first + seeds_a_slice))
        ]
        for first in firsts[: ENOUGH_RUNS // seeds_a_slice]:
            some = [runs[seed] for seed in range(first, first + seeds_a_slice)]
            oracles = sorted({oracle for judged in some for oracle in judged})
            lists = {oracle: [judged[oracle] for judged in some] for oracle in oracles}
            row = {"world": world, "first": first, "judged": lists}
            lines.append(json.dumps(row, separators=(",", ":")))
    return lines


def tell(found: Counts) -> None:
    """The numbers, as `USUAL` has them."""
    for world, runs in found.items():
        print(f'    "{world}": {{  # {len(runs):,} runs')
        for oracle in sorted({oracle for judged in runs.values() for oracle in judged}):
            many = [judged[oracle] for judged in runs.values()]
            usual = statistics.median(many) or statistics.mean(many) / 3
            print(
                f'        "{oracle}": {usual:.3g},' if usual < 1 else f'        "{oracle}": {int(usual):_},'
            )
        print("    },")
