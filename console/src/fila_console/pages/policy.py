"""A queue's settings and scripts: an editor, what would change, what it would do to the newest messages, and what the
broker says of it."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from fila.answers import KeyDefaults, QueueConfig, Retention, RetryPolicy
from fila.tried import DryRun, DryRunRouting
from fila.values import duration_text
from fila_console.differences import as_sent, difference, from_one_line, text_of
from fila_console.settings_line import settings_line
from fila_console.stale import refuse_stale
from fila_console.trouble import Trouble
from fila_console.visit import Visit, as_decimal, as_number
from fila_console.wording import age, brief, count, counted, named

SCRIPT_BYTES_MAX = 64 << 10
WEIGHTS_MAX = 10_000
CAP_MAX = 2**32 - 1
TRIED = (100, 1_000)
"""How many of the newest messages a dry run takes."""
TRIED_SHOWN = 100

TEXTS = (
    ("fairness_key_header", "Fairness key", "the header whose value is the key"),
    ("weight_header", "Weight", "the header whose value is the key's weight"),
    ("cost_header", "Cost", "the header whose value is the message's cost"),
    (
        "priority_header",
        "Priority",
        "the header whose value is the message's priority within its key, 0 to 3",
    ),
    ("throttle_key_headers", "Throttle keys", "headers whose values name buckets, with commas between"),
    (
        "key_limit",
        "Limit of each key",
        "what its name begins with, such as tenant:, and the key goes on; empty: none",
    ),
    ("retry", "A failed message waits", "fixed:5s, or exponential:1s..60s, either with ,jitter=0.5"),
)
NUMBERS = (
    ("visibility_timeout_ms", "A lease lasts", "milliseconds"),
    ("max_attempts", "Failures until it is a dead letter", "times; 0: no bound"),
    ("max_depth", "Most messages that wait", "messages; 0: no bound"),
    ("max_bytes", "Most bytes stored", "bytes; 0: no bound"),
    ("dedup_window_ms", "A dedup key is remembered", "milliseconds"),
    ("disconnect_grace_ms", "A consumer that lost its connection may come back for", "milliseconds"),
)
CHOICES = (
    (
        "key_order",
        "Order of a key's messages",
        (("relaxed", "several at once"), ("strict", "one at a time; a failed one keeps its place")),
    ),
    (
        "durability",
        "Calls are answered",
        (
            ("fsync", "once the disk has it"),
            ("os", "once the operating system has it; a power cut may lose it"),
        ),
    ),
    (
        "hook_fallback",
        "When the script that routes fails",
        (("policy", "by the settings here"), ("hold", "held until the script works")),
    ),
    (
        "allow_producer_routing",
        "Producers may say key, weight and cost",
        (("no", "no; the settings and the script decide"), ("yes", "yes, below the script")),
    ),
    (
        "ttl_to_dlq",
        "Messages whose time is over",
        (("no", "are dropped"), ("yes", "become dead letters")),
    ),
)
RETAINED = (
    ("soft_period_ms", "Done messages are kept for", "milliseconds; 0: no longer than needed"),
    ("soft_bytes", "Of done messages are kept", "bytes; 0: none for their size"),
    ("hard_period_ms", "No message is kept longer than", "milliseconds, done or not; 0: no bound"),
    ("hard_bytes", "No more is kept than", "bytes, done or not; 0: no bound"),
)
"""The parts of `retention`; in the form their names begin with `retention_`."""
EACH_KEY = (
    (
        "key_rate",
        "rate_per_second",
        "Most of each key delivered a second",
        "messages, over all channels; 0: no rate",
    ),
    ("key_burst", "burst", "Of these at once after a pause", "messages; 0: one second's worth"),
    ("key_cap", "max_in_flight", "Most of each key in hand at once", "messages, in each channel; 0: no cap"),
    (
        "key_committed",
        "committed_per_second",
        "Of each key these go first each second",
        "messages, over all channels, before those of keys beyond theirs; 0: none",
    ),
)
"""What each key has for which no operator set anything else: the form's name, that of its part of `key_defaults`."""
SCRIPTS = (
    ("on_enqueue_script", "on_enqueue"),
    ("on_failure_script", "on_failure"),
)
FIELDS = (*(name for name, *_ in (*TEXTS, *NUMBERS, *CHOICES, *SCRIPTS)), "weights")
KEY_RATE_MAX = 1e9

_WHOLE = frozenset(name for name, *_ in NUMBERS)
_PART_BY_NAME = {name: part for name, part, *_ in EACH_KEY}


async def page(visit: Visit) -> Response:
    """The editor."""
    queue = visit.path("queue")
    details, stats = await asyncio.gather(visit.upstream.queue(queue), visit.upstream.stats(queue))
    return visit.page(
        "policy.html",
        here="policy",
        queue=queue,
        created_at=details.created_at,
        values=_values(details.config),
        version=details.version,
        is_set=0 < details.version == visit.number("set"),
        texts=TEXTS,
        number_fields=NUMBERS,
        choices=CHOICES,
        retained=RETAINED,
        each_key=EACH_KEY,
        scripts=SCRIPTS,
        hooks=stats.hooks,
        tried=TRIED,
    )


def _values(config: QueueConfig) -> dict[str, str]:
    """Each field as its text in the form."""
    values = {name: text_of(getattr(config, name)) for name in FIELDS}
    defaults, kept = config.key_defaults or KeyDefaults(), config.retention or Retention()
    values |= {"retry": _retry_text(config.retry or RetryPolicy())}
    values |= {f"retention_{part}": str(getattr(kept, part)) for part, *_ in RETAINED}
    return values | {name: f"{getattr(defaults, part):.15g}" for name, part in _PART_BY_NAME.items()}


def _retry_text(retry: RetryPolicy) -> str:
    """As the SDK and the command line read it."""
    text = f"{retry.kind}:{duration_text(retry.base_ms)}"
    if retry.kind == "exponential" and retry.cap_ms:
        text += f"..{duration_text(retry.cap_ms)}"
    return text + (f",jitter={retry.jitter:g}" if retry.jitter else "")


def _differing(visit: Visit, now: dict[str, str]) -> list[str]:
    """The fields of the form that are not as they are now."""
    return [
        name
        for name, text in now.items()
        if name in visit.form and visit.field(name).rstrip("\n") != as_sent(text).rstrip("\n")
    ]


def _asked(visit: Visit, now: dict[str, str]) -> dict[str, Any]:
    """What the form changes, as settings of the SDK. Raises Trouble."""
    changes: dict[str, Any] = {}
    for name in _differing(visit, now):
        given = visit.field(name)
        if name in _PART_BY_NAME:
            number = (
                as_number(name, given, CAP_MAX)
                if name == "key_cap"
                else as_decimal(name, given, KEY_RATE_MAX)
            )
            changes.setdefault("key_defaults", {})[_PART_BY_NAME[name]] = number
        elif name.startswith("retention_"):
            part = name.removeprefix("retention_")
            changes.setdefault("retention", {})[part] = as_number(part, given)
        elif name in ("ttl_to_dlq", "allow_producer_routing"):
            changes[name] = given == "yes"
        elif name in _WHOLE:
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
        weights[from_one_line(key)] = as_number(f"the weight in line {number}", weight, 1_000)
    return weights


async def diff(visit: Visit) -> Response:
    """What saving would change, line by line."""
    now = _values((await visit.upstream.queue(visit.path("queue"))).config)
    _asked(visit, now)
    names = _differing(visit, now)
    return visit.page(
        "diff.html",
        differences=[difference(name, as_sent(now[name]), visit.field(name)) for name in names],
        line=settings_line(visit.path("queue"), names, {name: visit.field(name) for name in names}),
    )


async def dry_run(visit: Visit) -> Response:
    """What saving would do to the newest messages and dead letters; the broker tries it, and nothing changes."""
    queue = visit.path("queue")
    now = _values((await visit.upstream.queue(queue)).config)
    last = as_number("last", visit.field("last") or str(TRIED[0]), TRIED[-1])
    told = await visit.upstream.dry_run(queue, last, **_asked(visit, now))
    changed = [
        (f"{each.offset:,}", _differs(each.before, each.after), brief(each.error))
        for each in told.messages
        if each.before != each.after or each.error
    ]
    words = {
        "retry": "tried again after ",
        "dlq": "a dead letter, as now",
        "": "a dead letter: the script fails",
    }
    judged = [
        (
            f"{each.offset:,}",
            words.get(each.action, each.action) + (age(each.delay_ms) if each.action == "retry" else ""),
            brief(each.error),
        )
        for each in told.dead_letters
    ]
    return visit.page(
        "tried.html",
        sentence=_tried(told),
        tone="lost" if any(each.error for each in told.messages) else "",
        changed=changed[:TRIED_SHOWN],
        more=max(0, len(changed) - TRIED_SHOWN),
        judged=judged[:TRIED_SHOWN],
    )


def _tried(told: DryRun) -> str:
    """A dry run in a few sentences."""
    if not told.messages and not told.dead_letters:
        return "No message is retained: there is nothing to try it on."
    changed = sum(1 for each in told.messages if each.before != each.after)
    failed = sum(1 for each in told.messages if each.error)
    newest = counted(len(told.messages), "newest message")
    parts = [
        f"{count(changed)} of the {newest} would be routed otherwise; {count(told.retained)} are retained."
    ]
    if failed:
        parts.append(f"● The script fails on {count(failed)} of them.")
    if told.dead_letters:
        again = sum(1 for each in told.dead_letters if each.action == "retry")
        parts.append(
            f"{count(again)} of {counted(len(told.dead_letters), 'dead letter')} would be tried again."
        )
    if told.cut:
        parts.append("The time for it, two seconds, was over before all were judged.")
    return " ".join(parts)


def _differs(before: DryRunRouting, after: DryRunRouting) -> str:
    """What of a message's routing would change."""
    told = (
        ("key", named(before.fairness_key), named(after.fairness_key)),
        ("weight", count(before.weight), count(after.weight)),
        ("cost", f"{before.cost:g}", f"{after.cost:g}"),
        ("buckets", _buckets(before), _buckets(after)),
    )
    return "; ".join(f"{name} {old} → {new}" for name, old, new in told if old != new)


def _buckets(routing: DryRunRouting) -> str:
    return ", ".join(brief(each, 60) for each in routing.throttle_keys) or "none"


async def change(visit: Visit) -> Response:
    """Save what differs; it applies at once to what waits."""
    queue, seen = visit.path("queue"), as_number("version", visit.field("version"))
    details = await visit.upstream.queue(queue)
    await refuse_stale(visit, details, seen)
    changes = _asked(visit, _values(details.config))
    if not changes:
        return visit.done("Nothing differs from what the queue has.")
    # The broker compares again: a quicker change in between is not written over.
    await visit.upstream.update_queue(
        queue, expected_version=seen, comment=visit.field("comment").strip(), **changes
    )
    text = f"Saved as version {seen + 1:,}: {counted(len(changes), 'setting')} ({', '.join(changes)}), in force now."
    answer = visit.page("saved.html", text=text, tone="done", version=seen + 1)
    answer.headers["HX-Trigger"] = "fila:saved"
    return answer
