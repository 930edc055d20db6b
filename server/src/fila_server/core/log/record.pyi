from typing import Any

KIND_TAKEOVER: int
KIND_PASS: int
KIND_PART: int
KIND_BARRIER: int
BYTES_MAX: int
PIECE_BYTES_MAX: int

def encode(**fields: Any) -> bytes: ...
def decode(content: bytes) -> tuple[int, dict[str, Any]]: ...
def mark(content: bytes) -> int: ...
