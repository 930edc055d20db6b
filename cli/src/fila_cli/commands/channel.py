"""`fila channel`: independent views of one queue."""

from __future__ import annotations

from datetime import datetime
from time import sleep
from typing import TYPE_CHECKING, Any

import click

from fila_cli.arguments import channel_argument, key_option, queue_argument, reason_option, yes_option
from fila_cli.explanation import paused_text
from fila_cli.failures import BrokerError, reason_of
from fila_cli.output import counted, printable, table
from fila_cli.session import Group, Session, confirm
from fila_cli.values import DURATION, POSITION
from fila_cli.waiting import follow_replay, wait_for

if TYPE_CHECKING:
    from google.protobuf.message import Message

_AGAIN_AFTER_S = 0.02
_AGAIN_AT_MOST_AFTER_S = 0.5
_AGAIN_FOR_S = 5

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
    """Independent views of one queue: add, move, pause, delete."""


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
    told = table(("CHANNEL", "DEPTH", "IN FLIGHT", "CONSUMERS", "TAIL", "HEAD"), rows)
    for each in answer.channels:
        if each.HasField("pause"):
            told += f"\n{each.name}: paused {printable(paused_text(each.pause))}"
        elif each.paused:
            told += f"\n{each.name}: paused with its queue"
    session.show(answer, told)


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
    """Move a channel within what is retained; leases it holds end. The broker brings back what is delivered again,
    also if nobody waits; a terminal is shown how far that has come."""
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
    fila channel pause orders audit
    fila channel pause orders audit --reason "its table is being rebuilt"
    """
)
@queue_argument
@channel_argument
@reason_option
@click.pass_obj
def pause(session: Session, queue: str, channel: str, reason: str) -> None:
    """Deliver nothing in this channel until it is resumed; others go on. Kept over a restart."""
    _check_there(session, queue, channel)
    answer = set_channel_paused(session, queue, channel, reason, paused=True)
    session.show(answer, f"channel {channel} of {queue} is paused")


@channel.command(examples="fila channel resume orders audit")
@queue_argument
@channel_argument
@click.pass_obj
def resume(session: Session, queue: str, channel: str) -> None:
    """Deliver a paused channel's messages again."""
    _check_there(session, queue, channel)
    answer = set_channel_paused(session, queue, channel, paused=False)
    session.show(answer, f"channel {channel} of {queue} goes on")


def _check_there(session: Session, queue: str, channel: str) -> None:
    """Refuse a name that is neither a channel's nor paused: mostly it is misspelled. A file for `fila apply` may name
    channels to come."""
    from fila.v1 import admin_pb2

    listed = session.admin.ListChannels(
        admin_pb2.ListChannelsRequest(queue=queue), timeout=session.timeout_s
    ).channels
    if any(each.name == channel for each in listed):
        return
    told = session.admin.GetQueue(admin_pb2.GetQueueRequest(queue=queue), timeout=session.timeout_s)
    if channel not in told.config.paused_channels:
        raise BrokerError(
            f'queue "{queue}" has no channel "{channel}"; \'fila channel list {queue}\' shows its channels'
        )


def set_channel_paused(
    session: Session, queue: str, channel: str, reason: str = "", *, paused: bool
) -> Message:
    """Change the queue's list of paused channels as it is now; what somebody else changes meanwhile stays."""
    from random import SystemRandom

    import grpc

    from fila.v1 import admin_pb2

    answer: Any
    waited_s, wait_s = 0.0, _AGAIN_AFTER_S
    while True:
        answer = session.admin.GetQueue(admin_pb2.GetQueueRequest(queue=queue), timeout=session.timeout_s)
        before = answer.config.paused_channels
        if (channel in before) == paused and not reason:
            break
        names = [name for name in before if name != channel]
        if paused:
            names.append(channel)  # last, so that it gets another reason where it was paused already
        request = admin_pb2.UpdateQueueRequest(
            queue=queue,
            config=admin_pb2.QueueConfig(paused_channels=names),
            comment=reason,
            expected_version=answer.version,
        )
        request.update_mask.paths.append("paused_channels")
        try:
            answer = session.admin.UpdateQueue(request, timeout=session.timeout_s)
            break
        except grpc.RpcError as error:
            if reason_of(error) != "VERSION_STALE":
                raise
            if waited_s >= _AGAIN_FOR_S:
                raise BrokerError(
                    f'others changed queue "{queue}" at each try for {_AGAIN_FOR_S} s, and channel {channel} '
                    "stays as it was; try again"
                ) from None
        # Those who were refused at the same moment shall not come back at the same moment.
        spread_s = wait_s * SystemRandom().uniform(0.5, 1.5)
        sleep(spread_s)
        waited_s += spread_s
        wait_s = min(2 * wait_s, _AGAIN_AT_MOST_AFTER_S)
    found: Message = answer
    return found


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
