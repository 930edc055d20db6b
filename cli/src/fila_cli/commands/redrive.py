"""`fila redrive`: `fila dlq redrive`, as it is typed most."""

from __future__ import annotations

from fila_cli.commands import dlq
from fila_cli.help import CommonOption
from fila_cli.session import Command

redrive = Command(
    "redrive",
    callback=dlq.redrive.callback,
    params=[param for param in dlq.redrive.params if not isinstance(param, CommonOption)],
    help=dlq.redrive.help,
    examples="""
    fila redrive orders.dlq
    fila redrive orders.dlq --count 100
    """,
)
