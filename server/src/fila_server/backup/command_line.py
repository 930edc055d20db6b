"""`fila-server backup DIRECTORY` and `fila-server restore BACKUP`. Every start of the server imports this module, so
each command imports what it does when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fila_server import errors, logs
from fila_server.one_line import fail
from fila_server.usage import EXIT_FAILED, Asked, load_or_exit

if TYPE_CHECKING:
    from fila_server.backup.taking import Reported

_config = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="Read this file instead of ./fila.toml or /etc/fila/fila.toml.",
)
_data_dir = click.option(
    "--data-dir", metavar="DIRECTORY", help="The data directory [default: the configuration's]."
)


@click.command(name="backup")
@click.argument("directory", type=click.Path(path_type=Path))
@_config
@_data_dir
@click.pass_obj
def backup(asked: Asked, directory: Path, config_path: Path | None, data_dir: str | None) -> None:
    """Copy the data directory to DIRECTORY, which must be new or empty, while the server runs or not.

    The copy holds everything that was answered before the call. Run it as the server's user, on its machine.

    \b
    Examples:
      fila-server backup /backups/fila-2026-03-02
      fila-server backup --data-dir /var/lib/fila /backups/$(date +%F)
    """
    from fila_server.backup.taking import take_backup

    place = _place(asked, config_path, data_dir)
    try:
        reported = take_backup(place, directory)
    except errors.StartError as error:
        fail(error, EXIT_FAILED)
    click.echo(f"backup of {place} in {directory}: {_text(reported)}")
    if reported.trouble:
        click.echo(reported.trouble, err=True)


@click.command(name="restore")
@click.argument("directory", metavar="BACKUP", type=click.Path(path_type=Path))
@_config
@_data_dir
@click.pass_obj
def restore(asked: Asked, directory: Path, config_path: Path | None, data_dir: str | None) -> None:
    """Make the data directory what BACKUP holds. It must be new or empty, and no server may use it.

    Every file is compared with its SHA-256. What was acked after the backup was taken is delivered again.

    \b
    Example:
      fila-server restore --data-dir /var/lib/fila /backups/fila-2026-03-02
    """
    from fila_server.backup.restoring import restore_backup

    place = _place(asked, config_path, data_dir)
    try:
        reported = restore_backup(directory, place)
    except errors.StartError as error:
        fail(error, EXIT_FAILED)
    click.echo(f"{place} holds the backup of {directory}: {_text(reported)}; start the server on it")


def _place(asked: Asked, config_path: Path | None, data_dir: str | None) -> Path:
    settings = load_or_exit(Asked(config_path or asked.config_path, asked.flags)).config
    logs.setup(level=settings.log.level, form=settings.log.format)
    return Path(data_dir or settings.server.data_dir)


def _text(reported: Reported) -> str:
    return f"{reported.files} files, {reported.bytes / 1e6:.1f} MB, in {reported.took_s:.1f} s"
