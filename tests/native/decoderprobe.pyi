from typing import Any, Final, TypeAlias, final

PUSHES: Final = 0
PUSH_MANY: Final = 1
LEASE: Final = 2
ACKS: Final = 3
COMMAND: Final = 4
REPLY: Final = 5
CLOSE: Final = 6

Item: TypeAlias = tuple[int, Any, int]

@final
class CommandDecoder:
    def __init__(self, argument_bytes_max: int, batch_messages_max: int, batch_bytes_max: int) -> None: ...
    def feed(self, data: bytes) -> None: ...
    @property
    def kept_bytes(self) -> int: ...
    def take(self, limit: int) -> list[Item]: ...
