"""Takes the wire contract's Python code along, everything else about the distribution stands in pyproject.toml.

The tree has one copy of the generated code, and of what judges TLS files, in the Python SDK. A plain Spark
environment has no SDK, and installing a second owner of the package `fila` beside one would break both when either is
removed. So a build copies the files that reading and writing take to `pyspark_fila/wire_v1`, a private name, and points
their imports there.
pyspark_fila/wire.py uses that copy only where the SDK is not installed.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
SDK = HERE.parent / "sdks/python/src/fila"
UNPACKED = HERE / "src/pyspark_fila/wire_v1"
FILES = (
    "admin_pb2.py",
    "cluster_pb2.py",
    "events_pb2.py",
    "limit_pb2.py",
    "messages_pb2.py",
    "operation_pb2.py",
    "schedule_pb2.py",
    "service_pb2.py",
    "sink_pb2.py",
    "version_pb2.py",
    "watch_pb2.py",
)
TLS_FILES = ("tls.py", "diagnosis.py")
"""The SDK's modules that open TLS files and say why a connection fails; they need nothing else of it."""


def copy_wire(folder: Path) -> None:
    """Write the private copy into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    if UNPACKED.is_dir():
        # Built from a source distribution, which carries it.
        shutil.copytree(UNPACKED, folder, dirs_exist_ok=True)
        return
    (folder / "__init__.py").write_text(
        '"""The wire contract `fila.v1`, a private copy made by the build."""\n'
    )
    for file in [SDK / "v1" / name for name in FILES] + [SDK / name for name in TLS_FILES]:
        code = file.read_text()
        code = code.replace("from fila.v1 import", "from pyspark_fila.wire_v1 import")
        code = code.replace("from fila.tls import", "from pyspark_fila.wire_v1.tls import")
        (folder / file.name).write_text(code)


class BuildPy(build_py):
    """Build with the copy."""

    def run(self) -> None:
        """Build, then copy."""
        super().run()
        copy_wire(Path(self.build_lib, "pyspark_fila/wire_v1"))


class SDist(sdist):
    """A source distribution with the copy."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Lay the tree out, then copy."""
        super().make_release_tree(base_dir, files)
        copy_wire(Path(base_dir, "src/pyspark_fila/wire_v1"))


setup(cmdclass={"build_py": BuildPy, "sdist": SDist})
