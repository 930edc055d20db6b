"""The tree of commands, and what the shell sees of a failure.

Exit codes: 0 done, 1 the broker refused or is not there, 2 the command was not understood.
A command's module is imported when the command is named, never before.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from fila_cli.colors import Meaning, paint
from fila_cli.output import printable
from fila_cli.session import Group, Session, common_options

# Where each top-level command lives, its theme, and its line in `fila --help`: without importing it.
_COMMANDS: dict[str, tuple[str, str, str]] = {
    "enqueue": ("enqueue", "Messages", "Put messages into a queue."),
    "consume": ("consume", "Messages", "Print messages and ack them."),
    "ack": ("settle", "Messages", "Settle leased messages as done."),
    "nack": ("settle", "Messages", "Settle leased messages as failed."),
    "extend": ("settle", "Messages", "Hold a leased message longer."),
    "message": ("message", "Messages", "Say where one message is, and what it waits for."),
    "trace": ("trace", "Messages", "One message's life: each delivery, failure, and where it is now."),
    "cancel": ("settle", "Messages", "Take messages back, by id or dedup key."),
    "log": ("log", "Messages", "What a queue's log holds, read without leasing."),
    "worker": ("worker", "Messages", "Run the handlers of a Python program."),
    "queue": ("queue", "Queues", "Create, watch, change, pause and delete queues."),
    "channel": ("channel", "Queues", "Independent views of one queue: add, move, delete."),
    "schedule": (
        "schedule",
        "Queues",
        "Messages that the broker enqueues by itself: a message every morning.",
    ),
    "hook": ("hook", "Queues", "Scripts of a queue: try, show, set, disable."),
    "dlq": ("dlq", "Queues", "Dead letters: find, show, redrive, edit, drop, save."),
    "redrive": ("redrive", "Queues", "Move dead letters back: short for 'fila dlq redrive'."),
    "operation": (
        "operation",
        "Queues",
        "Redrives and deletions of dead letters that the broker runs by itself.",
    ),
    "apply": ("apply", "Queues", "Create and change queues as a file says."),
    "diff": ("apply", "Queues", "What 'apply' would create and change."),
    "export": ("apply", "Queues", "Print the queues there are as such a file."),
    "config": ("config", "Queues", "Values that hooks read, and the rates of token buckets."),
    "limit": ("limit", "Fairness", "Rates, slots and budgets of throttle keys, one by one or by pattern."),
    "late": ("late", "Fairness", "Who waits longest, and for what."),
    "explain": ("explain", "Fairness", "Say why a fairness key is late."),
    "key": ("key", "Fairness", "Weigh, pause, cap, slow or purge one key; find keys, list what was set."),
    "consumer": ("consumer", "Fairness", "Who consumes a queue, and what each consumer holds."),
    "watch": ("watch", "Fairness", "Queues and the keys that lead in them, in numbers, each second."),
    "series": ("watch", "Fairness", "The last hour of a queue, minute by minute."),
    "top": ("top", "Fairness", "Watch queues live."),
    "up": ("up", "Tools", "Run a broker, its console and its HTTP gateway on this machine."),
    "history": ("history", "Tools", "What a broker recorded: status, files, newest decisions, export."),
    "console": ("console", "Tools", "Pages in a browser: who waits, why, and what to do about it."),
    "status": ("status", "Tools", "Which broker this is, and how it is."),
    "cluster": ("cluster", "Tools", "The nodes of a group: who serves, and how far each one is."),
    "events": ("events", "Tools", "What happened and happens: changes, consumers, dead letters."),
    "sink": ("sink", "Tools", "Sinks: what is staged, and what was published last."),
    "http": ("http", "Tools", "Serve the broker's calls as JSON over HTTP."),
    "auth": ("auth", "Tools", "Keys, rights, quotas, and what admins did."),
    "bench": ("bench", "Tools", "A quick load test against a running broker."),
    "context": ("context", "Tools", "Named brokers: add one, and say which is in use."),
    "completion": ("completion", "Tools", "Print the script that completes fila in your shell."),
}


class _Lazy(Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"fila_cli.commands.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    # A reader of our output has seen enough (`| head`); that is no failure. It is caught in these two, since click's
    # main makes exit code 1 of it. The first prints `fila --help` and `fila --version`.

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except BrokenPipeError:
            _drop_output()
            raise click.exceptions.Exit(0) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            returned = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
            return 0
        return returned

    def meant_by(self, ctx: click.Context, typed: str) -> list[str]:
        # `fila peek` is a verb whose noun was left out.
        nouns = ("queue", "key", "channel", "config", "dlq")
        behind = [noun for noun in nouns if typed in self._verbs(ctx, noun)]
        return [f"{noun} {typed}" for noun in behind] or super().meant_by(ctx, typed)

    def _verbs(self, ctx: click.Context, noun: str) -> list[str]:
        command = self.get_command(ctx, noun)
        return command.list_commands(ctx) if isinstance(command, click.Group) else []

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for theme in dict.fromkeys(theme for _, theme, _ in _COMMANDS.values()):
            with formatter.section(theme):
                formatter.write_dl(
                    [(name, about) for name, (_, each, about) in _COMMANDS.items() if each == theme]
                )


def _drop_output() -> None:
    """What is still buffered goes nowhere, so that writing it at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say_version(context: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from fila import __version__  # a release gives all its parts one version

    click.echo(f"fila {__version__}")
    context.exit()


@click.group(
    cls=_Lazy,
    params=common_options(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    examples="""
    fila queue create orders --fairness-header tenant
    fila enqueue orders 'hello' --header tenant=acme
    fila consume orders --count 1
    fila queue inspect orders
    """,
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_say_version,
    help="Show the version and exit.",
)
def fila() -> None:
    """Talk to a Fila broker."""


def main(arguments: list[str] | None = None) -> None:
    """The entry point `fila`."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    session = Session()
    try:
        # Anything a command returns is its exit code; most return nothing.
        words = _as_flags(sys.argv[1:] if arguments is None else arguments)
        for number, word in enumerate(words, 1):
            if not _is_text(word):
                return _fail(f"argument {number}, {word!a}, is not UTF-8, and every argument must be", 2)
        return _exit_code(fila.main(words, prog_name="fila", standalone_mode=False, obj=session))
    except click.exceptions.NoArgsIsHelpError as error:
        # Somebody who types `fila queue` wants to know what may follow.
        print(error.format_message(), file=sys.stderr)
        return 2
    except click.UsageError as error:
        return _fail(_usage_line(error), 2)
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _fail("stopped", 130)
    finally:
        session.close()


def _is_text(word: str) -> bool:
    """Bytes of a command line that are no UTF-8 stand in it as half surrogates."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_flags(words: list[str]) -> list[str]:
    """`fila help queue create` and `fila version`, as people try them, are flags here."""
    if words[:1] == ["help"]:
        return [*words[1:], "--help"]
    return ["--version"] if words == ["version"] else words


def _exit_code(returned: Any) -> int:
    return returned if isinstance(returned, int) else 0


def _usage_line(error: click.UsageError) -> str:
    path = error.ctx.command_path if error.ctx is not None else "fila"
    text = " ".join(error.format_message().split()).rstrip(".")
    return f"{text}; '{path} --help' shows how"


def _fail(text: str, code: int) -> int:
    word = paint("fila:", Meaning.TROUBLE, sys.stderr)
    print(f"{word} {printable(text)}", file=sys.stderr)
    return code
