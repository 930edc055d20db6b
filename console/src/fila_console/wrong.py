"""What is wrong, in the broker's words: up to four sentences with their levers, or that all is well."""

from __future__ import annotations

from fila.observations import BrokerStatus, BrokerTrouble
from fila_console.addresses import broker_path, key_path, queue_path
from fila_console.cells import Cell, cell
from fila_console.wording import one_line, shown

SENTENCES = 4
"""As many places a page has for them."""
DLQ = ".dlq"
_TONES = {"lost": "lost", "damaged": "lost", "disk": "lost", "circuit_open": "lost"} | dict.fromkeys(
    ("paused", "budget_spent"), "paused"
)


def sentences(broker: str, status: BrokerStatus) -> dict[str, Cell]:
    """The texts of a page's first lines: `sentence-0` to `sentence-3`, beside each its lever, and `more`."""
    texts: dict[str, Cell] = {"more": cell(_more(status))}
    for place in range(SENTENCES):
        trouble = status.troubles[place] if place < len(status.troubles) else None
        if trouble is None:
            texts[f"sentence-{place}"] = cell(status.well if not place else "")
            texts[f"lever-{place}"] = cell("")
            continue
        texts[f"sentence-{place}"] = cell(one_line(trouble.text), tone=_TONES.get(trouble.kind, "late"))
        texts[f"lever-{place}"] = cell(
            one_line(trouble.lever), href=_lever_path(broker, trouble), title=shown(trouble.command)
        )
    return texts


def _more(status: BrokerStatus) -> str:
    more = max(len(status.troubles) - SENTENCES, 0) + status.more_troubles
    return f"and {more:,} more" if more else ""


def _lever_path(broker: str, trouble: BrokerTrouble) -> str:
    """Where it can be done, or where more is shown."""
    queue, key = trouble.queue, trouble.fairness_key
    if not queue:
        return broker_path(broker, "events")
    if trouble.kind == "circuit_open":
        return queue_path(broker, queue, "policy")
    if trouble.kind == "failing":
        return queue_path(broker, queue + DLQ, "dead-letters")
    if trouble.kind == "flood":
        return key_path(broker, queue, key, trouble.channel) + "#rate"
    if trouble.kind == "paused" and key:
        return key_path(broker, queue, key)
    if trouble.kind == "paused" and trouble.channel:
        return queue_path(broker, queue, "manage") + "#channels-title"
    tab = {"nobody_consumes": "#consumers", "limit_behind": "#buckets", "budget_spent": "#buckets"}
    return queue_path(broker, queue) + tab.get(trouble.kind, "")
