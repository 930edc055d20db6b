"""Two built trees in turn, each with its own server and its own Python SDK: what a program notices of a change.

    bench/beside.py TREE                            8 pairs of all of it against TREE, a checkout after `make build`
    bench/beside.py TREE --only worker --pairs 3    worker: messages a second of one loop, by its handler
                                                    life: enqueue, deliver and ack in batches of 1, 10 and 100
                                                    quiet: a quiet tenant's wait behind 20,000 messages

The ratio is the median of the pairs', new by old, with its 90 % interval. `life` is driven by this tree's generator.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

HANDLERS_MS = (0, 1, 10, 60)
BATCHES = {1: 64, 10: 16, 100: 8}
"""And how many frames are under way."""
BACKLOG = 20_000
QUIET_ROUNDS = 30
_ROOT = Path(__file__).resolve().parents[1]
_QUEUE = "bench"

Side = Callable[[], float]


# --- what a tree's own SDK does, in a process of its own ---------------------------------------


async def _worker(address: str, handler_ms: float, seconds: float) -> float:
    """Messages a second of one loop, from a backlog that outlasts it."""
    from fila import FilaClient

    wanted = int(seconds * (20_000 if handler_ms == 0 else 1000 / handler_ms)) + 100
    async with FilaClient.connect(address) as client:
        await client.create_queue(_QUEUE)
        await client.enqueue_many(_QUEUE, [b"x" * 100] * wanted)
        count, began_s = 0, time.monotonic()
        async for message in client.consume(_QUEUE):
            if handler_ms:
                await asyncio.sleep(handler_ms / 1000)
            await message.ack()
            count += 1
            if time.monotonic() - began_s > seconds or count == wanted:
                break
        return count / (time.monotonic() - began_s)


async def _quiet(address: str) -> float:
    """The median wait in ms of a tenant's message behind another's backlog, one worker of 1 ms a message."""
    from fila import FilaClient, NewMessage

    waits: list[float] = []
    sent_s: dict[bytes, float] = {}
    noisy = NewMessage(payload=b"noisy", headers={"tenant": "noisy"})
    async with FilaClient.connect(address) as client:
        await client.create_queue(_QUEUE, fairness_key_header="tenant")
        await client.enqueue_many(_QUEUE, [noisy] * BACKLOG)

        async def work() -> None:
            async for message in client.consume(_QUEUE):
                if message.payload in sent_s:
                    waits.append((time.monotonic() - sent_s[message.payload]) * 1000)
                await asyncio.sleep(0.001)
                await message.ack()

        working = asyncio.create_task(work())
        await asyncio.sleep(0.5)
        for number in range(QUIET_ROUNDS):
            payload = b"quiet %d" % number
            sent_s[payload] = time.monotonic()
            await client.enqueue(_QUEUE, payload, {"tenant": "quiet"})
            await asyncio.sleep(0.05)
        working.cancel()
    return statistics.median(waits)


# --- two trees in turn --------------------------------------------------------------------------


def _in_its_own_process(tree: Path, words: tuple[str, ...]) -> float:
    from fila_bench.server import Server

    with Server(program=tree / ".venv" / "bin" / "fila-server") as server:
        python = tree / ".venv" / "bin" / "python"
        command: list[str | Path] = [python, __file__, "--child", server.address, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{words} in {tree} failed:\n{done.stderr}")
    return float(done.stdout)


def _life(tree: Path, batch: int, seconds: float) -> float:
    from fila_bench.registry import Budget
    from fila_bench.scenarios.full_life import Life, measure_life

    os.environ["FILA_BENCH_SERVER"] = str(tree / ".venv" / "bin" / "fila-server")
    life = Life(batch=batch, window_frames=BATCHES[batch])
    return measure_life(life, Budget(seconds=seconds))[0].acked_per_s


def _cases(only: list[str], seconds: float) -> Iterator[tuple[str, Callable[[Path], float]]]:
    if "worker" in only:
        for ms in HANDLERS_MS:
            words = ("worker", str(ms), str(seconds))
            yield f"worker of {ms} ms, messages/s", partial(_in_its_own_process, words=words)
    if "life" in only:
        for batch in BATCHES:
            yield f"full life, batch {batch}, messages/s", partial(_life, batch=batch, seconds=seconds)
    if "quiet" in only:
        yield f"quiet tenant behind {BACKLOG:,}, ms", partial(_in_its_own_process, words=("quiet",))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tree", type=Path)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each stretch")
    parser.add_argument("--only", default="worker,life,quiet")
    given = parser.parse_args()

    from fila_bench.pairs import in_turn, ratio_of

    for case, measure in _cases(given.only.split(","), given.seconds):
        sides: dict[str, Side] = {
            "old": partial(measure, given.tree.resolve()),
            "new": partial(measure, _ROOT),
        }
        found = in_turn(sides, given.pairs)
        ratio = ratio_of(found["old"], found["new"])
        old, new = (statistics.median(found[side]) for side in ("old", "new"))
        print(
            f"{case:34} {old:12,.1f} {new:12,.1f}   {ratio.median:.3f} ({ratio.interval})   "
            f"load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


def _child(address: str, what: str, *numbers: str) -> None:
    run = _worker(address, *map(float, numbers)) if what == "worker" else _quiet(address)
    print(asyncio.run(run))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _child(*sys.argv[2:])
    else:
        main()
