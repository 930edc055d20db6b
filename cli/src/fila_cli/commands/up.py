"""`fila up`: a broker, its console and its HTTP gateway, for one laptop.

Each is the process that its own command starts. This one starts all three, and stops all when one ends. On Linux they
are stopped when this one is gone, too, also by kill -9.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from importlib.util import find_spec

import click

from fila_cli.address import Listen
from fila_cli.session import Command, Session

START_S_MAX = 60.0
STOP_S_MAX = 15.0
"""A broker drains for up to ten seconds."""
LOOK_EVERY_S = 0.05
PR_SET_PDEATHSIG = 1
"""Of Linux's prctl: which signal comes when the parent is gone."""
FILA = "from fila_cli.main import main; main()"


@click.command(
    "up",
    cls=Command,
    examples="""
    fila up
    fila up --data-dir /tmp/fila --broker 127.0.0.1:5556
    """,
)
@click.option("--data-dir", default="", metavar="DIRECTORY", help="Where the broker keeps its messages")
@click.option(
    "--broker",
    default="127.0.0.1:5555",
    show_default=True,
    type=Listen(),
    help="Where clients reach the broker",
)
@click.option(
    "--console",
    default="127.0.0.1:8080",
    show_default=True,
    type=Listen(),
    help="Where browsers reach the console",
)
@click.option(
    "--http",
    default="127.0.0.1:8081",
    show_default=True,
    type=Listen(),
    help="Where callers reach the gateway",
)
@click.pass_obj
def up(
    _session: Session, data_dir: str, broker: tuple[str, int], console: tuple[str, int], http: tuple[str, int]
) -> None:
    """Run a broker, its console and its HTTP gateway on this machine until Ctrl-C."""
    if find_spec("fila_server") is None:
        raise click.ClickException("the server is not installed beside this command: install fila-server")
    _all_free({"--broker": broker, "--console": console, "--http": http})
    address = _text(broker)
    directory = ["--data-dir", data_dir] if data_dir else []
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        running["the broker"] = _start("-m", "fila_server.main", "--listen", address, *directory)
        _wait_for(broker, running["the broker"])
        for name, words, place in (("the console", "console", console), ("the HTTP gateway", "http", http)):
            running[name] = _start("-c", FILA, words, "--addr", address, "--listen", _text(place))
        click.echo(f"broker {address}, console http://{_text(console)}, HTTP http://{_text(http)}", err=True)
        name = _first_to_end(running)
        raise _ended(name, running[name])
    except KeyboardInterrupt:
        pass
    finally:
        _stop(running)


def _all_free(places: dict[str, tuple[str, int]]) -> None:
    """Or a broker that is there already would be taken for the one that is to start."""
    with ExitStack() as held:
        for option, place in places.items():
            try:
                family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
                held.enter_context(socket.create_server(place, family=family))
            except OSError as error:
                why = f"{option}: nothing can listen at {_text(place)} ({os.strerror(error.errno or 0)})"
                raise click.ClickException(f"{why}; stop what does, or give another address") from None


def _start(*words: str) -> subprocess.Popen[bytes]:
    # In a group of its own: Ctrl-C in a terminal reaches this process alone, which stops the others in order.
    return subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, *words],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_goes_with_its_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - no other thread runs
    )


def _goes_with_its_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait_for(place: tuple[str, int], broker: subprocess.Popen[bytes]) -> None:
    give_up_at = time.monotonic() + START_S_MAX
    while time.monotonic() < give_up_at:
        if broker.poll() is not None:
            raise _ended("the broker", broker)
        try:
            socket.create_connection(place, timeout=1).close()
        except OSError:
            time.sleep(LOOK_EVERY_S)
        else:
            return
    raise click.ClickException(f"the broker does not answer at {_text(place)} after {START_S_MAX:.0f} s")


def _ended(name: str, process: subprocess.Popen[bytes]) -> click.ClickException:
    said = f"{name} ended with exit code {process.returncode}, and said why above; all are stopped"
    return click.ClickException(said)


def _first_to_end(running: dict[str, subprocess.Popen[bytes]]) -> str:
    while True:
        for name, process in running.items():
            if process.poll() is not None:
                return name
        time.sleep(LOOK_EVERY_S)


def _stop(running: dict[str, subprocess.Popen[bytes]]) -> None:
    """Those who call the broker first, the broker last."""
    for process in reversed(running.values()):
        process.terminate()
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _text(place: tuple[str, int]) -> str:
    host, port = place
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
