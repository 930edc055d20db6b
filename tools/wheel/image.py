"""Runs the steps of the Containerfile in a bare Debian, where no container runtime is at hand."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
OWN_SUITE = "bookworm"
"""The Debian that wheels are made on, and that the Containerfile names."""
OWN_WHEEL = "dist/fila_server-*-cp311-*.whl"
NEWER_SUITE = "trixie"
NEWER_WHEEL = "fila_server-*-cp313-*.whl"
"""Of the next Debian, which a release has a wheel for, too."""
OWN_MOUNTS = "FILA_OWN_MOUNTS"
# What a step may need of the machine it runs on: how to reach packages.
PASSED_ON = re.compile(r"PIP_(INDEX_URL|EXTRA_INDEX_URL|DEFAULT_TIMEOUT)|\w+_(proxy|PROXY)")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
INSIDE = "/etc/ssl/certs-of-the-machine.crt"


class Image:
    """A directory that grows as the Containerfile says, from `suite` and with the server's `wheel`, a path of the
    tree."""

    def __init__(self, suite: str = OWN_SUITE, wheel: str = OWN_WHEEL) -> None:
        self.suite = suite
        self._wheel = wheel
        self.root = TREE / f"build/wheel-{suite}/root"
        self.environ = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        self.user = "root"
        self.entrypoint: list[str] = []

    def build(self) -> None:
        """Begin with a fresh Debian, and take each step."""
        bare_debian(self.suite, self.root)
        for word, rest in _steps((TREE / "Containerfile").read_text()):
            print(f"--- {word} {rest[:100]}", flush=True)
            self._step(word, rest)

    def command(self, *words: str, user: str = "", **environ: str) -> tuple[list[str], dict[str, str]]:
        """Return what runs `words` inside, as the image's user, and its environment."""
        inside = [
            shutil.which("chroot") or "chroot",
            f"--userspec={user or self.user}",
            str(self.root),
            *words,
        ]
        return inside, self.environ | environ

    def run(self, *words: str, user: str = "", **environ: str) -> str:
        """Run it, and return what it printed."""
        inside, around = self.command(*words, user=user, **environ)
        ran = subprocess.run(inside, env=around, check=False, text=True, stdout=subprocess.PIPE)
        if ran.returncode:
            raise SystemExit(f"failed ({ran.returncode}): {shlex.join(words)}\n{ran.stdout}")
        return ran.stdout

    def _step(self, word: str, rest: str) -> None:
        match word:
            case "FROM":
                assert rest == f"debian:{OWN_SUITE}-slim", rest
            case "RUN":
                self.run("/bin/sh", "-c", rest, **passed_on())
            case "COPY":
                *sources, target = rest.split()
                sources = [self._wheel if source == OWN_WHEEL else source for source in sources]
                copied = [found for source in sources for found in TREE.glob(source)]
                assert len(copied) == len(sources), f"{sources} are {copied}; run make wheel"
                (self.root / target.lstrip("/")).mkdir(parents=True, exist_ok=True)
                for found in copied:
                    shutil.copy(found, self.root / target.lstrip("/"))
            case "ENV":
                self.environ |= dict(pair.split("=", 1) for pair in shlex.split(rest))
            case "USER":
                self.user = rest
            case "ENTRYPOINT":
                self.entrypoint = [part.strip('"') for part in rest.strip("[]").split(", ")]
            case "VOLUME" | "EXPOSE" | "STOPSIGNAL" | "HEALTHCHECK":
                pass
            case _:
                raise SystemExit(f"the Containerfile has {word}, which this does not know")


def in_own_mounts(module: str) -> None:
    """Start `python -m module` again where what it mounts is seen by nobody else, and goes with it."""
    if OWN_MOUNTS not in os.environ:
        again = ["unshare", "--mount", "--propagation", "private", sys.executable, "-m", module]
        os.execvpe(again[0], [*again, *sys.argv[1:]], os.environ | {OWN_MOUNTS: "1"})


def passed_on() -> dict[str, str]:
    """Return the environment by which a step reaches packages as this machine does."""
    found = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
    return found | {"PIP_CERT": INSIDE, "DEBIAN_FRONTEND": "noninteractive"}


def _steps(text: str) -> list[tuple[str, str]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


def bare_debian(suite: str, root: Path) -> None:
    """Make `root` what `debian:<suite>-slim` is: fetched once, and copied for each run."""
    base = root.with_name("base")
    if not (base / "etc/debian_version").exists():
        shutil.rmtree(base, ignore_errors=True)
        base.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["debootstrap", "--variant=minbase", suite, str(base)], check=True)
    shutil.rmtree(root, ignore_errors=True)
    subprocess.run(["cp", "-a", str(base), str(root)], check=True)
    subprocess.run(["mount", "-t", "proc", "proc", str(root / "proc")], check=True)
    # Names and certificates as this machine has them, for the steps that fetch packages.
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    (root / "etc/ssl").mkdir(exist_ok=True)
    shutil.copy(CERTIFICATES, root / INSIDE.lstrip("/"))
    for name in ("sources.list", "apt.conf"):
        if suite == OWN_SUITE and Path("/etc/apt", name).exists():
            shutil.copy(Path("/etc/apt", name), root / "etc/apt" / name)
