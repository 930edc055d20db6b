"""What `auto` handles in a second, beside fixed prefetches, on a machine whose speed changes from minute to minute.

Every size runs once. Those that did less than DOMINATED of the best are left out then, and of the others all but the
FINALISTS best: with slow handlers nearly all sizes do the same. `auto` and the finalists run in turns, each round in
the other direction, and a ratio is the median of its rounds' ratios. The best size is chosen by the rounds that it is
compared in, which is to the disadvantage of `auto`.
"""

from __future__ import annotations

from statistics import median

from fila.prefetch import Prefetch
from fila_bench import promises

SIZES: tuple[int, ...] = (1, 4, 16, 64, 256, 1_000)
DOMINATED = 0.7
FINALISTS = 3


class Rates:
    """Messages a second of so many loops over one consumer, by prefetch."""

    def __init__(self, handler_s: float, workers: int, seconds: float) -> None:
        self._handler_s = handler_s
        self._workers = workers
        self._seconds = seconds
        self._runs = 0
        self._rates: dict[Prefetch, list[float]] = {}
        self.left_out: dict[int, float] = {}
        """What did too little at first, and how much."""

    async def measure(self, address: str, rounds: int) -> None:
        """First all sizes, then `auto` and the finalists so many times."""
        first = {size: await self._run(address, size) for size in SIZES}
        best = max(first.values())
        by_rate = sorted(SIZES, key=lambda size: -first[size])
        finalists = [size for size in by_rate if first[size] >= DOMINATED * best][:FINALISTS]
        self.left_out = {size: rate for size, rate in first.items() if size not in finalists}
        turns: list[Prefetch] = ["auto", *finalists]
        self._rates = {prefetch: [] for prefetch in turns}
        for _ in range(rounds):
            for prefetch in turns:
                self._rates[prefetch].append(await self._run(address, prefetch))
            turns.reverse()

    def median(self, prefetch: Prefetch) -> float:
        """Of its rounds."""
        return median(self._rates[prefetch])

    @property
    def best(self) -> Prefetch:
        """The finalist that did most."""
        return max((size for size in self._rates if size != "auto"), key=self.median)

    @property
    def auto_by_best(self) -> float:
        """`auto` against the best of the finalists, round by round."""
        return median(
            auto / best for auto, best in zip(self._rates["auto"], self._rates[self.best], strict=True)
        )

    async def _run(self, address: str, prefetch: Prefetch) -> float:
        self._runs += 1
        return await promises.throughput(
            address,
            f"q-{self._runs}",
            prefetch=prefetch,
            handler_s=self._handler_s,
            workers=self._workers,
            seconds=self._seconds,
        )
