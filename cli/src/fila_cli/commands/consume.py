"""`fila consume`: prints messages and acks them.

It pulls small batches and settles each before the next, so nothing stays leased to a
terminal that was closed: at most one batch comes back after its visibility timeout.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from fila_cli.failures import BrokerError
from fila_cli.output import Format, show_streamed, to_dict
from fila_cli.session import Command, Session, channel_option, queue_argument
from fila_cli.values import DURATION

if TYPE_CHECKING:
    from fila.v1.messages_pb2 import Message
    from fila.v1.service_pb2 import LeaseResponse

_BATCH_MESSAGES_MAX = 100
_WAIT_MS = 1_000


@click.command(
    cls=Command,
    examples="""
    fila consume orders
    fila consume orders --count 10 --verbose
    fila consume orders --channel audit -o json | jq .payload
    fila consume orders --wait 5s
    fila consume orders --no-ack --count 1
    """,
)
@queue_argument
@channel_option
@click.option(
    "-n", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after so many [default: go on]"
)
@click.option(
    "--wait", "wait_ms", type=DURATION, help="Stop when nothing came for this long [default: go on]"
)
@click.option(
    "--ack/--no-ack",
    default=True,
    help="--no-ack leaves them leased: they come again after the visibility timeout",
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Id, fairness key, attempts and headers before each payload"
)
@click.pass_obj
def consume(
    session: Session,
    queue: str,
    channel: str,
    count: int | None,
    wait_ms: int | None,
    *,
    ack: bool,
    verbose: bool,
) -> None:
    """Print the payloads of QUEUE as they become ready, acking each batch once it is printed.

    To look without taking, use 'fila queue peek'.
    """
    printed = 0
    idle_since = time.monotonic()
    while count is None or printed < count:
        wanted = _BATCH_MESSAGES_MAX if count is None else min(_BATCH_MESSAGES_MAX, count - printed)
        left_ms = _WAIT_MS if wait_ms is None else wait_ms - int((time.monotonic() - idle_since) * 1000)
        leased = _lease(session, queue, channel, wanted, max(0, min(_WAIT_MS, left_ms)))
        for message in leased.messages:
            _print(session.format, message, verbose=verbose)
        printed += len(leased.messages)
        if leased.messages:
            if ack:
                _ack(session, queue, channel, list(leased.messages))
            idle_since = time.monotonic()
        elif wait_ms is not None and left_ms <= _WAIT_MS:
            return


def _lease(session: Session, queue: str, channel: str, wanted: int, wait_ms: int) -> LeaseResponse:
    from fila.v1 import service_pb2

    request = service_pb2.LeaseRequest(queue=queue, channel=channel, max_messages=wanted, wait_ms=wait_ms)
    return session.service.Lease(request, timeout=session.timeout_s + wait_ms / 1000)


def _ack(session: Session, queue: str, channel: str, messages: list[Message]) -> None:
    from fila.v1 import service_pb2

    items = [service_pb2.SettleItem(message_id=each.id, lease_id=each.metadata.lease_id) for each in messages]
    request = service_pb2.AckBatchRequest(queue=queue, channel=channel, items=items)
    answer = session.service.AckBatch(request, timeout=session.timeout_s)
    failed = [(item, status) for item, status in zip(items, answer.results, strict=False) if status.code]
    if failed:
        item, status = failed[0]
        raise BrokerError(
            f"{len(failed)} acks were refused, the first for {item.message_id}: {status.message}; "
            "raise the queue's --visibility-timeout if printing takes that long"
        )


def _print(format_: Format, message: Message, *, verbose: bool) -> None:
    if format_ is not Format.TABLE:
        show_streamed(format_, to_dict(message), "")
        return
    if verbose:
        about = message.metadata
        print(
            f"{message.id}  offset={about.offset} key={about.fairness_key} attempts={about.attempt_count}",
            end="",
        )
        print("".join(f" {name}={message.headers[name]}" for name in sorted(message.headers)))
        sys.stdout.flush()
    # Bytes as they are: what was stored is what the next program in the pipe reads.
    sys.stdout.buffer.write(message.payload + b"\n")
    sys.stdout.buffer.flush()
