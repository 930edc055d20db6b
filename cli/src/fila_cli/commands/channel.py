"""`fila channel`: independent views of one queue."""

from __future__ import annotations

from datetime import datetime

import click

from fila_cli.arguments import channel_argument, key_option, queue_argument, yes_option
from fila_cli.output import counted, table
from fila_cli.session import Group, Session, confirm
from fila_cli.values import DURATION, POSITION
from fila_cli.waiting import follow_replay, wait_for

_new_argument = click.argument("channel")


@click.group(
    cls=Group,
    examples="""
    fila channel create orders audit --from oldest
    fila channel list orders
    fila channel seek orders audit --to -1h
    """,
)
def channel() -> None:
    """Independent views of one queue: add, move, delete."""


@channel.command(
    examples="""
    fila channel create orders audit
    fila channel create orders audit --from oldest
    fila channel create orders replay --from 1500
    fila channel create orders today --from 2026-11-20T00:00:00Z
    """
)
@queue_argument
@_new_argument
@click.option(
    "--from",
    "start",
    type=POSITION,
    default="head",
    metavar="head|oldest|OFFSET|TIME",
    show_default=True,
    help="The first message it shall see",
)
@click.option(
    "--expires-after-idle",
    "idle_ms",
    type=DURATION,
    default=0,
    help="Delete it after this long without a consumer, at least 1s [default: never]",
)
@click.pass_obj
def create(session: Session, queue: str, channel: str, start: int | datetime | str, idle_ms: int) -> None:
    """Add a channel; it sees every message from its start on."""
    from fila.v1 import admin_pb2

    request = admin_pb2.CreateChannelRequest(queue=queue, channel=channel, expires_after_idle_ms=idle_ms)
    if isinstance(start, datetime):
        request.time.FromDatetime(start)
    elif isinstance(start, int):
        request.offset = start
    elif start == "oldest":
        request.oldest = True
    else:
        request.head = True
    answer = session.admin.CreateChannel(request, timeout=session.timeout_s)
    session.show(answer, f"channel {channel} of {queue} created, from offset {answer.start_offset} on")
    follow_replay(session, queue, channel, answer.start_offset)


@channel.command(
    examples="""
    fila channel delete orders audit
    fila channel delete orders audit --yes
    """
)
@queue_argument
@channel_argument
@yes_option
@click.pass_obj
def delete(session: Session, queue: str, channel: str, *, yes: bool) -> None:
    """Delete a channel, its leases and what it had pending."""
    from fila.v1 import admin_pb2

    confirm(f"Delete channel {channel} of {queue}?", yes=yes)
    request = admin_pb2.DeleteChannelRequest(queue=queue, channel=channel)
    session.show(
        session.admin.DeleteChannel(request, timeout=session.timeout_s),
        f"channel {channel} of {queue} deleted",
    )


@channel.command(
    name="list",
    examples="""
    fila channel list orders
    fila channel list orders -o yaml
    """,
)
@queue_argument
@click.pass_obj
def list_(session: Session, queue: str) -> None:
    """List a queue's channels and how far each has come."""
    from fila.v1 import admin_pb2

    answer = session.admin.ListChannels(admin_pb2.ListChannelsRequest(queue=queue), timeout=session.timeout_s)
    rows = [
        (each.name, each.depth, each.in_flight, each.consumers, each.tail_offset, each.head_offset)
        for each in answer.channels
    ]
    session.show(answer, table(("CHANNEL", "DEPTH", "IN FLIGHT", "CONSUMERS", "TAIL", "HEAD"), rows))


@channel.command(
    examples="""
    fila channel seek orders audit --to 1500
    fila channel seek orders audit --to 2026-11-20T14:00:00Z
    fila channel seek orders default --to -1h
    fila channel seek orders default --to -1h --dry-run
    """
)
@queue_argument
@channel_argument
@click.option(
    "--to", "target", type=POSITION, required=True, help="Deliver again from this offset or moment on"
)
@click.option("--dry-run", is_flag=True, help="Only say what it would do")
@click.pass_obj
def seek(session: Session, queue: str, channel: str, target: int | datetime | str, *, dry_run: bool) -> None:
    """Move a channel within what is retained; leases it holds end. What it delivers again comes back in the broker,
    whoever waits for it; a terminal is shown how far that has come."""
    from fila.v1 import admin_pb2

    request = admin_pb2.SeekChannelRequest(queue=queue, channel=channel, validate_only=dry_run)
    if isinstance(target, datetime):
        request.time.FromDatetime(target)
    else:
        # Offsets beyond the log are brought within it by the broker: 1 is before the oldest, the maximum is the head.
        request.offset = {"oldest": 1, "head": 2**64 - 1}[target] if isinstance(target, str) else target
    answer = session.admin.SeekChannel(request, timeout=session.timeout_s)
    if dry_run:
        would = (
            f"channel {channel} of {queue} would be at offset {answer.offset}: "
            f"{counted(answer.replayed, 'message')} again, {counted(answer.skipped, 'message')} skipped, "
            f"{counted(answer.leases_revoked, 'lease')} taken back"
        )
        session.show(answer, would)
        return
    session.show(answer, f"channel {channel} of {queue} is at offset {answer.offset}")
    follow_replay(session, queue, channel, answer.offset)


@channel.command(
    examples="""
    fila channel purge orders audit
    fila channel purge orders audit --key noisy --yes
    """
)
@queue_argument
@channel_argument
@key_option("Only this fairness key's messages")
@yes_option
@click.pass_obj
def purge(session: Session, queue: str, channel: str, fairness_key: str | None, *, yes: bool) -> None:
    """Drop what is pending in one channel; other channels keep theirs."""
    from fila.v1 import admin_pb2

    confirm(f"Drop the pending messages of channel {channel} of {queue}?", yes=yes)
    request = admin_pb2.PurgeChannelRequest(queue=queue, channel=channel, fairness_key=fairness_key)
    answer = wait_for(
        session.admin.PurgeChannel.future(request, timeout=session.timeout_s),
        "message",
        lambda: session.depth(queue, channel),
    )
    session.show(answer, f"{counted(answer.purged, 'message')} dropped")
