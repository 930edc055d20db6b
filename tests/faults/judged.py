"""Faults that a build shares with its replay: recorded, replayed and judged by the reference, all on the faulty build.

    python -m tests.faults.judged                 all of JUDGED (about half a minute each)
    python -m tests.faults.judged a-message-costs-nothing

A replay on the faulty build decides the same again, so it sees nothing; the reference in Python is to name the promise
that was broken. Exit code 1 where it named none, or another one than JUDGED says.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.catalogue import FAULTS
from tests.faults.fault import Fault
from tests.faults.plant import ROOT, copy_to, planted_in

COPY = ROOT / "build" / "judged"
TURN = "it was the turn of key"
SHARE = "apart for each of their weight"
JUDGED = {
    "what-a-message-leaves-of-a-grant-is-forgotten": TURN,
    "a-refund-above-one-grant": TURN,
    "a-message-costs-nothing": TURN,
    "what-was-returned-comes-back-last": "was ready before it",
    "a-failure-counts-no-attempt": "times, and counted as",
    "a-cap-lets-one-more-go": "out at once, and this is number",
    "a-bucket-takes-no-token": "a second had",
    "a-line-knows-no-weights": SHARE,
    "a-new-weight-stays-outside-the-line": SHARE,
    "who-got-a-token-forgets-its-turn": SHARE,
}
"""The promise that the reference finds broken, by the name of a fault: a part of what it says."""
EXIT_BROKEN = 3


def main(names: Sequence[str]) -> int:
    """Try the faults named, or all."""
    unknown = set(names) - set(JUDGED)
    if unknown:
        print(f"no such fault: {', '.join(sorted(unknown))}; see JUDGED in {__file__}", file=sys.stderr)
        return 2
    copy_to(COPY)
    missed = []
    for fault in FAULTS:
        if fault.name not in (names or JUDGED):
            continue
        with planted_in(COPY, fault), TemporaryDirectory(prefix="fila-judged-") as folder:
            said = tried(fault, Path(folder, "history"))
        print(f"{'MISSED' if said else 'found '} {fault.name} ({fault.module})", flush=True)
        print(f"         {said or JUDGED[fault.name]}", flush=True)
        missed += [fault.name] if said else []
    print(f"missed: {', '.join(missed)}" if missed else "all found")
    return 1 if missed else 0


def tried(fault: Fault, history: Path) -> str:
    """Record, replay and judge on the faulty build; why the fault counts as missed, "" where it was found."""
    code, said = _run("-c", f"from tests.faults.judged import record; record({str(history)!r})")
    if code:
        return f"it could not be recorded: {said[-500:]}"
    code, said = _run("-m", "fila_server.main", "history", "verify", str(history))
    if code:
        return f"the replay on the same build found it already: {said[-500:]}"
    code, said = _run("-m", "fila_server.main", "history", "verify", str(history), "--against", "reference")
    if code != EXIT_BROKEN:
        return f"the reference found nothing: {said[-500:]}"
    if JUDGED[fault.name] not in said:
        return f"the reference found something else: {said[-500:]}"
    return ""


def record(directory: str) -> None:
    """Write the history of a market, in this process."""
    import pyarrow as pa

    from fila_server.history_files.files import RunFiles
    from tests.recording.market import market
    from tests.recording.recorded import RecordedEngine

    engine = RecordedEngine()
    market(engine)
    engine.take()
    files = RunFiles(Path(directory), "20260302T140000-aaaaaa", 1)
    files.write(
        {name: pa.concat_tables(parts) for name, parts in engine.kept.items()},
        1_700_000_000_000,
        1_700_000_000_999,
    )
    files.end()
    engine.remove()


def _run(*words: str) -> tuple[int, str]:
    environ = {**os.environ, "PYTHONPATH": f"{COPY / 'server' / 'src'}:{ROOT}"}
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
