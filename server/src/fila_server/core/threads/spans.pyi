# Spans of messages whose producers' traces are recorded, for the one thread that sends them.

from typing import TypeAlias, final

Row: TypeAlias = tuple[int, int, int, int, int, int, int, int, int, int, int, str, str, str, str]

@final
class SpanTap:
    def __init__(self, trace_low_max: int) -> None: ...
    @property
    def dropped(self) -> int: ...
    def take(self, most: int) -> list[Row]: ...
