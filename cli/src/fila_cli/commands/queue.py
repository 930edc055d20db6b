"""`fila queue`: the life of a queue, and looking into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fila_cli.output import Cell, facts, table
from fila_cli.session import Group, Session, channel_option, confirm, queue_argument, yes_option
from fila_cli.settings import NAMES_TO_RESET, config_from, describe, paths_to_reset, setting_options
from fila_cli.values import age_text, rough_size_text

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import GetStatsResponse, PerFairnessKeyStats
    from fila.v1.messages_pb2 import Message

_PREVIEW_CHARACTERS = 60


@click.group(
    cls=Group,
    examples="""
    fila queue create orders --fairness-header tenant --weight acme=3
    fila queue list
    fila queue inspect orders
    """,
)
def queue() -> None:
    """Create, watch, change and delete queues."""


@queue.command(
    examples="""
    fila queue create orders
    fila queue create orders --fairness-header tenant --weight acme=3 --weight globex=2
    fila queue create calls --throttle-header provider --retry exponential:1s..60s --max-attempts 5
    fila queue create jobs --on-enqueue @route.lua --on-failure @retry.lua --visibility-timeout 5m
    fila queue create log --channel audit --channel search --soft-retention 24h --durability os
    """
)
@click.argument("name")
@setting_options
@click.option(
    "--channel",
    "channels",
    multiple=True,
    metavar="NAME",
    help="Channel to make; repeat for more [default: default]",
)
@click.pass_obj
def create(session: Session, /, name: str, channels: tuple[str, ...], **flags: Any) -> None:
    """Create a queue and its dead-letter queue NAME.dlq."""
    from fila.v1 import admin_pb2

    config, _ = config_from(flags)
    config.channels.extend(channels)
    request = admin_pb2.CreateQueueRequest(name=name, config=config)
    answer = session.admin.CreateQueue(request, timeout=session.timeout_s)
    session.show(answer, f"queue {name} created")


@queue.command(
    examples="""
    fila queue update orders --weight acme=5 --weight globex=1
    fila queue update orders --on-enqueue @route.lua
    fila queue update orders --reset on-failure --reset max-depth
    """
)
@queue_argument
@setting_options
@click.option(
    "--reset",
    type=click.Choice(NAMES_TO_RESET),
    multiple=True,
    metavar="SETTING",
    help="Put a setting back to its default; repeat for more",
)
@click.pass_obj
def update(session: Session, /, queue: str, reset: tuple[str, ...], **flags: Any) -> None:
    """Change settings; those not named stay. --weight and --throttle-header replace their whole list."""
    from fila.v1 import admin_pb2

    config, paths = config_from(flags)
    paths += paths_to_reset(reset)
    if not paths:
        raise click.UsageError("nothing to change: name a setting, such as --max-attempts 5")
    request = admin_pb2.UpdateQueueRequest(queue=queue, config=config)
    request.update_mask.paths.extend(paths)
    answer = session.admin.UpdateQueue(request, timeout=session.timeout_s)
    session.show(answer, facts(describe(answer.config)))


@queue.command(
    examples="""
    fila queue delete orders
    fila queue delete orders --yes
    """
)
@queue_argument
@yes_option
@click.pass_obj
def delete(session: Session, queue: str, *, yes: bool) -> None:
    """Delete a queue, its dead letters, and everything in them."""
    from fila.v1 import admin_pb2

    confirm(f"Delete queue {queue} with all its messages and dead letters?", yes=yes)
    answer = session.admin.DeleteQueue(admin_pb2.DeleteQueueRequest(queue=queue), timeout=session.timeout_s)
    session.show(answer, f"queue {queue} deleted")


@queue.command(
    name="list",
    examples="""
    fila queue list
    fila queue list -o json
    """,
)
@click.pass_obj
def list_(session: Session) -> None:
    """List every queue, dead-letter queues included."""
    from fila.v1 import admin_pb2

    answer = session.admin.ListQueues(admin_pb2.ListQueuesRequest(), timeout=session.timeout_s)
    rows = [(each.name, each.depth, each.in_flight, each.active_consumers) for each in answer.queues]
    session.show(answer, table(("QUEUE", "DEPTH", "IN FLIGHT", "CONSUMERS"), rows))


@queue.command(
    examples="""
    fila queue inspect orders
    fila queue inspect orders --channel audit --keys 10
    fila queue inspect orders --wide
    fila queue inspect orders --settings
    """
)
@queue_argument
@channel_option
@click.option(
    "--keys",
    "max_keys",
    type=click.IntRange(min=1, max=10_000),
    default=1000,
    metavar="N",
    show_default=True,
    help="Most keys and buckets to list",
)
@click.option("--wide", is_flag=True, help="More columns, and every counter")
@click.option("--settings", is_flag=True, help="The queue's settings instead, in the words of 'queue create'")
@click.pass_obj
def inspect(session: Session, queue: str, channel: str, max_keys: int, *, wide: bool, settings: bool) -> None:
    """Show a queue's depth, who waits in it, and what holds them back."""
    from fila.v1 import admin_pb2

    if settings:
        got = session.admin.GetQueue(admin_pb2.GetQueueRequest(queue=queue), timeout=session.timeout_s)
        session.show(got, facts(describe(got.config)))
        return
    request = admin_pb2.GetStatsRequest(queue=queue, channel=channel, max_keys=max_keys)
    stats = session.admin.GetStats(request, timeout=session.timeout_s)
    session.show(stats, _inspection(stats, wide=wide))


def _inspection(stats: GetStatsResponse, *, wide: bool) -> str:
    parts = [facts(_facts(stats, wide=wide))]
    if wide:
        headings = (
            "KEY",
            "PENDING",
            "DEFICIT",
            "WEIGHT",
            "IN FLIGHT",
            "OLDEST",
            "DELIVERED",
            "COST",
            "PAUSED",
        )
        parts.append(table(headings, [_wide_row(key) for key in stats.per_key_stats]))
    else:
        keys = [(key.key, key.pending_count, key.current_deficit, key.weight) for key in stats.per_key_stats]
        parts.append(table(("KEY", "PENDING", "DEFICIT", "WEIGHT"), keys))
    buckets = [
        (bucket.key, round(bucket.tokens, 3), bucket.rate_per_second, bucket.burst)
        for bucket in stats.per_throttle_stats
    ]
    parts.append(table(("KEY", "TOKENS", "RATE/S", "BURST"), buckets))
    return "\n\n".join(parts)


def _facts(stats: GetStatsResponse, *, wide: bool) -> list[tuple[str, Cell]]:
    from fila.v1 import admin_pb2

    always: list[tuple[str, Cell]] = [
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
        ("dropped by hard retention", stats.hard_dropped),
        ("dropped by time to live", stats.ttl_dropped_total),
        ("dead-lettered", stats.dead_lettered_total),
        ("dead letters dropped", stats.dead_letters_dropped_total),
        ("weights clamped", stats.weights_clamped_total),
    ]
    listed = always + [(name, value) for name, value in troubles if value]
    if not wide:
        return listed
    return [
        *listed,
        ("oldest", age_text(stats.oldest_age_ms)),
        ("enqueued", stats.enqueued_total),
        ("delivered", stats.delivered_total),
        ("acked", stats.acked_total),
        ("nacked", stats.nacked_total),
        ("leases expired", stats.expired_total),
        ("returned uncounted", stats.returned_total),
        ("stale acks", stats.stale_acks_total),
        ("offsets", f"{stats.tail_offset} to {stats.head_offset}"),
        ("stored", rough_size_text(stats.stored_bytes)),
    ]


def _wide_row(key: PerFairnessKeyStats) -> tuple[Cell, ...]:
    return (
        key.key,
        key.pending_count,
        key.current_deficit,
        key.weight,
        key.in_flight,
        age_text(key.oldest_age_ms),
        key.delivered_total,
        key.served_cost_total,
        "yes" if key.paused else "no",
    )


@queue.command(
    examples="""
    fila queue purge orders
    fila queue purge orders --key noisy --yes
    """
)
@queue_argument
@click.option("--channel", default=None, metavar="NAME", help="Only in this channel [default: in all]")
@click.option("--key", "fairness_key", default=None, metavar="KEY", help="Only this fairness key's messages")
@yes_option
@click.pass_obj
def purge(session: Session, queue: str, channel: str | None, fairness_key: str | None, *, yes: bool) -> None:
    """Drop pending messages; leased ones stay with their holders."""
    from fila.v1 import admin_pb2

    confirm(f"Drop the pending messages of {queue}?", yes=yes)
    request = admin_pb2.PurgeQueueRequest(queue=queue, channel=channel, fairness_key=fairness_key)
    answer = session.admin.PurgeQueue(request, timeout=session.timeout_s)
    session.show(answer, f"{answer.purged} messages dropped")


@queue.command(
    examples="""
    fila queue peek orders
    fila queue peek orders.dlq --count 20 -o json
    fila queue peek orders --key acme --after 1500
    """
)
@queue_argument
@channel_option
@click.option(
    "-n", "--count", type=click.IntRange(1, 1000), default=10, show_default=True, help="Most messages to show"
)
@click.option(
    "--after", type=click.IntRange(min=0), default=0, metavar="OFFSET", help="Only messages after this offset"
)
@click.option("--key", "fairness_key", default="", metavar="KEY", help="Only this fairness key's messages")
@click.pass_obj
def peek(session: Session, queue: str, channel: str, count: int, after: int, fairness_key: str) -> None:
    """Look at pending messages without leasing them."""
    from fila.v1 import admin_pb2

    request = admin_pb2.PeekMessagesRequest(
        queue=queue, channel=channel, max_messages=count, after_offset=after, fairness_key=fairness_key
    )
    answer = session.admin.PeekMessages(request, timeout=session.timeout_s)
    session.show(answer, _peeked(list(answer.messages)))


def _peeked(messages: list[Message]) -> str:
    headings = ["OFFSET", "ID", "KEY", "ATTEMPTS", "PAYLOAD"]
    are_dead = any(message.metadata.HasField("dead_letter") for message in messages)
    rows: list[list[Cell]] = []
    for message in messages:
        about = message.metadata
        row: list[Cell] = [
            about.offset,
            message.id,
            about.fairness_key,
            # A dead letter's own queue has not delivered it yet; what people look for is how often it failed.
            about.dead_letter.attempts if are_dead else about.attempt_count,
            _preview(message.payload),
        ]
        if are_dead:
            row[4:4] = [about.dead_letter.reason, about.dead_letter.last_error]
        rows.append(row)
    if are_dead:
        headings[4:4] = ["REASON", "LAST ERROR"]
    return table(headings, rows)


def _preview(payload: bytes) -> str:
    """Enough of a payload to recognise it, on one line."""
    text = payload[: _PREVIEW_CHARACTERS * 4].decode(errors="replace")
    shown = "".join(character if character.isprintable() else "." for character in text)
    return shown if len(shown) <= _PREVIEW_CHARACTERS else shown[: _PREVIEW_CHARACTERS - 3] + "..."
