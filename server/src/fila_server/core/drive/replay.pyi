# The compiled core, fed with what it once took in.

from collections.abc import Iterable
from typing import Any

from fila_server.core.drive.engine import CoreEngine

class NotReplayable(Exception): ...

class Replay(CoreEngine):
    def __init__(
        self,
        data_dir: str,
        head: dict[str, Any],
        records: Iterable[tuple[int, bytes, bytes]],
        *,
        sample: int = 1,
    ) -> None: ...
    @property
    def passes(self) -> int: ...
    def feed(self, *columns_and_start: Any) -> int: ...
    def finish(self) -> None: ...
