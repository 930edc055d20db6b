"""`fila context`: which broker the commands talk to when they are not told."""

from __future__ import annotations

import click

from fila_cli.address import targets_of
from fila_cli.contexts import contexts
from fila_cli.output import show, table
from fila_cli.session import Group, Session, complete_context


@click.group(
    cls=Group,
    examples="""
    fila context add prod --addr https://broker.example:5555
    fila context use prod
    fila context list
    """,
)
def context() -> None:
    """Named brokers: add one, and say which is in use."""


@context.command(examples="fila context add prod --addr https://broker.example:5555")
@click.argument("name")
@click.pass_obj
def add(session: Session, name: str) -> None:
    """Keep the address given by --addr under NAME; the first one added is in use."""
    if not session.is_address_given:
        raise click.UsageError("say where it is: --addr https://broker.example:5555")
    targets_of(session.address)
    state = contexts().load()
    state["contexts"][name] = {"address": session.address}
    state["current"] = state["current"] or name
    contexts().save(state)
    used = ", in use" if state["current"] == name else f"; 'fila context use {name}' chooses it"
    show(
        session.format,
        {"name": name, "address": session.address},
        f"context {name} is {session.address}{used}",
    )


@context.command(examples="fila context use prod")
@click.argument("name", shell_complete=complete_context)
@click.pass_obj
def use(session: Session, name: str) -> None:
    """Talk to NAME from now on, unless --addr, --context or FILA_ADDR says otherwise."""
    address = contexts().address_of(name)
    state = contexts().load()
    contexts().save(state | {"current": name})
    show(session.format, {"name": name, "address": address}, f"context {name} is in use: {address}")


@context.command(examples="fila context remove prod")
@click.argument("name", shell_complete=complete_context)
@click.pass_obj
def remove(session: Session, name: str) -> None:
    """Forget NAME."""
    contexts().address_of(name)
    state = contexts().load()
    del state["contexts"][name]
    state["current"] = "" if state["current"] == name else state["current"]
    contexts().save(state)
    show(session.format, {"name": name}, f"context {name} removed")


@context.command(name="list", examples="fila context list")
@click.pass_obj
def list_(session: Session) -> None:
    """List the contexts there are; a star marks the one in use."""
    state = contexts().load()
    rows = [
        ("*" if name == state["current"] else "", name, each["address"])
        for name, each in sorted(state["contexts"].items())
    ]
    value = [{"name": name, "address": address, "in_use": bool(star)} for star, name, address in rows]
    shown = table(("", "CONTEXT", "ADDRESS"), rows) if rows else ""
    show(
        session.format,
        {"contexts": value},
        shown,
        empty="no contexts; 'fila context add NAME --addr ADDRESS' keeps one",
    )
