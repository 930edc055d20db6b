"""Tests with every access to memory checked: a copy of the core is built with sanitizers, and tests import the copy.

    python -m tests.sanitized pytest -q tests/core tests/store
    python -m tests.sanitized tests.simulation.simulate --policy 1 25

AddressSanitizer finds what is used after it was freed or beyond its end, UBSan what C leaves undefined. The first call
builds the copy in build/sanitized, some minutes; later ones build what changed. Exit code: that of the module named.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "build" / "sanitized"
CORE = Path("server", "src", "fila_server", "core")
WORK = Path("build", "cython")
SANITIZERS = "address,undefined"
OPTIONS = {
    # Python and RocksDB are not built so: what they hold to the end is no leak of ours, and what they free is theirs.
    "ASAN_OPTIONS": "detect_leaks=0:alloc_dealloc_mismatch=0:detect_container_overflow=0:detect_odr_violation=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    # Objects of Python come from malloc too: one that the core wrote beyond is found.
    "PYTHONMALLOC": "malloc",
}


def core_modules() -> list[Path]:
    """Every module of the core."""
    return sorted((ROOT / CORE).rglob("*.pyx"))


def prepare(copy: Path, modules: Iterable[Path]) -> None:
    """The tree's sources into the copy, where they differ, and compiled modules but for those that are built anew.

    The C that Cython made of them spares making it again.
    """
    anew = {module.with_suffix("") for module in modules}
    sources = [
        path for path in (ROOT / "server").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    sources += [ROOT / name for name in ("setup.py", "pyproject.toml", "README.md")]
    if not (copy / WORK).exists():
        shutil.copytree(ROOT / WORK, copy / WORK, ignore=shutil.ignore_patterns("lock"))
    for path in sources:
        there = copy / path.relative_to(ROOT)
        if path.suffix == ".so" and path.with_name(path.name.partition(".")[0]) in anew:
            continue
        if there.exists() and there.read_bytes() == path.read_bytes():
            continue
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, there)


def build(copy: Path, modules: Iterable[Path], flags: str = "", sanitizers: str = SANITIZERS) -> None:
    """Compile what is not, or no longer, compiled; `flags` are more of the compiler's. SystemExit with what it said."""
    names = ",".join(sorted({module.stem for module in modules}))
    environ = {**os.environ, "FILA_SANITIZE": sanitizers, "FILA_MODULES": names, "CFLAGS": flags}
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=copy, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the sanitized core does not compile:\n{done.stdout}{done.stderr}")


def environment(copy: Path, library: str = "libasan.so") -> dict[str, str]:
    """What a process needs to run with the copy: the sanitizer's library comes before all others."""
    asked = ["cc", f"-print-file-name={library}"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    paths = {"LD_PRELOAD": found, "PYTHONPATH": str(copy / "server" / "src")}
    return {**os.environ, **OPTIONS, **paths}


def main(words: list[str]) -> int:
    """Run a module with the copy."""
    if not words:
        print(__doc__, file=sys.stderr)
        return 2
    prepare(COPY, core_modules())
    build(COPY, core_modules())
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, env=environment(COPY), check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
