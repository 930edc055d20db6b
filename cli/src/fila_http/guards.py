"""What is refused before anything of a request is read: a caller who uses a foreign name, and foreign pages.

    Host      a page of another site can point a name of its own at this machine (DNS rebinding), and its script would
              be answered: so only the names that are the gateway's own are
    Origin    a page of another site can send a POST without asking; a browser says whose page it is
    target    what a proxy before the gateway may have read in another way: another host than Host's, a slash in
              disguise, bytes that are no text
    framing   versions, transfer codings and expectations that are not this gateway's: a body would be read by
              other rules than its sender's

None is a key. Where the broker asks for keys they come on top.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from fila_http.options import Gateway
from fila_http.problems import Code, Problem, invalid
from fila_http.sending import send_problem

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._~-]{0,255})(?::[0-9]{0,5})?")
_ABSOLUTE = re.compile(rb"[a-z][a-z0-9+.-]*://([^/?#]*)", re.IGNORECASE)
_SLASH = re.compile(rb"%2f", re.IGNORECASE)


class Guards:
    """Wraps the gateway's application."""

    def __init__(self, app: ASGIApp, gateway: Gateway) -> None:
        self._app = app
        self._gateway = gateway
        self._hosts = gateway.hosts_allowed
        self._origins = frozenset(gateway.origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            problem = (
                _framing_problem(scope, headers)
                or self._host_problem(headers)
                or _target_problem(scope, headers)
                or self._origin_problem(scope, headers)
            )
            if problem is not None:
                await send_problem(scope, send, self._gateway.bounds, problem, close=True)
                return
        await self._app(scope, receive, send)

    def _host_problem(self, headers: Headers) -> Problem | None:
        given = headers.getlist("host")
        if len(given) != 1:
            return invalid(
                f"a request has one Host, this one has {len(given) or 'none'}", reason="INVALID_HTTP"
            )
        read = _HOST.fullmatch(given[0].lower())
        if read is None:
            said = f"Host must be a name or an address, with a port or without, got {given[0][:100]!r}"
            return invalid(said, reason="INVALID_HTTP")
        if read[1] in self._hosts:
            return None
        return Problem(
            421,
            "HOST_NOT_ALLOWED",
            f"this gateway is not called {given[0][:100]!r}; it is {' or '.join(sorted(self._hosts))}. To "
            "allow another name, start it with --allow-host",
            Code.PERMISSION_DENIED,
        )

    def _origin_problem(self, scope: Scope, headers: Headers) -> Problem | None:
        given = headers.getlist("origin")
        origin = ", ".join(given) if given else None  # two are nobody's
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
            f"pages of {(origin or 'another site')[:100]!r} may not call this gateway; its operator allows them with "
            "--allow-origin",
            Code.PERMISSION_DENIED,
        )


def _framing_problem(scope: Scope, headers: Headers) -> Problem | None:
    version = scope["http_version"]
    if version not in ("1.0", "1.1"):
        return Problem(
            505,
            "HTTP_VERSION_NOT_SUPPORTED",
            f"HTTP/1.1 is spoken here, and HTTP/1.0; the request's line says HTTP/{version}",
            Code.UNIMPLEMENTED,
        )
    codings = headers.getlist("transfer-encoding")
    if codings and version == "1.0":
        return invalid("HTTP/1.0 has no Transfer-Encoding: say Content-Length", reason="INVALID_HTTP")
    if codings and [each.lower() for each in codings] != ["chunked"]:
        return Problem(
            501,
            "TRANSFER_CODING_NOT_SUPPORTED",
            f"of transfer codings `chunked` alone is understood, got {', '.join(codings)[:100]!r}; send without others",
            Code.UNIMPLEMENTED,
        )
    expected = headers.getlist("expect")
    if expected and version == "1.1" and [each.lower() for each in expected] != ["100-continue"]:
        return Problem(
            417,
            "EXPECTATION_NOT_MET",
            f"`Expect: 100-continue` is the only one that is met, got {', '.join(expected)[:100]!r}; leave it out",
            Code.INVALID_ARGUMENT,
        )
    return None


def _target_problem(scope: Scope, headers: Headers) -> Problem | None:
    target: bytes = scope["state"].get("target", b"/")
    if (absolute := _ABSOLUTE.match(target)) and absolute[1].decode("latin-1").lower() != headers[
        "host"
    ].lower():
        said = (
            f"the request's line names the host {absolute[1].decode('latin-1')[:100]!r}, and Host another one"
        )
        return invalid(said, reason="INVALID_HTTP")
    if b"#" in target:
        return invalid("a request's path ends before a #, which stays with the caller", reason="INVALID_HTTP")
    if _SLASH.search(scope["raw_path"]):
        return invalid(
            "the path has a %2F: names of queues and channels hold no slash; keys and ids go into query or body",
            reason="INVALID_HTTP",
        )
    for part, said in (("path", scope["raw_path"]), ("query", scope["query_string"])):
        try:
            unquote_to_bytes(said).decode("utf-8")
        except UnicodeDecodeError:
            return invalid(f"the {part} has percent-encoded bytes that are no UTF-8", reason="INVALID_HTTP")
    return None
