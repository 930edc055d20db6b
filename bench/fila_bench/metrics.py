"""Reads one thing from a Prometheus page: a quantile of a histogram, over all its series."""

from __future__ import annotations

import math
from collections import defaultdict

from prometheus_client.parser import text_string_to_metric_families


def quantile(page: str, histogram: str, share: float) -> tuple[float, int]:
    """Return the bucket bound that at least `share` of the observations do not exceed, and their number."""
    count_by_bound: dict[float, float] = defaultdict(float)
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name == f"{histogram}_bucket":
                count_by_bound[float(sample.labels["le"])] += sample.value
    total = count_by_bound.get(math.inf, 0.0)
    for bound in sorted(count_by_bound):
        if total and count_by_bound[bound] >= share * total:
            return bound, int(total)
    raise LookupError(f"the page has no observations of {histogram}")
