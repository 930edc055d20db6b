"""Plant each fault of the catalogue in a core of its own, and see which tests find it.

    python -m tests.faults.plant                  all of them (about half a minute each)
    python -m tests.faults.plant one-attempt-too-many a-seek-skips-its-first-message

The product's tree is copied to build/faults, and one module of the copy is changed and built; the tests then import the
copy: first those that the catalogue names, then, when they find too little, all. A fault counts as found when two tests
fail. Exit code 1 when one was not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.faults.catalogue import FAULTS
from tests.faults.fault import Fault

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "faults"
CORE = Path("server", "src", "fila_server", "core")
WHERE = ("tests/core", "tests/store", "tests/simulation")
"""Cheap ones first; the first two that fail end the run."""
ENOUGH = 2
TIME_OUT_S = 900


class Found(NamedTuple):
    """What the tests said of one fault."""

    tests: list[str]
    end: str
    """Empty, or how the run itself ended: it died, or it hung."""

    @property
    def is_enough(self) -> bool:
        """Two tests failed, or the faulty core took the run itself down."""
        return len(self.tests) >= ENOUGH or bool(self.end)


def main(names: list[str]) -> int:
    """Try the faults named, or all."""
    unknown = set(names) - {fault.name for fault in FAULTS}
    if unknown:
        print(f"no such fault: {', '.join(sorted(unknown))}; see tests/faults/catalogue.py", file=sys.stderr)
        return 2
    copy_to(COPY)
    missed = []
    for fault in FAULTS:
        if names and fault.name not in names:
            continue
        found = _try(fault)
        print(f"{'found ' if found.is_enough else 'MISSED'} {fault.name} ({fault.module})", flush=True)
        for test in found.tests:
            print(f"         {test}", flush=True)
        if found.end:
            print(f"         {found.end}", flush=True)
        missed += [] if found.is_enough else [fault.name]
    print(f"missed: {', '.join(missed)}" if missed else "all found")
    return 1 if missed else 0


def planted(fault: Fault, source: str) -> str:
    """The module's text with the fault; ValueError where it does not stand there exactly once."""
    if source.count(fault.text) != 1:
        raise ValueError(f"{fault.name}: its text stands {source.count(fault.text)} times in {fault.module}")
    return source.replace(fault.text, fault.planted)


def copy_to(folder: Path) -> None:
    """Copy the product's tree, as it is built, to a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "server", folder / "server", symlinks=True)
    for name in ("setup.py", "pyproject.toml", "README.md"):
        shutil.copy2(ROOT / name, folder / name)


@contextmanager
def planted_in(folder: Path, fault: Fault) -> Iterator[None]:
    """Build the fault in such a copy; it is as before afterwards."""
    source = folder / CORE / fault.module
    [library] = source.parent.glob(f"{source.stem}.*.so")
    text, binary = source.read_text(), library.read_bytes()
    source.write_text(planted(fault, text))
    try:
        _build(folder, source.stem)
        yield
    finally:
        source.write_text(text)
        library.unlink()
        library.write_bytes(binary)


def _try(fault: Fault) -> Found:
    with planted_in(COPY, fault):
        named = _judge([f"tests/{test}" for test in fault.found_by])
        return named if named.is_enough else _judge(WHERE)


def _build(folder: Path, module: str) -> None:
    environ = {**os.environ, "FILA_MODULES": module}
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{module} with its fault does not compile:\n{done.stdout}{done.stderr}")


def _judge(tests: Iterable[str]) -> Found:
    environ = {**os.environ, "PYTHONPATH": str(COPY / "server" / "src")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--maxfail={ENOUGH}", *tests]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=TIME_OUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Found([], f"the tests hung: not over in {TIME_OUT_S} s")
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if done.returncode > 1:  # pytest itself could not: a test that is gone, a tree that is not built
        raise SystemExit(f"the tests did not run:\n{done.stdout}{done.stderr}")
    return Found(failed, f"the tests' process ended with {done.returncode}" if done.returncode < 0 else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
