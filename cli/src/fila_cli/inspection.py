"""`fila queue inspect`: one queue, read from top to bottom by somebody who wants to know what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fila_cli.colors import Meaning, Meant
from fila_cli.output import Cell, counted, facts, more_wait, table, titled
from fila_cli.values import age_text, rough_size_text

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import GetStatsResponse, HookStats, PerFairnessKeyStats

_WIDE_HEADINGS = (
    "KEY",
    "PENDING",
    "DEFICIT",
    "WEIGHT",
    "IN FLIGHT",
    "OLDEST",
    "DELIVERED",
    "COST",
    "CAP",
    "PAUSED",
)
_WIDE_SPARE = ("COST", "DEFICIT", "DELIVERED", "IN FLIGHT", "WEIGHT")


def inspection(queue: str, channel: str, stats: GetStatsResponse, *, max_keys: int, wide: bool) -> str:
    """The queue's facts, its channels where there are several, its keys and the buckets that hold them."""
    if not stats.quantum:  # every queue has one, and a tenant is not told it: what is 0 here is not known
        return _of_a_tenant(queue, channel, stats)
    parts = [facts(_facts(queue, channel, stats, wide=wide)), _channels(stats, wide=wide)]
    if wide:
        keys = table(_WIDE_HEADINGS, [_wide_row(key) for key in stats.per_key_stats], _WIDE_SPARE, ("KEY",))
    else:
        keys = table(
            ("KEY", "PENDING", "DEFICIT", "WEIGHT"),
            [(key.key, key.pending_count, key.current_deficit, key.weight) for key in stats.per_key_stats],
            cut=("KEY",),
        )
    buckets = table(
        ("BUCKET", "TOKENS", "RATE/S", "BURST", "WAITING"),
        [
            (bucket.key, round(bucket.tokens, 3), bucket.rate_per_second, bucket.burst, bucket.waiting)
            for bucket in stats.per_throttle_stats
        ],
    )
    if stats.per_key_stats:
        parts.append(titled("fairness keys, largest backlog first", keys))
    if len(stats.per_key_stats) >= max_keys and stats.active_fairness_keys > max_keys:
        parts.append(f"{more_wait(stats.active_fairness_keys - max_keys)}; --keys lists up to 10000")
    if stats.per_throttle_stats:
        parts.append(titled("token buckets, longest line first", buckets))
    return "\n\n".join(part for part in parts if part)


def _of_a_tenant(queue: str, channel: str, stats: GetStatsResponse) -> str:
    """What a key that is bound to a tenant is told: its own messages, and nothing that others make up."""
    keys = [
        (
            key.key,
            key.pending_count,
            key.weight,
            key.in_flight,
            age_text(key.oldest_age_ms) if key.pending_count else "-",
            _paused(key),
        )
        for key in stats.per_key_stats
    ]
    return "\n\n".join(
        (
            facts([("queue", _name(queue, channel)), ("all else", "not told to a tenant's key")]),
            table(("KEY", "PENDING", "WEIGHT", "IN FLIGHT", "OLDEST", "PAUSED"), keys, cut=("KEY",)),
        )
    )


def _name(queue: str, channel: str) -> str:
    return f"{queue}, channel {channel}" if channel else queue


def _channels(stats: GetStatsResponse, *, wide: bool) -> str:
    if len(stats.channels) < 2 and not wide:
        return ""
    rows = [(each.name, each.depth, each.in_flight, each.consumers) for each in stats.channels]
    return titled("channels", table(("CHANNEL", "DEPTH", "IN FLIGHT", "CONSUMERS"), rows)) if rows else ""


def _facts(queue: str, channel: str, stats: GetStatsResponse, *, wide: bool) -> list[tuple[str, Cell]]:
    from fila.v1 import admin_pb2

    always: list[tuple[str, Cell]] = [
        ("queue", _name(queue, channel)),
        ("depth", stats.depth),
        ("in flight", stats.in_flight),
        ("not begun", stats.unbegun),
        ("active fairness keys", stats.active_fairness_keys),
        ("consumers", stats.active_consumers),
        ("quantum", stats.quantum),
    ]
    open_circuit = stats.breaker_state == admin_pb2.BREAKER_STATE_OPEN
    # What should not happen is shown when it did, asked for or not.
    troubles: list[tuple[str, Cell]] = [
        ("hook", "circuit open: messages take the fallback" if open_circuit else ""),
        ("hook fallbacks", stats.hook_fallbacks),
        ("hook errors", stats.hook_errors),
        *((f"last error of {each.hook}", _last_error(each)) for each in stats.hooks),
        *((f"{each.hook} returns in vain", ignored_fields(each)) for each in stats.hooks),
        ("dropped by hard retention", stats.hard_dropped),
        ("dropped by time to live", stats.ttl_dropped_total),
        ("dead-lettered", stats.dead_lettered_total),
        ("dead letters dropped", stats.dead_letters_dropped_total),
        ("weights clamped", stats.weights_clamped_total),
    ]
    listed = always + [(name, Meant(str(value), Meaning.TROUBLE)) for name, value in troubles if value]
    # They begin anew with each start, while what they counted may still lie there.
    began = stats.totals_since.ToJsonString() if stats.HasField("totals_since") else "-"
    since: tuple[str, Cell] = ("totals since", began)
    if not wide:
        return [*listed, since] if len(listed) > len(always) else listed
    return [
        *listed,
        since,
        ("oldest that waits", age_text(stats.oldest_age_ms) if stats.oldest_age_ms else "-"),
        ("oldest lease", age_text(stats.oldest_lease_age_ms) if stats.oldest_lease_age_ms else "-"),
        ("enqueued", stats.enqueued_total),
        ("leased", stats.leased_total),
        ("delivered", stats.delivered_total),
        ("acked", stats.acked_total),
        ("nacked", stats.nacked_total),
        ("leases expired", stats.expired_total),
        ("returned uncounted", stats.returned_total),
        ("stale acks", stats.stale_acks_total),
        ("offsets", f"{stats.tail_offset} to {stats.head_offset}"),
        ("stored", rough_size_text(stats.stored_bytes)),
    ]


def _last_error(hook: HookStats) -> str:
    if not hook.last_error:
        return ""
    headers = " ".join(f"{name}={hook.last_error_headers[name]}" for name in sorted(hook.last_error_headers))
    return f"{hook.last_error}, at {hook.last_error_at.ToJsonString()}, headers {headers or 'none'}"


def ignored_fields(hook: HookStats) -> str:
    """Fields that a script returns and nobody reads, with how often."""
    names = sorted(hook.ignored_fields, key=lambda name: (-hook.ignored_fields[name], name))
    return ", ".join(f"{name} ({counted(hook.ignored_fields[name], 'time')})" for name in names)


def _wide_row(key: PerFairnessKeyStats) -> tuple[Cell, ...]:
    return (
        key.key,
        key.pending_count,
        key.current_deficit,
        key.weight,
        key.in_flight,
        age_text(key.oldest_age_ms) if key.oldest_age_ms else "-",
        key.delivered_total,
        key.served_cost_total,
        key.max_in_flight or "-",
        _paused(key),
    )


def _paused(key: PerFairnessKeyStats) -> Cell:
    return Meant("yes", Meaning.HELD) if key.paused else "no"
