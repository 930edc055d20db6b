"""A process that consumes: ConsumeSession, every delivery acked, acks coalesced by themselves.

Two tasks: one reads deliveries and turns them into packed lease ids, the other writes them
back. While a write is under way the ids of further deliveries pile up and leave together,
so under load one ack frame answers several deliveries and no timer is needed.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import grpc
import uvloop

from fila_bench import frames, scanner
from fila_bench.plan import ConsumerPlan, Counter, Counters

_CHANNEL_OPTIONS = [("grpc.max_receive_message_length", -1)]


def run(plan: ConsumerPlan, counters: Counters, ready: Any, go: Any) -> None:
    """Entry point of the process."""
    uvloop.run(_consume(plan, counters, ready, go))


async def _consume(plan: ConsumerPlan, counters: Counters, ready: Any, go: Any) -> None:
    scan = scanner.load()
    async with grpc.aio.insecure_channel(plan.address, options=_CHANNEL_OPTIONS) as channel:
        await channel.channel_ready()
        ready.release()
        await asyncio.to_thread(go.wait)
        await asyncio.gather(*(Session(plan, channel, counters, scan).run() for _ in range(plan.sessions)))
    counters[Counter.CONSUMER_CPU_US] = int(time.process_time() * 1e6)


class Session:
    """One ConsumeSession: reads, acks, tops up its credit."""

    def __init__(self, plan: ConsumerPlan, channel: Any, counters: Counters, scan: Any) -> None:
        self._plan = plan
        self._counters = counters
        self._scan = scan
        self._call = channel.stream_stream(frames.CONSUME_SESSION)()
        self._ids: list[bytes] = []
        self._count = 0
        self._sequence = 0
        self._in_ack: dict[int, int] = {}
        self._something = asyncio.Event()
        self._over = False

    async def run(self) -> None:
        plan = self._plan
        await self._call.write(
            frames.session_open(
                plan.queue,
                channel=plan.channel,
                max_in_flight=plan.max_in_flight,
                initial_credit=plan.credit,
                tracks_begun=plan.says_begun,
            )
        )
        writer = asyncio.create_task(self._write_acks())
        watcher = asyncio.create_task(self._cancel_when_told())
        try:
            await self._read()
        except asyncio.CancelledError:
            if not self._over:
                raise
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.CANCELLED:
                raise SystemExit(f"the session ended early: {error.code().name} {error.details()}") from error
        finally:
            self._over = True
            watcher.cancel()
            writer.cancel()
            self._call.cancel()

    async def _read(self) -> None:
        counters = self._counters
        while True:
            frame = await self._call.read()
            if frame is grpc.aio.EOF:
                return
            count, packed, _ = self._scan.delivery(frame)
            if count:
                self._ids.append(packed)
                self._count += count
                counters[Counter.CONSUMED] += count
                self._something.set()
                continue
            # The only other frequent frame: Settled, in the order of our acks.
            if frame[:1] == b"\x1a":
                self._settled(frame)
                if self._plan.message_count and counters[Counter.ACKED] >= self._plan.message_count:
                    return

    def _settled(self, frame: bytes) -> None:
        oldest = next(iter(self._in_ack))
        acked = self._in_ack.pop(oldest)
        failed = self._scan.settle_failures(frame)
        self._counters[Counter.ACKED] += acked - failed
        self._counters[Counter.SETTLE_FAILED] += failed

    async def _write_acks(self) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            packed, count = b"".join(self._ids), self._count
            self._ids.clear()
            self._count = 0
            self._sequence += 1
            self._in_ack[self._sequence] = count
            if self._plan.says_begun:
                await self._call.write(frames.session_begun(packed))
            await self._call.write(frames.session_ack(self._sequence, packed))
            if self._plan.credit:
                await self._call.write(frames.session_credit(count))

    async def _cancel_when_told(self) -> None:
        while not self._counters[Counter.STOP]:
            await asyncio.sleep(0.02)
        self._over = True
        self._call.cancel()
