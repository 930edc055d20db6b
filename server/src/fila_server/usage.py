"""The command line of `fila-server`: what was asked for, its version, and one line for what was not understood."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import click

from fila_server import errors
from fila_server.config import load
from fila_server.config.load import LoadedConfig
from fila_server.version import commit, version

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOT_CLOSED = 3
"""A stop took too long and left the store as it was."""


class Asked(NamedTuple):
    """What the command line said."""

    config_path: Path | None
    flags: dict[str, tuple[str, str]]


def say_version(context: click.Context, _param: click.Parameter, wanted: bool) -> None:
    """What --version does."""
    if wanted:
        click.echo(f"fila-server {version()} (commit {commit()})")
        context.exit()


class OneLine(click.Group):
    """What was not understood is one line, as every other failure here is."""

    def main(self, *args: Any, **extra: Any) -> Any:
        try:
            return super().main(*args, **(extra | {"standalone_mode": False}))
        except click.UsageError as error:
            text = " ".join(error.format_message().split()).rstrip(".")
            fail(errors.StartError(f"{text}; 'fila-server --help' shows how"), EXIT_USAGE)
        except click.Abort:
            sys.exit(130)


def fail(error: errors.StartError, code: int) -> NoReturn:
    """Say why, in one line, and leave."""
    line = " ".join(str(error).split())
    click.echo(f"fila-server: {line}", err=True)
    sys.exit(code)


def load_or_exit(asked: Asked) -> LoadedConfig:
    """Read the configuration, or say what is wrong with it and leave."""
    try:
        return load.load(asked.config_path, os.environ, Path.cwd(), asked.flags)
    except errors.ConfigInvalid as error:
        fail(error, EXIT_USAGE)
