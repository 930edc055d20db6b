"""setup.py builds what changed and nothing else, told by content: asked of a small tree of three modules."""

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from Cython.Build.Dependencies import DependencyTree
from Cython.Compiler.Main import Context
from Cython.Compiler.Options import CompilationOptions

ROOT = Path(__file__).resolve().parents[1]
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
PROJECT = """[project]
name = "small"
version = "1"
[tool.setuptools]
package-dir = {"" = "server/src"}
"""
TREE = {
    "__init__.py": "",
    "core/__init__.py": "",
    "core/low.pxd": "cdef int low() noexcept\n",
    "core/low.pyx": "cdef int low() noexcept:\n    return 1\n",
    "core/room/high.pyx": "from fila_server.core.low cimport low\n\ndef high():\n    return low()\n",
    "core/alone.pyx": "def alone():\n    return 3\n",
}


class Tree:
    """A copy of setup.py with modules of our own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / "server/src/fila_server"
        shutil.copy2(ROOT / "setup.py", root)
        (root / "pyproject.toml").write_text(PROJECT)
        for path, text in TREE.items():
            self.write(path, text)

    def write(self, path: str, text: str) -> None:
        (self.package / path).parent.mkdir(parents=True, exist_ok=True)
        (self.package / path).write_text(text)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        # No optimizing, for it takes most of the time.
        environ = {**os.environ, "CFLAGS": "-O0"}
        return subprocess.run(
            [sys.executable, *words], cwd=self.root, env=environ, capture_output=True, text=True, check=False
        )

    def build(self) -> list[str]:
        """Build, and return the modules that anything was done for."""
        done = self.run("setup.py", "--quiet", "build_ext", "--inplace")
        assert done.returncode == 0, done.stderr
        return sorted(line.split()[-1] for line in done.stdout.splitlines())

    def library(self, module: str) -> Path:
        return self.package / f"{module}{SUFFIX}"

    def c_files(self) -> set[str]:
        return {path.name for path in (self.root / "build/cython").rglob("*.c")}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    made = Tree(tmp_path_factory.mktemp("built"))
    assert made.build() == ["core/alone", "core/low", "core/room/high"]
    return made


@pytest.fixture
def tree(built, tmp_path):
    """One of each test's own, built already: nothing in it says where it stands."""
    shutil.copytree(built.root, tmp_path, dirs_exist_ok=True)
    return Tree(tmp_path)


def test_files_that_were_only_touched_build_nothing_and_a_changed_pxd_builds_who_cimports_it(tree):
    for path in tree.package.rglob("*.p[yx][xd]"):
        path.touch()
    assert tree.build() == []
    tree.write("core/low.pxd", "cdef int low() noexcept\ncdef enum:\n    ONE = 1\n")
    assert tree.build() == ["core/low", "core/room/high"]


def test_the_c_compiler_does_not_run_where_cython_writes_the_same_c_again(tree):
    before = tree.library("core/room/high").stat().st_mtime_ns
    tree.write("core/low.pxd", "cdef int low() noexcept  # a remark\n")
    assert tree.build() == ["core/low", "core/room/high"]
    assert tree.library("core/room/high").stat().st_mtime_ns == before


def test_a_library_that_someone_else_put_there_is_built_again(tree):
    shutil.copy2(tree.library("core/alone"), tree.library("core/low"))
    assert tree.build() == ["core/low"]


def test_a_module_that_moved_leaves_no_library_no_c_file_and_no_folder_that_can_be_imported(tree):
    (tree.package / "core/room/__pycache__").mkdir()
    (tree.package / "core/room/__pycache__/high.pyc").touch()
    (tree.package / "core/place").mkdir()
    (tree.package / "core/room/high.pyx").rename(tree.package / "core/place/highest.pyx")
    assert tree.build() == ["core/place/highest"]
    assert not (tree.package / "core/room").exists()
    assert tree.c_files() == {"low.c", "highest.c", "alone.c"}


@pytest.mark.costly("it compiles modules")
def test_every_module_that_does_not_compile_is_named_and_the_others_are_built(tree):
    before = tree.library("core/room/high").read_bytes()
    tree.write("core/low.pyx", "cdef int low() noexcept:\n    return nothing_of_this_name()\n")
    tree.write("core/alone.pyx", 'cdef extern from *:\n    """\n    #error no\n    """\n    pass\n')
    tree.write("core/room/high.pyx", "def high():\n    return 4\n")
    done = tree.run("setup.py", "--quiet", "build_ext", "--inplace")
    assert done.returncode != 0
    assert "did not compile: fila_server.core.alone, fila_server.core.low" in done.stderr
    assert tree.library("core/room/high").read_bytes() != before
    tree.write("core/low.pyx", TREE["core/low.pyx"])
    tree.write("core/alone.pyx", TREE["core/alone.pyx"])
    assert tree.build() == ["core/alone"], (
        "of low, the library and the C file from before the error are still there"
    )


@pytest.mark.costly("it compiles modules")
def test_pip_translates_a_module_once_when_it_builds_the_wheel_and_not_when_it_asks_before(tmp_path):
    tree = Tree(tmp_path)
    vendored = tmp_path / "console/src/fila_console/vendored.py"
    vendored.parent.mkdir(parents=True)
    vendored.write_text("VENDOR: dict[str, str] = {}\nLICENCES: dict[str, str] = {}\n")
    steps = """
from pathlib import Path
from setuptools import build_meta
print("asked", build_meta.get_requires_for_build_wheel())
print("translated", len([*Path("build").rglob("*.c")]))
print("wheel", build_meta.build_wheel("dist"))
"""
    # In a file of its own, as pip does: what setup.py defines then has no name in `__main__`.
    (tmp_path / "steps.py").write_text(steps)
    said = tree.run("steps.py")
    assert "asked []" in said.stdout, said.stderr
    assert "translated 0" in said.stdout
    assert "wheel small-1" in said.stdout, said.stderr
    [wheel] = (tmp_path / "dist").glob("*.whl")
    inside = {Path(name).name for name in zipfile.ZipFile(wheel).namelist()}
    assert inside >= {f"{module}{SUFFIX}" for module in ("low", "high", "alone")}


def test_a_module_depends_on_every_pxd_that_it_cimports_in_whatever_words(tmp_path, monkeypatch):
    tree = Tree(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "c", "d", "e", "f", "g"):
        tree.write(f"core/{name}.pxd", "cdef enum:\n    ONE, TWO\n")
    tree.write("core/a.pxd", "from fila_server.core.low cimport low\n")
    tree.write(
        "core/user.pyx",
        """\
# from fila_server.core.g cimport ONE
cimport fila_server.core.a
cimport fila_server.core.b as bee, fila_server.core.c  # and no other
from fila_server.core cimport d as dee, alone
from fila_server.core.e cimport (
    ONE,
    TWO as three,
)
from libc.stdint cimport int64_t

def use():
    from fila_server.core.f cimport \\
        ONE
""",
    )
    module = Path("server/src/fila_server/core/user.pyx")
    found = runpy.run_path("setup.py", run_name="read")["Sources"]().of(module)
    context = Context.from_options(CompilationOptions(include_path=["server/src"]))
    told = set(map(Path, DependencyTree(context, quiet=True).all_dependencies(module.as_posix())))
    # Cython itself overlooks c and d.
    assert set(found) >= {path for path in told if path.is_relative_to("server")}
    assert {path.stem for path in found} == {"user", "a", "b", "c", "d", "e", "f", "low"}
