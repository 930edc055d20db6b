# A replayed core as it lies in memory, written down and taken up again.

from typing import Any, Protocol

from fila_server.core.replay.replay import Replay

class _Sink(Protocol):
    def write(self, data: Any, /) -> Any: ...

class _Source(Protocol):
    def read(self, length: int, /) -> bytes: ...

class NotTaken(Exception): ...

def arena_used() -> None: ...
def image_write(replay: Replay, out: _Sink) -> dict[str, Any]: ...

class Resumed(Replay):
    def __init__(
        self, data_dir: str, head: dict[str, Any], facts: dict[str, Any], source: _Source
    ) -> None: ...
