"""`fila config`: runtime values that hooks read, and the rates of token buckets."""

from __future__ import annotations

import click

from fila_cli.arguments import complete_config_key, without_doubles
from fila_cli.output import printable, table
from fila_cli.session import Group, Session
from fila_cli.values import SOURCE


@click.group(
    cls=Group,
    examples="""
    fila config set throttle.stripe 100,200
    fila config get throttle.stripe
    fila config list --prefix throttle
    """,
)
def config() -> None:
    """Values that hooks read by fila.get, and the rates of token buckets."""


@config.command(
    name="set",
    examples="""
    fila config set throttle.stripe 100,200
    fila config set throttle:stripe:rate 100
    fila config set tiers @tiers.json
    """,
)
@click.argument("key", shell_complete=complete_config_key)
@click.argument("value", type=SOURCE, metavar="VALUE|@FILE")
@click.pass_obj
def set_(session: Session, key: str, value: str) -> None:
    """Set KEY; durable and visible to hooks before this returns. An empty value deletes it."""
    from fila.v1 import admin_pb2

    answer = session.admin.SetConfig(
        admin_pb2.SetConfigRequest(key=key, value=value), timeout=session.timeout_s
    )
    session.show(answer, f"{printable(key)} {'set' if value else 'deleted'}")


@config.command(examples="fila config get throttle.stripe")
@click.argument("key", shell_complete=complete_config_key)
@click.pass_obj
def get(session: Session, key: str) -> None:
    """Print the value of KEY."""
    from fila.v1 import admin_pb2

    answer = session.admin.GetConfig(admin_pb2.GetConfigRequest(key=key), timeout=session.timeout_s)
    session.show(answer, answer.value)


@config.command(examples="fila config delete throttle.stripe")
@click.argument("key", shell_complete=complete_config_key)
@click.pass_obj
def delete(session: Session, key: str) -> None:
    """Delete KEY."""
    from fila.v1 import admin_pb2

    # Refuses a key that is not set: to set an empty value, which deletes, would succeed for one, too.
    session.admin.GetConfig(admin_pb2.GetConfigRequest(key=key), timeout=session.timeout_s)
    answer = session.admin.SetConfig(admin_pb2.SetConfigRequest(key=key, value=""), timeout=session.timeout_s)
    session.show(answer, f"{printable(key)} deleted")


@config.command(
    name="list",
    examples="""
    fila config list
    fila config list --prefix throttle -o json
    """,
)
@click.option("--prefix", default="", help="Only keys that start with this")
@click.pass_obj
def list_(session: Session, prefix: str) -> None:
    """List keys and values, sorted by key; a token bucket stands once, as throttle.KEY."""
    from fila.v1 import admin_pb2

    answer = session.admin.ListConfig(admin_pb2.ListConfigRequest(prefix=prefix), timeout=session.timeout_s)
    entries = without_doubles(answer.entries, prefix)
    shown = admin_pb2.ListConfigResponse(entries=entries, total_count=len(entries))
    rows = [(entry.key, entry.value) for entry in entries]
    session.show(shown, table(("KEY", "VALUE"), rows) if rows else "", empty="nothing is set")
