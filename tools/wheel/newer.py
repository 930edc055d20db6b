"""Builds the server's wheel in the bare root of a newer Debian, for that Debian's Python and of its libraries.

What it takes is installed there once; the tree is HEAD's, and the recipe is the one that people are told
(docs/install.md).

    python -m tools.wheel.newer trixie FOLDER       as root, with debootstrap and a network
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tools.wheel.image import TREE, Image, bare_debian, in_own_mounts, passed_on

PACKAGES = (
    "ccache gcc g++ libc6-dev make librocksdb-dev libnghttp2-dev libssl-dev zlib1g-dev"
    " python3 python3-venv python3-dev"
)
INSTALLED = "opt/build/installed"


def main() -> None:
    """Build it, in mounts of its own."""
    in_own_mounts("tools.wheel.newer")
    build_in(sys.argv[1], Path(sys.argv[2]))


def build_in(suite: str, made: Path) -> None:
    """Leave the wheel, and no older one, in `made`. The caller has mounts of its own."""
    builder = Image(suite)
    builder.root = builder.root.with_name("builder")
    if (builder.root / INSTALLED).exists():
        subprocess.run(["mount", "-t", "proc", "proc", str(builder.root / "proc")], check=True)
    else:
        bare_debian(suite, builder.root)
        _install(builder)
    _copy_the_tree(builder.root / "tree")
    head = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=TREE, capture_output=True, text=True, check=True
    ).stdout.strip()
    path = "/usr/lib/ccache:" + builder.environ["PATH"]
    environ = {"PYTHON": "/opt/build/bin/python", "FILA_COMMIT": head, "PATH": path, "HOME": "/root"}
    print(builder.run("/tree/tools/wheel/build", **environ), flush=True)
    subprocess.run(["umount", str(builder.root / "proc")], check=True)
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    for wheel in (builder.root / "tree/dist").glob("fila_server-*.whl"):
        shutil.copy(wheel, made)


def _install(builder: Image) -> None:
    print(f"--- what building takes, in {builder.root}", flush=True)
    packages = f"apt-get update -q && apt-get install -y -q --no-install-recommends {PACKAGES}"
    builder.run("/bin/sh", "-c", packages, **passed_on())
    (builder.root / "tmp/requirements").mkdir()
    for name in ("build.txt", "wheel.txt"):
        shutil.copy(TREE / "requirements" / name, builder.root / "tmp/requirements")
    libraries = (
        "python3 -m venv /opt/build && /opt/build/bin/pip install --quiet --require-hashes"
        " -r /tmp/requirements/build.txt -r /tmp/requirements/wheel.txt"
    )
    builder.run("/bin/sh", "-c", libraries, **passed_on())
    (builder.root / INSTALLED).touch()


def _copy_the_tree(into: Path) -> None:
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=TREE, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(into)], input=archive, check=True)
    # What `make setup-console` brought: no Node is needed there.
    shutil.copytree(TREE / "console/node_modules", into / "console/node_modules", symlinks=True)


if __name__ == "__main__":
    main()
