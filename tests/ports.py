"""Ports that are a test's own for as long as it holds them, also while nobody listens there.

What is started again at its old port, or is told before its start which one to take, would else meet another: the
system gives a free port to any program that asks, and to each connection that somebody opens.
"""

from __future__ import annotations

import socket


class KeptPort:
    """One on the loopback interface. It is bound, without listening: so the system gives it to nobody, a connection to
    it is refused, and one listener at a time may take it that sets SO_REUSEADDR, as servers do."""

    def __init__(self) -> None:
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind(("127.0.0.1", 0))
        self.port: int = self._held.getsockname()[1]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        """Give it back to the system."""
        self._held.close()
