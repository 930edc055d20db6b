"""What the command line says of what it did not understand, and of what it cannot do: one line, then it leaves."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import click

from fila_server import errors

EXIT_USAGE = 2


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
