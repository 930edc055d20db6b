TOTALS: tuple[str, ...]
QUEUE_COUNTERS: tuple[str, ...]
