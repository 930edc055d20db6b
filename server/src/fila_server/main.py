"""`fila-server`: config → open → recover → bind → serve → drain.

    load()        every setting checked, and what start_checks.py finds of files, or one line and exit 2
    open_engine() the data directory locked, recovered, or one line and exit 1
    serve()       serving.py: until a signal; then exit 0 within DRAIN_S_MAX, or exit 3

Whatever stops a start is a StartError of errors.py: a sentence that says what to do.

A start reads the store first, so serving and each other command import for themselves what only they need.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fila_server import logs  # isort: split

import click
import msgspec
import structlog

from fila_server import errors, start_checks
from fila_server.backup import command_line as backup_commands
from fila_server.cluster import command_line as cluster_commands
from fila_server.config import load as config
from fila_server.config.schema import Config, History
from fila_server.descriptors import Descriptors, raise_limit
from fila_server.history_files import command_line as history_commands
from fila_server.one_line import EXIT_USAGE, OneLine, fail
from fila_server.opening import OURS_ALONE, open_engine
from fila_server.telemetry.probes import LoadingPage
from fila_server.usage import (
    EXIT_FAILED,
    EXIT_NOT_CLOSED,
    Asked,
    load_or_exit,
    say_version,
)
from fila_server.version import commit, version

if TYPE_CHECKING:
    from fila_server.broker.interfaces import Engine
    from fila_server.cluster.node import Node
    from fila_server.history_files.recorder import Recorder
    from fila_server.history_files.signing import Signer

log = structlog.get_logger("fila_server.main")

DRAIN_S_MAX = 9.5
"""A supervisor that asked politely waits ten seconds before it kills."""
HISTORY_ENDS_S = 8.0
"""For the history's last files, after everything else, within what is left of DRAIN_S_MAX: a thread of the lowest
priority gets little of a busy machine, and half of this was too little five times of six."""
HISTORY_PARTS_S = 3.0
"""For the files of a term that is over, before the process begins anew."""

_config_option = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="Read this file instead of ./fila.toml or /etc/fila/fila.toml.",
)


@click.group(
    cls=OneLine, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@_config_option
@click.option(
    "--listen", metavar="HOST:PORT", help="Address of the gRPC API, in place of server.listen_addr."
)
@click.option("--data-dir", metavar="DIRECTORY", help="Where the data is, in place of server.data_dir.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="The least that is written to stderr, in place of log.level.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=say_version,
    help="Print the version.",
)
@click.pass_context
def main(
    context: click.Context,
    config_path: Path | None,
    listen: str | None,
    data_dir: str | None,
    log_level: str | None,
) -> None:
    """Run the Fila message broker.

    \b
    Examples:
      fila-server
      fila-server --listen 127.0.0.1:5555 --data-dir /var/lib/fila
      fila-server --config /etc/fila/fila.toml --log-level warning
      FILA_SERVER__LISTEN_ADDR=127.0.0.1:5555 FILA_DATA_DIR=/var/lib/fila fila-server
    """
    given = {
        "server.listen_addr": ("--listen", listen),
        "server.data_dir": ("--data-dir", data_dir),
        "log.level": ("--log-level", log_level),
    }
    context.obj = Asked(
        config_path, {name: (flag, value) for name, (flag, value) in given.items() if value is not None}
    )
    if context.invoked_subcommand is not None:
        return
    loaded = load_or_exit(context.obj)
    logs.setup(level=loaded.config.log.level, form=loaded.config.log.format)
    try:
        run(loaded.config)
    except errors.ConfigInvalid as error:
        fail(error, EXIT_USAGE)
    except errors.StartError as error:
        fail(error, EXIT_FAILED)


@main.group(name="config")
def config_group() -> None:
    """Look at the configuration."""


@config_group.command(name="check")
@_config_option
@click.pass_obj
def config_check(asked: Asked, config_path: Path | None) -> None:
    """Check the configuration and print what is in effect, and where each value comes from.

    What of it would stop a start is told, files that it names included. Ports and the data directory are left alone.

    \b
    Example:
      fila-server config check --config fila.toml
    """
    loaded = load_or_exit(Asked(config_path or asked.config_path, asked.flags))
    try:
        start_checks.check(loaded.config)
    except errors.ConfigInvalid as error:
        fail(error, EXIT_USAGE)
    except errors.StartError as error:
        fail(error, EXIT_FAILED)
    for section, settings in config.settings_by_section().items():
        click.echo(f"[{section}]")
        for key, setting in settings.items():
            value = getattr(getattr(loaded.config, section), key)
            click.echo(f"{key} = {config.as_toml(value)}  # {loaded.origins[setting.name]}")
        click.echo()


@config_group.command(name="init")
def config_init() -> None:
    """Print a fila.toml with every setting at its default, each explained.

    \b
    Example:
      fila-server config init > fila.toml
    """
    click.echo(config.sample(), nl=False)


@main.command(name="hook-test", hidden=True)
@click.pass_obj
def hook_test(asked: Asked) -> None:
    """Run a script of `fila hook test`: a trial as JSON on stdin, its outcome on stdout."""
    from fila_server.hooks.sandbox import HookLimits
    from fila_server.hooks.trial import Trial, try_script

    lua = load_or_exit(asked).config.lua
    limits = HookLimits(timeout_ms=lua.default_timeout_ms, memory_bytes=lua.default_memory_limit_bytes)
    try:
        trial = msgspec.json.decode(sys.stdin.buffer.read(), type=Trial)
    except msgspec.DecodeError as error:
        fail(errors.StartError(f"hook-test reads a trial as JSON on stdin: {error}"), EXIT_USAGE)
    sys.stdout.buffer.write(msgspec.json.encode(try_script(trial, limits)) + b"\n")


@main.group(name="auth")
def auth_group() -> None:
    """Keys, while the server is stopped. While it runs: fila auth."""


@auth_group.command(name="recover")
@_config_option
@click.option("--data-dir", default=None, help="The data directory [default: the configuration's].")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def auth_recover(asked: Asked, config_path: Path | None, data_dir: str | None, yes: bool) -> None:
    """Drop ALL keys and rights, and write a new admin key to DATA_DIR/bootstrap-key.

    For the day the last admin key is lost, or the store of keys is damaged. The server must be stopped.

    \b
    Example:
      fila-server auth recover --data-dir /var/lib/fila
    """
    import uvloop

    from fila_server.operations.start_access import recover_access

    settings = load_or_exit(Asked(config_path or asked.config_path, asked.flags)).config
    place = data_dir or settings.server.data_dir
    if not Path(place, "rocksdb").is_dir():
        fail(errors.StartError(f"{place} is no data directory of a Fila server"), EXIT_FAILED)
    if not yes:
        click.confirm(f"Every key and every right in {place} will be gone. Go on?", abort=True, err=True)
    settings = msgspec.structs.replace(
        settings, server=msgspec.structs.replace(settings.server, data_dir=place)
    )
    logs.setup(level=settings.log.level, form=settings.log.format)
    os.umask(OURS_ALONE)
    try:
        file = uvloop.run(recover_access(open_engine(settings), place))
    except errors.StartError as error:
        fail(error, EXIT_FAILED)
    click.echo(f"the key of the principal admin is in {file}")


main.add_command(backup_commands.backup)
main.add_command(backup_commands.restore)
main.add_command(history_commands.group)
main.add_command(cluster_commands.group)
main.add_command(cluster_commands.cluster_group)


def run(settings: Config) -> None:
    """Open the store and serve until a signal."""
    os.umask(OURS_ALONE)
    limit = raise_limit()
    start_checks.check(settings)
    start_checks.make_history(settings)
    signer = _signer(settings.history)
    loading = LoadingPage.at(settings.metrics.listen_addr)
    _end_dead_runs(settings, signer)
    node = _stand_by(settings, loading)
    with _serving_imported():
        engine: Engine = node.open_engine() if node else open_engine(settings)
    import uvloop

    from fila_server.edge.server import OfGroup
    from fila_server.serving import serve

    recorder = _record(engine, settings, signer, node)
    served = serve(
        engine,
        settings,
        on_signal=lambda: _leave_in_time(node),
        descriptors=Descriptors(limit),
        loading=loading,
        group=OfGroup(node.group, node.status, node.mover) if node else None,
    )
    uvloop.run(served)
    if node and node.mover.handover and not node.is_leaving:
        _begin_anew(recorder)
    if recorder is not None and not recorder.finish(HISTORY_ENDS_S):
        log.warning("history.not_closed", detail="its last files were still being written; the gap is marked")


def _end_dead_runs(settings: Config, signer: Signer | None) -> None:
    """A node of a group may stand by for weeks, and nothing is missing of that time; a broker alone records at once."""
    if settings.cluster.is_set and settings.history.enabled:
        from fila_server.history_files import upkeep

        for run in upkeep.end_dead_runs(Path(settings.history.dir), time.time_ns() // 1_000_000, signer):
            log.info("history.gap_marked", run=run)


def _begin_anew(recorder: Recorder | None) -> None:
    """Another node was told to take over."""
    from fila_server.cluster.anew import begin_anew
    from fila_server.cluster.moving import RESTS_S

    time.sleep(RESTS_S)
    if recorder is not None and not recorder.part(HISTORY_PARTS_S):
        log.warning("history.not_closed", detail="its last files were still being written; the gap is marked")
    begin_anew("")


def _stand_by(settings: Config, loading: LoadingPage | None) -> Node | None:
    """Follow the log of a group until this node owns; None: this server is a broker alone."""
    if not settings.cluster.is_set:
        return None
    from fila_server.cluster.node import Node

    node = Node(settings, _import_serving)
    if loading:
        loading.stands_by, loading.metrics = node.lacks, node.metrics
    try:
        node.stand_by()
    except SystemExit:
        node.end()
        raise
    if loading:
        loading.stands_by = None
    return node


@contextlib.contextmanager
def _serving_imported() -> Iterator[None]:
    """Import what serves while the store is being opened, which needs no GIL: neither has to wait for the other."""

    thread = threading.Thread(target=_import_serving, name="fila-imports", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _import_serving() -> None:
    # Whatever is wrong with an import is raised where main imports it again.
    with contextlib.suppress(Exception):
        importlib.import_module("uvloop")
        importlib.import_module("fila_server.serving")
        version()
        commit()  # a checkout asks git


def _signer(history: History) -> Signer | None:
    """Read the key that what is recorded is signed with, if one is named."""
    if not history.sign_key_file:
        return None
    from fila_server.history_files.signing import read_signer

    return read_signer(history.sign_key_file)


def _record(engine: Engine, settings: Config, signer: Signer | None, node: Node | None) -> Recorder | None:
    """Start to write what the engine records, if it does."""
    recording = getattr(engine, "recording", None)
    if recording is None:
        return None
    from fila_server.history_files.recorder import Recorder

    of_term = None
    if node is not None:
        of_term = {"node": settings.cluster.node, "term": node.copy.term[0], "deposes": node.format.deposes}
    recorder = Recorder(recording, settings.history, signer=signer, of_term=of_term)
    recorder.start()
    log.info("history.started", dir=settings.history.dir, run=recorder.run)
    return recorder


def _leave_in_time(node: Node | None) -> None:
    """Bound the whole way out, whatever it waits for: a disk, a peer, a thread, the GIL.

    Nothing is lost: what was answered is durable already, and the next start only has more to read. A second signal
    changes nothing, also where it comes when the loop, which hears them, is closed already.
    """
    from fila_server.core.runtime.deadline import leave_after

    if node:
        node.leave()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    line = (
        f"fila-server: the stop took more than {DRAIN_S_MAX} s, and the server left without closing the store. "
        "What was answered is kept; the next start reads the write-ahead log"
    )
    leave_after(int(DRAIN_S_MAX * 1000), line, EXIT_NOT_CLOSED)


if __name__ == "__main__":
    main()
