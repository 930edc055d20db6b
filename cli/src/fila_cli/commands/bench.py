"""`fila bench`: is this broker, on this machine, in the range I expect?

A quick look with one Python process as producer and consumer; `bench/run.py` of the source
tree is the tool for figures worth printing.
"""

from __future__ import annotations

import queue as queues
import struct
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from fila_cli.failures import BrokerError
from fila_cli.output import Cell, facts, show
from fila_cli.progress import Progress
from fila_cli.session import Command, Session, Stopped
from fila_cli.settings import durability_of
from fila_cli.values import SIZE, Count

if TYPE_CHECKING:
    from fila.v1.service_pb2 import ConsumeSessionRequest, EnqueueStreamRequest

_WINDOW_FRAMES = 8
_STAMP = struct.Struct("<q")
_SILENCE_MAX_S = 30


@dataclass(slots=True)
class _Run:
    """What the two halves of the test share; each field has one writer."""

    queue: str
    message_count: int
    payload_bytes: int
    batch: int
    keys: int
    acked: int = 0
    produced_s: float = 0.0
    consumed_s: float = 0.0
    delays_ns: list[int] = field(default_factory=list)
    failure: BaseException | None = None


@click.command(
    cls=Command,
    examples="""
    fila bench
    fila bench --messages 100000 --size 64 --batch 500
    fila bench --durability os -o json
    """,
)
@click.option(
    "--messages",
    type=Count(1, 10_000_000),
    default=50_000,
    show_default=True,
    help="How many to send through",
)
@click.option("--size", type=SIZE, default="1kb", show_default=True, help="Payload of each, at least 8 bytes")
@click.option("--batch", type=Count(1, 10_000), default=100, show_default=True, help="Messages in one frame")
@click.option("--keys", type=Count(1, 1_000_000), default=10, show_default=True, help="Fairness keys")
@click.option(
    "--durability",
    type=click.Choice(["broker", "fsync", "os"]),
    default="broker",
    show_default=True,
    help="When enqueues are answered",
)
@click.pass_obj
def bench(session: Session, messages: int, size: int, batch: int, keys: int, durability: str) -> None:
    """Send messages through a queue of its own, consume and ack them, then delete the queue."""
    from fila.v1 import admin_pb2

    if size < _STAMP.size:
        raise click.BadParameter(f"must be at least {_STAMP.size} bytes", param_hint="'--size'")
    run = _Run(f"bench-{uuid.uuid4().hex[:12]}", messages, size, batch, keys)
    config = admin_pb2.QueueConfig(fairness_key_header="key", durability=durability_of(durability))
    session.admin.CreateQueue(
        admin_pb2.CreateQueueRequest(name=run.queue, config=config), timeout=session.timeout_s
    )
    try:
        _measure(session, run)
    finally:
        session.admin.DeleteQueue(admin_pb2.DeleteQueueRequest(queue=run.queue), timeout=session.timeout_s)
    found = _found(run)
    show(session.format, dict(found), facts((name.replace("_", " "), value) for name, value in found))


def _measure(session: Session, run: _Run) -> None:
    halves = [
        threading.Thread(target=_guarded, args=(half, session, run), daemon=True)
        for half in (_consume, _produce)
    ]
    for thread in halves:
        thread.start()
    at_s = time.monotonic()
    with Progress("message", run.message_count) as progress:
        try:
            while any(thread.is_alive() for thread in halves) and run.failure is None:
                time.sleep(0.01)
                if run.acked != progress.done:
                    progress.add(run.acked - progress.done)
                    at_s = time.monotonic()
                if time.monotonic() - at_s > _SILENCE_MAX_S:
                    raise BrokerError(
                        f"nothing came through for {_SILENCE_MAX_S} s; 'fila top' shows what the broker does"
                    )
        except KeyboardInterrupt:
            raise Stopped(f"{progress.summary()} acked; queue {run.queue} is deleted again") from None
    if run.failure is not None:
        raise run.failure


def _guarded(half: object, session: Session, run: _Run) -> None:
    try:
        half(session, run)  # type: ignore[operator]
    except BaseException as error:  # noqa: BLE001 - it is raised again by the thread that waits
        run.failure = error


def _produce(session: Session, run: _Run) -> None:
    began = time.monotonic()
    window = threading.Semaphore(_WINDOW_FRAMES)
    for answer in session.service.EnqueueStream(_enqueue_frames(run, window)):
        window.release()
        if refused := [result.error.message for result in answer.results if result.error.code]:
            raise BrokerError(f"an enqueue was refused: {refused[0]}")
    run.produced_s = time.monotonic() - began


def _enqueue_frames(run: _Run, window: threading.Semaphore) -> Iterator[EnqueueStreamRequest]:
    from fila.v1 import service_pb2

    padding = bytes(run.payload_bytes - _STAMP.size)
    for first in range(0, run.message_count, run.batch):
        window.acquire()
        request = service_pb2.EnqueueStreamRequest(sequence=first + 1)
        request.batch.queue = run.queue
        payload = _STAMP.pack(time.monotonic_ns()) + padding
        for number in range(first, min(first + run.batch, run.message_count)):
            request.batch.messages.add(headers={"key": f"k{number % run.keys}"}, payload=payload)
        yield request


def _consume(session: Session, run: _Run) -> None:
    from fila.v1 import service_pb2

    requests: queues.SimpleQueue[ConsumeSessionRequest | None] = queues.SimpleQueue()
    opened = service_pb2.ConsumeSessionRequest(open={"queue": run.queue, "max_in_flight": 4096})
    requests.put(opened)
    began, acks, consumed = time.monotonic(), 0, 0
    count_by_ack: dict[int, int] = {}
    call = session.service.ConsumeSession(iter(requests.get, None))
    for frame in call:
        if frame.HasField("delivery"):
            now_ns = time.monotonic_ns()
            run.delays_ns += [
                now_ns - _STAMP.unpack_from(each.payload)[0] for each in frame.delivery.messages
            ]
            acks += 1
            ack = service_pb2.ConsumeSessionRequest()
            ack.ack.sequence = acks
            ack.ack.lease_ids.extend(each.metadata.lease_id for each in frame.delivery.messages)
            count_by_ack[acks] = len(frame.delivery.messages)
            consumed += count_by_ack[acks]
            requests.put(ack)
        elif frame.HasField("settled"):
            run.acked += count_by_ack.pop(frame.settled.sequence) - len(frame.settled.failures)
            if run.acked >= run.message_count:
                break
    run.consumed_s = time.monotonic() - began
    requests.put(None)
    call.cancel()


def _found(run: _Run) -> list[tuple[str, Cell]]:
    delays_ms = sorted(delay / 1e6 for delay in run.delays_ns)
    return [
        ("messages", run.message_count),
        ("payload_bytes", run.payload_bytes),
        ("enqueued_per_s", round(run.message_count / run.produced_s)),
        ("acked_per_s", round(run.message_count / run.consumed_s)),
        ("delay_p50_ms", round(delays_ms[len(delays_ms) // 2], 2)),
        ("delay_p99_ms", round(delays_ms[len(delays_ms) * 99 // 100], 2)),
    ]
