"""The command line of `fila-server`: what was asked for, and its version."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import click

from fila_server import errors
from fila_server.config import load
from fila_server.config.load import LoadedConfig
from fila_server.one_line import EXIT_USAGE, fail
from fila_server.version import commit, version

EXIT_FAILED = 1
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


def load_or_exit(asked: Asked) -> LoadedConfig:
    """Read the configuration, or say what is wrong with it and leave."""
    try:
        return load.load(asked.config_path, os.environ, Path.cwd(), asked.flags)
    except errors.ConfigInvalid as error:
        fail(error, EXIT_USAGE)
