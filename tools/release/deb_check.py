"""Installs the Debian package in a bare Debian, upgrades it and purges it: the data stays, and so do changed settings.

As root, with debootstrap, lintian and a network: `make release-check ONLY=deb`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

from tools.release.commands import ASIDE, DIST
from tools.wheel.image import Image, bare_debian, in_own_mounts, passed_on

PORTS = {f"FILA_{name}__LISTEN_ADDR": "127.0.0.1:0" for name in ("SERVER", "REDIS", "METRICS")}
START_S_MAX = 60
NEWER = "99.0.0"


def main() -> None:
    """Check it, or fail with what is wrong."""
    in_own_mounts(__spec__.name)
    [package] = DIST.glob("*.deb")
    told = subprocess.run(["lintian", str(package)], capture_output=True, text=True, check=False).stdout
    errors = [line for line in told.splitlines() if line.startswith("E: ")]
    assert not errors, errors
    debian = Image()
    debian.root = ASIDE.with_name("release-debian") / "root"
    bare_debian(debian.suite, debian.root)
    settings, data = debian.root / "etc/fila/fila.toml", debian.root / "var/lib/fila"
    _apt(debian, "update", "-q")
    _install(debian, package)
    # systemd would make it for the unit.
    debian.run("install", "-d", "-o", "fila", "-g", "fila", "-m", "0700", "/var/lib/fila", user="root")
    changed = settings.read_text() + "\n# changed by an administrator\n"
    settings.write_text(changed)
    _serve(debian, [("queue", "create", "kept"), ("enqueue", "kept", "a message")])
    _install(debian, _newer(package, debian.root.parent))
    assert debian.run("dpkg-query", "-W", "-f", "${Version}", "fila-server", user="root") == NEWER
    assert settings.read_text() == changed
    assert "a message" in _serve(debian, [("queue", "peek", "kept")])
    before = sorted(path.name for path in data.iterdir())
    _apt(debian, "purge", "-y", "-q", "fila-server")
    assert sorted(path.name for path in data.iterdir()) == before
    assert not (debian.root / "usr/lib/fila").exists()
    assert not settings.exists()
    print(
        "the package is good: installed, used, upgraded, used and purged in a bare Debian; the data is still there"
    )


def _apt(debian: Image, *words: str) -> None:
    debian.run("apt-get", *words, user="root", **passed_on())


def _install(debian: Image, package: Path) -> None:
    shutil.copy(package, debian.root / "tmp/fila-server.deb")
    _apt(debian, "install", "-y", "-q", "--no-install-recommends", "/tmp/fila-server.deb")


def _newer(package: Path, folder: Path) -> Path:
    """Return the same package under a newer version."""
    unpacked = folder / "newer"
    shutil.rmtree(unpacked, ignore_errors=True)
    subprocess.run(["dpkg-deb", "-R", str(package), str(unpacked)], check=True)
    control = unpacked / "DEBIAN/control"
    lines = control.read_text().splitlines()
    control.write_text(
        "".join(f"Version: {NEWER}\n" if x.startswith("Version:") else f"{x}\n" for x in lines)
    )
    made = folder / "newer.deb"
    subprocess.run(
        ["dpkg-deb", "-Zgzip", "--root-owner-group", "-b", str(unpacked), str(made)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return made


def _serve(debian: Image, commands: list[tuple[str, ...]]) -> str:
    """Run the server as the unit does, each command against it, and return what the last one printed."""
    inside, around = debian.command(
        "/usr/bin/fila-server", user="fila:fila", **PORTS, FILA_DATA_DIR="/var/lib/fila"
    )
    log = debian.root.parent / "log"
    with log.open("w") as out:
        server = subprocess.Popen(inside, env=around, stderr=out)
    said = ""
    try:
        give_up_at = time.monotonic() + START_S_MAX
        started: list[str] = []
        while not started:
            assert time.monotonic() < give_up_at, log.read_text()
            assert server.poll() is None, log.read_text()
            time.sleep(0.05)
            started = [line for line in log.read_text().splitlines() if '"server.started"' in line]
        address = json.loads(started[0])["grpc"]
        for words in commands:
            said = debian.run("/usr/bin/fila", "--addr", address, *words, user="fila:fila")
    finally:
        server.terminate()
        assert server.wait(20) == 0, log.read_text()
    return said


if __name__ == "__main__":
    main()
