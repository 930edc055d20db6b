"""`fila explain`: why is this key late?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from fila_cli.arguments import channel_option, key_argument, queue_argument
from fila_cli.output import Cell, facts
from fila_cli.session import Command, Session
from fila_cli.values import age_text
from fila_cli.watching import show_or_watch, watch_option

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import ExplainKeyResponse
    from fila.v1.watch_pb2 import WaitCauses

_SENTENCE_BY_STATE = {
    "STATE_NO_CONSUMER": "nobody with room consumes this channel",
    "STATE_NOT_ITS_TURN": "ready; other keys are served before its turn",
    "STATE_THROTTLED": "throttled",
    "STATE_DELAYED": "all it has is delayed",
    "STATE_LEASED": "all it has is leased to consumers",
    "STATE_PAUSED": "paused by an operator; 'fila key resume' or 'fila queue resume' lets it go on",
    "STATE_CAPPED": "as many messages are leased as its cap allows",
    "STATE_RATE_LIMITED": "it has used up the rate an operator set; 'fila key rate' changes it",
    "STATE_EMPTY": "it has nothing pending and nothing leased",
}

_COUNTED_TO = 127


@click.command(
    cls=Command,
    examples="""
    fila explain orders acme
    fila explain orders acme --watch
    fila explain orders acme --channel audit -o json
    """,
)
@queue_argument
@key_argument
@channel_option
@watch_option
@click.pass_obj
def explain(session: Session, queue: str, key: str, channel: str, watch_ms: int | None) -> None:
    """Say what KEY's next message in QUEUE waits for, and whether the key gets its due share."""
    from fila.v1 import admin_pb2

    def look() -> tuple[ExplainKeyResponse, str]:
        request = admin_pb2.ExplainKeyRequest(queue=queue, channel=channel, fairness_key=key)
        answer = session.admin.ExplainKey(request, timeout=session.timeout_s)
        return answer, facts(_explained(key, answer))

    show_or_watch(session, watch_ms, look)


def _explained(key: str, answer: ExplainKeyResponse) -> list[tuple[str, Cell]]:
    listed: list[tuple[str, Cell]] = [
        ("key", key),
        ("waits because", _sentence(answer)),
        ("pending", answer.pending),
        ("in flight", answer.in_flight),
        ("weight", answer.weight),
        ("oldest", age_text(answer.oldest_age_ms) if answer.pending else "-"),
        (
            "share of served cost",
            f"{answer.share:.1%} of the last hour, due {_due(answer)}",
        ),
    ]
    if answer.returning_offset:
        times = f"{answer.returning_count}{'+' if answer.returning_count == _COUNTED_TO else ''}"
        listed.append(("keeps returning", f"offset {answer.returning_offset}, {times} times, never begun"))
    return listed + _waits(answer.waits)


def _due(answer: ExplainKeyResponse) -> str:
    return f"{answer.due_share:.1%}" if answer.pending else "nothing now"


def _sentence(answer: ExplainKeyResponse) -> str:
    from fila.v1 import admin_pb2

    state = admin_pb2.ExplainKeyResponse.State.Name(answer.state)
    sentence = _SENTENCE_BY_STATE.get(state, state)
    if answer.blocking_bucket:
        sentence += f" by {answer.blocking_bucket}"
    if answer.HasField("until"):
        left_s = (answer.until.ToDatetime(UTC) - datetime.now(UTC)).total_seconds()
        sentence += f" until {answer.until.ToJsonString()} (in {age_text(max(0, int(left_s * 1000)))})"
    return sentence


def _waits(waits: WaitCauses) -> list[tuple[str, Cell]]:
    by_cause = [
        ("no consumer", waits.no_consumer_ms),
        ("other keys' turns", waits.share_ms),
        ("throttle", waits.throttle_ms),
        ("delay or backoff", waits.delay_ms),
        ("pause, cap or rate", waits.held_ms),
    ]
    total_ms = sum(ms for _, ms in by_cause)
    if not total_ms:
        return []
    shown = ", ".join(f"{ms / total_ms:.0%} {cause}" for cause, ms in by_cause if ms)
    return [("last hour's waiting", shown)]
