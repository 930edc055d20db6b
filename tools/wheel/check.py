"""Are the distributions in dist/ what they promise? Installs them in a bare Debian, and runs them there.

    make wheel-check                    as root, with debootstrap and a network; a few minutes
    make wheel-check SUITE=trixie       in a newer Debian: with a wheel that is built there, for its Python and of its
                                        libraries; as long as compiling everything takes

The server starts without a system package of RocksDB or nghttp2, serves, backs itself up, and stops, and does so again
with no more than the systemd unit leaves it; SDK and command line work in an environment of their own, without it.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tools.wheel import sandbox
from tools.wheel.image import (
    NEWER_WHEEL,
    OWN_SUITE,
    OWN_WHEEL,
    TREE,
    Image,
    in_own_mounts,
    passed_on,
)
from tools.wheel.newer import build_in

START_S_MAX = 60
LISTENS = {
    "FILA_SERVER__LISTEN_ADDR": "127.0.0.1:0",
    "FILA_REDIS__LISTEN_ADDR": "127.0.0.1:0",
    "FILA_METRICS__LISTEN_ADDR": "127.0.0.1:0",
    "FILA_AUTH__ENABLED": "false",
}
"""Ports that the system chooses: the root has the machine's network. Keys are the image's check (tools/release)."""


def main() -> None:
    """Check all of it, or say what is wrong and fail."""
    in_own_mounts("tools.wheel.check")
    suite = sys.argv[1] if len(sys.argv) > 1 else OWN_SUITE
    wheel = sys.argv[2] if len(sys.argv) > 2 else OWN_WHEEL  # a release has one for the next Debian already
    if suite != OWN_SUITE and len(sys.argv) == 2:
        build_in(suite, TREE / "dist" / suite)
        wheel = f"dist/{suite}/{NEWER_WHEEL}"
    image = Image(suite, wheel)
    image.build()
    _check_version(image)
    _check_console(image)
    server, address = _start(image)
    try:
        _check_libraries(image, server)
        _check_client(image, "/opt/fila/bin/fila", address)
        _check_without_the_server(image, address)
        image.run("fila-server", "backup", "/tmp/backup")
        image.run("fila-server", "restore", "/tmp/backup", "--data-dir", "/tmp/restored")
    finally:
        _stop(server)
    _check_in_the_sandbox(image)
    debian = (image.root / "etc/debian_version").read_text().strip()
    python = image.run("/opt/fila/bin/python", "--version").strip()
    print(
        f"dist/ is good: installed, started, used, backed up, restored and stopped in a bare Debian {debian}, {python}"
    )


def _check_version(image: Image) -> None:
    said = image.run("fila-server", "--version").strip()
    head = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=TREE, capture_output=True, text=True, check=False
    ).stdout.strip()
    assert said.endswith(f"(commit {head})"), (
        f"{said!r} does not name the commit {head}: run make wheel again"
    )
    print(said)


def _check_console(image: Image) -> None:
    """Everything that its pages ask for came in the wheel and with the server's libraries."""
    ask = (
        "from fila_console.assets import Assets; print(Assets().url('htmx.min.js'), Assets().url('icon.svg'))"
    )
    print(f"the console has {image.run('/opt/fila/bin/python', '-c', ask).strip()}")


def _start(image: Image) -> tuple[subprocess.Popen[str], str]:
    inside, around = image.command(*image.entrypoint, **LISTENS)
    server = subprocess.Popen(inside, env=around, text=True, stderr=subprocess.PIPE)
    return server, _address_of(server)


def _stop(server: subprocess.Popen[str]) -> None:
    server.send_signal(signal.SIGTERM)
    code = server.wait(20)
    assert code == 0, f"the server ended with {code}"


def _check_in_the_sandbox(image: Image) -> None:
    """The same with what the unit leaves it: a script, a message, a backup."""
    [program] = re.findall(r"^(\S+)", sandbox.of("ExecStart")[0])
    proc = image.root / "proc"
    if sandbox.of("ProcSubset") == ["pid"]:
        subprocess.run(["umount", str(proc)], check=True)
        subprocess.run(["mount", "-t", "proc", "-o", "subset=pid", "proc", str(proc)], check=True)
    server = subprocess.Popen(
        [program],
        env=image.environ | LISTENS,
        text=True,
        stderr=subprocess.PIPE,
        # No other thread runs here.
        preexec_fn=sandbox.entering(image.root, (image.root / "var/lib/fila").stat().st_uid),  # noqa: PLW1509
    )
    try:
        address = _address_of(server)
        script = 'function on_enqueue(msg) return { fairness_key = "acme" } end'
        image.run("fila", "--addr", address, "queue", "create", "scripted", "--on-enqueue", script)
        image.run("fila", "--addr", address, "enqueue", "scripted", "hello")
        assert "acme" in image.run("fila", "--addr", address, "queue", "inspect", "scripted")
        _check_client(image, "/opt/fila/bin/fila", address)
        image.run("fila-server", "backup", "/tmp/backup-of-the-unit")
    finally:
        _stop(server)
    print("the same within the unit's sandbox")


def _address_of(server: subprocess.Popen[str]) -> str:
    assert server.stderr is not None
    deadline = time.monotonic() + START_S_MAX
    for line in server.stderr:
        event: dict[str, Any] = json.loads(line) if line.startswith("{") else {"event": line}
        if event["event"] == "server.started":
            print(f"started: {event}")
            return str(event["grpc"])
        assert time.monotonic() < deadline, line
    raise SystemExit(f"the server ended at its start with {server.wait()}")


def _check_libraries(image: Image, server: subprocess.Popen[str]) -> None:
    """Every library that a distribution would have to bring comes out of the wheel."""
    mapped = {line.split()[-1] for line in Path(f"/proc/{server.pid}/maps").read_text().splitlines()}
    for library in ("librocksdb", "libnghttp2"):
        loaded = [path for path in mapped if library in path]
        assert loaded, f"{library} is not loaded"
        assert all("fila_server.libs" in path for path in loaded), loaded
        print(f"loaded: {loaded}")
    packages = (image.root / "var/lib/dpkg/status").read_text()
    assert "Package: librocksdb" not in packages
    assert "Package: libnghttp2" not in packages


def _check_client(image: Image, fila: str, address: str) -> None:
    def ask(*words: str) -> str:
        return image.run(fila, "--addr", address, *words, PATH=image.environ["PATH"])

    ask("queue", "create", "proof", "--fairness-header", "tenant", "--if-not-exists")
    ask("enqueue", "proof", "hello", "--header", "tenant=acme")
    assert "hello" in ask("consume", "proof", "--count", "1")


def _check_without_the_server(image: Image, address: str) -> None:
    """SDK and command line in an environment of their own."""
    alone = image.root / "tmp/alone"
    alone.mkdir()
    for pattern in ("fila_mq-*.whl", "fila_cli-*.whl"):
        [wheel] = (TREE / "dist").glob(pattern)
        (alone / wheel.name).write_bytes(wheel.read_bytes())
    install = (
        "python3 -m venv /opt/alone"
        " && /opt/alone/bin/pip install --quiet -c /tmp/alone/server.txt /tmp/alone/*.whl"
    )
    pins = (TREE / "requirements/server.txt").read_text().splitlines()
    without_sums = [line.split(" ")[0] for line in pins if "==" in line]
    (alone / "server.txt").write_text("\n".join(without_sums))
    image.run("/bin/sh", "-c", install, user="root", **passed_on())
    _check_client(image, "/opt/alone/bin/fila", address)
    print(image.run("/opt/alone/bin/fila", "--version").strip())
    said = image.run("/opt/alone/bin/pip", "list")
    assert "fila-server" not in said
    image.run("/opt/alone/bin/python", "-c", "import fila, fila.sync, fila_cli")


if __name__ == "__main__":
    main()
