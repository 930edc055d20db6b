"""Many seeds of one simulation, one after the other, and whether its oracles had enough to judge in them.

An oracle that hardly ever judges is green whatever the core does. `USUAL` says how often each judges in a run: the
median of many, or a third of the mean where most runs have none of it. In ENOUGH_SEEDS seeds or more each has to come
to half of that a run; a change after which one does not has taken it something to look at.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.simulation.oracles import Broken

ENOUGH_SEEDS = 20
FEW = 5
"""Where less than this is asked of an oracle, it has to judge once: what a few seeds have much of and most have none of
may come to little in others. Seeds 3001 to 3030 of the sessions have one quiet key that waits, 1 to 350 have 122."""

USUAL: dict[str, dict[str, float]] = {
    "plain": {  # 2,762 runs; what order, ends and schedules add, 117
        "a message and its next moment agree": 1,
        "a message is shared as its producer said": 10,  # a third of the runs have any: 64 a run, over 25
        # Often no two keys wait for one bucket alone in fifty seeds. shared_limits.py judges it at length.
        "keys share a limit within the bound": 0,
        "keys stay within the bound": 34_354,
        "limits that are whole let somebody go": 1.5,
        "messages": 750,
        "no answered message is lost or comes back": 1_484,
        "no bucket over its curve": 23,
        "no limit gives more than it may": 16,
        "no moment that is over stays due": 16,
        "no pass does more than its bound": 7,
        "nobody waits at limits that have enough": 15,
        "nothing that could go is left lying": 8,
        "one at a time of a key in order": 53,
        "one end a message": 441,
        "one firing a moment": 20,
        "one lease a message": 892,
        "order within a key": 76,
        "the higher priority of a key goes first": 10,  # a third of the runs have any: 43 a run, over 24
        "the numbers agree": 71,
        "what is cancelled ends once, and is never delivered": 10,
    },
    "policy": {  # 3,135 runs; what order, ends and schedules add, 108
        "a message and its next moment agree": 2,
        "a message is shared as its producer said": 5,  # as in plain
        "keys share a limit within the bound": 0,  # as in plain
        "keys stay within the bound": 27_920,
        "limits that are whole let somebody go": 1.5,
        "messages": 924,
        "no answered message is lost or comes back": 1_310,
        "no bucket over its curve": 15,
        "no limit gives more than it may": 10,
        "no moment that is over stays due": 10,
        "no pass does more than its bound": 7,
        "nobody waits at limits that have enough": 3,
        "nothing that could go is left lying": 6,
        "one at a time of a key in order": 30,
        "one end a message": 499,
        "one firing a moment": 12,
        "one lease a message": 748,
        "order within a key": 62,
        "the higher priority of a key goes first": 5,  # as in plain
        "the numbers agree": 64,
        "what is cancelled ends once, and is never delivered": 10,
    },
    "sessions": {  # 2,750 runs
        "a quiet key waits a grant": 0.115,
        "a resume keeps what is held": 4,
        "a return takes its old place": 118,
        "attempts are begun failures": 142,
        "dead letters are what failed so often": 484,
        "delivered is begun": 484,
        "everything comes back in the end": 1,
        "leased is sent": 484,
        "no bucket over its curve": 14,
        "nobody hands out after its deadline": 7,
        "nobody is gone before its time": 9,
        "nothing is delivered before its time": 6,
        "nothing is delivered past its time to live": 6,
        "one holder": 142,
        "only what was begun is redelivered": 132,
        "the books": 726,
        "what comes back says so": 22,
        "what was begun is redelivered": 3,
        "who is silent or away is gone in time": 597,
    },
    "hardships": {  # 3,100 runs
        "a clean stop leaves a sound store": 2,
        "a dedup key names its first message": 2,
        "a page moves what is in it": 1,
        "a redriven message is routed as told": 2,
        "an atomic batch is stored whole or not at all": 9,
        "an id stays": 457,
        "clocks set": 4,
        "ended by kill": 1,
        "ended by power": 0.254,
        "ended by stop": 2,
        "files damaged": 0.101,
        "frames written anew": 0.475,
        "hard retention keeps within its size": 5,
        "hard retention takes the oldest first": 3,
        "no answered message is lost": 57,
        "no id is given twice": 212,
        "no lease id is given twice": 241,
        "no offset is given twice": 457,
        "no pass does more than its bound": 5,
        "not after its time to live": 0.3,
        "not before its delay is over": 241,
        "one lease at a time": 241,
        "passes in trouble": 72,
        "what is delivered was sent, whole": 241,
        "what is done gives its disk back": 5,
        "what was acked never comes back": 391,
        "what was refused is never seen": 241,
    },
}
"""`python -m tests.soak --medians` tells these numbers of the runs made so far; docs/proof.md says of how many."""


def too_little(world: str, judged: Counter[str], seeds: int) -> dict[str, int]:
    """The oracles that judged less in so many runs than they have to, and those nobody expected."""
    least = {oracle: usual * seeds / 2 for oracle, usual in USUAL[world].items()}
    least = {oracle: count if count >= FEW else min(count, 1) for oracle, count in least.items()}
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
            if seed > first:  # the hash maps keep the first seed of the process, and orders depend on it
                print(f"again: the same with {first} {seed + 1 - first}, if {seed} alone is good", flush=True)
    print(f"{count} seeds, {bad} bad; judged {dict(judged)}")
    missing = too_little(world, judged, count - bad) if count - bad >= ENOUGH_SEEDS else {}
    if missing:
        print(f"{count} seeds, {bad} bad; judged too little: {missing}")
    return 1 if bad or missing else 0
