"""The other brokers, from package registries and through their ordinary clients, without a container and without
anything being started: packages of Debian are unpacked beside the build, and never installed.

Everything goes to `build/peers`; what is there already is not fetched again.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

from .errors import PeerFailed

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build" / "peers"
DRIVER = BUILD / "peers-driver"

_HERE = Path(__file__).resolve().parents[1]
NATS_VERSION = "2.12.1"
_FETCH_TIMEOUT_S = 600


def driver() -> Path:
    """The load generator, built when anything of it changed: go itself knows."""
    _run([_go(), "-C", str(_HERE / "driver"), "build", "-o", str(DRIVER), "."])
    return DRIVER


@functools.cache
def debian(package: str) -> Path:
    """The root under which a Debian package lies with what it depends on and this machine lacks."""
    root = BUILD / "debian" / package
    if (root / ".complete").exists():
        return root
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            raise PeerFailed(
                f"{package} comes from Debian, and {tool} is not here: leave its peer out (--peers)"
            )
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    # What an installation would bring, asked without making one.
    asked = ["apt-get", "--simulate", "-o", "APT::Install-Recommends=false", "install", package]
    wanted = re.findall(r"^Inst (\S+)", _run(asked), re.MULTILINE) or [package]
    _run(["apt-get", "download", *wanted], cwd=root)
    version = ""
    for archive in sorted(root.glob("*.deb")):
        _run(["dpkg", "-x", str(archive), str(root)])
        if archive.name.startswith(f"{package}_"):
            version = _run(["dpkg-deb", "--field", str(archive), "Version"]).strip()
        archive.unlink()
    (root / ".complete").write_text(version)
    return root


def debian_version(package: str) -> str:
    """The version that `debian` unpacked."""
    return (debian(package) / ".complete").read_text()


@functools.cache
def nats() -> Path:
    """The nats-server binary, compiled."""
    binary = BUILD / "nats" / "nats-server"
    if not binary.exists():
        environment = {"GOBIN": str(binary.parent), "GOFLAGS": "-trimpath"}
        _run([_go(), "install", f"github.com/nats-io/nats-server/v2@v{NATS_VERSION}"], env=environment)
    return binary


@functools.cache
def kafka() -> Path:
    """A folder of Kafka's jars with all they depend on; the version is in kafka-jars/pom.xml."""
    jars = BUILD / "kafka"
    pom = _HERE / "kafka-jars" / "pom.xml"
    stamp = jars / ".complete"
    if not stamp.exists() or stamp.stat().st_mtime < pom.stat().st_mtime:
        shutil.rmtree(jars, ignore_errors=True)
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        _run(["mvn", "-q", "-B", "-f", str(pom), *copy])
        stamp.touch()
    return jars


def libraries(root: Path) -> dict[str, str]:
    """The environment in which programs of an unpacked package find its libraries."""
    folders = [
        root / "lib",
        root / "usr/lib",
        *root.glob("usr/lib/*-linux-gnu"),
        *root.glob("lib/*-linux-gnu"),
    ]
    path = os.pathsep.join(str(folder) for folder in folders if folder.is_dir())
    return {"LD_LIBRARY_PATH": path} if path else {}


def _go() -> str:
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise PeerFailed("Go is missing: tools/system-packages dev says how to install it")
    return go


def _run(command: list[str], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=_FETCH_TIMEOUT_S,
        )
    except FileNotFoundError:
        raise PeerFailed(f"{command[0]} is not here: install it, or leave its peer out (--peers)") from None
    except subprocess.TimeoutExpired:
        raise PeerFailed(f"{' '.join(command)} took longer than {_FETCH_TIMEOUT_S} s") from None
    if done.returncode:
        raise PeerFailed(f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()[-1000:]}")
    return done.stdout
