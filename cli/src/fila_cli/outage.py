"""For commands that go on while a broker restarts: nobody answers is said once, and so is that somebody does again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import grpc

AGAIN_AFTER_S = 0.5


class Outage:
    """Whether the broker is away just now."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._is_met = False

    def meet(self, error: grpc.RpcError) -> None:
        """Say it, the first time. Raises what is no outage."""
        import grpc

        call: Any = error
        if call.code() is not grpc.StatusCode.UNAVAILABLE:
            raise error
        if not self._is_met:
            print(f"fila: no answer from {self._address}, trying again", file=sys.stderr)
        self._is_met = True

    def over(self) -> None:
        """Somebody answered: say so, where nobody did before."""
        if self._is_met:
            print("fila: the broker is back", file=sys.stderr)
        self._is_met = False
