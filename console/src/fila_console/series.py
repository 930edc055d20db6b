"""The last hour of a few numbers, in steps of ten seconds, recorded while somebody watches.

What was not recorded is None, never zero: a plot shows a gap there. A counter that went back (the broker started anew)
gives no rate until it was seen twice, so that a restart is a gap and no spike.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from fila.watched import KeySeriesPoint, Series, SeriesPoint

STEP_S = 10
STEPS_MAX = 360
LINE_STEPS_MIN = 60
WINDOW_S = 5.0
"""Over how long a rate that is shown as a number is taken."""


class Meter:
    """A rate, from readings of a counter."""

    __slots__ = ("_base", "_begins_anew", "_last", "_readings")

    def __init__(self, *, begins_anew: bool = False) -> None:
        """`begins_anew`: the counter may begin at 0 again by itself, as a key's does that was idle; then what it shows
        is what was counted since."""
        self._readings: deque[tuple[float, float]] = deque()
        self._begins_anew = begins_anew
        self._base = 0.0
        self._last = 0.0

    def read(self, now_s: float, value: float) -> float | None:
        """Take a reading; return the rate a second over the last few seconds, None until there are two."""
        if self._begins_anew:
            if value < self._last:
                self._base += self._last
            self._last = value
            value += self._base
        if self._readings and value < self._readings[-1][1]:
            self._readings.clear()
        self._readings.append((now_s, value))
        while len(self._readings) > 2 and self._readings[1][0] <= now_s - WINDOW_S:
            self._readings.popleft()
        return self.rate

    @property
    def rate(self) -> float | None:
        """The rate a second."""
        if len(self._readings) < 2:
            return None
        (then_s, before), (now_s, value) = self._readings[0], self._readings[-1]
        return (value - before) / (now_s - then_s) if now_s > then_s else None

    @property
    def newest_s(self) -> float:
        """When it was read last."""
        return self._readings[-1][0] if self._readings else 0.0


class Hour:
    """Means of ten seconds, by label."""

    def __init__(self) -> None:
        self._steps: deque[tuple[int, dict[str, float], dict[str, int]]] = deque(maxlen=STEPS_MAX)

    def put(self, now_s: float, values: Mapping[str, float | None]) -> None:
        """Take readings of now; a label whose value is None gets none."""
        at = int(now_s) // STEP_S * STEP_S
        if not self._steps or self._steps[-1][0] != at:
            self._steps.append((at, {}, {}))
        _, means, counts = self._steps[-1]
        for label, value in values.items():
            if value is not None:
                counts[label] = counts.get(label, 0) + 1
                means[label] = means.get(label, 0.0) + (value - means.get(label, 0.0)) / counts[label]

    def fill(self, at_s: int, values: Mapping[str, float]) -> None:
        """Take what the broker recorded of a step nobody here looked at; steps come oldest first."""
        at = at_s // STEP_S * STEP_S
        if self._steps and self._steps[-1][0] >= at:
            return
        self._steps.append((at, dict(values), dict.fromkeys(values, 1)))

    @property
    def newest_s(self) -> int:
        """The last step that was recorded; 0 where none was."""
        return self._steps[-1][0] if self._steps else 0

    def series(self, labels: list[str], now_s: float) -> tuple[list[int], dict[str, list[float | None]]]:
        """Return the steps from the first that was recorded, at most an hour ago, to now, and each label's values."""
        newest = int(now_s) // STEP_S * STEP_S
        oldest = newest - (STEPS_MAX - 1) * STEP_S
        first = next((at for at, _, _ in self._steps if at >= oldest), newest)
        times = [*range(first, newest + 1, STEP_S)]
        known = {at: means for at, means, _ in self._steps}
        steps = [known.get(at, {}) for at in times]
        return times, {label: [_rounded(step.get(label)) for step in steps] for label in labels}

    def values(self, label: str, now_s: float) -> list[float | None]:
        """One label over what was recorded, and ten minutes at least: for a small line of fixed width."""
        times, series = self.series([label], now_s)
        return [None] * (LINE_STEPS_MIN - len(times)) + series[label]


def point_times(series: Series) -> tuple[list[int], int]:
    """When each point of a broker's series began, in seconds since 1970, from the first that was recorded; and which
    that is. A tenant is told no points of the whole: those of its key say it."""
    points: Sequence[SeriesPoint | KeySeriesPoint] = series.points
    if not points and series.keys:
        points = series.keys[0].points
    first = next((place for place, point in enumerate(points) if point.recorded), len(points))
    if series.first_at is None or first == len(points):
        return [], len(points)
    step_s = series.step_ms // 1000
    begin = int(series.first_at.timestamp()) - step_s
    return [begin + place * step_s for place in range(first, len(points))], first


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
