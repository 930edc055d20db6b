"""A server that remembers closed streams, so that it refuses what comes late for one instead of passing over it.

RFC 9113, 5.1 allows either. Fila passes over it, since a closed stream that is remembered takes some 300 bytes, and a
connection may have closed ten thousand; h2spec asks about the refusals.
"""

from __future__ import annotations

from typing import Any

from fila_server.core.runtime.engine import CoreEngine
from fila_server.edge.io import edge
from fila_server.main import main


class StrictEdge(edge.NativeEdge):
    """As the server has it, but for what it remembers."""

    def __init__(self, engine: CoreEngine, **settings: Any) -> None:
        super().__init__(engine, **settings, keeps_closed_streams=True)


if __name__ == "__main__":
    vars(edge)["NativeEdge"] = StrictEdge
    main()
