"""Processes that call as ordinary clients do: one unary Enqueue at a time, timed one by one."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import uvloop

from fila_bench import frames, scanner
from fila_bench.load import LoadFailed
from fila_bench.plan import PROCESSES

_STAMP = struct.Struct("<q")
_DRAIN_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Callers:
    """So many tasks of one process, each enqueueing as soon as it was answered, or all at a fixed pace."""

    address: str
    queue: str
    callers: int = 1
    rate_per_s: float = 0.0
    """Calls a second altogether, started on time whether or not earlier ones were answered; 0 = closed loop."""

    payload_bytes: int = 1024
    headers: dict[str, str] = field(default_factory=lambda: {"tenant": "k"})
    warm_up_s: float = 1.0
    seconds: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A session that notes how long each stamped payload was under way, and acks it."""

    address: str
    queue: str
    warm_up_s: float = 1.0
    seconds: float = 5.0


def in_process(target: Callable[..., None], plan: object) -> Any:
    """Start `target(plan, pipe)` in a fresh process; the returned function waits for its answer."""
    ours, theirs = PROCESSES.Pipe()
    process = PROCESSES.Process(target=target, args=(plan, theirs), daemon=True)
    process.start()
    theirs.close()

    def answer() -> Any:
        try:
            return ours.recv()
        except EOFError:
            raise LoadFailed(
                f"{target.__name__} ended without an answer; its own error is on stderr"
            ) from None
        finally:
            process.join(30)

    return answer


def call(plan: Callers, pipe: Any) -> None:
    """Process: send back [(started_ns, took_ns), ...] of every call after the warm-up."""
    pipe.send(uvloop.run(_call(plan)))


async def _call(plan: Callers) -> list[tuple[int, int]]:
    async with grpc.aio.insecure_channel(plan.address) as channel:
        await channel.channel_ready()
        enqueue: Any = channel.unary_unary(frames.ENQUEUE)
        padding = bytes(plan.payload_bytes - _STAMP.size)
        calls: list[tuple[int, int]] = []
        measured_from_ns = time.monotonic_ns() + int(plan.warm_up_s * 1e9)
        until_ns = measured_from_ns + int(plan.seconds * 1e9)

        async def one() -> None:
            began = time.monotonic_ns()
            payload = _STAMP.pack(began) + padding
            await enqueue(frames.enqueue_message(plan.headers, payload, queue=plan.queue))
            if began >= measured_from_ns:
                calls.append((began, time.monotonic_ns() - began))

        async def loop() -> None:
            while time.monotonic_ns() < until_ns:
                await one()

        if plan.rate_per_s:
            await _paced(one, plan.rate_per_s, until_ns)
        else:
            await asyncio.gather(*(loop() for _ in range(plan.callers)))
        return calls


async def _paced(one: Callable[[], Any], rate_per_s: float, until_ns: int) -> None:
    """Start calls on a grid in time, so that a slow answer does not make the next call wait."""
    running: set[asyncio.Task[None]] = set()
    due_ns = time.monotonic_ns()
    while due_ns < until_ns:
        await asyncio.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
        task = asyncio.ensure_future(one())
        running.add(task)
        task.add_done_callback(running.discard)
        due_ns += int(1e9 / rate_per_s)
    await asyncio.gather(*running)


def listen(plan: Listener, pipe: Any) -> None:
    """Process: send back the delays in ns of every message stamped after the warm-up."""
    pipe.send(uvloop.run(_listen(plan)))


async def _listen(plan: Listener) -> list[int]:
    scan = scanner.load()
    delays: list[int] = []
    async with grpc.aio.insecure_channel(plan.address) as channel:
        session: Any = channel.stream_stream(frames.CONSUME_SESSION)()
        await session.write(frames.session_open(plan.queue, max_in_flight=256))
        acks = 0
        measured_from_ns = time.monotonic_ns() + int(plan.warm_up_s * 1e9)
        try:
            async with asyncio.timeout(plan.warm_up_s + plan.seconds + _DRAIN_S):
                while (frame := await session.read()) is not grpc.aio.EOF:
                    now_ns = time.monotonic_ns()
                    sent_ns: list[int] = []
                    count, packed, _ = scan.delivery(frame, sent_ns)
                    if count:
                        acks += 1
                        await session.write(frames.session_ack(acks, packed))
                        # Payloads of other loads are no stamps: they read as moments yet to come.
                        delays += [now_ns - sent for sent in sent_ns if measured_from_ns <= sent <= now_ns]
        except TimeoutError:
            session.cancel()
    return delays


def percentile(sorted_values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of them do not exceed."""
    return float(sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * share))])
