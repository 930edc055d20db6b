from typing import TypedDict, final

FAULTS: dict[int, str]

class State(TypedDict):
    position: int
    mark: int
    term: tuple[int, int]
    incarnation: int
    seq: int
    chain: int
    part: int
    parts: int
    wall_ms: int
    terms: int
    passes: int
    barriers: int
    part_records: int
    stale: int
    void_bids: int
    halted: int
    cluster: bytes
    node: int
    begun_ms: int
    short_terms: int

@final
class LogReading:
    def __init__(self, format_max: int = 1, cluster: bytes = b"", chain: int = 0) -> None: ...
    def take(self, offset: int, content: bytes) -> int: ...
    def follows(self, chain: int) -> None: ...
    def stands(self, content: bytes) -> bool: ...
    def rebase(self, end: int) -> None: ...
    def reaches(self, start: int, end: int) -> bool: ...
    def state(self) -> State: ...
    @property
    def is_halted(self) -> bool: ...
    @property
    def why(self) -> str: ...
