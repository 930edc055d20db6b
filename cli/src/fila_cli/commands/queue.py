"""`fila queue`: the life of a queue, and looking into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fila_cli.arguments import (
    all_queues_option,
    channel_option,
    complete_channel,
    complete_version,
    is_listed,
    key_option,
    queue_argument,
    reason_option,
    yes_option,
)
from fila_cli.colors import Meaning, Meant
from fila_cli.declared import differing
from fila_cli.explanation import paused_text
from fila_cli.failures import reason_of
from fila_cli.inspection import inspection
from fila_cli.messages import peeked
from fila_cli.output import Cell, counted, facts, table
from fila_cli.session import Group, Session, confirm
from fila_cli.settings import NAMES_TO_RESET, config_from, describe, name_of, paths_to_reset, setting_options
from fila_cli.values import Count, age_text
from fila_cli.waiting import wait_for
from fila_cli.watching import show_or_watch, watch_option

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import DryRunRouting, GetStatsResponse, ListQueuesResponse, QueueInfo


_ROUTINGS_SHOWN = 20


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
    fila queue create orders --if-not-exists
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
@click.option("--if-not-exists", is_flag=True, help="A queue of this name, however it is set up, is as good")
@click.pass_obj
def create(
    session: Session, /, name: str, channels: tuple[str, ...], if_not_exists: bool, **flags: Any
) -> None:
    """Create a queue and its dead-letter queue NAME.dlq."""
    import grpc

    from fila.v1 import admin_pb2

    config, _ = config_from(flags)
    config.channels.extend(channels)
    request = admin_pb2.CreateQueueRequest(name=name, config=config)
    try:
        answer = session.admin.CreateQueue(request, timeout=session.timeout_s)
    except grpc.RpcError as error:
        if not if_not_exists or reason_of(error) != "QUEUE_EXISTS":
            raise
        session.show(admin_pb2.CreateQueueResponse(queue_id=name), f"queue {name} exists already")
        return
    told = f"queue {name} created"
    if answer.adopted_dlq:
        told += f"; {name}.dlq was there before and is its dead-letter queue now, with the messages it holds"
    session.show(answer, told)


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
@click.option("--comment", default="", help="Why; kept with the version")
@click.option(
    "--expect-version",
    type=Count(0, 2**64 - 1),
    default=0,
    help="Only if this is the version of the settings",
)
@click.pass_obj
def update(
    session: Session,
    /,
    queue: str,
    reset: tuple[str, ...],
    comment: str,
    expect_version: int,
    **flags: Any,
) -> None:
    """Change settings; those not named stay. --weight and --throttle-header replace their whole list."""
    from fila.v1 import admin_pb2

    config, paths = config_from(flags)
    if both := sorted(set(paths) & set(paths_to_reset(reset))):
        raise click.UsageError(
            f"--{name_of(both[0])} and --reset {name_of(both[0])} contradict each other; give one"
        )
    paths += paths_to_reset(reset)
    if not paths:
        raise click.UsageError("nothing to change: name a setting, such as --max-attempts 5")
    request = admin_pb2.UpdateQueueRequest(
        queue=queue, config=config, comment=comment, expected_version=expect_version
    )
    request.update_mask.paths.extend(paths)
    answer = session.admin.UpdateQueue(request, timeout=session.timeout_s)
    session.show(answer, facts(describe(answer.config)))


@queue.command(
    name="dry-run",
    examples="""
    fila queue dry-run orders --on-enqueue @route.lua
    fila queue dry-run orders --fairness-header customer --last 1000
    """,
)
@queue_argument
@setting_options
@click.option("--last", type=Count(1, 1_000), default=100, show_default=True, help="How many of the newest")
@click.pass_obj
def dry_run(session: Session, /, queue: str, last: int, **flags: Any) -> None:
    """Say how settings would route the newest messages and judge the newest dead letters; nothing is changed."""
    from fila.v1 import admin_pb2

    config, paths = config_from(flags)
    request = admin_pb2.DryRunPolicyRequest(queue=queue, config=config, last=last)
    request.update_mask.paths.extend(paths)
    answer = session.admin.DryRunPolicy(request, timeout=session.timeout_s)
    rows: list[tuple[Cell, ...]] = [
        (each.offset, _routing(each.before), _routing(each.after), each.error) for each in answer.messages
    ]
    parts = [table(("OFFSET", "NOW", "WOULD BE", "ERROR"), rows[:_ROUTINGS_SHOWN])] if rows else []
    if len(rows) > _ROUTINGS_SHOWN:
        parts.append(f"{len(rows) - _ROUTINGS_SHOWN} more are left out; -o json has all")
    judged: list[tuple[Cell, ...]] = [
        (each.offset, each.action or "-", f"{each.delay_ms} ms", each.error) for each in answer.dead_letters
    ]
    if judged:
        parts.append(table(("DEAD LETTER", "WOULD BE", "AFTER", "ERROR"), judged))
    changed = sum(each.before != each.after for each in answer.messages)
    parts.append(
        f"{changed} of {counted(len(rows), 'message')} would be routed otherwise; {answer.retained} are retained"
        + ("; the time for it was over before all were judged" if answer.cut else "")
    )
    session.show(answer, "\n\n".join(parts))


def _routing(routing: DryRunRouting) -> str:
    keys = f" [{', '.join(routing.throttle_keys)}]" if routing.throttle_keys else ""
    priority = f" priority {routing.priority}" if routing.HasField("priority") else ""
    return f"{routing.fairness_key} weight {routing.weight} cost {routing.cost:g}{priority}{keys}"


@queue.command(
    examples="""
    fila queue versions orders
    fila queue versions orders 3
    """
)
@queue_argument
@click.argument(
    "number", type=Count(1, 2**64 - 1), default=None, required=False, shell_complete=complete_version
)
@click.pass_obj
def versions(session: Session, queue: str, number: int | None) -> None:
    """List the versions of a queue's settings: who changed what, when, and why. With NUMBER, show its settings."""
    from fila.v1 import version_pb2

    if number is not None:
        one = version_pb2.GetQueueVersionRequest(queue=queue, number=number)
        told = session.admin.GetQueueVersion(one, timeout=session.timeout_s)
        session.show(told, facts(describe(told.config)))
        return
    request = version_pb2.ListQueueVersionsRequest(queue=queue)
    answer = session.admin.ListQueueVersions(request, timeout=session.timeout_s)
    rows = [
        (
            each.number,
            each.at.ToJsonString() if each.HasField("at") else "-",
            each.principal or each.peer or "-",
            ", ".join(each.changed) or "made",
            each.comment,
        )
        for each in answer.versions
    ]
    session.show(answer, table(("VERSION", "AT", "BY", "CHANGED", "COMMENT"), rows) if rows else "")


@queue.command(
    examples="""
    fila queue rollback orders 3
    fila queue rollback orders 3 --yes
    """
)
@queue_argument
@click.argument("number", type=Count(1, 2**64 - 1), shell_complete=complete_version)
@yes_option
@click.pass_obj
def rollback(session: Session, queue: str, number: int, *, yes: bool) -> None:
    """Put a queue's settings back to those of version NUMBER, as a new version, and which channels are paused. Channels
    stay as they are."""
    from fila.v1 import admin_pb2, version_pb2

    one = version_pb2.GetQueueVersionRequest(queue=queue, number=number)
    old = session.admin.GetQueueVersion(one, timeout=session.timeout_s)
    now = session.admin.GetQueue(admin_pb2.GetQueueRequest(queue=queue), timeout=session.timeout_s)
    paths = differing(old.config, now.config)
    if set(old.config.paused_channels) != set(now.config.paused_channels):
        paths.append("paused_channels")
    if not paths:
        raise click.ClickException(f"version {number} has the settings that {queue} has now")
    confirm(f"Put back {', '.join(paths)} of {queue} as in version {number}?", yes=yes)
    request = admin_pb2.UpdateQueueRequest(
        queue=queue,
        config=old.config,
        expected_version=now.version,
        comment=f"back to version {number}",
    )
    request.update_mask.paths.extend(paths)
    answer = session.admin.UpdateQueue(request, timeout=session.timeout_s)
    session.show(answer, facts([("version", answer.version), *describe(answer.config)]))


@queue.command(
    examples="""
    fila queue delete orders
    fila queue delete orders --yes
    """
)
@queue_argument
@click.option("--force", is_flag=True, help="Also while a published batch of a sink is on its way into it.")
@yes_option
@click.pass_obj
def delete(session: Session, queue: str, *, force: bool, yes: bool) -> None:
    """Delete a queue, its dead letters, and everything in them."""
    from fila.v1 import admin_pb2

    confirm(f"Delete queue {queue} with all its messages and dead letters?", yes=yes)
    request = admin_pb2.DeleteQueueRequest(queue=queue, force=force)
    answer = session.admin.DeleteQueue(request, timeout=session.timeout_s)
    session.show(answer, f"queue {queue} deleted")


@queue.command(
    name="list",
    examples="""
    fila queue list
    fila queue list --all
    fila queue list --watch 5s
    fila queue list -o json
    """,
)
@all_queues_option
@watch_option
@click.pass_obj
def list_(session: Session, watch_ms: int | None, *, is_all: bool) -> None:
    """List every queue; of dead-letter queues, those that hold a letter."""
    from fila.v1 import admin_pb2

    def look() -> tuple[ListQueuesResponse, str]:
        answer = session.admin.ListQueues(admin_pb2.ListQueuesRequest(), timeout=session.timeout_s)
        listed = [q for q in answer.queues if is_listed(q.name, q.depth + q.in_flight, is_all=is_all)]
        del answer.queues[:]
        answer.queues.extend(listed)
        # A tenant is told the numbers of its own key; how many consume is not told, and 0 would be wrong.
        rows = [
            (
                each.name,
                _depth(each),
                each.in_flight,
                age_text(each.oldest_age_ms) if each.oldest_age_ms else "-",
                "-" if answer.tenant else each.active_consumers,
            )
            for each in answer.queues
        ]
        headings = ("QUEUE", "DEPTH", "IN FLIGHT", "OLDEST", "CONSUMERS")
        return answer, table(headings, rows, ("OLDEST",), ("QUEUE",)) if rows else ""

    show_or_watch(session, watch_ms, look, empty="there are no queues; 'fila queue create NAME' makes one")


def _depth(queue: QueueInfo) -> Cell:
    """A message in a dead-letter queue waits for a person."""
    if queue.depth and queue.name.endswith(".dlq"):
        return Meant(str(queue.depth), Meaning.TROUBLE)
    return queue.depth


@queue.command(
    examples="""
    fila queue inspect orders
    fila queue inspect orders --channel audit --keys 10
    fila queue inspect orders --watch
    fila queue inspect orders --wide
    fila queue inspect orders --settings
    """
)
@queue_argument
@click.option(
    "--channel",
    default="",
    metavar="NAME",
    shell_complete=complete_channel,
    help="Only in this channel [default: distinct messages over all channels]",
)
@click.option(
    "--keys",
    "max_keys",
    type=Count(min=1, max=10_000),
    default=1000,
    metavar="N",
    show_default=True,
    help="Most keys and buckets to list",
)
@click.option("--wide", is_flag=True, help="More columns, and every counter")
@click.option("--settings", is_flag=True, help="The queue's settings instead, in the words of 'queue create'")
@watch_option
@click.pass_obj
def inspect(
    session: Session,
    queue: str,
    channel: str,
    max_keys: int,
    watch_ms: int | None,
    *,
    wide: bool,
    settings: bool,
) -> None:
    """Show a queue's depth, who waits in it, and what holds them back."""
    from fila.v1 import admin_pb2

    if settings:
        got = session.admin.GetQueue(admin_pb2.GetQueueRequest(queue=queue), timeout=session.timeout_s)
        told = describe(got.config)
        if got.HasField("pause"):
            told = [
                (name, f"yes, {paused_text(got.pause)}" if name == "paused" else text) for name, text in told
            ]
        session.show(got, facts(told))
        return

    def look() -> tuple[GetStatsResponse, str]:
        request = admin_pb2.GetStatsRequest(queue=queue, channel=channel, max_keys=max_keys)
        stats = session.admin.GetStats(request, timeout=session.timeout_s)
        return stats, inspection(queue, channel, stats, max_keys=max_keys, wide=wide)

    show_or_watch(session, watch_ms, look)


@queue.command(
    examples="""
    fila queue purge orders
    fila queue purge orders --key noisy --yes
    """
)
@queue_argument
@click.option(
    "--channel",
    default=None,
    metavar="NAME",
    shell_complete=complete_channel,
    help="Only in this channel [default: in all]",
)
@key_option("Only this fairness key's messages")
@yes_option
@click.pass_obj
def purge(session: Session, queue: str, channel: str | None, fairness_key: str | None, *, yes: bool) -> None:
    """Drop pending messages; leased ones stay with their holders."""
    from fila.v1 import admin_pb2

    confirm(f"Drop the pending messages of {queue}?", yes=yes)
    request = admin_pb2.PurgeQueueRequest(queue=queue, channel=channel, fairness_key=fairness_key)
    answer = wait_for(
        session.admin.PurgeQueue.future(request, timeout=session.timeout_s),
        "message",
        lambda: session.depth(queue, channel or ""),
    )
    session.show(answer, f"{counted(answer.purged, 'message')} dropped")


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
    "-n", "--count", type=Count(1, 1000), default=10, show_default=True, help="Most messages to show"
)
@click.option(
    "--after", type=Count(min=0), default=0, metavar="OFFSET", help="Only messages after this offset"
)
@key_option("Only this fairness key's messages")
@click.pass_obj
def peek(
    session: Session, queue: str, channel: str, count: int, after: int, fairness_key: str | None
) -> None:
    """Look at pending messages without leasing them. DUE says when a delayed one becomes ready.

    They are listed as they came, by offset. That is not the order in which they go: fila explain tells of that.
    """
    from fila.v1 import admin_pb2

    request = admin_pb2.PeekMessagesRequest(
        queue=queue, channel=channel, max_messages=count, after_offset=after, fairness_key=fairness_key or ""
    )
    answer = session.admin.PeekMessages(request, timeout=session.timeout_s)
    shown = peeked(list(answer.messages)) if answer.messages else ""
    session.show(answer, shown, empty=f"nothing to look at in {queue}: what is leased is not listed")


@queue.command(
    examples="""
    fila queue pause orders
    fila queue pause orders --reason "the provider is down until 14:00"
    """
)
@queue_argument
@reason_option
@click.pass_obj
def pause(session: Session, queue: str, reason: str) -> None:
    """Deliver nothing of QUEUE until it is resumed; enqueues and acks go on. Kept over a restart."""
    _set_paused(session, queue, reason, paused=True)


@queue.command(examples="fila queue resume orders")
@queue_argument
@click.pass_obj
def resume(session: Session, queue: str) -> None:
    """Deliver a paused queue's messages again."""
    _set_paused(session, queue, paused=False)


def _set_paused(session: Session, queue: str, reason: str = "", *, paused: bool) -> None:
    from fila.v1 import admin_pb2

    config = admin_pb2.QueueConfig(paused=paused)
    request = admin_pb2.UpdateQueueRequest(queue=queue, config=config, comment=reason)
    request.update_mask.paths.append("paused")
    answer = session.admin.UpdateQueue(request, timeout=session.timeout_s)
    session.show(answer, f"queue {queue} is paused" if paused else f"queue {queue} goes on")
