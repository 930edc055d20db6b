"""The compiled load generator (`bench/load`), run from here: one call, one report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_BINARY = _ROOT / "build" / "fila-load"


class GoLoadFailed(Exception):
    """The generator could not be built or run; what it said is in the text."""


def build() -> Path:
    """Build it if anything changed; go knows."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise GoLoadFailed("Go is missing: tools/system-packages dev says how to install it")
    built = subprocess.run(
        [go, "-C", str(_ROOT / "bench" / "load"), "build", "-o", str(_BINARY), "."],
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode:
        raise GoLoadFailed(built.stderr)
    return _BINARY


def run(address: str, key: str = "", /, **flags: str | float) -> dict[str, Any]:
    """Run one load and return its report; `flags` are fila-load's, with `_` for `-`. `key`: for a broker that asks."""
    command = [str(_BINARY), "-addr", address, "-json"]
    for name, value in flags.items():
        command += [f"-{name.replace('_', '-')}", str(value)]
    environ = {**os.environ, "FILA_API_KEY": key} if key else None
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    if ran.returncode:
        raise GoLoadFailed(ran.stderr)
    report: dict[str, Any] = json.loads(ran.stdout)
    return report
