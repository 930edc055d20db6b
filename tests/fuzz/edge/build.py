"""Builds what is fuzzed into build/fuzz-edge: the shipped sources, with clang's sanitizers and libFuzzer's counters.

build/cython/**.c ──clang──► build/fuzz-edge/lib/fila_server/**.so     edge, requests, protocol, structures
                             the other modules, as they are built   links
sockets.c, libFuzzer ──────► build/fuzz-edge/libfuzz.so                before everything else (LD_PRELOAD)
edge_fuzz.pyx ─────────────► build/fuzz-edge/lib/edge_fuzz.so          the target
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SOURCES = ROOT / "server/src"
C_FILES = ROOT / "build/cython/server/src"
OUT = ROOT / "build/fuzz-edge"
LIB = OUT / "lib"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")

FUZZED = (
    "fila_server/edge/io",
    "fila_server/edge/grpc",
    "fila_server/edge/redis",
    "fila_server/core/requests",
    "fila_server/core/protocol",
    "fila_server/core/structures",
)
"""Where bytes of strangers are read. The rest of the core is there as it is shipped."""

SANITIZED = [
    "-fsanitize=fuzzer-no-link,address,undefined",
    # Cython calls functions through pointers of another type, as CPython's interface has it.
    "-fno-sanitize=function",
    # As in setup.py: a text of no bytes may be NULL.
    "-fno-sanitize=nonnull-attribute",
    "-fno-sanitize-recover=undefined",
    "-shared-libasan",
]
CLANGS = ("clang", *(f"clang-{version}" for version in range(22, 13, -1)))
CLANG = next(filter(None, map(shutil.which, CLANGS)), None)
COMPILE = ["-O1", "-g", "-w", "-fPIC", "-fno-omit-frame-pointer", "-fno-delete-null-pointer-checks"]
COMPILE += [f"-I{sysconfig.get_paths()['include']}"]
LINK = ["-shared", "-lnghttp2", "-lssl", "-lcrypto", "-lz", "-lpthread", "-lrocksdb", "-Wl,--as-needed"]


def _clang() -> str:
    if CLANG is None:
        sys.exit(
            "the edge is fuzzed by libFuzzer: install clang and its compiler-rt (Debian: clang, libclang-rt-dev)"
        )
    return CLANG


def clang(*arguments: str | Path) -> None:
    """Run it, or say what it said and end."""
    ran = subprocess.run([_clang(), *map(str, arguments)], capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"clang {' '.join(map(str, arguments))}\n{ran.stderr}")


def runtime(name: str, suffix: str) -> Path:
    """Return where clang has one of its own libraries for this machine."""
    name = f"libclang_rt.{name}-{platform.machine()}{suffix}"
    told = subprocess.run(
        [_clang(), f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(told).is_absolute():
        sys.exit(f"clang has no {name}: install its compiler-rt (Debian: libclang-rt-dev)")
    return Path(told)


def main() -> None:
    """Build what is older than its source."""
    LIB.mkdir(parents=True, exist_ok=True)
    _library()
    targets = [_target()]
    for path in sorted(SOURCES.rglob("*")):
        name = path.relative_to(SOURCES)
        if path.suffix == ".py":
            _link(path, LIB / name)
        elif path.suffix == ".pyx":
            built = path.with_name(path.stem + SUFFIX)
            if any(name.as_posix().startswith(f"{folder}/") for folder in FUZZED):
                targets.append((C_FILES / name.with_suffix(".c"), LIB / name.with_name(built.name)))
            else:
                _link(built, LIB / name.with_name(built.name))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(_compile, targets))


def _link(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if not to.is_symlink():
        to.symlink_to(path)


def _is_older(built: Path, *sources: Path) -> bool:
    """Than a source of it, or than this file with its flags."""
    times = [source.stat().st_mtime for source in (*sources, Path(__file__))]
    return not built.exists() or built.stat().st_mtime < max(times)


def _library() -> None:
    library, source = OUT / "libfuzz.so", HERE / "sockets.c"
    if _is_older(library, source):
        fuzzer = runtime("fuzzer_no_main", ".a")
        clang("-O1", "-fPIC", "-shared", source, "-o", library, "-Wl,--whole-archive", fuzzer,
              "-Wl,--no-whole-archive", "-lstdc++", "-lm", "-lpthread")  # fmt: skip


def _target() -> tuple[Path, Path]:
    source = OUT / "edge_fuzz.c"
    pyx = HERE / "edge_fuzz.pyx"
    if _is_older(source, pyx):
        cython = shutil.which("cython") or str(Path(sys.executable).with_name("cython"))
        flags = ["-3", "-X", "boundscheck=False,wraparound=False,cdivision=True"]
        subprocess.run([cython, *flags, "-I", str(SOURCES), str(pyx), "-o", str(source)], check=True)
    return source, LIB / f"edge_fuzz{SUFFIX}"


def _compile(target: tuple[Path, Path]) -> None:
    source, built = target
    built.parent.mkdir(parents=True, exist_ok=True)
    if not _is_older(built, source, HERE / "sockets.h"):
        return
    # The target itself runs the fuzzer: its own branches are none to be found.
    own = source.parent == OUT
    sockets = ["-include", str(HERE / "sockets.h")] if "fila_server/edge/" in source.as_posix() else []
    sanitized = ["-fsanitize=address", "-shared-libasan"] if own else SANITIZED
    clang(*COMPILE, *sanitized, *sockets, f"-I{HERE}", source, "-o", built, *LINK)


if __name__ == "__main__":
    main()
