"""The last hour of a few numbers, in steps of ten seconds, recorded while somebody watches.

What was not recorded is None, never zero: a plot shows a gap there. A counter that went back (the broker started anew)
gives no rate until it was seen twice, so that a restart is a gap and no spike.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fila.answers import KeyState
from fila.watched import KeySeriesPoint, Series, SeriesPoint

STEP_S = 10
STEPS_MAX = 360
LINE_STEPS_MIN = 60
WINDOW_S = 5.0
"""Over how long a part that is shown as a number is taken."""


class Part(NamedTuple):
    """Of the cost that a channel delivered lately, what was a key's and what was its due; None where that is not
    known."""

    served: float | None
    due: float | None


class Parts:
    """Parts of a channel's cost, from readings of its counter and of its keys'.

    A part is a difference of two readings divided by the channel's difference between the same two. Rates that others
    took over spans of their own would not do: a burst of the last second is more than the mean of five.
    """

    __slots__ = ("_readings",)

    def __init__(self) -> None:
        self._readings: deque[tuple[float, float, dict[str, KeyState]]] = deque()

    def read(self, now_s: float, served: float, keys: Iterable[KeyState]) -> None:
        """Take a reading: of the channel, and of the keys that were told with it."""
        told = {each.fairness_key: each for each in keys}
        if self._readings and served < self._readings[-1][1]:
            self._readings.clear()
        last = self._readings[-1][2] if self._readings else {}
        # One that began anew, as a key's counter does that was idle: what it was before says nothing of now.
        for key in [
            each for each in told if each in last and told[each].served_total < last[each].served_total
        ]:
            for _, _, known in self._readings:
                known.pop(key, None)
        self._readings.append((now_s, served, told))
        while len(self._readings) > 2 and self._readings[1][0] <= now_s - WINDOW_S:
            self._readings.popleft()

    def of(self, key: str) -> Part:
        """What was this key's since the oldest reading that has it."""
        for _, before, told in self._readings:
            if key in told:
                _, served, newest = self._readings[-1]
                if served <= before:
                    break
                then, now, all_of_it = told[key], newest[key], served - before
                # By its weight a key that is held back would be due what it was never let to have.
                due = min(1.0, (now.due_total - then.due_total) / all_of_it)
                return Part((now.served_total - then.served_total) / all_of_it, due)
        return Part(None, None)


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
