"""`fila ack`, `nack` and `extend`: settle by hand what a consumer, or `fila consume --no-ack`, holds. And
`fila cancel`: take messages back, wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from fila_cli.arguments import channel_option, queue_argument
from fila_cli.failures import BrokerError, in_words_of_flags
from fila_cli.output import counted
from fila_cli.session import Command, Session
from fila_cli.values import DURATION, SOME_TIME, Count

if TYPE_CHECKING:
    from fila.v1.service_pb2 import SettleBatchResponse, SettleItem

_ids_argument = click.argument("message_ids", metavar="ID...", nargs=-1, required=True)
_lease_option = click.option(
    "--lease",
    "lease_id",
    type=Count(min=1),
    metavar="N",
    help="Only if it is still held under this lease; for one ID [default: under any]",
)


@click.command(
    cls=Command,
    examples="""
    fila ack orders 0198c2f0-5d3e-7c11-9d5a-2f6f3f7a0001
    fila ack orders 0198c2f0-5d3e-7c11-9d5a-2f6f3f7a0001 --lease 4711
    """,
)
@queue_argument
@_ids_argument
@_lease_option
@channel_option
@click.pass_obj
def ack(
    session: Session, queue: str, message_ids: tuple[str, ...], lease_id: int | None, channel: str
) -> None:
    """Settle leased messages of QUEUE as done."""
    from fila.v1 import service_pb2

    items = _items(message_ids, lease_id)
    request = service_pb2.AckBatchRequest(queue=queue, channel=channel, items=items)
    _settled(session, message_ids, session.service.AckBatch(request, timeout=session.timeout_s), "acked")


@click.command(
    cls=Command,
    examples="""
    fila nack orders 0198c2f0-5d3e-7c11-9d5a-2f6f3f7a0001 --error 'card declined'
    fila nack orders 0198c2f0-5d3e-7c11-9d5a-2f6f3f7a0001 --delay 10m
    fila nack orders 0198c2f0-5d3e-7c11-9d5a-2f6f3f7a0001 --dead-letter
    """,
)
@queue_argument
@_ids_argument
@_lease_option
@channel_option
@click.option("--error", default="", metavar="TEXT", help="Why; kept with a dead letter")
@click.option(
    "--delay", "delay_ms", type=DURATION, help="When it comes back [default: as the queue's policy says]"
)
@click.option("--dead-letter", is_flag=True, help="Make it a dead letter now")
@click.option("--release", is_flag=True, help="Back to its place, without counting an attempt")
@click.pass_obj
def nack(
    session: Session,
    queue: str,
    message_ids: tuple[str, ...],
    lease_id: int | None,
    channel: str,
    error: str,
    delay_ms: int | None,
    *,
    dead_letter: bool,
    release: bool,
) -> None:
    """Settle leased messages of QUEUE as failed."""
    from fila.v1 import service_pb2

    if dead_letter and release:
        raise click.UsageError("--dead-letter and --release contradict each other; give one")
    items = _items(message_ids, lease_id)
    for item in items:
        item.error = error
        item.dead_letter = dead_letter
        item.release = release
        if delay_ms is not None:
            item.delay_ms = delay_ms
    request = service_pb2.NackBatchRequest(queue=queue, channel=channel, items=items)
    _settled(session, message_ids, session.service.NackBatch(request, timeout=session.timeout_s), "nacked")


@click.command(cls=Command, examples="fila extend orders 0198c2f0-5d3e-7c11-9d5a-2f6f3f7a0001 --by 5m")
@queue_argument
@click.argument("message_id", metavar="ID")
@click.option("--by", "extend_ms", type=SOME_TIME, required=True, help="Held this long from now, at most 12h")
@_lease_option
@channel_option
@click.pass_obj
def extend(
    session: Session, queue: str, message_id: str, extend_ms: int, lease_id: int | None, channel: str
) -> None:
    """Hold a leased message of QUEUE longer."""
    from fila.v1 import service_pb2

    request = service_pb2.ExtendLeaseRequest(
        queue=queue, channel=channel, message_id=message_id, lease_id=lease_id or 0, extend_ms=extend_ms
    )
    answer = session.service.ExtendLease(request, timeout=session.timeout_s)
    session.show(answer, f"held until {answer.lease_expires_at.ToJsonString()}")


@click.command(
    cls=Command,
    examples="""
    fila cancel reminders 0198c2f0-5d3e-7c11-9d5a-2f6f3f7a0001
    fila cancel reminders --dedup-key trial-4711 --dedup-key trial-4712
    """,
)
@queue_argument
@click.argument("message_ids", metavar="[ID]...", nargs=-1)
@click.option(
    "--dedup-key", "dedup_keys", multiple=True, metavar="KEY", help="The key it was enqueued with, not ID"
)
@channel_option
@click.pass_obj
def cancel(
    session: Session, queue: str, message_ids: tuple[str, ...], dedup_keys: tuple[str, ...], channel: str
) -> None:
    """Take messages of QUEUE back: they wait, are delayed, or are leased, whose consumer is told.

    What a consumer has done with a message by then is done. Other channels keep it.
    """
    from fila.v1 import service_pb2

    if not message_ids and not dedup_keys:
        raise click.UsageError("name the messages to take back, by ID or by --dedup-key")
    request = service_pb2.CancelMessagesRequest(
        queue=queue, channel=channel, message_ids=message_ids, dedup_keys=dedup_keys
    )
    answer = session.service.CancelMessages(request, timeout=session.timeout_s)
    outcomes = list(answer.outcomes)
    revoked = outcomes.count(service_pb2.CancelMessagesResponse.OUTCOME_REVOKED)
    missing = outcomes.count(service_pb2.CancelMessagesResponse.OUTCOME_NOT_FOUND)
    gone = len(outcomes) - missing
    of_these = f", {revoked} of these from a consumer" if revoked else ""
    session.show(answer, f"{counted(gone, 'message')} taken back{of_these}" if gone else "")
    if missing:
        names = [*message_ids, *dedup_keys]
        first = names[outcomes.index(service_pb2.CancelMessagesResponse.OUTCOME_NOT_FOUND)]
        raise BrokerError(
            f"{missing} of {len(outcomes)} not found, the first: {first}; it is done, dead, or was never in this "
            "channel, and a dedup key is known for the queue's dedup window"
        )


def _items(message_ids: Sequence[str], lease_id: int | None) -> list[SettleItem]:
    from fila.v1 import service_pb2

    if lease_id and len(message_ids) > 1:
        raise click.UsageError("--lease is one message's; give one ID")
    return [service_pb2.SettleItem(message_id=each, lease_id=lease_id or 0) for each in message_ids]


def _settled(session: Session, message_ids: Sequence[str], answer: SettleBatchResponse, done: str) -> None:
    failed = [
        (message_id, status)
        for message_id, status in zip(message_ids, answer.results, strict=False)
        if status.code
    ]
    settled = len(message_ids) - len(failed)
    session.show(answer, f"{counted(settled, 'message')} {done}" if settled else "")
    if failed:
        message_id, status = failed[0]
        why = in_words_of_flags(status.message)
        if len(message_ids) == 1:
            raise BrokerError(why)
        raise BrokerError(f"{len(failed)} of {len(message_ids)} refused, the first: {message_id}: {why}")
