"""How an operation on dead letters stands, in words, for the page whose letters it moves."""

from __future__ import annotations

from collections.abc import Sequence

from fila.dead_letters import DeadLetterFilter, Operation
from fila_console.cells import Cell, cell
from fila_console.wording import brief, clock, count, counted, named, rate

_DOES = {"redrive": "Moving back", "delete": "Dropping", "purge": "Dropping all"}
_DID = {"redrive": "moved back", "delete": "dropped", "purge": "dropped"}
_ENDED = {
    "done": "Done",
    "cancelled": "Cancelled",
    "failed": "● Failed",
    "stopped": "● Stopped with the broker: start another to go on",
}
_TONES = {"failed": "lost", "stopped": "lost", "cancelled": "late"}


def progress(operations: Sequence[Operation]) -> dict[str, Cell]:
    """The operation that runs, else the newest that ended, as texts of a page."""
    newest = next((each for each in operations if each.state == "running"), next(iter(operations), None))
    if newest is None:
        return {
            "operation": cell("Nothing is being moved or dropped by the broker.", tone="quiet"),
            "operation-bar": cell("", bar=0.0),
            "operation-id": cell(""),
            "operation-cancel": cell(""),
        }
    is_running = newest.state == "running"
    part = newest.looked_at / newest.total if newest.total else 1.0
    return {
        "operation": cell(_sentence(newest), tone=_TONES.get(newest.state, "" if is_running else "quiet")),
        "operation-bar": cell("", bar=part if is_running else 0.0),
        "operation-id": cell(newest.id if is_running else ""),
        "operation-cancel": cell("Cancel it" if is_running else ""),
    }


def _sentence(operation: Operation) -> str:
    kind = operation.request.kind if operation.request is not None else ""
    did = f"{counted(operation.done, 'letter')} {_DID.get(kind, 'done')}"
    stayed = f", {count(operation.stuck)} stayed" if operation.stuck else ""
    looked = f"{count(operation.looked_at)} of {count(operation.total)} looked at"
    who = operation.principal or operation.peer
    by = f", by {brief(who)}" if who else ""
    which = _which(operation)
    if operation.state == "running":
        since = f"since {clock(operation.started_at)}"
        return f"{_DOES.get(kind, 'At work on')} {which}: {looked}, {did}{stayed}; {since}{by}."
    ended = _ENDED.get(operation.state, operation.state)
    why = f" {brief(operation.error)}." if operation.error else ""
    return f"{ended} at {clock(operation.ended_at)}: {did}{stayed}, {looked}, of {which}{by}.{why}"


def _which(operation: Operation) -> str:
    request = operation.request
    wanted = request.filter if request is not None and request.filter is not None else DeadLetterFilter()
    parts = [
        f"key {named(wanted.fairness_key)}" if wanted.fairness_key else "",
        f"reason {wanted.reason}" if wanted.reason else "",
        f"“{brief(wanted.error, 60)}” in the error" if wanted.error else "",
        f"channel {wanted.source_channel}" if wanted.source_channel else "",
        "a time of death" if wanted.died_from or wanted.died_before else "",
    ]
    named_parts = ", ".join(each for each in parts if each)
    which = f"letters with {named_parts}" if named_parts else "all letters"
    pace = request.rate_per_second if request is not None else 0.0
    return f"{which} (at most {rate(pace)})" if pace else which
