"""`fila console`: pages in a browser, served by a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fila_cli.address import DEFAULT_PORT, targets_of
from fila_cli.session import Command, Session

if TYPE_CHECKING:
    from fila_console.settings import Broker, Settings

_MISSING = "the console's libraries are not installed: pip install jinja2 starlette uvicorn"
_ELSEWHERE = "the console comes with the server's distribution, fila-server, which is not installed here"


@click.command(
    cls=Command,
    examples="""
    fila console
    fila console --listen 127.0.0.1:9000 --read-only
    fila console --broker prod=https://broker.example:5555 --broker test=http://localhost:5555
    fila console --prometheus http://prometheus:9090
    fila console --listen 10.0.0.5:443 --allow-host console.example --tls-cert c.pem --tls-key k.pem
    """,
)
@click.option(
    "--listen",
    default="127.0.0.1:8080",
    show_default=True,
    metavar="HOST:PORT",
    help="Where browsers reach it",
)
@click.option(
    "--broker",
    "brokers",
    multiple=True,
    metavar="NAME=ADDRESS",
    help="A broker to show; repeat for more [default: the one of --addr]",
)
@click.option(
    "--prometheus",
    "sources",
    multiple=True,
    metavar="[NAME=]URL[?LABEL=VALUE]",
    help="Where Prometheus keeps the broker's metrics, for ranges to seven days; labels tell its series from others'",
)
@click.option("--read-only", is_flag=True, help="Refuse every change")
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="[https://]HOST[:PORT]",
    help="Another name by which browsers reach it; https:// where a proxy ends TLS",
)
@click.option(
    "--allow-plaintext", is_flag=True, help="Serve other machines without TLS: a proxy in front ends it"
)
@click.option("--tls-cert", default="", metavar="FILE", help="Certificate chain to serve TLS with")
@click.option("--tls-key", default="", metavar="FILE", help="The certificate's key")
@click.pass_obj
def console(session: Session, /, **given: Any) -> None:
    """Serve the console until Ctrl-C: who waits, who is served, why, and what to do about it.

    It has no key of its own: people log in with theirs, and the broker says what they may do. A broker that asks for no
    key is shown on this machine only.
    """
    try:
        from fila_console.assets import NotInstalled
        from fila_console.program import run
        from fila_console.settings import BadSetting
    except ModuleNotFoundError as missing:
        raise click.ClickException(_ELSEWHERE if missing.name == "fila_console" else _MISSING) from missing
    try:
        run(_settings(session, given))
    except BadSetting as error:
        raise click.UsageError(str(error)) from error
    except NotInstalled as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(
            f"{given['listen']} cannot be opened: {error.strerror or error}"
        ) from error


def _settings(session: Session, given: dict[str, Any]) -> Settings:
    from fila_console.settings import Broker, Settings, with_sources

    named = [_broker(each) for each in given["brokers"]]
    if not named:
        named = [Broker("broker", _address(session.address))]
    return Settings(
        brokers=with_sources(named, given["sources"]),
        listen=given["listen"],
        allowed_hosts=given["hosts"],
        allow_plaintext=given["allow_plaintext"],
        read_only=given["read_only"],
        ca_file=session.ca_file,
        cert_file=given["tls_cert"],
        key_file=given["tls_key"],
    )


def _broker(text: str) -> Broker:
    from fila_console.settings import Broker

    name, equals, address = text.partition("=")
    if not equals:
        raise click.BadParameter(
            f"{text!r} names no address; write it like prod=http://localhost:{DEFAULT_PORT}",
            param_hint="'--broker'",
        )
    return Broker(name, _address(address))


def _address(text: str) -> str:
    """Of a broker, or of the nodes of a group with commas between them."""
    targets, by_tls = targets_of(text)
    return ",".join(f"{'https' if by_tls else 'http'}://{target}" for target in targets)
