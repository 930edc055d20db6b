TOTALS: tuple[str, ...]
QUEUE_COUNTERS: tuple[str, ...]
SUMS: tuple[str, ...]
