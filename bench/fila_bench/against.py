"""The server of another commit, built once, to be measured beside this tree's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "bench" / "against"
BASELINE = "792dccc"
"""The commit that speeds are compared with where no other is named."""


class NotBuilt(Exception):
    """The commit is not known here, or could not be built; what to do is in the text."""


def full_name(commit: str) -> str:
    """The name by which `server_of` keeps a commit. Raises NotBuilt where git does not know it."""
    return _git("rev-parse", "--short=12", commit)


def server_of(commit: str) -> Path:
    """The `fila-server` of a commit, built as its own README says. The first time takes minutes.

    Raises NotBuilt.
    """
    commit = full_name(commit)
    tree = BUILT / commit
    server = tree / ".venv" / "bin" / "fila-server"
    if not server.exists():
        print(f"building {commit} in {tree}", file=sys.stderr, flush=True)
        if not tree.exists():
            tree.parent.mkdir(parents=True, exist_ok=True)
            _git("worktree", "prune")
            _git("worktree", "add", "--detach", str(tree), commit)
        if subprocess.run(["make", "build"], cwd=tree, env=outside_make(), check=False).returncode:
            raise NotBuilt(f"{commit} could not be built; what failed is above, its tree is {tree}")
    return server


def outside_make() -> dict[str, str]:
    """The environment without what make, which may have called this, tells its own children."""
    words = ("MAKE", "MFLAGS", "ONLY", "QUICK", "KEEP", "MARKDOWN")
    return {key: value for key, value in os.environ.items() if not key.startswith(words)}


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotBuilt(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()
