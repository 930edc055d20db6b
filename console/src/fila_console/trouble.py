"""What goes wrong, in words: what happened, and what to do next."""

from __future__ import annotations

from collections.abc import Awaitable, Collection
from typing import TypeVar

import grpc

from fila import FilaError, Invalid, NotAllowed, NotFound, Overloaded, Unavailable
from fila_console.wording import shown

ResultT = TypeVar("ResultT")


class Trouble(Exception):
    """Something was asked for and did not happen: what, and what to do about it."""

    def __init__(
        self, status: int, title: str, text: str, advice: str = "", *, logs_out: bool = False
    ) -> None:
        """`status` is the HTTP status of a page that shows it; `logs_out`: the broker does not know the key."""
        super().__init__(title)
        self.status = status
        self.title = title
        self.text = text
        self.advice = advice
        self.logs_out = logs_out

    def says_as(self, other: Trouble | None) -> bool:
        """Whether both say the same."""
        return other is not None and (self.title, self.text) == (other.title, other.text)


def trouble_of(error: FilaError, address: str) -> Trouble:
    """Put a broker's refusal, or its silence, into words."""
    text = shown(str(error))
    if error.code is grpc.StatusCode.UNAUTHENTICATED:
        return Trouble(401, "The key is not valid any more", text, "Log in with another key.", logs_out=True)
    if isinstance(error, NotAllowed):
        return Trouble(403, "Your key may not do that", text, "Ask an admin for the right that is named.")
    if isinstance(error, NotFound):
        return Trouble(
            404, "There is no such thing", text, "It may have been deleted; the overview lists what is there."
        )
    if isinstance(error, Invalid):
        return Trouble(400, "The broker refused it", text)
    if error.reason == "VERSION_STALE":
        return Trouble(
            409,
            "Somebody else changed it meanwhile",
            text,
            "Your text is still here: open the page anew in another tab and compare.",
        )
    if isinstance(error, Overloaded):
        return Trouble(503, "The broker is at a bound", text, "Try again in a moment.")
    if isinstance(error, Unavailable):
        return Trouble(
            503,
            "The broker does not answer",
            f"Nothing came from {address}.",
            "See whether fila-server runs there and is reachable from here; this page goes on by itself.",
        )
    return Trouble(502 if error.code is grpc.StatusCode.INTERNAL else 409, "The broker refused it", text)


async def unless_refused(
    asked: Awaitable[ResultT], otherwise: ResultT, statuses: Collection[int] = (403,)
) -> ResultT:
    """What was asked for, or `otherwise` where the key may not be told (or, with 404 among `statuses`, it is gone)."""
    try:
        return await asked
    except Trouble as trouble:
        if trouble.status not in statuses:
            raise
        return otherwise
