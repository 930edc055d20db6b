"""What every request passes, whatever its address: whose `Host`, whose `Origin`, how large, how slow, and with which
headers it is answered.

A page elsewhere may make a browser send requests here, with our cookie or by a name that was pointed at this machine.
So `Host` must be one that was listed, and a change must come from a page of ours: by `Origin`, by `Sec-Fetch-Site`, and
by the token in its form (`visit.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fila.connection import calling_for

BODY_BYTES_MAX = 512 << 10
"""Two scripts of 64 KiB, each letter escaped as three."""
BODY_S_MAX = 10.0
QUERY_BYTES_MAX = 16 << 10

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types htmx"
)
_HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class Refused(Exception):
    """A request that is not even looked at; `status` and why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Guard:
    """The outermost layer."""

    def __init__(
        self, app: ASGIApp, origins: Callable[[], Mapping[str, frozenset[str]]], *, by_tls: bool
    ) -> None:
        """`origins`: what a browser may send as `Host`, and the `Origin`s of our pages there, in lower case."""
        self._app = app
        self._origins = origins
        self._by_tls = by_tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge one request, and hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add_headers(MutableHeaders(scope=message))
            await send(message)

        try:
            self._judge(scope)
            body = await _body(scope, receive) if scope["method"] not in ("GET", "HEAD") else b""
        except Refused as refused:
            await PlainTextResponse(f"{refused}\n", refused.status)(scope, receive, answered)
            return
        with calling_for((scope.get("client") or ("",))[0]):
            await self._app(scope, _replayed(body, receive), answered)

    def _add_headers(self, headers: MutableHeaders) -> None:
        for name, value in _HEADERS.items():
            headers[name] = value
        if "cache-control" not in headers:
            headers["cache-control"] = "no-store"
        if self._by_tls:
            headers["strict-transport-security"] = "max-age=31536000"

    def _judge(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        ours = self._origins().get(hosts[0].lower()) if len(hosts) == 1 else None
        if ours is None:
            raise Refused(
                421, "This console is not reached by that name. Use the address it printed, or --allow-host."
            )
        if len(scope.get("query_string", b"")) > QUERY_BYTES_MAX:
            raise Refused(414, f"The address is longer than {QUERY_BYTES_MAX} bytes.")
        if scope["method"] in ("GET", "HEAD"):
            return
        if scope["method"] != "POST":
            raise Refused(405, "Only GET and POST are served here.")
        # Scheme and all: https on this port is somebody else, and so is http before a console with TLS.
        # Our pages tell nobody their address, so browsers say `null` for a form that one of them sends, and whose it
        # was in a header that no page can write; of a sandboxed frame's that says cross-site.
        origin = headers.get("origin", "").lower()
        is_own_form = origin == "null" and headers.get("sec-fetch-site", "") == "same-origin"
        if origin not in ours and not is_own_form:
            raise Refused(403, "A change must come from a page of this console (Origin).")
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise Refused(403, "A change must come from a page of this console (Sec-Fetch-Site).")


async def _body(scope: Scope, receive: Receive) -> bytes:
    """All of a body that is small and comes soon."""
    announced = Headers(scope=scope).get("content-length", "0")
    if not announced.isdecimal() or int(announced) > BODY_BYTES_MAX:
        raise Refused(413, f"The body is larger than {BODY_BYTES_MAX >> 10} KiB.")
    parts: list[bytes] = []
    octets = 0
    try:
        async with asyncio.timeout(BODY_S_MAX):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refused(400, "The body did not come whole.")
                parts.append(message.get("body", b""))
                octets += len(parts[-1])
                if octets > BODY_BYTES_MAX:
                    raise Refused(413, f"The body is larger than {BODY_BYTES_MAX >> 10} KiB.")
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Refused(408, f"The body did not come within {BODY_S_MAX:.0f} s.") from None


def _replayed(body: bytes, receive: Receive) -> Receive:
    is_told = False

    async def told() -> Message:
        nonlocal is_told
        if is_told:
            return await receive()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return told
