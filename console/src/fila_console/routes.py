"""Every address of the console, what answers it, and what a failure looks like."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from fila_console.assets import Assets
from fila_console.guard import Guard
from fila_console.logins import Logins
from fila_console.pages import (
    access,
    brokers,
    dead_letters,
    enter,
    events,
    group,
    key,
    limits,
    log,
    manage,
    message,
    operations,
    overview,
    past,
    policy,
    queue,
    schedules,
    search,
    tenant,
    versions,
)
from fila_console.settings import Settings
from fila_console.streams import ENDED, STREAMS_MAX, stream
from fila_console.trouble import Trouble
from fila_console.visit import Console, Handler, Visit, fields_of, visit_of
from fila_console.watches import Watch, Watches

TIDY_EVERY_S = 5.0

_log = logging.getLogger("fila.console")

PAGES: dict[str, Handler] = {
    "": overview.page,
    "queues/{queue}": queue.page,
    "queues/{queue}/key": key.page,
    "queues/{queue}/key/preview": key.preview,
    "queues/{queue}/dead-letters": dead_letters.page,
    "queues/{queue}/dead-letters/letter": dead_letters.letter,
    "queues/{queue}/dead-letters/payload": dead_letters.payload,
    "queues/{queue}/dead-letters/export": dead_letters.export,
    "queues/{queue}/dead-letters/meant": operations.preview,
    "queues/{queue}/policy": policy.page,
    "queues/{queue}/policy/versions": versions.listed,
    "queues/{queue}/policy/version": versions.one,
    "queues/{queue}/manage": manage.page,
    "queues/{queue}/log": log.page,
    "queues/{queue}/log/preview": log.preview,
    "queues/{queue}/message": message.page,
    "access": access.page,
    "limits": limits.page,
    "limits/preview": limits.preview,
    "schedules": schedules.page,
    "schedules/line": schedules.preview,
    "events": events.page,
    "group": group.page,
    "group/preview": group.preview,
    "past": past.page,
    "search": search.page,
}
"""What is read, below /b/BROKER/."""

CHANGES: dict[str, Handler] = {
    "create-queue": manage.create,
    "queues/{queue}/publish": manage.publish,
    "queues/{queue}/purge": manage.purge,
    "queues/{queue}/delete": manage.delete,
    "queues/{queue}/channels/create": manage.create_channel,
    "queues/{queue}/channels/delete": manage.delete_channel,
    "queues/{queue}/channels/pause": manage.pause_channel,
    "queues/{queue}/pause": queue.pause,
    "queues/{queue}/key": key.change,
    "queues/{queue}/dead-letters/redrive": dead_letters.redrive,
    "queues/{queue}/dead-letters/drop": dead_letters.drop,
    "queues/{queue}/dead-letters/edit": dead_letters.edit,
    "queues/{queue}/dead-letters/start": operations.start,
    "queues/{queue}/dead-letters/cancel": operations.cancel,
    "queues/{queue}/policy": policy.change,
    "queues/{queue}/policy/back": versions.back,
    "queues/{queue}/log/seek": log.seek,
    "queues/{queue}/message/cancel": message.cancel,
    "access/create": access.create,
    "access/rotate": access.rotate,
    "access/revoke": access.revoke,
    "access/grant": access.grant,
    "limits/set": limits.change,
    "limits/delete": limits.delete,
    "limits/reset": limits.reset,
    "group/move": group.move,
    "group/remove": group.remove,
    "schedules/create": schedules.create,
    "schedules/pause": schedules.pause,
    "schedules/delete": schedules.delete,
}
"""What is posted, below /b/BROKER/: each with the token of a page of ours. --read-only refuses all of it."""

ASKED: dict[str, Handler] = {
    "queues/{queue}/policy/diff": policy.diff,
    "queues/{queue}/policy/dry-run": policy.dry_run,
}
"""What is posted because it is long, and changes nothing; with the token as well."""

STREAMS: dict[str, Callable[[Visit], Watch]] = {
    "live/overview": overview.watch,
    "live/queue": queue.watch,
    "live/key": key.watch,
    "live/dead-letters": dead_letters.watch,
    "live/events": events.watch,
    "live/group": group.watch,
    "live/past": past.watch,
}
"""What keeps a page current, below /b/BROKER/."""

Endpoint = Callable[[Request], Awaitable[Response]]


def application(console: Console) -> Guard:
    """The whole console, as one ASGI application."""
    settings = console.settings

    @contextlib.asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        tidying = asyncio.create_task(_tidy(console))
        yield
        tidying.cancel()
        await console.close()

    app = Starlette(
        routes=routes_of(console),
        lifespan=life,
        exception_handlers={
            Trouble: _troubled(console),
            HTTPException: _missing(console),
            500: _failed(console),
        },
    )
    return Guard(app, lambda: settings.origins(console.port), by_tls=settings.by_tls)


def routes_of(console: Console) -> list[Route]:
    """Every address."""
    below = "/b/{broker}/"
    return [
        Route("/", brokers.asked(console, overview.Overview, overview.NUMBERS)),
        Route("/assets/{digest}/{name}", console.assets.serve),
        Route("/healthz", _health),
        Route("/t", tenant.asked(console), methods=["GET"]),
        Route("/t/{broker}", tenant.asked(console), methods=["GET"]),
        Route("/t/{broker}/live", tenant.followed(console), methods=["POST"]),
        Route(below + "login", enter.asked(console), methods=["GET"]),
        Route(below + "login", enter.entered(console), methods=["POST"]),
        Route(below + "logout", enter.left(console), methods=["POST"]),
        *(Route(below + path, _page(console, handler), methods=["GET"]) for path, handler in PAGES.items()),
        *(
            Route(below + path, _change(console, handler), methods=["POST"])
            for path, handler in CHANGES.items()
        ),
        *(
            Route(below + path, _posted(console, handler), methods=["POST"])
            for path, handler in ASKED.items()
        ),
        *(Route(below + path, _stream(console, watch), methods=["GET"]) for path, watch in STREAMS.items()),
    ]


def console_of(settings: Settings) -> Console:
    """All that requests share. Raises NotInstalled."""
    logins = Logins(time.monotonic)
    return Console(settings, logins, Watches(settings.ca_file, logins.forget_key), Assets())


async def _tidy(console: Console) -> None:
    while True:
        await asyncio.sleep(TIDY_EVERY_S)
        try:
            await console.watches.tidy(console.keys_in_use())
        except Exception:  # noqa: BLE001 - logged whole, and whatever it is must not end the tidying
            _log.exception("tidying failed; it is tried again")


async def _health(_: Request) -> Response:
    return PlainTextResponse("ok\n")


def _page(console: Console, handler: Handler) -> Endpoint:
    async def answered(request: Request) -> Response:
        visit = await visit_of(console, request)
        if not isinstance(visit, Visit):
            return visit
        if not visit.is_part:
            await visit.upstream.learn_group()
        return await handler(visit)

    return answered


def _change(console: Console, handler: Handler) -> Endpoint:
    if not console.settings.read_only:
        return _posted(console, handler)

    async def refused(_: Request) -> Response:
        raise Trouble(
            403, "Nothing was changed", "This console was started with --read-only: it changes nothing."
        )

    return refused


def _posted(console: Console, handler: Handler) -> Endpoint:
    async def answered(request: Request) -> Response:
        visit = await visit_of(console, request)
        if not isinstance(visit, Visit):
            return visit
        visit.form = fields_of(await request.body())
        if not visit.login.has_token(visit.field("csrf")):
            raise Trouble(
                403,
                "This form is too old",
                "It does not carry the token of your login.",
                "Load the page again.",
            )
        return await handler(visit)

    return answered


def _stream(console: Console, watch_of: Callable[[Visit], Watch]) -> Endpoint:
    async def answered(request: Request) -> Response:
        visit = await visit_of(console, request)
        if not isinstance(visit, Visit):
            # Told within the stream: of a status a browser's page would learn nothing.
            return PlainTextResponse(ENDED, media_type="text/event-stream")
        if console.watches.watching() >= STREAMS_MAX:
            raise Trouble(503, "Too many pages are open", f"{STREAMS_MAX} are kept current already.")
        cookie = request.cookies.get(console.cookie(request), "")
        key = visit.upstream.key

        def is_logged_in() -> bool:
            # An open page is in use: the login stays.
            login = console.logins.of(cookie) if key else console.logins.nobody
            return login is not None and login.keys.get(visit.broker.name, "") == key

        return stream(watch_of(visit), is_logged_in)

    return answered


# What goes wrong.


def _troubled(console: Console) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answered(request: Request, error: Exception) -> Response:
        assert isinstance(error, Trouble)
        name = request.path_params.get("broker", "")
        broker = console.brokers.get(name)
        if broker is not None and (error.logs_out or error.status == 503):
            console.forget_openness(broker)
        if broker is not None and error.logs_out:
            login = console.logins.of(request.cookies.get(console.cookie(request), ""))
            if login is not None and name in login.keys:
                console.logins.forget_key(name, login.keys[name])
                return RedirectResponse(f"/b/{name}/login", 303)
        is_part = request.headers.get("hx-request") == "true" or request.method == "POST"
        template = "said.html" if is_part else "trouble.html"
        return _plain_page(console, request, template, error)

    return answered


def _plain_page(console: Console, request: Request, template: str, trouble: Trouble) -> Response:
    """A page that needs nobody to be logged in, and no broker to answer."""
    text = console.render(
        template,
        {
            "trouble": trouble,
            "text": f"{trouble.title}. {trouble.text} {trouble.advice}".strip(),
            "tone": "lost",
            "home": f"/b/{request.path_params.get('broker') or next(iter(console.brokers))}/",
            "retry": trouble.status == 503,
        },
    )
    return Response(text, trouble.status, media_type="text/html")


def _missing(console: Console) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answered(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        trouble = Trouble(
            status, "There is no such page", "The address may be mistyped, or from another version."
        )
        return _plain_page(console, request, "trouble.html", trouble)

    return answered


def _failed(console: Console) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answered(request: Request, _: Exception) -> Response:
        trouble = Trouble(500, "The console failed", "Its log has the rest.", "Load the page again.")
        return _plain_page(console, request, "trouble.html", trouble)

    return answered
