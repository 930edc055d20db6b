"""What can go wrong in the source, in words that say what to change."""

from __future__ import annotations


class FilaSourceError(Exception):
    """Any error of the source."""


class OptionInvalid(FilaSourceError, ValueError):
    """An option or a column cannot be used; nothing was read."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"option {name}: {problem}")


class QueueNotFound(FilaSourceError):
    """The broker has no such queue."""


class BrokerFailed(FilaSourceError):
    """The broker could not be reached, or refused the call."""


class SinkRefused(BrokerFailed):
    """The broker will not publish, stage or drop this: a later run took over, numbers are missing, or it was done."""


class DataLoss(FilaSourceError):
    """Messages that should have been read are no longer in the log."""
