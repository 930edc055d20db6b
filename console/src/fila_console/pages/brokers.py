"""Several brokers side by side: what is wrong with each, and its numbers; or that it asks for a key, or is away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from fila_console.cells import Cell
from fila_console.settings import Broker
from fila_console.trouble import Trouble
from fila_console.visit import Console, may_enter_without_key
from fila_console.watches import Topic

ANSWER_S_MAX = 2.5
"""A broker that takes longer keeps the others waiting no more."""

Endpoint = Callable[[Request], Awaitable[Response]]


class Beside(NamedTuple):
    """One broker, as the page has it."""

    name: str
    sentences: list[Cell]
    numbers: list[tuple[str, Cell, str]]
    """Label, value, unit."""
    needs_key: bool


def asked(console: Console, make: Callable[[], Topic], numbers: Sequence[tuple[str, str, str]]) -> Endpoint:
    """The page; with one broker, its overview. `make` makes what an overview looks at, and `numbers` are that's."""

    async def answered(request: Request) -> Response:
        if len(console.brokers) == 1:
            return RedirectResponse(f"/b/{next(iter(console.brokers))}/", 303)
        found = await asyncio.gather(
            *(_beside(console, request, each, make, numbers) for each in console.brokers.values())
        )
        return HTMLResponse(console.render("brokers.html", {"found": found}))

    return answered


async def _beside(
    console: Console,
    request: Request,
    broker: Broker,
    make: Callable[[], Topic],
    numbers: Sequence[tuple[str, str, str]],
) -> Beside:
    login = console.logins.of(request.cookies.get(console.cookie(request), ""))
    key = login.keys.get(broker.name) if login is not None else None
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            if key is None and not await may_enter_without_key(console, broker):
                return Beside(broker.name, [], [], needs_key=True)
            upstream = console.watches.upstream(broker, key or "")
            state = await console.watches.watch(upstream, ("overview",), make).current()
    except TimeoutError:
        return _away(broker, f"It did not answer within {ANSWER_S_MAX:g} s.")
    except Trouble as trouble:
        if trouble.logs_out:
            return Beside(broker.name, [], [], needs_key=True)
        return _away(broker, f"{trouble.title}. {trouble.text}")
    said = [state.texts[name] for name in ("sentence-0", "sentence-1", "more") if state.texts[name]["t"]]
    values = [(label, state.texts[f"number-{name}"], unit) for name, label, unit in numbers]
    return Beside(broker.name, said, values, needs_key=False)


def _away(broker: Broker, text: str) -> Beside:
    return Beside(broker.name, [{"t": f"● {text}", "tone": "lost"}], [], needs_key=False)
