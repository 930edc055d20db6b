"""What one operation of the core's small structures costs, with ten things in them and with a million.

Run it as `python bench/core_structures.py`. The loops are compiled and inside the structures' test shells, so that
what is measured is the structure and not Python. The best of several runs counts: the others tell about the neighbours.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

from fila_server.core.structures.bucket import TokenBucket
from fila_server.core.structures.heap import RankHeap
from fila_server.core.structures.learned_rate import FollowingRate
from fila_server.core.structures.maps import NumberMap, TextTable
from fila_server.core.structures.ring import FairRing
from fila_server.core.structures.timers import TimerHeap

SIZES = (10, 1_000, 1_000_000)
MESSAGE = 1000
COPRIME_STRIDE = 7_368_787  # visits every number below a power of ten, in no order that a cache could guess


@dataclass(frozen=True, slots=True)
class Measurement:
    what: str
    size: int
    ns_per_op: float


def best_ns_per_op(operation: Callable[[], object], ops: int, runs: int) -> float:
    best_ns = min(_elapsed_ns(operation) for _ in range(runs))
    return best_ns / ops


def _elapsed_ns(operation: Callable[[], object]) -> int:
    started_ns = time.perf_counter_ns()
    operation()
    return time.perf_counter_ns() - started_ns


def measure_ring(size: int, ops: int, runs: int, what: str, cost_step: int, cost_count: int) -> Measurement:
    ring = FairRing(1000, size)
    for flow in range(size):
        ring.join(flow)
    ring.spin(2 * size, cost_step, cost_count)  # until the ones that save are spread over the rounds
    return Measurement(what, size, best_ns_per_op(lambda: ring.spin(ops, cost_step, cost_count), ops, runs))


def measure_timers(size: int, ops: int, runs: int) -> Measurement:
    timers = TimerHeap(size)
    for number in range(size):
        timers.set(number, number * COPRIME_STRIDE % size)
    return Measurement(
        "timer: fire and set again", size, best_ns_per_op(lambda: timers.spin(ops, 3), ops, runs)
    )


def measure_heap(size: int, ops: int, runs: int) -> Measurement:
    heap = RankHeap(size)
    for number in range(size):
        heap.insert(number, number)
    heap.spin(1)  # the first removal pairs all; the next measurement is about that one
    return Measurement("heap: first to the back", size, best_ns_per_op(lambda: heap.spin(ops), ops, runs))


def measure_first_removal(size: int) -> Measurement:
    heap = RankHeap(size)
    for number in range(size):
        heap.insert(number, number)
    return Measurement("heap: first removal after n inserts, in all", size, _elapsed_ns(lambda: heap.spin(1)))


def measure_number_map(size: int, ops: int, runs: int) -> Measurement:
    numbers = NumberMap()
    for key in range(size):
        numbers.put(key, 1)
    return Measurement(
        "map by number: get", size, best_ns_per_op(lambda: numbers.spin(ops, size, COPRIME_STRIDE), ops, runs)
    )


def measure_text_map(size: int, ops: int, runs: int) -> Measurement:
    table = TextTable()
    for number in range(size):
        table.put(number, b"tenant-%d" % number)
    wanted = min(size, 100_000)
    texts = [b"tenant-%d" % (number * COPRIME_STRIDE % size) for number in range(wanted)]
    passes = max(1, ops // wanted)
    return Measurement(
        "map by text: hash and get",
        size,
        best_ns_per_op(lambda: table.spin(texts, passes), passes * wanted, runs),
    )


def measure_bucket(ops: int, runs: int) -> Measurement:
    bucket = TokenBucket(1000.0, 10.0)
    return Measurement("bucket: refill, take, due", 1, best_ns_per_op(lambda: bucket.spin(ops), ops, runs))


def measure_learned_rate(ops: int, runs: int) -> Measurement:
    rate = FollowingRate(1.0, 1e6, 1000.0)
    what = "learned rate: accepted, take, grow"
    return Measurement(what, 1, best_ns_per_op(lambda: rate.spin(ops), ops, runs))


def measure(ops: int, runs: int) -> list[Measurement]:
    measured = [measure_bucket(ops, runs), measure_learned_rate(ops, runs)]
    for size in SIZES:
        measured += [
            measure_ring(size, ops, runs, "ring: pick, cost 1", MESSAGE, 1),
            measure_ring(size, ops, runs, "ring: pick, cost 5 to 100", 5 * MESSAGE, 20),
            measure_timers(size, ops, runs),
            measure_heap(size, ops, runs),
            measure_first_removal(size),
            measure_number_map(size, ops, runs),
            measure_text_map(size, ops, runs),
        ]
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, default=1_000_000, help="operations a run")
    parser.add_argument("--runs", type=int, default=3, help="runs, of which the best counts")
    arguments = parser.parse_args()

    measured = measure(arguments.ops, arguments.runs)
    print(f"{'ns an operation':46}" + "".join(f"{size:>14,}" for size in SIZES))
    for what in dict.fromkeys(each.what for each in measured):
        by_size = {each.size: each.ns_per_op for each in measured if each.what == what}
        cells = [by_size.get(size) for size in SIZES] if len(by_size) > 1 else list(by_size.values())
        print(f"{what:46}" + "".join(f"{cell:>14,.1f}" for cell in cells if cell is not None))


if __name__ == "__main__":
    main()
