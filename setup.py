"""Builds the compiled core: every .pyx below server/src becomes one extension module.

Everything else about the distribution stands in pyproject.toml. This file exists because the list of extension
modules is found, not written down, and because a build must redo only what changed. What changed is found by content:
Cython translates a module again when the text of its .pyx, its .pxd, or any .pxd it cimports is another one, and the
C compiler runs again when the C that Cython wrote is. `build/cython/built.json` says what was made of what.

`FILA_MODULES=ring,bucket python setup.py build_ext --inplace` builds only the modules named so, and
`FILA_SANITIZE=address,undefined` with the compiler's sanitizers (tests/sanitized.py).
"""

import fcntl
import gc
import hashlib
import json
import multiprocessing
import os
import queue
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from Cython import __version__ as cython_version
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import _StaticPth, editable_wheel
from setuptools.command.sdist import sdist
from setuptools.errors import CompileError

ROOT = Path(__file__).resolve().parent
SOURCES = Path("server/src")
PACKAGES = ("server/src", "console/src")
# What the console serves that others made: a list, and nothing else.
VENDORED = Path("console/src/fila_console/vendored.py")
# What tests and benchmarks need compiled beside the server: built in place, and in no wheel.
BESIDE = Path("tests/native")
WORK = Path("build/cython")
PROCESSORS = len(os.sched_getaffinity(0))

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    # Each line of our own code beside what it became: a tenth of the translator's work, and nobody reads it.
    "emit_code_comments": False,
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
    # Cython compares its own loop variables so, in every module that loops over a C array.
    "-Wno-sign-compare",
    # Each row of a table begins with a packed Text, and a pointer to it becomes one to the row (structures/maps.pxd).
    # UBSan judges alignment where it happens (tests/sanitized.py).
    "-Wno-address-of-packed-member",
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


def extensions() -> list[Extension]:
    """One extension a .pyx, or those that FILA_MODULES names."""
    wanted = set(filter(None, os.environ.get("FILA_MODULES", "").split(",")))
    named = [(path, path.relative_to(SOURCES)) for path in sorted(SOURCES.rglob("*.pyx"))]
    if "--inplace" in sys.argv:
        named += [(path, path) for path in sorted(BESIDE.glob("*.pyx"))]
    return [
        Extension(".".join(name.with_suffix("").parts), [path.as_posix()])
        for path, name in named
        if not wanted or path.stem in wanted
    ]


def forget_removed_modules() -> None:
    """A module whose .pyx is gone must not go on working here and fail everywhere else."""
    for built in [*SOURCES.rglob("*.so"), *BESIDE.glob("*.so")]:
        if not built.with_name(built.name.partition(".")[0] + ".pyx").exists():
            built.unlink()
            forget_folder(built.parent)
    for c_file in WORK.rglob("*.c"):
        if not c_file.relative_to(WORK).with_suffix(".pyx").exists():
            c_file.unlink()


def forget_folder(folder: Path) -> None:
    """Remove a folder of which only Python's caches are left: Python would go on importing it as a package."""
    if all("__pycache__" in path.parts for path in folder.rglob("*") if path.is_file()):
        shutil.rmtree(folder)
        forget_folder(folder.parent)


def digest(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=20).hexdigest()


def content(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=20).hexdigest()


class Sources:
    """What each module is made of: its own files, and every .pxd that these cimport, in as many steps as it takes."""

    # A piece of text that only looks like one costs a needless build, and no wrong one.
    CIMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+)?cimport[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)

    def __init__(self) -> None:
        found = [
            *SOURCES.rglob("*.pxd"),
            *SOURCES.rglob("*.pyx"),
            *BESIDE.glob("*.pxd"),
            *BESIDE.glob("*.pyx"),
        ]
        self.texts = {path: path.read_bytes() for path in found}
        self.contents = {
            path: hashlib.blake2b(text, digest_size=20).hexdigest() for path, text in self.texts.items()
        }
        self.direct: dict[Path, set[Path]] = {}

    def cimported(self, path: Path) -> set[Path]:
        """Our own .pxd files that this file names, and the one that belongs to it."""
        if path not in self.direct:
            names = {""}
            for module, imported in self.CIMPORT.findall(self.texts[path].decode()):
                each = [
                    name.split(" as ")[0].strip(" \t\n\\()") for name in imported.split("#")[0].split(",")
                ]
                names |= {module, *(f"{module}.{name}" for name in each)} if module else set(each)
            asked = {
                folder / (name.replace(".", "/") + ".pxd") for folder in (SOURCES, Path()) for name in names
            }
            self.direct[path] = (asked | {path.with_suffix(".pxd")}) & self.texts.keys() - {path}
        return self.direct[path]

    def of(self, module: Path) -> list[Path]:
        """The module's .pyx and all that it depends on, in order."""
        seen: set[Path] = set()
        open_ends = [module]
        while open_ends:
            path = open_ends.pop()
            if path not in seen:
                seen.add(path)
                open_ends += self.cimported(path)
        return sorted(seen)

    def key(self, module: Path, name: str) -> str:
        """Another one when Cython would write another C file."""
        files = [(path.as_posix(), self.contents[path]) for path in self.of(module)]
        return digest(cython_version, sorted(DIRECTIVES.items()), name, files)


class Built:
    """Which files earlier builds made, of what, and what is in them; files that others wrote since are found, too."""

    FILE = WORK / "built.json"

    def __init__(self) -> None:
        self.entries: dict[str, list[str]] = {}
        if self.FILE.exists():
            self.entries = {
                path: entry
                for path, entry in json.loads(self.FILE.read_text()).items()
                if Path(path).exists()
            }

    def holds(self, path: Path, key: str) -> bool:
        """Whether the file is there as it was made of the same."""
        entry = self.entries.get(path.as_posix())
        return entry is not None and entry[0] == key and path.exists() and entry[1] == content(path)

    def add(self, path: Path, key: str) -> None:
        self.entries[path.as_posix()] = [key, content(path)]

    def save(self) -> None:
        new = self.FILE.with_suffix(".new")
        new.write_text(json.dumps(self.entries, indent=0, sort_keys=True))
        new.replace(self.FILE)


@dataclass(frozen=True)
class Module:
    """One extension module on its way from .pyx to .so."""

    name: str
    source: Path
    c_file: Path
    c_key: str
    library: Path
    is_translated: bool


class BuildExt(build_ext):
    """Builds as many modules at a time as there are processors, each from its .pyx to its .so in one go."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.is_in_place = self.inplace  # which setuptools changes: it builds elsewhere, and copies

    def copy_extensions_to_source(self) -> None:
        """They were built there."""

    def build_extensions(self) -> None:
        """Build what changed. CompileError names every module that does not compile; the others are built then."""
        self.built = Built()
        due = [
            module
            for module in self.modules(Sources())
            if not (module.is_translated and self.is_linked(module))
        ]
        failed = []
        try:
            for number, (module, is_good) in enumerate(self.made(due), 1):
                print(f"[{number:4}/{len(due)} ] {'' if is_good else 'FAILED: '}{shown(module)}", flush=True)
                if is_good:
                    self.built.add(module.c_file, module.c_key)
                    self.built.add(module.library, self.library_key(module))
                else:
                    failed.append(module.name)
        finally:
            self.built.save()
        if failed:
            raise CompileError(f"did not compile: {', '.join(sorted(failed))}")
        write_fingerprint((SOURCES if self.is_in_place else Path(self.build_lib)) / "fila_server/core")

    def modules(self, sources: Sources) -> Iterator[Module]:
        for extension in self.extensions:
            source = Path(extension.sources[0])
            library = Path(self.get_ext_fullpath(extension.name))
            c_file, key = WORK / source.with_suffix(".c"), sources.key(source, extension.name)
            yield Module(
                extension.name,
                source,
                c_file,
                key,
                source.with_name(library.name) if self.is_in_place else library,
                is_translated=self.built.holds(c_file, key),
            )

    def library_key(self, module: Module) -> str:
        """Another one when the C compiler would write another library. That ccache calls it changes nothing."""
        words = [self.compiler.compiler_so, COMPILE_ARGS, self.compiler.linker_so, LINK_ARGS]
        return digest(
            [[word for word in part if Path(word).name != "ccache"] for part in words], content(module.c_file)
        )

    def is_linked(self, module: Module) -> bool:
        """Whether the library is what the C file as it is now becomes."""
        return self.built.holds(module.library, self.library_key(module))

    def made(self, due: list[Module]) -> Iterator[tuple[Module, bool]]:
        """Each module when it is done, and whether it compiled; the largest are begun first."""
        due = sorted(due, key=lambda module: module.source.stat().st_size, reverse=True)
        # Forked, and told by numbers: pip runs this file in a module that pickle cannot name.
        forked = multiprocessing.get_context("fork")
        numbers, done = forked.SimpleQueue(), forked.Queue()

        def work() -> None:
            # Python's collector would go through Cython's trees again and again.
            gc.set_threshold(100_000, 20, 20)
            gc.freeze()
            while (number := numbers.get()) is not None:
                done.put((number, self.is_made(due[number])))

        workers = [forked.Process(target=work, daemon=True) for _ in range(min(PROCESSORS, len(due)))]
        for worker in workers:
            worker.start()
        for number in [*range(len(due)), *(None for _ in workers)]:
            numbers.put(number)
        left = set(range(len(due)))
        while left:
            is_anybody_there = any(worker.is_alive() for worker in workers)
            try:
                number, is_good = done.get(timeout=1.0)
            except queue.Empty:
                if is_anybody_there:
                    continue
                break
            left.discard(number)
            yield due[number], is_good
        for number in left:  # its worker was killed
            yield due[number], False

    def is_made(self, module: Module) -> bool:
        """Whether it compiled, in a worker; what is wrong was said by the compiler that found it."""
        try:
            self.make(module)
        except Exception as error:  # noqa: BLE001 - also what Cython trips over; the others are built all the same
            print(f"{shown(module)}: {error}", file=sys.stderr, flush=True)
            return False
        return True

    def make(self, module: Module) -> None:
        """Translate, compile and link. CompileError, LinkError, and whatever Cython raises."""
        if not module.is_translated:
            translate(module)
            # What Cython leaves, once a module; what it keeps is never looked at again.
            gc.collect()
            gc.freeze()
            if self.is_linked(module):
                return
        objects = self.compiler.compile(
            [module.c_file.as_posix()],
            output_dir=self.build_temp,
            include_dirs=self.include_dirs,
            extra_postargs=COMPILE_ARGS,
        )
        self.compiler.link_shared_object(objects, module.library.as_posix(), extra_postargs=LINK_ARGS)


def shown(module: Module) -> str:
    return module.source.with_suffix("").as_posix().removeprefix(f"{SOURCES.as_posix()}/fila_server/")


def translate(module: Module) -> None:
    """Write the module's C file. CompileError when it has errors, which Cython prints."""
    from Cython.Compiler.Main import CompilationOptions, compile_single

    new = module.c_file.with_suffix(".new.c")
    new.parent.mkdir(parents=True, exist_ok=True)
    options = CompilationOptions(
        compiler_directives=DIRECTIVES, include_path=[SOURCES.as_posix()], output_file=new.as_posix()
    )
    if compile_single(module.source.as_posix(), options, full_module_name=module.name).num_errors:
        new.unlink(missing_ok=True)
        raise CompileError("Cython found errors")
    new.replace(module.c_file)


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


def write_fingerprint(core: Path) -> None:
    """Leave `fingerprint.txt` for fila_server/version.py: what the core that was just built was made of."""
    made_of = hashlib.sha256()
    for path in sorted((SOURCES / "fila_server/core").rglob("*.p[yx][xd]")):
        made_of.update(f"{path.relative_to(SOURCES)} {content(path)}\n".encode())
    core.mkdir(parents=True, exist_ok=True)
    (core / "fingerprint.txt").write_text(made_of.hexdigest() + "\n", encoding="ascii")


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
    """An editable install as plain paths. By itself setuptools would write an import hook for our two source
    folders, which type checkers and editors can't follow: `import fila_server` would be unknown to them."""

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
