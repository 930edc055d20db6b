"""Where the broker is, how answers are shown, and the stubs that talk to it.

Every command takes --addr and --output itself, so that they may stand where people type
them: at the end. The nearest one given wins.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from fila_cli import failures
from fila_cli.output import Format, show, to_dict

if TYPE_CHECKING:
    import grpc
    from google.protobuf.message import Message

    from fila.v1.admin_pb2_grpc import FilaAdminStub
    from fila.v1.service_pb2_grpc import FilaServiceStub

DEFAULT_ADDRESS = "http://localhost:5555"
DEFAULT_PORT = 5555


class Session:
    """What one run of the command line knows; made once, handed to each command."""

    def __init__(self) -> None:
        self.address = DEFAULT_ADDRESS
        self.format = Format.TABLE
        self.timeout_s = 30.0
        self._channel: grpc.Channel | None = None

    @property
    def admin(self) -> FilaAdminStub:
        from fila.v1.admin_pb2_grpc import FilaAdminStub

        return FilaAdminStub(self.channel)

    @property
    def service(self) -> FilaServiceStub:
        from fila.v1.service_pb2_grpc import FilaServiceStub

        return FilaServiceStub(self.channel)

    @property
    def channel(self) -> grpc.Channel:
        if self._channel is None:
            self._channel = _open_channel(self.address)
        return self._channel

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()

    def show(self, answer: Message, as_table: str) -> None:
        show(self.format, to_dict(answer) if self.format is not Format.TABLE else {}, as_table)

    @contextlib.contextmanager
    def failures_in_one_line(self) -> Iterator[None]:
        import grpc

        try:
            yield
        except grpc.RpcError as error:
            raise failures.from_rpc(error, self.address) from error


def target_of(address: str) -> tuple[str, bool]:
    """Return (host:port, whether by TLS) of `http://host:port`, `https://host`, `host:port` or `host`."""
    parts = urlsplit(address if "://" in address else f"http://{address}")
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError:
        port = 0
    if parts.scheme not in ("http", "https") or not parts.hostname or not port or parts.path.strip("/"):
        raise click.BadParameter(
            f"{address!r} is no address; write it like {DEFAULT_ADDRESS}", param_hint="'--addr'"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}", parts.scheme == "https"


def _open_channel(address: str) -> grpc.Channel:
    import grpc

    target, by_tls = target_of(address)
    # A raised payload limit must not stop the command line from reading what it stored.
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    if by_tls:
        return grpc.secure_channel(target, grpc.ssl_channel_credentials(), options=options)
    return grpc.insecure_channel(target, options=options)


def _remember(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        session = ctx.ensure_object(Session)
        # Only the root listens to the environment: a variable must not win over a flag given early.
        typed = ctx.get_parameter_source(param.name or "") is click.core.ParameterSource.COMMANDLINE
        if value is not None and (typed or ctx.parent is None):
            setattr(session, name, Format(value) if name == "format" else value)

    return callback


def common_options() -> list[click.Option]:
    """--addr, --output and --timeout, new for each command: click keeps state in them."""
    return [
        click.Option(
            ["--addr", "address"],
            envvar="FILA_ADDR",
            metavar="ADDRESS",
            expose_value=False,
            callback=_remember("address"),
            help=f"Where the broker is [default: {DEFAULT_ADDRESS}; also FILA_ADDR]",
        ),
        click.Option(
            ["-o", "--output", "format_"],
            type=click.Choice([format_.value for format_ in Format]),
            expose_value=False,
            callback=_remember("format"),
            help="How to print the answer [default: table]",
        ),
        click.Option(
            ["--timeout", "timeout_s"],
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            expose_value=False,
            callback=_remember("timeout_s"),
            help="How long to wait for an answer [default: 30]",
        ),
    ]


class Command(click.Command):
    """A command with the common options, examples in its help, and errors in one line."""

    def __init__(self, *args: Any, examples: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = [line.strip() for line in examples.strip().splitlines()]
        self.params += common_options()

    def invoke(self, ctx: click.Context) -> Any:
        session = ctx.ensure_object(Session)
        # The address is checked before anything is sent, and a typo in it is a bad usage.
        target_of(session.address)
        with session.failures_in_one_line():
            return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(self.examples, formatter)


class Group(click.Group):
    """A noun whose verbs are `Command`s."""

    command_class = Command

    def __init__(self, *args: Any, examples: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = [line.strip() for line in examples.strip().splitlines()]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(self.examples, formatter)


def _write_examples(examples: list[str], formatter: click.HelpFormatter) -> None:
    # Written line by line: click would wrap them into one paragraph.
    if examples:
        formatter.write_paragraph()
        formatter.write_text("Examples:")
        for line in examples:
            formatter.write(f"  {line}\n")


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is lost, where somebody is there to answer; a script has decided already."""
    if not yes and sys.stdin.isatty():
        click.confirm(question, abort=True, err=True)


def complete_queue(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion: names of queues, as far as a broker answers within a moment."""
    import grpc

    from fila.v1 import admin_pb2

    session = ctx.ensure_object(Session)
    try:
        answer = session.admin.ListQueues(admin_pb2.ListQueuesRequest(), timeout=0.5)
    except (grpc.RpcError, click.ClickException):
        return []
    return [queue.name for queue in answer.queues if queue.name.startswith(incomplete)]


queue_argument = click.argument("queue", shell_complete=complete_queue)
channel_option = click.option("--channel", default="", metavar="NAME", help="The channel [default: default]")
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask")
