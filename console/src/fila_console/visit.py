"""One request of somebody who may be here: their broker, login and upstream, and how they are answered."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from fila.principals import Identity
from fila_console import wording
from fila_console.assets import Assets
from fila_console.logins import Login, Logins
from fila_console.prometheus import Prometheus
from fila_console.rights import may
from fila_console.settings import Broker, Settings
from fila_console.tries import Tries
from fila_console.trouble import Trouble
from fila_console.upstream import KeyCheck, Upstream, asks_for_no_key
from fila_console.watches import Topic, Watch, Watches

FIELDS_MAX = 2_000
"""Fields of one form; a thousand dead letters may be chosen at once."""


class Exact(str):
    """Text that is written as it is, for the value of a field that comes back; it is escaped all the same."""

    __slots__ = ()


def _finalized(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, (Markup, Exact)):
        return wording.shown(value)
    return "" if value is None else value


class Console:
    """What all requests share."""

    def __init__(self, settings: Settings, logins: Logins, watches: Watches, assets: Assets) -> None:
        self.settings = settings
        self.logins = logins
        self.watches = watches
        self.assets = assets
        self.port = settings.port
        self.brokers = {broker.name: broker for broker in settings.brokers}
        self.prometheus = {
            broker.name: Prometheus(broker.prometheus, settings.ca_file)
            for broker in settings.brokers
            if broker.prometheus is not None
        }
        self.links: set[tuple[str, str]] = set()
        """Tenants' links that are looked at: brokers' names with keys."""
        self._without_keys: dict[str, bool] = {}
        self._checks = {broker.name: KeyCheck(broker, settings.ca_file) for broker in settings.brokers}
        self._tries = {name: Tries(check.whose) for name, check in self._checks.items()}
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(Path(__file__).resolve().parent / "templates"),
            autoescape=True,
            finalize=_finalized,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["exact"] = Exact
        self._templates.globals["asset"] = assets.url
        self._templates.globals["words"] = wording
        # Now, and not while the first who opens a page waits for it.
        for name in self._templates.list_templates():
            self._templates.get_template(name)

    def is_by_tls(self, request: Request) -> bool:
        """Whether the browser comes by TLS, ours or that of a proxy: the name it uses says so."""
        origins = self.settings.origins(self.port).get(request.headers.get("host", "").lower(), frozenset())
        return bool(origins) and all(each.startswith("https://") for each in origins)

    def cookie(self, request: Request) -> str:
        """The login cookie's name: browsers keep cookies by host, whatever the port."""
        name = f"fila-console-{self.port}"
        return f"__Host-{name}" if self.is_by_tls(request) else name

    async def is_open(self, broker: Broker) -> bool:
        """Whether the broker asks for no key. It may be switched, but not while it runs: a broker that did not answer
        is asked again."""
        if broker.name not in self._without_keys:
            self._without_keys[broker.name] = await asks_for_no_key(broker, self.settings.ca_file)
        return self._without_keys[broker.name]

    async def whose(self, broker: Broker, key: str) -> Identity:
        """Whose key this is, which nobody has shown yet. Raises Trouble."""
        return await self._tries[broker.name].whose(key)

    async def close(self) -> None:
        """Hang up everywhere."""
        await self.watches.close()
        for check in self._checks.values():
            await check.close()

    def keys_in_use(self) -> set[tuple[str, str]]:
        """Brokers' names with keys of logins that are not over, and of links that somebody looks at."""
        self.links &= self.watches.looked_at()
        return self.logins.keys_in_use() | self.links

    def forget_openness(self, broker: Broker) -> None:
        """Ask again: the broker was away, and may have come back with other settings."""
        self._without_keys.pop(broker.name, None)

    def render(self, template: str, context: Mapping[str, Any]) -> str:
        """One page or part of one."""
        return self._templates.get_template(template).render(context)


@dataclass(slots=True)
class Visit:
    """One request to a page of one broker."""

    console: Console
    request: Request
    broker: Broker
    login: Login
    upstream: Upstream
    is_open: bool
    """The broker asks for no key."""
    form: dict[str, list[str]]
    """A change's fields."""

    # What was asked.

    def path(self, name: str) -> str:
        """A part of the address."""
        return str(self.request.path_params[name])

    def query(self, name: str) -> str:
        """One value of the address's query; empty when there is none."""
        return self.request.query_params.get(name, "")

    def number(self, name: str, most: int = (1 << 63) - 1) -> int:
        """One value as a number; 0 when there is none. Raises Trouble."""
        return as_number(name, self.query(name) or "0", most)

    def field(self, name: str) -> str:
        """One value of the form; empty when there is none."""
        values = self.form.get(name)
        return values[0] if values else ""

    @property
    def is_part(self) -> bool:
        """Whether a part of the page is asked for, not all of it."""
        return self.request.headers.get("hx-request") == "true"

    # Where things are.

    def url(self, *parts: str, **query: object) -> str:
        """The address of a page of this broker."""
        path = "/".join(quote(part, safe="") for part in ("b", self.broker.name, *parts))
        asked = urlencode({name: value for name, value in query.items() if value not in ("", None)})
        return f"/{path}" + (f"?{asked}" if asked else "")

    def watch(self, name: tuple[str, ...], make: Callable[[], Topic]) -> Watch:
        """What this page is made of, shared with all who look at it by the same key."""
        return self.console.watches.watch(self.upstream, name, make)

    # What may be changed.

    async def locked(self, right: str, queue: str = "") -> str:
        """Why this visitor changes nothing here, as a sentence; empty for who has the right on the queue (on any, where
        none is named), or is an admin."""
        if self.console.settings.read_only:
            return READ_ONLY
        if self.is_open:
            return ""
        identity = await self.upstream.who()
        remember_rights(self.login, self.broker.name, identity)
        if may(identity, right.split(" or "), queue):
            return ""
        where = f" on {queue}" if queue else ""
        return f"Your key may look at this and not change it: that needs the right to {right}{where}."

    # How it is answered.

    def page(self, template: str, status: int = 200, **context: Any) -> HTMLResponse:
        """A page, or a part of one."""
        settings = self.console.settings
        shared = {
            "url": self.url,
            "broker": self.broker,
            "brokers": self.console.settings.brokers,
            "csrf": self.login.csrf,
            "who": self.login.names.get(self.broker.name, ""),
            "is_open": self.is_open,
            "in_group": self.upstream.is_in_group,
            "sees_limits": self.broker.name not in self.login.without_limits,
            "locked": READ_ONLY if settings.read_only else "",
            "queue": "",
            "key": "",
            "channel": "",
            "live": "",
            "here": "",
        }
        shared |= context
        shared["read_only"] = bool(shared["locked"])
        return HTMLResponse(self.console.render(template, shared), status)

    def done(self, text: str, *, tone: str = "") -> HTMLResponse:
        """A sentence about a change, for the place beside its button."""
        return self.page("said.html", text=text, tone=tone)

    def changed(
        self, text: str, *, line: str = "", undo: Undo | None = None, tone: str = "done"
    ) -> HTMLResponse:
        """What was done, the line that does it from a shell, and the way back."""
        return self.page("undo.html", text=text, line=line, undo=undo, tone=tone)


@dataclass(frozen=True, slots=True)
class Undo:
    """The way back from a change: a form of a page of ours that asks for what was before."""

    address: str
    label: str
    fields: list[tuple[str, str]]


READ_ONLY = "This console changes nothing: it was started with --read-only."

Handler = Callable[[Visit], Awaitable[Response]]


def as_number(name: str, text: str, most: int = (1 << 63) - 1) -> int:
    """A whole number from 0 to `most`. Raises Trouble."""
    cleaned = text.replace(",", "").strip()
    if not cleaned.isascii() or not cleaned.isdecimal() or len(cleaned) > 20 or int(cleaned) > most:
        raise Trouble(400, "That is no number", f"{name} must be a whole number from 0 to {most:,}.")
    return int(cleaned)


def as_decimal(name: str, text: str, most: float) -> float:
    """A number from 0 to `most`. Raises Trouble."""
    cleaned = text.replace(",", "").strip()
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,6})?", cleaned) or float(cleaned) > most:
        raise Trouble(400, "That is no number", f"{name} must be a number from 0 to {most:,.0f}, like 2.5.")
    return float(cleaned)


def headers_of(text: str) -> dict[str, str]:
    """Headers of a field in which each line is NAME=VALUE. Raises Trouble."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, is_there, value = line.partition("=")
        if line.strip() and not (is_there and name.strip()):
            raise Trouble(
                400, "That is no header", f"Write NAME=VALUE in each line, and not {wording.brief(line)}."
            )
        if line.strip():
            found[name.strip()] = value
    return found


def fields_of(body: bytes) -> dict[str, list[str]]:
    """An urlencoded form. Raises Trouble."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict"
        )
    except (ValueError, UnicodeDecodeError) as error:
        raise Trouble(
            400, "That form cannot be read", "It is no urlencoded text of a page of ours."
        ) from error
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        # Browsers send each newline as two characters.
        found.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return found


def remember_rights(login: Login, broker: str, identity: Identity) -> None:
    """Keep what the menu goes by: limits are for admins, and a tenant sees those that its own messages meet."""
    if identity.tenant or may(identity, (), ""):
        login.without_limits.discard(broker)
    else:
        login.without_limits.add(broker)


async def visit_of(console: Console, request: Request) -> Visit | RedirectResponse:
    """Who asks for what; somebody who is not logged in is sent to do so. Raises Trouble."""
    broker = console.brokers.get(request.path_params["broker"])
    if broker is None:
        raise Trouble(404, "There is no such broker", "This console was not told of one by that name.")
    login = console.logins.of(request.cookies.get(console.cookie(request), ""))
    key = login.keys.get(broker.name) if login is not None else None
    if login is None or key is None:
        if not await may_enter_without_key(console, broker):
            after = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/b/{broker.name}/login?{urlencode({'after': after})}", 303)
        login, key = console.logins.nobody, ""
    upstream = console.watches.upstream(broker, key)
    return Visit(console, request, broker, login, upstream, key == "", {})


async def may_enter_without_key(console: Console, broker: Broker) -> bool:
    """Whether the broker asks for no key. Raises Trouble where it may not be shown then."""
    if not await console.is_open(broker):
        return False
    if not console.settings.is_loopback:
        raise Trouble(
            403,
            "This broker asks for no key",
            "It trusts everybody on its machine, and this console would lend that trust to everybody who reaches it.",
            "Switch keys on at the broker (auth.enabled), or let the console listen on 127.0.0.1.",
        )
    return True
