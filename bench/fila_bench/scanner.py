"""Builds scan.pyx when it is needed, beside no one's wheel: it is the generator's, not the product's."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

_SOURCE = Path(__file__).with_name("scan.pyx")
_BUILD = Path(__file__).resolve().parents[2] / "build" / "bench"


def load() -> ModuleType:
    """Return the compiled scanner, compiling it first when its source has changed."""
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    library = _BUILD / digest / f"scan{suffix}"
    if not library.exists():
        _compile(library)
    spec = importlib.util.spec_from_file_location("scan", library)
    assert spec is not None, "the file was just built"
    assert spec.loader is not None, "an extension module has a loader"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compile(library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    source = library.parent / "scan.c"
    subprocess.run([sys.executable, "-m", "cython", str(_SOURCE), "-o", str(source)], check=True)
    # A neighbour may be building the same thing: the rename makes the last one win, whole.
    partial = library.with_suffix(f".{id(source)}.partial")
    subprocess.run(
        [
            "cc",
            "-O2",
            "-fPIC",
            "-shared",
            f"-I{sysconfig.get_path('include')}",
            str(source),
            "-o",
            str(partial),
        ],
        check=True,
    )
    partial.rename(library)
