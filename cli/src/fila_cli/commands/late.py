"""`fila late`: who waits longest, over all queues, and for what?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from fila_cli.arguments import complete_queue
from fila_cli.colors import Meaning, Meant
from fila_cli.explanation import briefly
from fila_cli.output import Cell, Format, more_wait, table
from fila_cli.session import Command, Session
from fila_cli.troubles import above, ask_what_is_wrong, told
from fila_cli.values import Count, age_text
from fila_cli.watching import show_or_watch, watch_option

if TYPE_CHECKING:
    from fila.v1.events_pb2 import LateKey, ListLateResponse

_HEADINGS = ("QUEUE", "CHANNEL", "KEY", "WAITING", "SINCE", "PENDING", "IN FLIGHT", "WEIGHT", "CAUSE")
_SPARE = ("WEIGHT", "IN FLIGHT", "SINCE", "CHANNEL", "PENDING")
_CUT = ("QUEUE", "KEY", "CAUSE")


@click.command(
    cls=Command,
    examples="""
    fila late
    fila late orders --count 50
    fila late --watch 5s
    """,
)
@click.argument("queue", required=False, shell_complete=complete_queue)
@click.option("-n", "--count", type=Count(1, 1_000), default=20, show_default=True, help="Most keys to list")
@watch_option
@click.pass_obj
def late(session: Session, queue: str | None, count: int, watch_ms: int | None) -> None:
    """Say what is wrong, and rank the fairness keys of QUEUE, or of all queues, by how long their next message has been
    waiting.

    Dead letters wait for an operator and not for a consumer: only with QUEUE are they listed. 'fila explain QUEUE KEY'
    says more about one key.
    """
    from fila.v1 import events_pb2

    def look() -> tuple[ListLateResponse, str]:
        request = events_pb2.ListLateRequest(queue=queue or "", max_keys=count)
        answer = session.admin.ListLate(request, timeout=session.timeout_s)
        if session.format is not Format.TABLE:
            return answer, ""
        wrong = told(ask_what_is_wrong(session, queue or ""))
        return answer, above(wrong, _ranked(answer))

    show_or_watch(session, watch_ms, look, empty=f"nobody waits in {queue}" if queue else "nobody waits")


def _ranked(answer: ListLateResponse) -> str:
    if not answer.keys:
        return ""
    # Where there are several channels, a key without its own would be told twice.
    several = len({key.channel for key in answer.keys}) > 1
    spare = [name for name in _SPARE if name != "CHANNEL" or not several]
    shown = table(_HEADINGS, [_row(key) for key in answer.keys], spare, _CUT)
    more = answer.waiting_keys - len(answer.keys)
    return f"{shown}\n\n{more_wait(more)}" if more > 0 else shown


def _row(key: LateKey) -> tuple[Cell, ...]:
    return (
        key.queue,
        key.channel,
        key.fairness_key,
        age_text(key.waiting_ms),
        key.since.ToDatetime(UTC).strftime("%H:%M:%S"),
        key.pending,
        key.in_flight,
        key.weight,
        _cause(key),
    )


def _cause(key: LateKey) -> Meant:
    from fila.v1 import events_pb2

    word = events_pb2.LateKey.Cause.Name(key.cause).removeprefix("CAUSE_").lower()
    text = briefly(word, key, by_default=key.by_default)
    meaning = Meaning.QUIET if word == "not_its_turn" else Meaning.HELD
    if key.nobody_consumes:
        meaning = Meaning.TROUBLE
    if key.HasField("until"):
        left_s = (key.until.ToDatetime(UTC) - datetime.now(UTC)).total_seconds()
        text += f", {age_text(max(0, int(left_s * 1000)))} left"
    return Meant(text, meaning)
