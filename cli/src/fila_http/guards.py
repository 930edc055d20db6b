"""What is refused before anything of a request is read: whoever calls the door by a foreign name, and foreign pages.

    Host      a page of another site can point a name of its own at this machine (DNS rebinding), and its script would
              be answered: so only the names that are the door's own are
    Origin    a page of another site can send a POST without asking; a browser says whose page it is

Neither is a key. Where the broker asks for keys they come on top.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from fila_http.options import Door
from fila_http.problems import Code, Problem
from fila_http.sending import send_problem


class Guards:
    """Wraps the door's application."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door
        self._hosts = door.hosts_allowed
        self._origins = frozenset(door.origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            problem = self._host_problem(headers) or self._origin_problem(scope, headers)
            if problem is not None:
                await send_problem(scope, send, self._door.bounds, problem, close=True)
                return
        await self._app(scope, receive, send)

    def _host_problem(self, headers: Headers) -> Problem | None:
        given = headers.getlist("host")
        host = given[0].lower() if len(given) == 1 else ""
        name = host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
        if name in self._hosts:
            return None
        return Problem(
            421,
            "HOST_NOT_ALLOWED",
            f"this door is not called {', '.join(given)[:100]!r}; it is {' or '.join(sorted(self._hosts))}. Whoever "
            "runs it allows another name with --allow-host",
            Code.PERMISSION_DENIED,
        )

    def _origin_problem(self, scope: Scope, headers: Headers) -> Problem | None:
        origin = headers.get("origin")
        if origin is None:
            foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        else:
            own = f"{scope['scheme']}://{headers.get('host', '')}"
            foreign = origin.lower() != own.lower() and origin not in self._origins
        if not foreign:
            return None
        return Problem(
            403,
            "ORIGIN_NOT_ALLOWED",
            f"pages of {(origin or 'another site')[:100]!r} may not call this door; whoever runs it allows them with "
            "--allow-origin",
            Code.PERMISSION_DENIED,
        )
