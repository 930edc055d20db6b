"""A process that produces: one EnqueueStream each, a fixed window of frames under way.

The loop is closed: a frame is sent only when the oldest one was answered, which is to say
stored. So a slow broker slows this down instead of being buried, and a rate is a rate of
messages that survived.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from typing import Any

import grpc
import uvloop

from fila.v1 import service_pb2
from fila_bench import frames, scanner
from fila_bench.plan import Counter, Counters, ProducerPlan

_CHANNEL_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_BACKLOG_PAUSE_S = 0.002


def run(plan: ProducerPlan, counters: Counters, ready: Any, go: Any) -> None:
    """Entry point of the process; `ready` and `go` hold all loads back until each has its frames."""
    uvloop.run(_produce(plan, counters, ready, go))


async def _produce(plan: ProducerPlan, counters: Counters, ready: Any, go: Any) -> None:
    scan = scanner.load()
    bodies = plan.bodies()
    async with grpc.aio.insecure_channel(plan.address, options=_CHANNEL_OPTIONS) as channel:
        await channel.channel_ready()
        ready.release()
        await asyncio.to_thread(go.wait)
        cycle = itertools.cycle(bodies)
        share = -(-plan.message_count // plan.streams)
        await asyncio.gather(
            *(_one_stream(plan, share, channel, cycle, counters, scan) for _ in range(plan.streams))
        )
    counters[Counter.PRODUCER_CPU_US] = int(time.process_time() * 1e6)


async def _one_stream(
    plan: ProducerPlan, share: int, channel: Any, cycle: Any, counters: Counters, scan: Any
) -> None:
    call = channel.stream_stream(frames.ENQUEUE_STREAM)()
    sent_frames = answered_frames = 0
    frames_max = -(-share // plan.batch) if share else 0

    async def send() -> None:
        nonlocal sent_frames
        sent_frames += 1
        await call.write(frames.sequence(sent_frames) + next(cycle))

    def wants_more() -> bool:
        return not counters[Counter.STOP] and (not frames_max or sent_frames < frames_max)

    while wants_more() and sent_frames < plan.window_frames:
        await send()
    while answered_frames < sent_frames:
        reply = await call.read()
        if reply is grpc.aio.EOF:
            raise SystemExit(f"the enqueue stream ended early: {await call.details()}")
        answered_frames += 1
        stored, refused = scan.enqueue_results(reply)
        counters[Counter.PRODUCED] += stored
        if refused and not counters[Counter.REFUSED]:
            _say_why(reply)
        counters[Counter.REFUSED] += refused
        while plan.backlog_max and _backlog(counters) > plan.backlog_max and not counters[Counter.STOP]:
            await asyncio.sleep(_BACKLOG_PAUSE_S)
        if wants_more():
            await send()
    await call.done_writing()


def _say_why(reply: bytes) -> None:
    """The first refusal of a run, on stderr: a number of them alone tells nobody what to do."""
    results = service_pb2.EnqueueStreamResponse.FromString(reply).results
    reasons = [result.error for result in results if result.error.code]
    print(f"refused: {reasons[0].reason}: {reasons[0].message}", file=sys.stderr, flush=True)


def _backlog(counters: Counters) -> int:
    return int(counters[Counter.PRODUCED]) - int(counters[Counter.ACKED])
