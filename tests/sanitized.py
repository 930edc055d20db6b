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


def prepare() -> None:
    """The tree's sources into the copy, where they differ; the C that Cython made of them spares making it again."""
    sources = [
        path for path in (ROOT / "server").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    compiled = [path for path in sources if path.suffix == ".so" and (ROOT / CORE) in path.parents]
    sources += [ROOT / name for name in ("setup.py", "pyproject.toml", "README.md")]
    if not (COPY / WORK).exists():
        shutil.copytree(ROOT / WORK, COPY / WORK, ignore=shutil.ignore_patterns("lock"))
    for path in sources:
        copy = COPY / path.relative_to(ROOT)
        if path in compiled or (copy.exists() and copy.read_bytes() == path.read_bytes()):
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)


def build() -> None:
    """Compile what is not, or no longer, compiled; SystemExit with what the compiler said."""
    modules = ",".join(sorted(path.stem for path in (ROOT / CORE).rglob("*.pyx")))
    environ = {**os.environ, "FILA_SANITIZE": SANITIZERS, "FILA_MODULES": modules}
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=COPY, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the sanitized core does not compile:\n{done.stdout}{done.stderr}")


def environment() -> dict[str, str]:
    """What a process needs to run with the copy: the sanitizer's library comes before all others."""
    asked = ["cc", "-print-file-name=libasan.so"]
    library = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    paths = {"LD_PRELOAD": library, "PYTHONPATH": str(COPY / "server" / "src")}
    return {**os.environ, **OPTIONS, **paths}


def main(words: list[str]) -> int:
    """Run a module with the copy."""
    if not words:
        print(__doc__, file=sys.stderr)
        return 2
    prepare()
    build()
    return subprocess.run([sys.executable, "-m", *words], cwd=ROOT, env=environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
