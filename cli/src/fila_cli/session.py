"""Where the broker is, how answers are shown, and the stubs that talk to it.

Every command takes the common options itself, so that they may stand where people type them: at the end. The nearest
one given wins.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import click

from fila_cli import colors, failures
from fila_cli.address import DEFAULT_ADDRESS, targets_of
from fila_cli.contexts import contexts
from fila_cli.credentials import channel_credentials, key_of, with_key
from fila_cli.group import GroupChannel
from fila_cli.help import CommonOption, write_examples, write_options
from fila_cli.output import Format, printable, show, to_dict

if TYPE_CHECKING:
    import grpc
    from click.shell_completion import CompletionItem
    from google.protobuf.message import Message

    from fila.v1.admin_pb2_grpc import FilaAdminStub
    from fila.v1.auth_pb2_grpc import FilaAuthStub
    from fila.v1.service_pb2_grpc import FilaServiceStub
    from fila.v1.sink_pb2_grpc import FilaSinkStub

# What gRPC's C core would write to stderr is told in one line of ours. It reads this when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

_SENTENCE_MAX = 300
_NO_COMMAND = "fila_cli.no_command"
WORDS_OF_OTHERS = {
    "pub": ("enqueue",),
    "publish": ("enqueue",),
    "produce": ("enqueue",),
    "send": ("enqueue",),
    "sub": ("consume",),
    "subscribe": ("consume",),
    "describe": ("queue inspect", "key show", "inspect"),
    "info": ("queue inspect", "status", "inspect"),
    "stats": ("queue inspect", "top", "inspect"),
    "lag": ("channel list", "late"),
    "ls": ("queue list", "list"),
    "add": ("queue create", "create"),
    "rm": ("queue delete", "delete"),
}
"""What other brokers' tools call what these commands do, of the whole or within a noun."""


class Session:
    """What one run of the command line knows; made once, handed to each command."""

    def __init__(self) -> None:
        self.given_address = ""
        self.context = ""
        self.typed: set[str] = set()
        self.format = Format.TABLE
        self.color = "auto"
        self.timeout_s = 30.0
        self.api_key_file = ""
        self.ca_file = ""
        self._channel: GroupChannel | None = None

    @property
    def address(self) -> str:
        """Where the broker is: as it was given, else by the context that was named or is in use, else here.

        A context that was typed is meant, whatever address the environment has.
        """
        by_context = "context" in self.typed and "given_address" not in self.typed
        given = "" if by_context else self.given_address
        return given or contexts().address_of(self.context) or DEFAULT_ADDRESS

    @property
    def is_address_given(self) -> bool:
        return bool(self.given_address)

    @property
    def admin(self) -> FilaAdminStub:
        from fila.v1.admin_pb2_grpc import FilaAdminStub

        return FilaAdminStub(self.channel)

    @property
    def auth(self) -> FilaAuthStub:
        from fila.v1.auth_pb2_grpc import FilaAuthStub

        return FilaAuthStub(self.channel)

    @property
    def service(self) -> FilaServiceStub:
        from fila.v1.service_pb2_grpc import FilaServiceStub

        return FilaServiceStub(self.channel)

    @property
    def sinks(self) -> FilaSinkStub:
        from fila.v1.sink_pb2_grpc import FilaSinkStub

        return FilaSinkStub(self.channel)

    @property
    def channel(self) -> grpc.Channel:
        """Of which stubs are made; to them it is a channel as any."""
        if self._channel is None:
            self._channel = _open_channel(self.address, self.api_key_file, self.ca_file)
        return cast("grpc.Channel", self._channel)

    def each_node(self) -> Iterator[FilaAdminStub]:
        """A stub of each node that answers at a given address; one by one."""
        from fila.v1.admin_pb2_grpc import FilaAdminStub

        for _, channel in cast("GroupChannel", self.channel).each():
            yield FilaAdminStub(channel)

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()

    def show(self, answer: Message, as_table: str, *, empty: str = "") -> None:
        """Print an answer; `empty` tells a terminal that there is nothing to print."""
        value = to_dict(answer) if self.format is not Format.TABLE else {}
        show(self.format, value, as_table, empty=empty)

    def depth(self, queue: str, channel: str = "") -> int:
        """How many messages are pending there now."""
        from fila.v1 import admin_pb2

        request = admin_pb2.GetStatsRequest(queue=queue, channel=channel, max_keys=1)
        return self.admin.GetStats(request, timeout=self.timeout_s).depth

    @contextlib.contextmanager
    def failures_in_one_line(self) -> Iterator[None]:
        import grpc

        try:
            yield
        except grpc.RpcError as error:
            raise failures.from_rpc(error, self.address, self._has_right_to) from error

    def _has_right_to(self, queue: str) -> bool:
        """Whether a key is in use that may know of this queue."""
        import grpc

        if not key_of(self.api_key_file):
            return False
        try:
            self.depth(queue)
        except grpc.RpcError:
            return False
        return True


def _open_channel(address: str, api_key_file: str, ca_file: str) -> GroupChannel:
    targets, by_tls = targets_of(address)
    # A raised payload limit must not stop the command line from reading what it stored.
    import grpc

    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    key = key_of(api_key_file)
    credentials = channel_credentials(ca_file) if by_tls else None

    def open_one(target: str) -> grpc.Channel:
        if credentials is not None:
            return with_key(grpc.secure_channel(target, credentials, options=options), key)
        return with_key(grpc.insecure_channel(target, options=options), key)

    return GroupChannel(targets, open_one)


def _remember(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        session = ctx.ensure_object(Session)
        # Only the root listens to the environment: a variable must not win over a flag given early.
        typed = ctx.get_parameter_source(param.name or "") is click.core.ParameterSource.COMMANDLINE
        if value is not None and (typed or ctx.parent is None):
            if name == "given_address":
                targets_of(value)
            session.typed |= {name} if typed else set()
            setattr(session, name, Format(value) if name == "format" else value)
            colors.choose(session.color)

    return callback


def common_options() -> list[click.Option]:
    """The options of every command, new for each: click keeps state in them."""
    return [
        CommonOption(
            ["--addr", "address"],
            envvar="FILA_ADDR",
            metavar="ADDRESS",
            expose_value=False,
            callback=_remember("given_address"),
            help=f"Where the broker is, or where a group's nodes are, with commas between [default: {DEFAULT_ADDRESS}; "
            "also FILA_ADDR]",
        ),
        CommonOption(
            ["--context", "context"],
            envvar="FILA_CONTEXT",
            metavar="NAME",
            expose_value=False,
            callback=_remember("context"),
            shell_complete=complete_context,
            help="The broker of this name, see 'fila context'",
        ),
        CommonOption(
            ["-o", "--output", "format_"],
            type=click.Choice([format_.value for format_ in Format]),
            expose_value=False,
            callback=_remember("format"),
            help="How to print the answer [default: table]",
        ),
        CommonOption(
            ["--color", "color"],
            type=click.Choice(["auto", "always", "never"]),
            expose_value=False,
            callback=_remember("color"),
            help="Colours [default: auto, on a terminal and without NO_COLOR]",
        ),
        CommonOption(
            ["--timeout", "timeout_s"],
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            expose_value=False,
            callback=_remember("timeout_s"),
            help="How long to wait for an answer [default: 30]",
        ),
        CommonOption(
            ["--api-key-file"],
            envvar="FILA_API_KEY_FILE",
            metavar="FILE",
            expose_value=False,
            callback=_remember("api_key_file"),
            help="Send the key in this file [default: the one in FILA_API_KEY]",
        ),
        CommonOption(
            ["--ca-file"],
            envvar="FILA_CA_FILE",
            metavar="FILE",
            expose_value=False,
            callback=_remember("ca_file"),
            help="Trust these authorities with https addresses",
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
        with session.failures_in_one_line():
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)


class Group(click.Group):
    """A noun whose verbs are `Command`s."""

    command_class = Command

    def __init__(self, *args: Any, examples: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = [line.strip() for line in examples.strip().splitlines()]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A name that does not exist is answered with those it may have been meant for."""
        is_unknown = bool(args) and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None
        if is_unknown and ctx.resilient_parsing:
            # A shell that completes what follows would print an error into the line that is typed.
            ctx.meta[_NO_COMMAND] = args[0]
        elif is_unknown:
            meant = self.meant_by(ctx, args[0])
            hint = f"; did you mean {' or '.join(repr(each) for each in meant)}?" if meant else ""
            raise click.UsageError(f"there is no command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Nothing follows a word that is no command."""
        return [] if _NO_COMMAND in ctx.meta else super().shell_complete(ctx, incomplete)

    def meant_by(self, ctx: click.Context, typed: str) -> list[str]:
        """Commands that other brokers' tools call so, that `typed` begins, that are spelled much like it, or that
        stand by themselves and not behind this noun."""
        names = self.list_commands(ctx)
        if known := [each for each in WORDS_OF_OTHERS.get(typed, ()) if each.split()[0] in names]:
            return known
        begun = [name for name in names if name.startswith(typed)] if len(typed) > 1 else []
        root = ctx.find_root()
        by_itself = isinstance(root.command, Group) and typed in root.command.list_commands(root)
        return (
            begun or difflib.get_close_matches(typed, names, 2) or [f"{root.info_name} {typed}"] * by_itself
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each verb with its whole first sentence; click would break it off where the line ends."""
        verbs = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, verb.get_short_help_str(_SENTENCE_MAX)) for name, verb in verbs if verb is not None]
            )

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is lost; where nobody can be asked, only --yes lets it happen."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"nobody is here to be asked: {question} --yes says that it is meant")
    if not click.confirm(printable(question), err=True):
        raise Declined


class Stopped(click.ClickException):
    """Ctrl-C, in a command that can say how far it came."""

    exit_code = 130

    def __init__(self, so_far: str) -> None:
        super().__init__(f"stopped: {so_far}")


class Declined(click.ClickException):
    """Somebody was asked, and said no."""

    exit_code = 1

    def __init__(self) -> None:
        super().__init__("nothing was changed")


def complete_context(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion: names of contexts."""
    return [name for name in sorted(contexts().load()["contexts"]) if name.startswith(incomplete)]
