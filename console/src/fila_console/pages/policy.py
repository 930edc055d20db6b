"""A queue's settings and scripts: an editor, what would change, and what the broker says of it."""

from __future__ import annotations

import difflib
import hashlib
import json
from typing import Any

from starlette.responses import Response

from fila.answers import QueueConfig
from fila_console.trouble import Trouble
from fila_console.visit import Visit, as_number
from fila_console.wording import counted

SCRIPT_BYTES_MAX = 64 << 10
WEIGHTS_MAX = 10_000

TEXTS = (
    ("fairness_key_header", "Fairness key", "the header whose value is the key"),
    ("weight_header", "Weight", "the header whose value is the key's weight"),
    ("cost_header", "Cost", "the header whose value is the message's cost"),
    ("throttle_key_headers", "Throttle keys", "headers whose values name buckets, with commas between"),
)
NUMBERS = (
    ("visibility_timeout_ms", "A lease lasts", "milliseconds"),
    ("max_attempts", "Failures until it is a dead letter", "times; 0: no bound"),
    ("max_depth", "Most messages that wait", "messages; 0: no bound"),
    ("max_bytes", "Most bytes stored", "bytes; 0: no bound"),
    ("dedup_window_ms", "A dedup key is remembered", "milliseconds"),
)
SCRIPTS = (
    ("on_enqueue_script", "on_enqueue"),
    ("on_failure_script", "on_failure"),
)

_WHOLE = frozenset(name for name, *_ in NUMBERS)


async def page(visit: Visit) -> Response:
    """The editor."""
    queue = visit.path("queue")
    details = await visit.upstream.queue(queue)
    stats = await visit.upstream.stats(queue)
    values = _values(details.config)
    return visit.page(
        "policy.html",
        here="policy",
        queue=queue,
        config=details.config,
        created_at=details.created_at,
        values=values,
        was=_stamp(values),
        texts=TEXTS,
        number_fields=NUMBERS,
        scripts=SCRIPTS,
        hooks=stats.hooks,
    )


def _values(config: QueueConfig) -> dict[str, str]:
    """Each field as its text in the form."""
    values = {name: str(getattr(config, name)) for name, *_ in (*NUMBERS, *SCRIPTS)}
    for name, *_ in TEXTS:
        value = getattr(config, name)
        values[name] = ", ".join(value) if isinstance(value, list) else value
    values["weights"] = "\n".join(f"{key}={weight}" for key, weight in sorted(config.weights.items()))
    return values


def _asked(visit: Visit, now: dict[str, str]) -> dict[str, Any]:
    """What the form changes, as settings of the SDK. Raises Trouble."""
    changes: dict[str, Any] = {}
    for name, text in now.items():
        if name not in visit.form or visit.field(name).rstrip("\n") == text.rstrip("\n"):
            continue
        given = visit.field(name)
        if name in _WHOLE:
            changes[name] = as_number(name, given)
        elif name == "throttle_key_headers":
            changes[name] = [each.strip() for each in given.split(",") if each.strip()]
        elif name == "weights":
            changes[name] = _weights(given)
        else:
            if len(given.encode(errors="replace")) > SCRIPT_BYTES_MAX:
                raise Trouble(
                    400, "That is too long", f"{name} may have {SCRIPT_BYTES_MAX >> 10} KiB at most."
                )
            changes[name] = given
    return changes


def _weights(text: str) -> dict[str, int]:
    weights: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        key, equals, weight = line.rpartition("=")
        if not equals or len(weights) >= WEIGHTS_MAX:
            raise Trouble(
                400,
                "A weight cannot be read",
                f"Line {number} must be KEY=WEIGHT, and there may be {WEIGHTS_MAX:,}.",
            )
        weights[key] = as_number(f"the weight in line {number}", weight, 1_000)
    return weights


async def diff(visit: Visit) -> Response:
    """What saving would change, line by line."""
    now = _values((await visit.upstream.queue(visit.path("queue"))).config)
    changes = _asked(visit, now)
    lines = []
    for name in changes:
        before, after = now[name].split("\n"), visit.field(name).split("\n")
        lines += [
            *difflib.unified_diff(before, after, f"{name}, as it is", f"{name}, as written", lineterm="", n=2)
        ]
    return visit.page("diff.html", lines=lines)


async def change(visit: Visit) -> Response:
    """Save what differs; it applies at once to what waits."""
    queue = visit.path("queue")
    now = _values((await visit.upstream.queue(queue)).config)
    if visit.field("was") != _stamp(now):
        raise Trouble(
            409,
            "Somebody else changed it meanwhile",
            "Your text is still here.",
            "Open the page anew in another tab and compare.",
        )
    changes = _asked(visit, now)
    if not changes:
        return visit.done("Nothing differs from what the queue has.")
    await visit.upstream.update_queue(queue, **changes)
    what = ", ".join(changes)
    return visit.done(f"Saved: {counted(len(changes), 'setting')} ({what}), in force now.", tone="done")


def _stamp(values: dict[str, str]) -> str:
    """What the page was made from, to see whether somebody else changed it since."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode(errors="replace")).hexdigest()[:32]
