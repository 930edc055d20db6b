"""Where a release is made, and how its commands are run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.release.versions import TREE

DIST = TREE / "dist"
ASIDE = TREE / "build/release"


def run(*command: str | Path, cwd: Path = TREE, **environ: str) -> str:
    """Run a command, and return what it printed; what it says of a failure, this says."""
    words = [str(word) for word in command]
    print("---", Path(words[0]).name, *words[1:3], flush=True)
    ran = subprocess.run(
        words, cwd=cwd, env=os.environ | environ, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        sys.exit(f"{' '.join(words)} failed ({ran.returncode}):\n{ran.stdout[-4000:]}{ran.stderr[-4000:]}")
    return ran.stdout
