"""Records a broker at work: an hour of requests in two minutes, for the jobs of the pipeline.

    bench/record.py --history history                       a made-up trace, the same for the same --seed
    bench/record.py --history history --trace code.csv      a real one (TIMESTAMP,ContextTokens,GeneratedTokens)
    bench/record.py --history history --messages 1000000    so many of 1 KB under 100 keys, at once

Starts a server of its own, with a history, and stops it when everything is served. docs/pipeline.md shows what the
jobs say of it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from fila_bench.admin import Admin
from fila_bench.load import Load
from fila_bench.plan import ConsumerPlan, Counter, ProducerPlan
from fila_bench.recording import prepare, requests, work
from fila_bench.server import Server

_QUEUE = "bench"
_TIMEOUT_S = 600


def main() -> int:
    options = _options()
    if options.trace is not None and not options.trace.is_file():
        print(
            f"record: there is no trace at {options.trace}; leave --trace out for one that is made up",
            file=sys.stderr,
        )
        return 2
    if options.messages:
        return _at_once(options.history.resolve(), options.messages)
    wanted = requests(options.trace, options.seconds, options.seed)
    print(f"Recording {len(wanted):,} requests in {options.seconds:g} s to {options.history}", flush=True)
    history = options.history.resolve()
    with Server(history__enabled="true", history__dir=str(history), history__headers="all") as server:
        prepare(server.address, wanted, options.seconds)
        delivered = asyncio.run(work(server.address, wanted, options.seconds, options.seed))
    print(f"{options.history}: {len(wanted):,} messages, {delivered:,} deliveries")
    if list(history.glob("_list/_*.open")):
        print(
            f"record: the broker had to leave before the last files of {options.history} were closed, on a machine as "
            "busy as this; what it decided last is left out of the recording",
            file=sys.stderr,
        )
    return 0


def _at_once(history: Path, messages: int) -> int:
    with Server(history__enabled="true", history__dir=str(history)) as server:
        with Admin(server.address) as admin:
            admin.create(_QUEUE, fairness_key_header="tenant")
        producer = ProducerPlan(
            address=server.address,
            queue=_QUEUE,
            payload_bytes=1_000,
            # One frame of 20 at a time: some 30,000 messages a second. Of several times as many two cores
            # have no time to write the history beside it, and a recording with gaps is backtested up to the first.
            batch=20,
            window_frames=1,
            keys=100,
            message_count=messages,
        )
        with Load([producer], [ConsumerPlan(address=server.address, queue=_QUEUE)]) as load:
            took_s = load.wait_for(Counter.ACKED, messages, timeout_s=_TIMEOUT_S)
    print(f"{history}: {messages:,} messages in {took_s:.1f} s")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--history", type=Path, required=True, help="the directory to record to")
    parser.add_argument("--trace", type=Path, metavar="CSV", help="a real trace [one that is made up]")
    parser.add_argument(
        "--messages", type=int, metavar="N", help="no trace, but so many messages one after the other"
    )
    parser.add_argument("--seconds", type=float, default=120, help="how long the trace takes here [120]")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
