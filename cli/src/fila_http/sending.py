"""Answers on their way out: in pieces, each taken by the caller in time, or the connection is broken off.

What a caller does not take would stay in the gateway's memory. So an answer counts in the budget until it is sent, and
no more than a piece or two of it wait in the socket's buffer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.types import Scope, Send

from fila_http.body import Gone
from fila_http.options import Bounds
from fila_http.problems import Problem

JSON = "application/json"
PROBLEM_JSON = "application/problem+json"
PIECE_BYTES = 64 << 10

ALWAYS = (
    # No cache keeps what only this caller may see, and no browser takes an answer for a page or a script.
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


async def send_start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    """Send the status and the headers."""
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": [*ALWAYS, *raw]})


async def send_piece(scope: Scope, send: Send, bounds: Bounds, piece: bytes, *, more: bool = True) -> None:
    """Send some of the body. Raises Gone, with the connection broken off, when the caller takes too long for it."""
    try:
        async with asyncio.timeout(bounds.send_s_max):
            await send({"type": "http.response.body", "body": piece, "more_body": more})
    except TimeoutError:
        # Closing would wait for the caller to take what is written.
        scope["state"]["abort"]()
        raise Gone from None


async def send_whole(
    scope: Scope, send: Send, bounds: Bounds, status: int, body: bytes, headers: Mapping[str, str]
) -> None:
    """Send an answer of one piece of JSON."""
    await send_start(send, status, {"content-type": JSON, "content-length": str(len(body)), **headers})
    if len(body) <= PIECE_BYTES:
        await send_piece(scope, send, bounds, body, more=False)
        return
    for start in range(0, len(body), PIECE_BYTES):
        end = start + PIECE_BYTES
        await send_piece(scope, send, bounds, body[start:end], more=end < len(body))


async def send_problem(
    scope: Scope, send: Send, bounds: Bounds, problem: Problem, *, close: bool = False
) -> None:
    """Say no. `close` ends the connection: its request was not read to the end."""
    headers = {"content-type": PROBLEM_JSON, **problem.headers, **({"connection": "close"} if close else {})}
    await send_whole(scope, send, bounds, problem.status, problem.body(), headers)
