"""`fila auth`: keys, rights, quotas, links for tenants, and what admins did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fila_cli.arguments import yes_option
from fila_cli.links import link, moment
from fila_cli.output import counted, facts, table
from fila_cli.session import Group, Session, confirm
from fila_cli.values import DURATION, SIZE, size_text

if TYPE_CHECKING:
    from fila.v1 import auth_pb2

RIGHTS = ("produce", "consume", "manage", "view", "cancel")


@click.group(
    cls=Group,
    examples="""
    fila auth key create billing --expires 90d
    fila auth grant billing --consume 'orders.*:billing'
    fila auth show billing
    fila auth audit
    """,
)
def auth() -> None:
    """Keys, rights, quotas, links for tenants, and what admins did."""


@auth.group(
    cls=Group,
    examples="""
    fila auth key create billing --expires 90d
    fila auth key list
    fila auth key rotate k3j5h2 --overlap 1d
    fila auth key revoke k3j5h2
    """,
)
def key() -> None:
    """Make, list, replace and take away keys."""


@key.command(
    examples="""
    fila auth key create billing --expires 90d
    fila auth key create acme-shop --as-tenant acme
    """
)
@click.argument("name")
@click.option(
    "--expires", "expires_ms", type=DURATION, default=0, help="Its time, as 90d [default: for ever]"
)
@click.option("--as-tenant", default="", metavar="KEY", help="Bind its messages to this fairness key")
@click.pass_obj
def create(session: Session, name: str, expires_ms: int, as_tenant: str) -> None:
    """Make a key for NAME and print it, once, on a line of its own."""
    from fila.v1 import auth_pb2

    made = session.auth.CreateKey(
        auth_pb2.CreateKeyRequest(name=name, expires_after_ms=expires_ms, as_tenant=as_tenant),
        timeout=session.timeout_s,
    )
    session.show(made, made.key)


@key.command(name="list", examples="fila auth key list")
@click.argument("name", default="")
@click.pass_obj
def list_keys(session: Session, name: str) -> None:
    """List keys without their secrets, of NAME only if it is given."""
    from fila.v1 import auth_pb2

    answer = session.auth.ListPrincipals(auth_pb2.ListPrincipalsRequest(), timeout=session.timeout_s)
    rows = [
        (info.key_id, principal.name, moment(info, "created_at"), moment(info, "expires_at") or "never")
        for principal in answer.principals
        if name in ("", principal.name)
        for info in principal.keys
    ]
    session.show(answer, table(("KEY", "NAME", "CREATED", "EXPIRES"), rows))


@key.command(examples="fila auth key rotate k3j5h2 --overlap 1d")
@click.argument("key_id")
@click.option(
    "--overlap", "overlap_ms", type=DURATION, default="1h", show_default=True, help="How long both are valid"
)
@click.option(
    "--expires", "expires_ms", type=DURATION, default=0, help="The new key's time [default: for ever]"
)
@click.pass_obj
def rotate(session: Session, key_id: str, overlap_ms: int, expires_ms: int) -> None:
    """Make a new key beside KEY_ID, which ends after the overlap; print it, once."""
    from fila.v1 import auth_pb2

    made = session.auth.RotateKey(
        auth_pb2.RotateKeyRequest(key_id=key_id, overlap_ms=overlap_ms, expires_after_ms=expires_ms),
        timeout=session.timeout_s,
    )
    session.show(made, made.key)


@key.command(examples="fila auth key revoke k3j5h2")
@click.argument("key_id")
@click.option("--force", is_flag=True, help="Even if it is the last admin's")
@yes_option
@click.pass_obj
def revoke(session: Session, key_id: str, *, force: bool, yes: bool) -> None:
    """Take a key away: what it holds open ends within a second."""
    from fila.v1 import auth_pb2

    confirm(f"Revoke key {key_id}? Those who use it are cut off.", yes=yes)
    answer = session.auth.RevokeKey(
        auth_pb2.RevokeKeyRequest(key_id=key_id, force=force), timeout=session.timeout_s
    )
    session.show(answer, f"key {key_id} revoked")


@key.command(name="show", examples="fila auth key show k3j5h2")
@click.argument("key_id")
@click.pass_obj
def show_key(session: Session, key_id: str) -> None:
    """Look at the name that a key belongs to."""
    from fila.v1 import auth_pb2

    answer = session.auth.ListPrincipals(auth_pb2.ListPrincipalsRequest(), timeout=session.timeout_s)
    for principal in answer.principals:
        if any(info.key_id == key_id for info in principal.keys):
            session.show(principal, _about(principal))
            return
    raise click.ClickException(f"there is no key \"{key_id}\"; 'fila auth key list' shows them")


def _permissions(
    produce: tuple[str, ...],
    consume: tuple[str, ...],
    manage: tuple[str, ...],
    view: tuple[str, ...],
    cancel: tuple[str, ...],
    admin: bool,
) -> Any:
    from fila.v1 import auth_pb2

    for right, patterns in zip(RIGHTS, (produce, consume, manage, view, cancel), strict=True):
        for pattern in patterns:
            queue, _, channel = pattern.partition(":")
            yield auth_pb2.Permission(right=f"RIGHT_{right.upper()}", queue=queue, channel=channel)
    if admin:
        yield auth_pb2.Permission(right=auth_pb2.RIGHT_ADMIN)


_produce = click.option("--produce", multiple=True, metavar="PATTERN", help="Enqueue to queues of this name")
_consume = click.option(
    "--consume", multiple=True, metavar="PATTERN[:CHANNEL]", help="Receive from queues of this name"
)
_manage = click.option(
    "--manage", multiple=True, metavar="PATTERN", help="Make, change and delete such queues"
)
_view = click.option(
    "--view",
    multiple=True,
    metavar="PATTERN",
    help="Look at numbers and events of such queues, at no message",
)
_cancel = click.option(
    "--cancel", multiple=True, metavar="PATTERN", help="Take messages back from queues of this name"
)
_admin = click.option("--admin", is_flag=True, help="Everything")


@auth.command(
    examples="""
    fila auth grant shop --produce 'orders.*'
    fila auth grant billing --consume 'orders.*:billing' --consume 'orders.*.dlq'
    fila auth grant night-watch --view 'orders.*'
    """
)
@click.argument("name")
@_produce
@_consume
@_manage
@_view
@_cancel
@_admin
@click.pass_obj
def grant(
    session: Session,
    name: str,
    produce: tuple[str, ...],
    consume: tuple[str, ...],
    manage: tuple[str, ...],
    view: tuple[str, ...],
    cancel: tuple[str, ...],
    admin: bool,
) -> None:
    """Give NAME rights; `*` stands for any run of characters. Dead letters take a pattern that ends in .dlq."""
    from fila.v1 import auth_pb2

    request = auth_pb2.GrantRequest(
        name=name, permissions=_permissions(produce, consume, manage, view, cancel, admin)
    )
    answer = session.auth.Grant(request, timeout=session.timeout_s)
    session.show(answer, _about(answer.principal))


@auth.command(
    name="revoke-grant",
    examples="""
    fila auth revoke-grant shop --produce 'orders.*'
    fila auth revoke-grant shop --all
    """,
)
@click.argument("name")
@_produce
@_consume
@_manage
@_view
@_cancel
@_admin
@click.option("--all", "all_", is_flag=True, help="All it has")
@click.option("--force", is_flag=True, help="Even if nobody is an admin then")
@click.pass_obj
def revoke_grant(
    session: Session,
    name: str,
    produce: tuple[str, ...],
    consume: tuple[str, ...],
    manage: tuple[str, ...],
    view: tuple[str, ...],
    cancel: tuple[str, ...],
    admin: bool,
    all_: bool,
    force: bool,
) -> None:
    """Take rights back, named exactly as they were given."""
    from fila.v1 import auth_pb2

    permissions = list(_permissions(produce, consume, manage, view, cancel, admin))
    if bool(permissions) == all_:
        raise click.UsageError("name the rights to take back, or --all")
    request = auth_pb2.RevokeGrantRequest(name=name, permissions=permissions, force=force)
    answer = session.auth.RevokeGrant(request, timeout=session.timeout_s)
    session.show(answer, _about(answer.principal))


@auth.command(examples="fila auth quota acme-shop --messages 100 --streams 10")
@click.argument("name")
@click.option("--messages", type=float, default=0.0, help="Messages a second [default: no bound]")
@click.option("--bytes", "bytes_", type=float, default=0.0, help="Bytes a second [default: no bound]")
@click.option("--connections", type=int, default=0, help="Redis connections at a time [default: no bound]")
@click.option("--streams", type=int, default=0, help="Streams and waiting pulls [default: no bound]")
@click.option("--in-flight", type=int, default=0, help="Messages leased at a time [default: no bound]")
@click.option("--stored", type=SIZE, default=0, help="Bytes stored of NAME's tenant [default: no bound]")
@click.pass_obj
def quota(
    session: Session,
    name: str,
    messages: float,
    bytes_: float,
    connections: int,
    streams: int,
    in_flight: int,
    stored: int,
) -> None:
    """Bound what NAME may use, all its keys together."""
    from fila.v1 import auth_pb2

    quotas = auth_pb2.Quotas(
        messages_per_second=messages,
        bytes_per_second=bytes_,
        connections=connections,
        streams=streams,
        in_flight=in_flight,
        stored_bytes=stored,
    )
    answer = session.auth.SetQuotas(
        auth_pb2.SetQuotasRequest(name=name, quotas=quotas), timeout=session.timeout_s
    )
    session.show(answer, _about(answer.principal))


@auth.command(name="list", examples="fila auth list")
@click.pass_obj
def list_(session: Session) -> None:
    """List names with their rights."""
    from fila.v1 import auth_pb2

    answer = session.auth.ListPrincipals(auth_pb2.ListPrincipalsRequest(), timeout=session.timeout_s)
    rows = [
        (principal.name, ", ".join(map(_right, principal.permissions)) or "nothing", len(principal.keys))
        for principal in answer.principals
    ]
    session.show(answer, table(("NAME", "MAY", "KEYS"), rows))


@auth.command(examples="fila auth show billing")
@click.argument("name", default="")
@click.pass_obj
def show(session: Session, name: str) -> None:
    """Show rights, keys and quotas of NAME, or of the key that is used."""
    from fila.v1 import auth_pb2

    answer = session.auth.GetPrincipal(auth_pb2.GetPrincipalRequest(name=name), timeout=session.timeout_s)
    session.show(answer, _about(answer.principal))


@auth.command(
    examples="""
    fila auth forget acme-shop --dry-run
    fila auth forget acme-shop
    """
)
@click.argument("name")
@click.option("--dry-run", is_flag=True, help="Show what would go, and forget nothing")
@click.option("--force", is_flag=True, help="Even if nobody is an admin then")
@yes_option
@click.pass_obj
def forget(session: Session, name: str, *, dry_run: bool, force: bool, yes: bool) -> None:
    """Forget NAME with all it has: its keys, rights and quotas, and the tenant it is bound to. The audit keeps it."""
    from fila.v1 import auth_pb2

    def ask(*, validate_only: bool) -> auth_pb2.ForgetPrincipalResponse:
        request = auth_pb2.ForgetPrincipalRequest(name=name, validate_only=validate_only, force=force)
        return session.auth.ForgetPrincipal(request, timeout=session.timeout_s)

    if dry_run:
        would = ask(validate_only=True)
        session.show(would, f"{_about(would.principal)}\n{name} and all of this would be forgotten")
        return
    if not yes:
        click.echo(_about(ask(validate_only=True).principal), err=True)
    confirm(f"Forget {name} and all of this? Those who use its keys are cut off.", yes=yes)
    session.show(ask(validate_only=False), f"{name} is forgotten")


auth.add_command(link)


@auth.command(
    examples="""
    fila auth whoami
    fila auth whoami -o json
    """
)
@click.pass_obj
def whoami(session: Session) -> None:
    """Say who the broker takes you for, and what you may do."""
    from fila.v1 import auth_pb2

    answer = session.auth.WhoAmI(auth_pb2.WhoAmIRequest(), timeout=session.timeout_s)
    pairs = [
        ("name", answer.principal),
        *([("tenant", answer.tenant)] if answer.tenant else []),
        *([("may", _right(permission)) for permission in answer.permissions] or [("may", "nothing")]),
        ("key", answer.key_id or ("a certificate" if answer.auth_enabled else "none is asked for")),
        *([("expires", moment(answer, "expires_at"))] if answer.HasField("expires_at") else []),
        ("from", answer.peer),
    ]
    session.show(answer, facts(pairs))


@auth.command(examples="fila auth audit --limit 20")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@click.option("--before", type=int, default=0, help="Only records below this number")
@click.pass_obj
def audit(session: Session, limit: int, before: int) -> None:
    """Show what admins did, newest first."""
    from fila.v1 import auth_pb2

    answer = session.auth.ListAudit(
        auth_pb2.ListAuditRequest(limit=limit, before=before), timeout=session.timeout_s
    )
    rows = [
        (
            record.number,
            record.at.ToDatetime().isoformat(timespec="seconds") + "Z",
            record.principal,
            f"{record.peer} for {record.claimed_address}" if record.claimed_address else record.peer,
            record.act,
            record.queue,
            " ".join(f"{name}={value}" for name, value in sorted(record.details.items())),
        )
        for record in answer.records
    ]
    session.show(answer, table(("NUMBER", "AT", "NAME", "FROM", "ACT", "ON", "DETAILS"), rows))


def _right(permission: auth_pb2.Permission) -> str:
    from fila.v1 import auth_pb2

    name = auth_pb2.Right.Name(permission.right).removeprefix("RIGHT_").lower()
    channel = f":{permission.channel}" if permission.channel else ""
    return f"{name} {permission.queue}{channel}".strip()


def _about(principal: auth_pb2.Principal) -> str:
    quotas = principal.quotas
    pairs: list[tuple[str, str | int]] = [("name", principal.name)]
    if principal.tenant:
        pairs.append(("tenant", principal.tenant))
    pairs += [("may", _right(permission)) for permission in principal.permissions] or [("may", "nothing")]
    pairs += [
        ("key", f"{info.key_id}, expires {moment(info, 'expires_at') or 'never'}") for info in principal.keys
    ]
    for name, value, used in (
        ("messages a second", quotas.messages_per_second, ""),
        ("bytes a second", quotas.bytes_per_second, ""),
        ("connections", quotas.connections, f"{principal.connections} of "),
        ("streams", quotas.streams, f"{principal.streams} of "),
        ("in flight", quotas.in_flight, f"{principal.in_flight} of "),
    ):
        if value:
            pairs.append((name, f"{used}{value:g}"))
    if quotas.stored_bytes:
        pairs.append(("stored", f"{size_text(principal.stored_bytes)} of {size_text(quotas.stored_bytes)}"))
    if principal.quota_refusals:
        pairs.append(("beyond its quotas", f"{counted(principal.quota_refusals, 'request')} refused"))
    return facts(pairs)
