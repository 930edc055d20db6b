"""What is wrong, in the broker's own words, for the commands that say it first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fila_cli.colors import Meaning, paint
from fila_cli.output import printable

if TYPE_CHECKING:
    from fila.v1.events_pb2 import GetStatusResponse, Trouble
    from fila_cli.session import Session


def ask_what_is_wrong(session: Session, queue: str = "", fairness_key: str = "") -> GetStatusResponse:
    """The broker's status, with its troubles: of one queue, and of its keys' pauses that of one key alone."""
    from fila.v1 import events_pb2

    request = events_pb2.GetStatusRequest(queue=queue, fairness_key=fairness_key)
    return session.admin.GetStatus(request, timeout=session.timeout_s)


def told(answer: GetStatusResponse) -> str:
    """A line for each trouble and one for its lever; or that all is well; nothing where a broker does not say."""
    lines = [line for trouble in answer.troubles for line in (_sentence(trouble), f"  {lever_of(trouble)}")]
    if answer.more_troubles:
        lines.append(more_text(answer))
    return "\n".join(lines) if lines else answer.well


def above(wrong: str, rest: str) -> str:
    """What is wrong, a blank line, and the rest; where one of them is empty, the other."""
    return "\n\n".join(part for part in (wrong, rest) if part)


def more_text(answer: GetStatusResponse) -> str:
    """`and 3 more`, or nothing."""
    return f"and {answer.more_troubles} more" if answer.more_troubles else ""


def lever_of(trouble: Trouble) -> str:
    """`Resume acme: fila key resume orders acme`."""
    lever = f"{trouble.lever}: {trouble.command}" if trouble.command else trouble.lever
    return printable(lever)


def _sentence(trouble: Trouble) -> str:
    return paint(printable(trouble.text), Meaning.TROUBLE)
