"""`fila worker`: runs the handlers of a program that uses `fila.worker`."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from typing import TYPE_CHECKING

import click

from fila_cli.address import DEFAULT_ADDRESS
from fila_cli.failures import BrokerError
from fila_cli.session import Command, Session

if TYPE_CHECKING:
    from fila.worker import App


@click.command(
    cls=Command,
    examples="""
    fila worker shop:app
    fila worker shop.workers:app --addr broker:5555
    fila worker shop:app --reload
    """,
)
@click.argument("program", metavar="MODULE:APP")
@click.option(
    "--reload", "reloads", is_flag=True, help="Start anew when a .py file below this folder changes"
)
@click.option("-v", "--verbose", is_flag=True, help="Log what the client does, too")
@click.pass_obj
def worker(session: Session, program: str, *, reloads: bool, verbose: bool) -> int | None:
    """Run the handlers that APP of the Python module MODULE registered, until SIGTERM or Ctrl-C.

    Then what is begun is finished for APP's shutdown_grace_s (25), what is not finished goes back uncounted, and so
    does what was not begun. A second signal ends the waiting.
    """
    if reloads:
        from fila_cli.reload import run_reloading

        arguments = ["worker", program, "--addr", session.address, *(["--verbose"] if verbose else [])]
        return run_reloading(
            arguments if session.address != DEFAULT_ADDRESS else [*arguments[:2], *arguments[4:]]
        )

    app = load_app(program)
    if session.address != DEFAULT_ADDRESS:
        app.target = session.address
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("fila.worker").setLevel(logging.INFO)

    from fila.errors import FilaError

    try:
        app.run()
    except FilaError as error:
        raise BrokerError(str(error)) from error
    return None


def load_app(program: str) -> App:
    """Return what `module:name` names; a plain module means its `app`."""
    from fila.worker import App, BadHandler

    module_name, _, name = program.partition(":")
    if os.getcwd() not in sys.path:  # noqa: PTH109 - sys.path holds text
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as missing:
        if missing.name != module_name.partition(".")[0] and missing.name != module_name:
            raise
        raise click.UsageError(f"there is no module {module_name!r} here; write it like shop:app") from None
    except BadHandler as mistake:
        raise click.UsageError(f"{module_name}: {mistake}") from None
    app = getattr(module, name or "app", None)
    if not isinstance(app, App):
        raise click.UsageError(f"{program!r} is no fila.worker.App, but {type(app).__name__}")
    return app
