"""`fila dlq`: dead letters, found by what they died of, then moved back, dropped or saved."""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from fila_cli.arguments import dlq_argument, key_option, yes_option
from fila_cli.commands.operation import edit
from fila_cli.edited import HeaderEdits, check_one_channel, move_edited
from fila_cli.failures import BrokerError
from fila_cli.messages import peeked, print_message
from fila_cli.output import Cell, Format, as_json_line, counted, facts, printable, show, table, to_dict
from fila_cli.progress import Progress
from fila_cli.redrive import Redrive
from fila_cli.session import Group, Session, Stopped, confirm
from fila_cli.values import DURATION, PAIR, RATE, REASON, Count, age_text

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import RedriveResponse
    from fila.v1.messages_pb2 import Message

_PAGE = 1_000


def _is_by_hand(message: Message) -> bool:
    """Whether somebody put it into the queue: it came from nowhere, and cannot be moved back."""
    return not message.metadata.HasField("dead_letter")


def _died_at(message: Message) -> datetime:
    """When it died; what was put there by hand counts from then."""
    by_hand = _is_by_hand(message)
    at = message.timestamps.appended_at if by_hand else message.metadata.dead_letter.at
    return at.ToDatetime(UTC)


class Chosen:
    """Which dead letters a command is about."""

    def __init__(
        self,
        reason: str | None,
        error: str,
        fairness_key: str | None,
        older_ms: int | None,
        newer_ms: int | None,
        ids: tuple[str, ...],
    ) -> None:
        try:
            self._error = re.compile(error)
        except re.error as wrong:
            raise click.BadParameter(f"is no pattern: {wrong}", param_hint="'--error'") from wrong
        self._reason = reason
        self._key = fairness_key
        self._older_ms = older_ms
        self._newer_ms = newer_ms
        self._ids = frozenset(ids)

    @property
    def takes_all(self) -> bool:
        """Whether nothing was said of which."""
        given = (self._reason, self._error.pattern, self._ids)
        return not any(given) and self._key is None and self._older_ms is None and self._newer_ms is None

    def none_in(self, dlq: str) -> str:
        """What to say where none is found."""
        return f"{dlq} has no {'' if self.takes_all else 'such '}dead letters"

    def takes(self, message: Message, now: datetime) -> bool:
        """Whether this one is meant."""
        dead = message.metadata.dead_letter
        age_ms = (now - _died_at(message)).total_seconds() * 1000
        return (
            (not self._reason or dead.reason == self._reason)
            and bool(self._error.search(dead.last_error))
            and (self._key is None or message.metadata.fairness_key == self._key)
            and (self._older_ms is None or age_ms >= self._older_ms)
            and (self._newer_ms is None or age_ms <= self._newer_ms)
            and (not self._ids or message.id in self._ids)
        )

    def found(self, session: Session, dlq: str, most: int | None = None) -> Iterator[Message]:
        """Page through the queue, oldest first."""
        from fila.v1 import admin_pb2

        now = datetime.now(UTC)
        request = admin_pb2.PeekMessagesRequest(queue=dlq, max_messages=_PAGE, fairness_key=self._key or "")
        count = 0
        while messages := session.admin.PeekMessages(request, timeout=session.timeout_s).messages:
            for message in messages:
                if self.takes(message, now):
                    yield message
                    count += 1
                    if count == most:
                        return
            request.after_offset = messages[-1].metadata.offset


def _filters(command: Callable[..., Any]) -> Callable[..., Any]:
    """The flags that choose dead letters, handed on as one."""
    options = [
        click.option("--reason", type=REASON, help="Only those given up for this reason"),
        click.option("--error", default="", metavar="PATTERN", help="Only those whose last error matches"),
        key_option("Only this fairness key's"),
        click.option(
            "--older-than", "older_ms", type=DURATION, help="Only those dead for at least this long"
        ),
        click.option("--newer-than", "newer_ms", type=DURATION, help="Only those dead for at most this long"),
        click.option("--id", "ids", multiple=True, metavar="ID", help="Only this message; repeat for more"),
    ]

    @functools.wraps(command)
    def chosen(*args: Any, **given: Any) -> Any:
        names = ("reason", "error", "fairness_key", "older_ms", "newer_ms", "ids")
        return command(*args, chosen=Chosen(*(given.pop(name) for name in names)), **given)

    decorated: Callable[..., Any] = chosen
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


@click.group(
    cls=Group,
    examples="""
    fila dlq group orders.dlq
    fila dlq list orders.dlq --error 'timeout'
    fila dlq redrive orders.dlq --key acme --dry-run
    """,
)
def dlq() -> None:
    """Dead letters: find, show, move back, drop, save."""


dlq.add_command(edit)


@dlq.command(
    name="list",
    examples="""
    fila dlq list orders.dlq
    fila dlq list orders.dlq --reason max_attempts --newer-than 1h
    """,
)
@dlq_argument
@_filters
@click.option("-n", "--count", type=Count(1), default=20, show_default=True, help="Most to list")
@click.pass_obj
def list_(session: Session, dlq: str, count: int, chosen: Chosen) -> None:
    """List dead letters of DLQ, oldest first, with what they died of."""
    found = list(chosen.found(session, dlq, count + 1))
    listed = found[:count]
    value = (
        {"messages": [to_dict(message) for message in listed]} if session.format is not Format.TABLE else {}
    )
    shown = peeked(listed) if listed else ""
    show(session.format, value, shown, empty=chosen.none_in(dlq))
    if len(found) > count:
        more = f"There are more: --count lists more of them, 'fila dlq group {dlq}' counts them"
        print(printable(more), file=sys.stderr)


@dlq.command(name="show", examples="fila dlq show orders.dlq 0198c2f0-5d3e-7c11-9d5a-2f6f3f7a0001")
@dlq_argument
@click.argument("message_id", metavar="ID")
@click.pass_obj
def show_(session: Session, dlq: str, message_id: str) -> None:
    """Show one dead letter: headers, history and payload."""
    found = list(Chosen("", "", None, None, None, (message_id,)).found(session, dlq, 1))
    if not found:
        meant = " (an ID is meant here, and no offset)" if message_id.isdigit() else ""
        raise BrokerError(
            f"{dlq} has no message {message_id}{meant}; 'fila dlq list {dlq}' shows those it has"
        )
    (message,) = found
    if session.format is not Format.TABLE:
        session.show(message, "")
        return
    dead = message.metadata.dead_letter
    came: list[tuple[str, Cell]] = [
        ("from", f"{dead.source_queue}, channel {dead.source_channel}"),
        ("key", message.metadata.fairness_key),
        ("reason", dead.reason),
        ("last error", dead.last_error),
        ("attempts", dead.attempts),
        ("died", dead.at.ToJsonString()),
    ]
    if _is_by_hand(message):
        came = [
            ("from", "put here by hand"),
            ("key", message.metadata.fairness_key),
            ("put here", message.timestamps.appended_at.ToJsonString()),
        ]
    print(
        facts(
            [
                ("id", message.id),
                ("offset", message.metadata.offset),
                *came,
                *((f"header {name}", message.headers[name]) for name in sorted(message.headers)),
            ]
        )
        + "\n"
    )
    print_message(session.format, message, verbose=False)


@dlq.command(
    examples="""
    fila dlq group orders.dlq
    fila dlq group orders.dlq --by key
    """
)
@dlq_argument
@_filters
@click.option(
    "--by",
    type=click.Choice(["error", "reason", "key"]),
    default="error",
    show_default=True,
    help="What they share",
)
@click.pass_obj
def group(session: Session, dlq: str, by: str, chosen: Chosen) -> None:
    """Count dead letters by what they share; numbers and ids in errors count as the same."""
    named = ("reason",) if by == "reason" else ("reason", by)
    counts: Counter[tuple[str, ...]] = Counter()
    oldest: dict[tuple[str, ...], int] = {}
    keys: dict[tuple[str, ...], set[str]] = defaultdict(set)
    now = datetime.now(UTC)
    for message in chosen.found(session, dlq):
        dead = message.metadata.dead_letter
        what = {"error": (_shape(dead.last_error),), "reason": (), "key": (message.metadata.fairness_key,)}
        place = (dead.reason, *what[by])
        counts[place] += 1
        keys[place].add(message.metadata.fairness_key)
        age_ms = int((now - _died_at(message)).total_seconds() * 1000)
        oldest[place] = max(oldest.get(place, 0), age_ms)
    rows: list[tuple[Cell, ...]] = [
        (count, *place, len(keys[place]), age_text(oldest[place])) for place, count in counts.most_common()
    ]
    value = [
        {
            "count": count,
            **dict(zip(named, place, strict=True)),
            "keys": len(keys[place]),
            "oldest_ms": oldest[place],
        }
        for place, count in counts.most_common()
    ]
    headings = ("COUNT", *(name.upper() for name in named), "KEYS", "OLDEST")
    show(
        session.format,
        {"groups": value},
        table(headings, rows, cut=("ERROR", "KEY")) if rows else "",
        empty=chosen.none_in(dlq),
    )


def _shape(error: str) -> str:
    """An error without what differs from message to message."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "N", error)


@dlq.command(
    examples="""
    fila dlq redrive orders.dlq --rate 50
    fila dlq redrive orders.dlq --error timeout
    fila dlq redrive orders.dlq --key acme --dry-run
    fila dlq redrive orders.dlq --error 'no such region' --set-header region=eu --remove-header zone
    """
)
@dlq_argument
@_filters
@click.option(
    "-n",
    "--count",
    type=Count(min=1),
    metavar="N",
    help="Most to move, oldest first [default: all that are there now]",
)
@click.option("--rate", type=RATE, metavar="N", help="Move so many a second [default: as fast as it goes]")
@click.option(
    "--set-header", "given", type=PAIR, multiple=True, help="Give them this header; repeat for more"
)
@click.option(
    "--remove-header", "removed", multiple=True, metavar="NAME", help="Without this header; repeat for more"
)
@click.option("--dry-run", is_flag=True, help="Say what would be moved, and move nothing")
@click.pass_obj
def redrive(
    session: Session,
    dlq: str,
    count: int | None,
    rate: float | None,
    chosen: Chosen,
    given: tuple[tuple[str, str], ...],
    removed: tuple[str, ...],
    *,
    dry_run: bool,
) -> None:
    """Move those that are meant back to the queue they came from, attempts at zero, routed by today's policy.

    It takes as long as it takes; --timeout is for each page. Ctrl-C stops it, and says how many were moved. 'fila
    operation start DLQ redrive' has the broker do it, and may be left alone.

    With other headers a message is stored anew: it gets another id, and is routed by the headers it has now.
    """
    edits = HeaderEdits(dict(given), frozenset(removed))
    if edits and rate is not None:
        raise click.UsageError(
            "--rate is for dead letters that are moved as they are; leave it out with other headers"
        )
    if chosen.takes_all and not edits and not dry_run:
        _tell_redriven(session, dlq, Redrive(session, dlq, count=count or 0, rate=rate).run())
        return
    found = list(chosen.found(session, dlq, count))
    if dry_run:
        stuck = sum(map(_is_by_hand, found))
        told = f"{counted(len(found) - stuck, 'dead letter')} would be moved back"
        told += f"; put into {dlq} by hand, so they cannot be moved: {stuck}" if stuck else ""
        show(session.format, {"would_redrive": len(found) - stuck, "stuck": stuck}, told)
    elif edits:
        _move_edited(session, dlq, found, edits)
    else:
        _move_named(session, dlq, [message.metadata.offset for message in found], rate)


def _move_edited(session: Session, dlq: str, found: list[Message], edits: HeaderEdits) -> None:
    from fila.v1 import admin_pb2

    check_one_channel(session, found)
    moved = move_edited(session, dlq, found, edits) if found else 0
    session.show(
        admin_pb2.RedriveResponse(redriven=moved),
        f"{counted(moved, 'dead letter')} moved back with other headers",
    )


def _move_named(session: Session, dlq: str, offsets: list[int], rate: float | None) -> None:
    from fila.v1 import admin_pb2

    answer = admin_pb2.RedriveResponse()
    if offsets:
        answer = Redrive(session, dlq, rate=rate, offsets=offsets).run()
    _tell_redriven(session, dlq, answer, taken=len(offsets) - answer.redriven - answer.stuck)


def _tell_redriven(session: Session, dlq: str, answer: RedriveResponse, taken: int = 0) -> None:
    told = f"{counted(answer.redriven, 'dead letter')} moved back"
    if answer.stuck:
        told += f"; left in {dlq}, because they cannot be moved: {answer.stuck}"
    if taken > 0:
        told += f"; taken by others meanwhile: {taken}"
    session.show(answer, told)


@dlq.command(
    examples="""
    fila dlq delete orders.dlq --older-than 7d --yes
    fila dlq delete orders.dlq --error 'no such customer' --dry-run
    """
)
@dlq_argument
@_filters
@click.option("--dry-run", is_flag=True, help="Say what would be dropped, and drop nothing")
@yes_option
@click.pass_obj
def delete(session: Session, dlq: str, chosen: Chosen, *, dry_run: bool, yes: bool) -> None:
    """Drop those that are meant for good."""
    from fila.v1 import events_pb2

    offsets = [message.metadata.offset for message in chosen.found(session, dlq)]
    if offsets and not dry_run:
        confirm(f"Drop {counted(len(offsets), 'dead letter')} of {dlq} for good?", yes=yes)
    if dry_run:
        show(
            session.format,
            {"would_drop": len(offsets)},
            f"{counted(len(offsets), 'dead letter')} would be dropped",
        )
        return
    with Progress("dead letter", len(offsets), told_as="dropped") as progress:
        try:
            for at in range(0, len(offsets), _PAGE):
                request = events_pb2.DropDeadLettersRequest(dlq_queue=dlq, offsets=offsets[at : at + _PAGE])
                progress.add(session.admin.DropDeadLetters(request, timeout=session.timeout_s).dropped)
        except KeyboardInterrupt:
            raise Stopped(f"{progress.summary()} dropped") from None
    show(session.format, {"dropped": progress.done}, f"{counted(progress.done, 'dead letter')} dropped")


@dlq.command(
    examples="""
    fila dlq export orders.dlq dead.jsonl
    fila dlq export orders.dlq - --key acme
    """
)
@dlq_argument
@click.argument("file", metavar="FILE|-", type=click.File("wb", lazy=False))
@_filters
@click.pass_obj
def export(session: Session, dlq: str, file: BinaryIO, chosen: Chosen) -> None:
    """Write those that are meant to FILE, a line of json each, as 'consume -o json' prints them."""
    with Progress("dead letter") as progress:
        for message in chosen.found(session, dlq):
            file.write(as_json_line(to_dict(message)).encode() + b"\n")
            progress.add(1)
    if Path(file.name).name != "-" and file.name != "<stdout>":
        show(
            session.format,
            {"exported": progress.done},
            f"{counted(progress.done, 'dead letter')} in {file.name}",
        )
