"""The stream of a visible page: server-sent events, each the newest there is when the browser has room."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from starlette.responses import StreamingResponse

from fila_console.watches import Watch

STREAMS_MAX = 1_000
STREAMS_FOR_TENANTS_MAX = 500
"""Of links' holders. The rest is for operators, however many links there are; and operators take none of these."""
STILL_HERE_S = 2.0
"""A page that hears nothing of the console for longer says so, and blames the broker for less than that."""
HERE = b"event: here\ndata: {}\n\n"
ENDED = "event: ended\ndata: {}\n\n"
"""The login is over: the page loads anew, and asks for another."""
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def stream(watch: Watch, is_logged_in: Callable[[], bool]) -> StreamingResponse:
    """Tell a browser the whole state, then what changes of it, until it goes or its login ends."""
    return StreamingResponse(_events(watch, is_logged_in), media_type="text/event-stream", headers=_HEADERS)


async def _events(watch: Watch, is_logged_in: Callable[[], bool]) -> AsyncIterator[bytes]:
    seq = 0
    with watch.watching():
        # Says at once that the stream stands; browsers wait a second before they try a broken one again.
        yield b"retry: 1000\n\n"
        while True:
            is_news = await watch.after(seq, STILL_HERE_S)
            if watch.is_over or not is_logged_in():
                yield ENDED.encode()
                return
            if not is_news:
                yield HERE
                continue
            name, data = watch.since(seq)
            seq = watch.seq
            yield b"event: %s\ndata: %s\n\n" % (name.encode(), data)
