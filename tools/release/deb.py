"""Makes the Debian package of the server from what a release has already: its wheels, and the locked libraries.

The package is for the Python of the Debian that it is made on. It holds an environment in /usr/lib/fila, the two
commands in /usr/bin, the unit, and the settings with their defaults in /etc/fila.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.release.commands import ASIDE, run
from tools.release.versions import TREE

PARTS = TREE / "tools/release/debian"
PYTHON = Path("/usr/bin/python3")
HOME = Path("usr/lib/fila")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def why_no_package() -> str:
    """Return why the package cannot be made on this machine, or nothing."""
    if not (shutil.which("dpkg-deb") and PYTHON.exists()):
        return f"a release has a Debian package: make it on Debian, with dpkg-deb and {PYTHON}"
    ask = "import sys; print(sys.version_info[:2])"
    theirs = subprocess.run(
        [str(PYTHON), "-c", ask], capture_output=True, text=True, check=True
    ).stdout.strip()
    if theirs != str(sys.version_info[:2]):
        here = sys.version_info[:2]
        return f"{PYTHON} is {theirs} and this is {here}: run make setup PYTHON={PYTHON} in a fresh tree"
    return ""


def deb(made: Path, version: str) -> None:
    """Leave fila-server_VERSION_ARCHITECTURE.deb in `made`, where the wheels are."""
    root = ASIDE / "deb"
    shutil.rmtree(root, ignore_errors=True)
    _environment(root, made)
    _files(root, version)
    architecture = run("dpkg", "--print-architecture").strip()
    _control(root, made, version, architecture)
    # Wheels mark modules as programs, and the tree has the umask of who builds.
    programs = {root / HOME / "bin", root / "DEBIAN"}
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            is_open = path.is_dir() or (path.parent in programs and path.read_bytes()[:2] == b"#!")
            path.chmod(0o755 if is_open else 0o644)
    target = made / f"fila-server_{version}_{architecture}.deb"
    when = run("git", "show", "-s", "--format=%ct", "HEAD").strip()
    run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, target, SOURCE_DATE_EPOCH=when)


def _environment(root: Path, made: Path) -> None:
    """What pip installs, moved to where the package has it."""
    home = root / HOME
    run(PYTHON, "-m", "venv", "--without-pip", home)
    pip = (sys.executable, "-m", "pip", "--python", home / "bin/python", "install", "--quiet", "--no-compile")
    run(*pip, "--require-hashes", "-r", made / "server.txt")
    run(*pip, "--no-index", "--find-links", made, "fila-server")
    for script in (home / "bin").iterdir():
        if script.name.startswith("python"):
            continue
        if script.name not in ("fila", "fila-server"):
            script.unlink()  # commands of libraries, and what activates an environment
            continue
        first, _, rest = script.read_text().partition("\n")
        assert first == f"#!{home}/bin/python", first
        script.write_text(f"#!/{HOME}/bin/python\n{rest}")
    settings = (home / "pyvenv.cfg").read_text().splitlines(keepends=True)
    (home / "pyvenv.cfg").write_text("".join(line for line in settings if not line.startswith("command")))
    for library in home.rglob("*.so*"):
        if library.is_file() and not library.is_symlink():
            library.chmod(0o644)
            subprocess.run(["strip", "--strip-unneeded", str(library)], check=True, stderr=subprocess.DEVNULL)


def _files(root: Path, version: str) -> None:
    bin_folder, units, documents = (
        root / name for name in ("usr/bin", "lib/systemd/system", "usr/share/doc/fila-server")
    )
    overrides = root / "usr/share/lintian/overrides"
    for folder in (bin_folder, units, documents, overrides, root / "etc/fila"):
        folder.mkdir(parents=True)
    for command in ("fila", "fila-server"):
        (bin_folder / command).symlink_to(f"../lib/fila/bin/{command}")
    unit = (TREE / "docs/deploy/fila.service").read_text().replace("/opt/fila/bin/", "/usr/bin/")
    # The comment on top says how to install it by hand.
    (units / "fila.service").write_text(unit[unit.index("[Unit]") :])
    server = root / HOME / "bin/python"
    (root / "etc/fila/fila.toml").write_text(
        run(server, "-m", "fila_server.main", "config", "init", PYTHONDONTWRITEBYTECODE="1")
    )
    shutil.copy(PARTS / "copyright", documents)
    shutil.copy(PARTS / "overrides", overrides / "fila-server")
    when = run("git", "show", "-s", "--format=%cD", "HEAD").strip()
    entry = f"fila-server ({version}) stable; urgency=medium\n\n  * Fila {version}.\n\n -- {_maintainer()}  {when}\n"
    (documents / "changelog.gz").write_bytes(gzip.compress(entry.encode(), 9, mtime=0))


def _maintainer() -> str:
    """Who makes the package: as Debian's own tools are told, or else who made the commit."""
    if "DEBEMAIL" in os.environ:
        return f"{os.environ.get('DEBFULLNAME', 'Fila')} <{os.environ['DEBEMAIL']}>"
    return run("git", "show", "-s", "--format=%cn <%ce>", "HEAD").strip()


def _control(root: Path, made: Path, version: str, architecture: str) -> None:
    folder = root / "DEBIAN"
    folder.mkdir()
    [wheel] = made.glob("fila_server-*.whl")
    libc = re.findall(r"manylinux_(\d+)_(\d+)", wheel.name)[0]
    major, minor = map(int, run(PYTHON, "-c", "import sys; print(*sys.version_info[:2])").split())
    size = sum(path.lstat().st_size for path in root.rglob("*")) // 1024
    values = {
        "VERSION": version,
        "ARCHITECTURE": architecture,
        "MAINTAINER": _maintainer(),
        "SIZE": str(size),
        "LIBC": ".".join(libc),
        "PYTHON": f"{major}.{minor}",
        "NEXT_PYTHON": f"{major}.{minor + 1}",
    }
    control = (PARTS / "control").read_text()
    for name, value in values.items():
        control = control.replace(f"@{name}@", value)
    (folder / "control").write_text(control)
    (folder / "conffiles").write_text("/etc/fila/fila.toml\n")
    for script in ("postinst", "prerm", "postrm"):
        shutil.copy(PARTS / script, folder)
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    packed = [path.relative_to(root) for path in files if folder not in path.parents]
    (folder / "md5sums").write_text(run("md5sum", *packed, cwd=root))
