"""A moment as a reader types it and as a link has it: to the minute, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from fila_console.trouble import Trouble

_FORM = "%Y-%m-%dT%H:%MZ"


def moment_of(text: str) -> datetime:
    """Read it. Raises Trouble."""
    try:
        return datetime.strptime(text, _FORM).replace(tzinfo=UTC)
    except ValueError:
        raise Trouble(400, "That is no moment", "Write it like 2026-03-01T09:30Z, in UTC.") from None


def text_of(moment: datetime) -> str:
    """A moment as `moment_of` reads it."""
    return moment.astimezone(UTC).strftime(_FORM)
