"""Calls that answer with a stream, followed over as many streams as it takes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import cast

from grpc.aio import EOF, AioRpcError

from fila.connection import Connection, Known, unavailable_unless_said
from fila.errors import FilaError, Unavailable, from_rpc_error
from fila.methods import Method, Request, Response


async def responses(
    connection: Connection,
    method: Method[Request, Response],
    request: Request,
    known: Known,
    *,
    goes_on: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[Response, None]:
    """Loop over what a call answers. A broken stream is opened again with the request as it stands then: the caller's
    loop moves its place on. So is one that the broker ended while the call `goes_on`: it is stopping.

    Raises what the broker says; Unavailable when it stays away for `retry_for_s`.
    """
    options, attempt = connection.options, 0
    lost_at_s: float | None = None
    while True:
        try:
            await connection.ready(options.retry_for_s)
            stream = connection.read_stream(method, request)
            try:
                while (told := await stream.read()) is not EOF:
                    attempt, lost_at_s = 0, None
                    yield cast("Response", told)
                if not goes_on():
                    return
                raise Unavailable("the broker ended the stream")
            finally:
                stream.cancel()
        except (AioRpcError, Unavailable) as failure:
            error: FilaError = (
                failure
                if isinstance(failure, Unavailable)
                else unavailable_unless_said(from_rpc_error(failure, known))
            )
            connection.follow(error)
            lost_at_s = options.clock.now_s() if lost_at_s is None else lost_at_s
            wait_s = options.backoff.wait_s(attempt)
            gave_up = options.clock.now_s() + wait_s > lost_at_s + options.retry_for_s
            if gave_up or not isinstance(error, Unavailable):
                if error is failure:
                    raise
                raise error from failure
            attempt += 1
            await options.clock.sleep(wait_s)
