"""`fila enqueue`: one message from an argument or stdin, or one a line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO

import click

from fila_cli.arguments import check_key, queue_argument
from fila_cli.failures import in_words_of_flags
from fila_cli.moments import shown
from fila_cli.output import Format, as_json, as_yaml, counted, printable
from fila_cli.progress import Progress
from fila_cli.session import Command, Session, Stopped
from fila_cli.values import DURATION, MOMENT_AHEAD, PAIR, PAYLOAD

if TYPE_CHECKING:
    from fila.v1.service_pb2 import EnqueueOptions

# Within the broker's bounds of 10,000 messages and 16 MiB a batch, and few enough to answer soon.
_BATCH_MESSAGES_MAX = 1_000
_BATCH_BYTES_MAX = 4 * 2**20


@click.command(
    cls=Command,
    examples="""
    fila enqueue orders 'hello' --header tenant=acme
    cat order.json | fila enqueue orders --header tenant=acme --header region=eu
    fila enqueue orders @order.json --header tenant=acme
    fila enqueue orders --lines --header tenant=globex < orders.jsonl
    fila enqueue reminders 'wake up' --delay 10m --ttl 1h
    fila enqueue reminders 'wake up' --at 'tomorrow 07:00'
    fila enqueue orders 'once' --dedup-key order-4711
    fila enqueue search 'reindex' --dedup-key user-17 --replace --delay 10s --max-wait 1m
    """,
)
@queue_argument
@click.argument("payload", type=PAYLOAD, metavar="[TEXT|@FILE|-]", required=False)
@click.option("-H", "--header", "headers", type=PAIR, multiple=True, help="A header; repeat for more")
@click.option("--lines", is_flag=True, help="Each line of stdin is one message, its line end left off")
@click.option("--delay", "delay_ms", type=DURATION, help="Not ready before this long from now")
@click.option(
    "--at",
    "deliver_at",
    type=MOMENT_AHEAD,
    metavar="TIME",
    help="Not ready before this moment: 14:00, 'tomorrow 14:00' or '2026-11-20 14:00' by this machine's clock, "
    "'14:00 Europe/Berlin' by that zone's, ...Z in UTC, or +10m",
)
@click.option("--ttl", "ttl_ms", type=DURATION, help="Dropped when nobody has leased it by then")
@click.option(
    "--dedup-key", default="", metavar="KEY", help="A second message with this key answers the first one's id"
)
@click.option(
    "--replace",
    is_flag=True,
    help="An earlier message with this --dedup-key gives way, if it is not delivered yet",
)
@click.option(
    "--max-wait",
    "max_wait_ms",
    type=DURATION,
    help="With --replace: the delay ends so long after the first at the latest",
)
@click.option(
    "--key",
    "fairness_key",
    default=None,
    metavar="KEY",
    callback=check_key,
    help="Its fairness key, where the queue lets producers say",
)
@click.option("--weight", type=click.IntRange(1, 1000), help="The weight of that key, in the same way")
@click.option("--cost", type=click.FloatRange(0.001, 1e6), help="What a delivery costs it, in the same way")
@click.option(
    "--priority",
    type=click.IntRange(0, 3),
    help="Among the messages of its fairness key, where 3 goes first and 1 is usual",
)
@click.pass_obj
def enqueue(
    session: Session,
    queue: str,
    payload: bytes | None,
    headers: tuple[tuple[str, str], ...],
    delay_ms: int | None,
    deliver_at: datetime | None,
    ttl_ms: int | None,
    dedup_key: str,
    max_wait_ms: int | None,
    fairness_key: str | None,
    weight: int | None,
    cost: float | None,
    priority: int | None,
    *,
    lines: bool,
    replace: bool,
) -> int:
    """Put TEXT, or the content of FILE, into QUEUE; without either, or with -, read stdin."""
    if lines and payload is not None:
        raise click.UsageError("--lines reads stdin; leave out TEXT or @FILE")
    if lines and dedup_key:
        raise click.UsageError("--dedup-key with --lines would store one line and drop the rest")
    if replace and not dedup_key:
        raise click.UsageError("--replace needs --dedup-key: it names the message that gives way")
    if max_wait_ms is not None and not replace:
        raise click.UsageError(
            "--max-wait goes with --replace: a delay that does not begin anew ends when it says"
        )
    if delay_ms is not None and deliver_at is not None:
        raise click.UsageError("--delay and --at say the same thing; give one")
    if len(dict(headers)) < len(headers):
        raise click.UsageError("a header was given twice; a message has one value for each")
    options = _options(delay_ms, deliver_at, ttl_ms, dedup_key)
    if replace and options is not None:
        options.on_duplicate = options.ON_DUPLICATE_REPLACE
        options.max_wait_ms = max_wait_ms or 0
    if fairness_key or weight or cost is not None or priority is not None:
        from fila.v1.service_pb2 import EnqueueOptions as Options

        options = options or Options()
        options.MergeFrom(
            Options(fairness_key=fairness_key, weight=weight or 0, cost=cost or 0, priority=priority)
        )
    if lines:
        return _enqueue_lines(session, queue, dict(headers), options)

    from fila.v1 import service_pb2

    content = sys.stdin.buffer.read() if payload is None else payload
    request = service_pb2.EnqueueRequest(queue=queue, headers=dict(headers), payload=content, options=options)
    answer = session.service.Enqueue(request, timeout=session.timeout_s)
    # Offsets begin at 1 and count everybody's messages, so a tenant's key is told none.
    place = f" at offset {answer.offset}" if answer.offset else ""
    due = f", due {shown(deliver_at)}" if deliver_at is not None else ""
    session.show(answer, f"{answer.message_id}{place}{due}")
    return 0


def _options(
    delay_ms: int | None, deliver_at: datetime | None, ttl_ms: int | None, dedup_key: str
) -> EnqueueOptions | None:
    from fila.v1 import service_pb2

    if delay_ms is None and deliver_at is None and ttl_ms is None and not dedup_key:
        return None
    options = service_pb2.EnqueueOptions(delay_ms=delay_ms or 0, ttl_ms=ttl_ms, dedup_key=dedup_key)
    if deliver_at is not None:
        options.deliver_at.FromDatetime(deliver_at)
    return options


def _enqueue_lines(
    session: Session, queue: str, headers: dict[str, str], options: EnqueueOptions | None
) -> int:
    import grpc

    from fila.v1 import service_pb2

    stored, refused, under_way, first_refusal = 0, 0, 0, ""
    lowest, highest = 2**64, 0
    results: list[dict[str, object]] = []  # for programs only: there may be millions
    with Progress("message") as progress:
        try:
            for batch in _batches(sys.stdin.buffer):
                messages = [
                    service_pb2.EnqueueMessage(headers=headers, payload=line, options=options)
                    for line in batch
                ]
                request = service_pb2.EnqueueBatchRequest(queue=queue, messages=messages)
                under_way = len(batch)
                answer = session.service.EnqueueBatch(request, timeout=session.timeout_s)
                for number, result in enumerate(answer.results, start=stored + refused + 1):
                    if result.error.code:
                        refused += 1
                        why = in_words_of_flags(result.error.message)
                        first_refusal = first_refusal or f"line {number}: {printable(why)}"
                    else:
                        stored += 1
                        lowest, highest = min(lowest, result.offset), max(highest, result.offset)
                        if session.format is not Format.TABLE:
                            results.append({"message_id": result.message_id, "offset": result.offset})
                under_way = 0
                progress.add(stored - progress.done)
        except (KeyboardInterrupt, grpc.RpcError) as error:
            perhaps = f"; {under_way} more were on their way and may be, too" if under_way else ""
            so_far = f"{counted(stored, 'message')} enqueued{perhaps}"
            if isinstance(error, KeyboardInterrupt):
                raise Stopped(so_far) from None
            if stored:
                print(f"{so_far}, then:", file=sys.stderr)
            raise
    span = f", offsets {lowest} to {highest}" if stored > 1 else f", offset {lowest}" if stored else ""
    answered = {"enqueued": stored, "refused": refused, "messages": results}
    if session.format is Format.TABLE:
        print(f"{counted(stored, 'message')} enqueued{span}")
    else:
        print(as_json(answered) if session.format is Format.JSON else as_yaml(answered))
    if refused:
        were = "line was" if refused == 1 else "lines were"
        print(f"fila: {refused} {were} refused, the first: {first_refusal}", file=sys.stderr)
    return 1 if refused else 0


def _batches(stream: BinaryIO) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for line in stream:
        payload = line.removesuffix(b"\n").removesuffix(b"\r")
        if batch and (len(batch) == _BATCH_MESSAGES_MAX or size + len(payload) > _BATCH_BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(payload)
        size += len(payload)
    if batch:
        yield batch
