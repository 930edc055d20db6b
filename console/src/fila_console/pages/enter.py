"""Log in and out. The broker tries a key, and slows down callers that guess."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from fila_console.trouble import Trouble
from fila_console.visit import Console, fields_of, may_enter_without_key, remember_rights

KEY_CHARACTERS_MAX = 512

Endpoint = Callable[[Request], Awaitable[Response]]


def asked(console: Console) -> Endpoint:
    """The form."""

    async def answered(request: Request) -> Response:
        broker = console.brokers.get(request.path_params["broker"])
        if broker is None:
            raise Trouble(404, "There is no such broker", "This console was not told of one by that name.")
        if await may_enter_without_key(console, broker):
            return RedirectResponse(f"/b/{broker.name}/", 303)
        return _form(console, broker.name, request.query_params.get("after", ""))

    return answered


def entered(console: Console) -> Endpoint:
    """The form that was sent. `Origin` was judged already; there is no login yet whose token it could carry."""

    async def answered(request: Request) -> Response:
        broker = console.brokers.get(request.path_params["broker"])
        if broker is None:
            raise Trouble(404, "There is no such broker", "This console was not told of one by that name.")
        form = fields_of(await request.body())
        key = form.get("key", [""])[0].strip()
        after = form.get("after", [""])[0]
        if (
            not key
            or len(key) > KEY_CHARACTERS_MAX
            or not key.isascii()
            or not key.isprintable()
            or " " in key
        ):
            return _form(console, broker.name, after, "That is no key: it looks like fila_ID_SECRET.", 400)
        await may_enter_without_key(console, broker)
        try:
            identity = await console.whose(broker, key)
        except Trouble as trouble:
            text = (
                "The broker does not know this key."
                if trouble.logs_out
                else f"{trouble.title}. {trouble.advice}"
            )
            return _form(console, broker.name, after, text, 401 if trouble.logs_out else trouble.status)
        cookie = request.cookies.get(console.cookie(request), "")
        value = console.logins.begin(broker.name, key, identity.principal, cookie)
        if (login := console.logins.of(value)) is not None:
            remember_rights(login, broker.name, identity)
        answer = RedirectResponse(_safe(after, broker.name), 303)
        answer.set_cookie(
            console.cookie(request),
            value,
            path="/",
            httponly=True,
            samesite="strict",
            secure=console.is_by_tls(request),
        )
        return answer

    return answered


def left(console: Console) -> Endpoint:
    """Log out."""

    async def answered(request: Request) -> Response:
        cookie = request.cookies.get(console.cookie(request), "")
        login = console.logins.of(cookie)
        form = fields_of(await request.body())
        if login is not None and login.has_token(form.get("csrf", [""])[0]):
            console.logins.end(cookie)
        answer = RedirectResponse(f"/b/{request.path_params['broker']}/login", 303)
        answer.delete_cookie(
            console.cookie(request),
            path="/",
            httponly=True,
            samesite="strict",
            secure=console.is_by_tls(request),
        )
        return answer

    return answered


def _safe(after: str, broker: str) -> str:
    """Where to go on: a page of that broker, and nowhere else."""
    home = f"/b/{broker}/"
    return after if after.startswith(home) and "\\" not in after and after.isprintable() else home


def _form(console: Console, broker: str, after: str, said: str = "", status: int = 200) -> HTMLResponse:
    context = {
        "broker": console.brokers[broker],
        "after": after,
        "said": said,
        "brokers": console.settings.brokers,
    }
    return HTMLResponse(console.render("login.html", context), status)
