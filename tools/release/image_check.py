"""Starts the release's image as a container would run it: its own user, a read-only root, one volume, keys asked for.

As root, with buildah: `make release-check ONLY=image`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tools.release.commands import ASIDE, DIST
from tools.release.image import COMPILED, Store
from tools.wheel.image import Image, in_own_mounts

PORTS = {f"FILA_{name}__LISTEN_ADDR": "127.0.0.1:0" for name in ("SERVER", "REDIS", "METRICS")}
"""Ports that the system chooses: the root has the machine's network."""
START_S_MAX, STOP_S_MAX = 60, 20
MB_MAX = 120


class Container(Image):
    """The image's root, read-only, with a volume of its own."""

    def __init__(self, mounted: Path, settings: dict[str, Any], folder: Path) -> None:
        super().__init__()
        shutil.rmtree(folder, ignore_errors=True)
        self.root, self.volume = folder / "root", folder / "volume"
        self.environ = dict(pair.split("=", 1) for pair in settings["Env"])
        self.entrypoint = settings["Entrypoint"]
        [volume] = settings["Volumes"]
        owner = (mounted / volume.lstrip("/")).stat()
        self.user = f"{owner.st_uid}:{owner.st_gid}"
        self.root.mkdir(parents=True)
        self.volume.mkdir()
        os.chown(self.volume, owner.st_uid, owner.st_gid)
        mount("--bind", str(mounted), str(self.root))
        mount("-o", "remount,bind,ro", str(self.root))
        mount("--bind", str(self.volume), str(self.root / volume.lstrip("/")))
        mount("-t", "tmpfs", "tmpfs", str(self.root / "tmp"))
        mount("-t", "proc", "proc", str(self.root / "proc"))


def main() -> None:
    """Check it, or fail with what is wrong."""
    in_own_mounts(__spec__.name)
    [archive] = DIST.glob("*_oci.tar")
    mb = archive.stat().st_size / 1e6
    assert mb <= MB_MAX, f"the image has {mb:.0f} MB, and {MB_MAX} at most are promised"
    store = Store(ASIDE.with_name("release-image"))
    try:
        made = store.run("from", f"oci-archive:{archive}")
        settings = json.loads(store.run("inspect", made))["OCIv1"]["config"]
        assert settings["User"] == "fila", settings
        mounted = Path(store.run("mount", made))
        _check_compiled(mounted)
        container = Container(mounted, settings, ASIDE.with_name("release-container"))
        took_s = _serve(container)
    finally:
        store.drop()
    print(f"the image is good: {mb:.0f} MB, started in {took_s:.1f} s, asks for keys, used, stopped")


def _check_compiled(mounted: Path) -> None:
    """Python takes what was compiled as it is: the root is read-only, so each start would compile it again."""
    compiled = [
        path for folder in COMPILED for path in (mounted / folder.lstrip("/")).rglob("*.cpython-311.pyc")
    ]
    assert compiled
    unchecked_hash = (1).to_bytes(4, "little")
    stale = [path for path in compiled if path.read_bytes()[4:8] != unchecked_hash]
    assert not stale, f"{len(stale)} of {len(compiled)} would be compiled at each start, such as {stale[0]}"


def _serve(container: Container) -> float:
    began = time.monotonic()
    inside, around = container.command(*container.entrypoint, **PORTS)
    server = subprocess.Popen(inside, env=around, text=True, stderr=subprocess.PIPE)
    try:
        events = _events_until_started(server)
        took_s = time.monotonic() - began
        first_key = next(event for event in events if event["event"] == "auth.first_key")
        assert f"cat {first_key['file']}" in first_key["detail"], first_key
        fila = ("fila", "--addr", events[-1]["grpc"])
        refused, environ = container.command(*fila, "queue", "create", "orders")
        said = subprocess.run(refused, env=environ, check=False, text=True, capture_output=True)
        assert said.returncode, "the image serves callers without a key"
        key = {"FILA_API_KEY": (container.volume / "bootstrap-key").read_text().strip()}
        container.run(*fila, "queue", "create", "orders", **key)
        container.run(*fila, "enqueue", "orders", "a message", **key)
        assert "a message" in container.run(*fila, "consume", "orders", "--count", "1", **key)
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(STOP_S_MAX)
    assert code == 0, f"the server ended with {code}"
    return took_s


def _events_until_started(server: subprocess.Popen[str]) -> list[dict[str, Any]]:
    assert server.stderr is not None
    events: list[dict[str, Any]] = []
    give_up_at = time.monotonic() + START_S_MAX
    for line in server.stderr:
        events.append(json.loads(line) if line.startswith("{") else {"event": line})
        if events[-1]["event"] == "server.started":
            return events
        assert time.monotonic() < give_up_at, line
    raise SystemExit(f"the server ended at its start with {server.wait()}: {events}")


def mount(*words: str) -> None:
    """Mount something, in this process's own view."""
    subprocess.run(["mount", *words], check=True)


if __name__ == "__main__":
    main()
