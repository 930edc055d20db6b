"""`fila auth link`: keys that show a tenant its own part of a queue, and addresses for webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from fila_cli.arguments import complete_key, queue_argument, yes_option
from fila_cli.output import table
from fila_cli.session import Group, Session, confirm
from fila_cli.values import DURATION

if TYPE_CHECKING:
    from fila.v1 import auth_pb2


@click.group(
    cls=Group,
    examples="""
    fila auth link create orders acme --ttl 7d
    fila auth link create hooks --webhook
    fila auth link list orders
    fila auth link revoke orders k3j5h2
    """,
)
def link() -> None:
    """Let a tenant look at its own part of a queue for a while, or a webhook enqueue, and nothing else."""


@link.command(
    name="create",
    examples="""
    fila auth link create orders acme
    fila auth link create orders acme --ttl 30d --console https://console.example
    fila auth link create hooks --webhook --gateway https://fila.example
    """,
)
@queue_argument
@click.argument("key", default="", shell_complete=complete_key)
@click.option(
    "--ttl", "ttl_ms", type=DURATION, help="Its time; 90d at most, 7d by default; a webhook's for ever"
)
@click.option(
    "--console",
    default="",
    metavar="URL",
    help="Print the console's address that shows it; of a console of several brokers, URL/t/BROKER",
)
@click.option(
    "--webhook", is_flag=True, help="Make an address that can only enqueue to QUEUE, under KEY if given"
)
@click.option("--gateway", default="", metavar="URL", help="With --webhook, where `fila http` is reached")
@click.pass_obj
def create_link(
    session: Session, queue: str, key: str, ttl_ms: int | None, console: str, *, webhook: bool, gateway: str
) -> None:
    """Make a link and print its key or address, once: it shows KEY's numbers in QUEUE, or enqueues with --webhook."""
    from fila.v1 import auth_pb2

    if (webhook and console) or (gateway and not webhook):
        raise click.UsageError("--console is for links to look at, and --gateway for --webhook")
    if not (key or webhook):
        raise click.UsageError("name the fairness KEY that the link shows, or --webhook")
    right = auth_pb2.RIGHT_PRODUCE if webhook else auth_pb2.RIGHT_VIEW
    request = auth_pb2.CreateTenantLinkRequest(queue=queue, fairness_key=key, ttl_ms=ttl_ms or 0, right=right)
    made = session.auth.CreateTenantLink(request, timeout=session.timeout_s)
    if webhook:
        session.show(made, f"{gateway.rstrip('/')}/v1/queues/{queue}/messages/raw/{made.key}")
        return
    page = console.rstrip("/")
    if page and not urlsplit(page).path.startswith("/t/"):
        page += "/t"
    session.show(made, f"{page}#{made.key}" if page else made.key)


@link.command(
    name="list",
    examples="""
    fila auth link list
    fila auth link list orders
    """,
)
@click.argument("queue", default="")
@click.pass_obj
def list_links(session: Session, queue: str) -> None:
    """List links without their secrets, of QUEUE only if it is given; those that end soonest first."""
    from fila.v1 import auth_pb2

    answer = session.auth.ListTenantLinks(
        auth_pb2.ListTenantLinksRequest(queue=queue), timeout=session.timeout_s
    )
    rows = [
        (
            each.link_id,
            each.queue,
            auth_pb2.Right.Name(each.right).removeprefix("RIGHT_").lower(),
            each.fairness_key,
            each.created_by,
            moment(each, "created_at"),
            moment(each, "expires_at") or "never",
        )
        for each in answer.links
    ]
    headings = ("LINK", "QUEUE", "MAY", "KEY", "BY", "CREATED", "EXPIRES")
    session.show(answer, table(headings, rows) if rows else "", empty="no links")


@link.command(name="revoke", examples="fila auth link revoke orders k3j5h2")
@queue_argument
@click.argument("link_id", metavar="LINK")
@yes_option
@click.pass_obj
def revoke_link(session: Session, queue: str, link_id: str, *, yes: bool) -> None:
    """Take a link away: what it shows ends within a second."""
    from fila.v1 import auth_pb2

    confirm(f"Revoke link {link_id} of {queue}?", yes=yes)
    answer = session.auth.RevokeTenantLink(
        auth_pb2.RevokeTenantLinkRequest(queue=queue, link_id=link_id), timeout=session.timeout_s
    )
    session.show(answer, f"link {link_id} revoked")


def moment(info: auth_pb2.KeyInfo | auth_pb2.WhoAmIResponse | auth_pb2.TenantLink, field: str) -> str:
    """A time of it as people read it; empty where there is none."""
    if not info.HasField(field):
        return ""
    return str(getattr(info, field).ToDatetime().isoformat(timespec="seconds")) + "Z"
