"""`fila http`: the broker over HTTP. What serves is the package fila_http, with libraries that come by an extra."""

from __future__ import annotations

import click

from fila_cli.address import Listen, targets_of
from fila_cli.credentials import channel_credentials
from fila_cli.session import Command, Session

NOT_INSTALLED = (
    "the libraries that serve HTTP are not installed: pip install httptools orjson starlette uvicorn uvloop"
)


@click.command(
    "http",
    cls=Command,
    examples="""
    fila http
    fila http --listen 0.0.0.0:443 --allow-host api.example.com --cert-file cert.pem --key-file key.pem
    """,
)
@click.option(
    "--listen",
    default="127.0.0.1:8081",
    show_default=True,
    type=Listen(),
    help="Where callers reach it; port 0 takes a free one",
)
@click.option("--cert-file", default="", metavar="FILE", help="Serve by TLS with this certificate")
@click.option("--key-file", default="", metavar="FILE", help="And its private key")
@click.option("--allow-plaintext", is_flag=True, help="Other machines may come without TLS: a proxy ends it")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="A further name callers use [repeat]"
)
@click.option(
    "--allow-origin", "origins", multiple=True, metavar="ORIGIN", help="Web pages that may call it [repeat]"
)
@click.option(
    "--body-bytes-max", type=click.IntRange(1024), default=8 << 20, show_default=True, help="A request"
)
@click.option(
    "--batch-messages-max",
    type=click.IntRange(1, 1_000_000),
    default=10_000,
    show_default=True,
    help="Members of one list; as many as the broker's limits.batch_messages_max",
)
@click.option("--connections-max", type=click.IntRange(1), default=1_000, show_default=True, help="At a time")
@click.pass_obj
def http(
    session: Session,
    listen: tuple[str, int],
    cert_file: str,
    key_file: str,
    allow_plaintext: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    body_bytes_max: int,
    batch_messages_max: int,
    connections_max: int,
) -> None:
    """Serve the broker's calls as JSON over HTTP. Each caller sends its own key; the gateway has none."""
    try:
        from fila_http import server
    except ModuleNotFoundError as missing:
        raise click.ClickException(NOT_INSTALLED) from missing
    from fila_http.options import Bounds, Gateway

    targets, by_tls = targets_of(session.address)
    bounds = Bounds(
        body_bytes_max=body_bytes_max,
        batch_messages_max=batch_messages_max,
        connections_max=connections_max,
        held_bytes_max=max(Bounds().held_bytes_max, 4 * body_bytes_max),
    )
    gateway = Gateway(
        host=listen[0],
        port=listen[1],
        cert_file=cert_file,
        key_file=key_file,
        allow_plaintext=allow_plaintext,
        hosts=frozenset(name.lower() for name in hosts),
        origins=origins,
        bounds=bounds,
    )
    try:
        server.serve(gateway, ",".join(targets), channel_credentials(session.ca_file) if by_tls else None)
    except server.CannotServe as error:
        raise click.ClickException(str(error)) from None
