from types import TracebackType
from typing import Self, final

from fila_server.core.runtime.engine import CoreEngine

@final
class OutboxLock:
    def __init__(self, engine: CoreEngine) -> None: ...
    @property
    def address(self) -> int: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None: ...
