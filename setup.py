"""Builds the compiled core: every .pyx below server/src becomes one extension module.

Everything else about the distribution stands in pyproject.toml. This file exists because the list of extension
modules is found, not written down, and because a build must redo only what changed: a module is compiled again
when its .pyx, its .pxd, or any .pxd it cimports is newer than the result.

`FILA_MODULES=ring,bucket python setup.py build_ext --inplace` builds only the modules named so, and
`FILA_SANITIZE=address,undefined` with the compiler's sanitizers (tests/sanitized.py).
"""

import fcntl
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler.Errors import CompileError
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import _StaticPth, editable_wheel
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
SOURCES = Path("server/src")
PACKAGES = ("server/src", "cli/src", "sdks/python/src", "console/src")
# What the console serves that others made: a list, and nothing else.
VENDORED = Path("console/src/fila_console/vendored.py")
# What tests and benchmarks need compiled beside the server: built in place, and in no wheel.
BESIDE = Path("tests/native")
WORK = Path("build/cython")

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    # `char* at, char* end` is how C declares two of a kind; else thousands of lines hide what else a build says.
    "warn.multiple_declarators": False,
}
# No -march: a build must run on any machine of its architecture.
# A text of no bytes may be NULL here, and memcpy and its kin are called with it. Before C2y that was undefined
# for 0 bytes as well: a compiler might conclude that the pointer is not NULL, and leave out a test of it.
COMPILE_ARGS = [
    "-O3",
    "-fvisibility=hidden",
    "-fno-delete-null-pointer-checks",
    "-Wno-unused-function",
    "-Wno-unreachable-code",
]
# --as-needed, before the libraries: a module depends on those libraries alone that it calls.
LINK_ARGS = ["-Wl,--as-needed", "-lrocksdb", "-lnghttp2", "-lssl", "-lcrypto", "-lz", "-lpthread"]


SANITIZERS = os.environ.get("FILA_SANITIZE")
if SANITIZERS:
    checked = [
        "-O1",
        "-g1",
        f"-fsanitize={SANITIZERS}",
        "-fno-sanitize=nonnull-attribute",
        "-fno-sanitize-recover=all",
        "-fno-omit-frame-pointer",
    ]
    COMPILE_ARGS = [*COMPILE_ARGS[1:], *checked]
    LINK_ARGS = [f"-fsanitize={SANITIZERS}", *LINK_ARGS]

FAILED: list[str] = []


def extensions() -> list[Extension]:
    """One extension a .pyx, cythonized, or none while there are none."""
    wanted = set(filter(None, os.environ.get("FILA_MODULES", "").split(",")))
    named = [(path, path.relative_to(SOURCES)) for path in sorted(SOURCES.rglob("*.pyx"))]
    if "--inplace" in sys.argv:
        named += [(path, path) for path in sorted(BESIDE.glob("*.pyx"))]
    found = [
        Extension(
            ".".join(name.with_suffix("").parts),
            [path.as_posix()],
            extra_compile_args=COMPILE_ARGS,
            extra_link_args=LINK_ARGS,
        )
        for path, name in named
        if not wanted or path.stem in wanted
    ]
    modules = []
    for extension in found:
        # One at a time, so that a module that does not compile keeps no other from being built.
        try:
            modules += cythonize(
                [extension],
                build_dir=WORK.as_posix(),
                include_path=[SOURCES.as_posix()],
                compiler_directives=DIRECTIVES,
            )
        except CompileError:
            FAILED.append(extension.name)
    return modules


def forget_removed_modules() -> None:
    """A module whose .pyx is gone must not go on working here and fail everywhere else."""
    for built in [*SOURCES.rglob("*.so"), *BESIDE.glob("*.so")]:
        if not built.with_name(built.name.partition(".")[0] + ".pyx").exists():
            built.unlink()


class BuildExt(build_ext):
    """Compiles two modules at a time; more would starve the other users of a small machine."""

    def finalize_options(self) -> None:
        super().finalize_options()
        if self.parallel is None:
            self.parallel = 2


def write_commit(package: Path) -> None:
    """Leave `commit.txt` for fila_server/version.py: FILA_COMMIT, or what a source distribution brought, or git's."""
    brought = ROOT / SOURCES / "fila_server/commit.txt"
    told = os.environ.get("FILA_COMMIT", "")
    if not told and brought.exists():
        told = brought.read_text(encoding="ascii").strip()
    if not told and (ROOT / ".git").exists():
        ask = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
        asked = subprocess.run(ask, capture_output=True, text=True, check=False)  # noqa: S603 - of our own words
        told = asked.stdout.strip()
    (package / "commit.txt").write_text((told or "unknown") + "\n", encoding="ascii")


def take_along_for_the_console(vendor: Path) -> None:
    """Scripts and the font that others made, with their licences, where npm has put them. Without them `fila console`
    says what is missing."""
    listed = runpy.run_path(str(ROOT / VENDORED))
    for name, source in (listed["VENDOR"] | listed["LICENCES"]).items():
        path = ROOT / "console/node_modules" / source
        if path.is_file():
            vendor.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, vendor / name)


class BuildPy(build_py):
    """A build says which commit it was made of; an editable install asks git whenever it is asked."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            write_commit(Path(self.build_lib, "fila_server"))
            take_along_for_the_console(Path(self.build_lib, "fila_console/vendor"))


class Sdist(sdist):
    """So does a source distribution, which has no git, and no node_modules either."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        write_commit(Path(base_dir, SOURCES, "fila_server"))
        take_along_for_the_console(Path(base_dir, VENDORED).with_name("vendor"))


class EditableWheel(editable_wheel):
    """An editable install as plain paths. By itself setuptools would write an import hook for our three source
    folders, which type checkers and editors can't follow: `import fila` would be unknown to them."""

    def _select_strategy(self, name: str, tag: str, build_lib: str) -> _StaticPth:  # noqa: ARG002 - as the base class
        return _StaticPth(self.distribution, name, [ROOT / folder for folder in PACKAGES])


if __name__ == "__main__":
    os.chdir(ROOT)
    if "bdist_wheel" in sys.argv:
        # Modules that are no longer in the tree would be packed from what an earlier build left there.
        for leftover in Path("build").glob("lib*"):
            shutil.rmtree(leftover)
    WORK.mkdir(parents=True, exist_ok=True)
    # Two builds in one tree would write the same files; the second waits here.
    with (WORK / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        forget_removed_modules()
        commands = {
            "build_ext": BuildExt,
            "build_py": BuildPy,
            "editable_wheel": EditableWheel,
            "sdist": Sdist,
        }
        setup(ext_modules=extensions(), cmdclass=commands)
    if FAILED:
        sys.exit(f"did not compile: {', '.join(FAILED)}")
