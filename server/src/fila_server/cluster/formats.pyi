from fila_server.core.runtime.store_copy import StoreCopy

NEWER: int

def reads_up_to(copy: StoreCopy, log_format: int) -> None: ...
def goes_on(copy: StoreCopy, log_format: int) -> None: ...
def bid(
    copy: StoreCopy,
    nonce: int,
    wall_ms: int,
    *,
    log_format: int,
    is_moved: bool = False,
    incarnation: int = 0,
) -> bool: ...
