"""Photographs every page of the console in both themes at three widths, and judges of each what is cut, covered or
beside the screen: `python tests/console/screens.py FOLDER [STATE ...]`. Exit code 1 where anything is.

The states are brokers of their own: with a few keys, with 100,000, without any queue, with much that is wrong, and one
that stops while its pages are open; besides one that asks for keys, with the login and a tenant's page, and a group.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fila import FilaClient, NewMessage
from tests.console import incidents, staged_group
from tests.console.conftest import RunningConsole, start_console
from tests.console.fake_prometheus import FakePrometheus
from tests.console.layout import PROBES
from tests.console.shots import BUSY_S, busy
from tests.e2e.conftest import RunningServer, launch, wait_until_started

WIDTHS = (390, 1280, 1920)
THEMES = ("light", "dark")
KEYS = 100_000
CROWD = "customer-of-the-northern-region-"
LONG = "a-tenant-whose-name-is-as-long-as-it-may-well-be-in-a-shop-of-shops"
STRANGE = "two\nlines \u202eand backwards"
TOLD_S_MAX = 240.0
OF_A_BROKER = {
    "overview": "",
    "events": "events",
    "limits": "limits",
    "schedules": "schedules",
    "access": "access",
    "past": "past",
    "none": "queues/none",
}
OF_A_QUEUE = {
    "queue": "queues/orders",
    "consumers": "queues/orders#consumers",
    "hooks": "queues/mail#hooks",
    "buckets": "queues/mail#buckets",
    "channels": "queues/orders#channels",
    "key": "queues/orders/key?key=globex",
    "dead-letters": "queues/orders.dlq/dead-letters",
    "policy": "queues/mail/policy",
    "levers": "queues/orders/manage",
    "log": "queues/orders/log",
    "limit": "limits?edit=customer:*&key=mailgun",
    "schedules-of-a-queue": "schedules?queue=orders",
    "past-queue": "past?queue=orders&range=7d",
    "past-key": "past?queue=orders&key=globex&range=6h",
}
LIVE = (
    "group",
    "gone",
    "overview",
    "events",
    "queue",
    "key",
    "past",
    "past-queue",
    "past-key",
    "routed",
    "mail",
    "flooder",
)


class Photographer:
    """A browser, the folder of its pictures, and what it saw that was wrong."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self.browser = browser
        self.folder = folder
        self.faults: list[str] = []
        self.cookie = ""
        """Of who is logged in, as a console gave it."""

    async def every(self, state: str, console: RunningConsole, pages: Mapping[str, str]) -> None:
        """Each page, whole, in each theme at each width."""
        for name, path in pages.items():
            address = f"{console.url}{path if path.startswith('/') else '/b/broker/' + path}"
            for theme in THEMES:
                tab: Any = await self.browser.new_page(color_scheme=theme)
                if self.cookie:
                    named, _, value = self.cookie.partition("=")
                    await tab.context.add_cookies([{"name": named, "value": value, "url": console.url}])
                for width in WIDTHS:
                    await tab.set_viewport_size({"width": width, "height": 900})
                    await tab.goto(address)
                    if name in LIVE:
                        await tab.wait_for_selector("body[data-live=yes]", state="attached")
                    await tab.wait_for_timeout(300)
                    await self.one(tab, state, f"{name}-{theme}-{width}")
                await tab.close()

    async def one(self, tab: Any, state: str, name: str) -> None:
        """This tab as it is now."""
        for wrong, (probe, given) in PROBES.items():
            for what in await tab.evaluate(probe, given):
                self.faults.append(f"{state}/{name}: {wrong}: {what!r}")
        (self.folder / state).mkdir(parents=True, exist_ok=True)
        await tab.screenshot(path=self.folder / state / f"{name}.png", full_page=True)


@contextlib.asynccontextmanager
async def broker(**settings: str) -> AsyncIterator[tuple[RunningServer, RunningConsole, FilaClient, str]]:
    """A broker, its console with a Prometheus, an admin's client, and the admin's key."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        server = wait_until_started(launch(folder / "data", folder / "server.log", **settings))
        address, first = server.addresses["grpc"], folder / "data" / "bootstrap-key"
        key = first.read_text().strip() if settings else ""
        past = FakePrometheus()
        threading.Thread(target=past.serve_forever, daemon=True).start()
        more = ["--broker", f"prod={address}", "--broker", "test=http://127.0.0.1:1"] if settings else []
        console = start_console(address, *(more or ["--prometheus", past.url]))
        try:
            async with FilaClient.connect(address, api_key=key) as client:
                yield server, console, client, key
        finally:
            console.stop()
            past.shutdown()
            if server.process.poll() is None:
                server.stop()


async def settled(client: FilaClient) -> dict[str, str]:
    """Limits, schedules and a queue's second version beside the load; the address of a message's page."""
    await client.set_limit(
        "customer:*", rates=[{"per_second": 1}], budget={"amount": 500, "period_ms": "24h"}
    )
    await client.set_limit("trial:*", max_in_flight=2, shadow=True)
    await client.create_schedule("orders", "nightly", cron="0 2 * * *", time_zone="Europe/Berlin")
    await client.create_schedule("orders", "resting", every_ms=60_000, paused=True)
    await client.update_queue("mail", max_attempts=5, comment="the provider asks for it")
    message = (await client.peek("orders", max_messages=1))[0]
    return {"message": f"queues/orders/message?id={message.id}"}


# The states.


async def few(photographer: Photographer) -> None:
    """Some queues with a few keys, and work that goes on."""
    async with broker() as (server, console, client, _):
        load = asyncio.create_task(busy(server.addresses["grpc"]))
        await asyncio.sleep(BUSY_S / 3)
        pages = OF_A_QUEUE | OF_A_BROKER | await settled(client)
        await photographer.every("few", console, pages)
        load.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await load


async def crowded(photographer: Photographer) -> None:
    """A queue of 100,000 keys whose names begin alike; dead letters of many, and limits and schedules in lists."""
    async with broker() as (_, console, client, _):
        await client.create_queue("orders", fairness_key_header="tenant")
        await client.create_queue("mail", fairness_key_header="tenant", throttle_key_headers=["tenant"])
        names = [f"{CROWD}{number:06}" for number in range(KEYS)]
        for first in range(0, KEYS, 10_000):
            crowd = [
                NewMessage(payload=b"x", headers={"tenant": each}) for each in names[first : first + 10_000]
            ]
            await client.enqueue_many("orders", crowd)
        globex = [NewMessage(payload=b"x" * 1_000_000, headers={"tenant": "globex", "why": STRANGE})] * 3
        await client.enqueue_many("orders", globex)
        for number, message in enumerate(await client.lease("orders", 200)):
            error = f"card {number} of {LONG} was declined by the bank, error {number % 40}"
            await client.nack("orders", message.id, error=error, dead_letter=True)
        for name in names[:60]:
            await client.set_limit(name, rates=[{"per_second": 1_000_000, "burst": 9_000_000}])
            await client.create_schedule("orders", name, every_ms=60_000, paused=True)
        pages = OF_A_QUEUE | OF_A_BROKER | await settled(client)
        await photographer.every("crowded", console, pages | {"key": f"queues/orders/key?key={names[7]}"})


async def empty(photographer: Photographer) -> None:
    """No queue at all; then one with nothing in it."""
    async with broker() as (_, console, client, _):
        await photographer.every("empty", console, OF_A_BROKER)
        for name in ("orders", "mail"):
            await client.create_queue(name)
        await photographer.every("empty", console, OF_A_QUEUE | {"message": "queues/orders/message?id=1"})


async def failing(photographer: Photographer) -> None:
    """Six incidents at once, and keys and letters with names that nobody would choose."""
    async with broker() as (_, console, client, _):
        stages = [asyncio.create_task(each.stage(client, asyncio.Event())) for each in incidents.INCIDENTS]
        try:
            await _told(client, {each.kind for each in incidents.INCIDENTS})
            for name in (LONG, STRANGE):
                await client.set_key_policy("kept", name, paused=True, comment=STRANGE + LONG)
                await client.enqueue_many("kept", [NewMessage(headers={"tenant": name}, payload=b"x")] * 5)
            pages = {
                "overview": "",
                "events": "events",
                "queue": "queues/kept",
                "key": "queues/kept/key?key=umbrella",
                "dead-letters": "queues/webhooks.dlq/dead-letters",
                "routed": "queues/routed",
                "policy": "queues/routed/policy",
                "mail": "queues/mail",
                "limits": "limits?key=sendgrid",
                "flooder": "queues/orders/key?key=hooli",
                "log": "queues/kept/log",
                "levers": "queues/kept/manage",
            }
            await photographer.every("failing", console, pages)
        finally:
            for each in stages:
                each.cancel()
            await asyncio.gather(*stages, return_exceptions=True)


async def _told(client: FilaClient, kinds: set[str]) -> None:
    give_up_s = time.monotonic() + TOLD_S_MAX
    while kinds - {each.kind for each in (await client.get_status(max_troubles=100)).troubles}:
        if time.monotonic() > give_up_s:
            raise TimeoutError(f"not all of {', '.join(sorted(kinds))} are told within {TOLD_S_MAX:g} s")
        await asyncio.sleep(1)


async def down(photographer: Photographer) -> None:
    """Pages that were open while the broker stopped, and pages that are opened then."""
    async with broker() as (server, console, client, _):
        await client.create_queue("orders", fairness_key_header="tenant")
        await client.enqueue_many("orders", [NewMessage(headers={"tenant": "globex"}, payload=b"x")] * 50)
        pages = {name: path for name, path in (OF_A_BROKER | OF_A_QUEUE).items() if name in LIVE}
        tabs: dict[str, Any] = {}
        for name, path in pages.items():
            for theme in THEMES:
                tab = await photographer.browser.new_page(color_scheme=theme)
                await tab.goto(f"{console.url}/b/broker/{path}")
                await tab.wait_for_selector("body[data-live=yes]", state="attached")
                tabs[f"{name}-{theme}"] = tab
        await asyncio.to_thread(server.stop)
        for name, tab in tabs.items():
            await tab.wait_for_selector("#band:not([hidden])")
            for width in WIDTHS:
                await tab.set_viewport_size({"width": width, "height": 900})
                await tab.wait_for_timeout(100)
                await photographer.one(tab, "down", f"{name}-{width}")
            await tab.close()
        await photographer.every("down", console, {"opened": "limits", "brokers": "/"})


async def keyed(photographer: Photographer) -> None:
    """The login, a tenant's page by its link, several brokers side by side, and pages of who may only look."""
    async with broker(FILA_AUTH__ENABLED="true") as (_, console, client, _):
        await client.create_queue("orders", fairness_key_header="tenant")
        await client.enqueue_many("orders", [NewMessage(headers={"tenant": "acme"}, payload=b"x")] * 20)
        link = (await client.create_tenant_link("orders", "acme")).key
        pages = {"login": "/b/prod/login", "tenant": f"/t/prod#{link}", "brokers": "/"}
        await photographer.every("keyed", console, pages)
        (leased,) = await client.lease("orders", 1)
        await client.nack("orders", leased.id, error="declined", dead_letter=True)
        (waits,) = await client.peek("orders", max_messages=1)
        key = await client.create_key("looker")
        await client.grant("looker", view=["*", "*.dlq"], consume=["*.dlq"])
        answer = await asyncio.to_thread(console.post, "/b/prod/login", {"key": key})
        photographer.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        looked_at = {
            "looks-at-overview": "",
            "looks-at-schedules": "schedules",
            "looks-at-queue": "queues/orders",
            "looks-at-key": "queues/orders/key?key=acme",
            "looks-at-levers": "queues/orders/manage",
            "looks-at-letters": "queues/orders.dlq/dead-letters?offset=1",
            "looks-at-message": f"queues/orders/message?id={waits.id}",
        }
        await photographer.every(
            "keyed", console, {name: f"/b/prod/{path}" for name, path in looked_at.items()}
        )
        photographer.cookie = ""


async def grouped(photographer: Photographer) -> None:
    """A group that moves because somebody presses for it, and whose other node is gone then."""
    with staged_group.group() as staged:
        await photographer.every("grouped", staged.console, {"group": "group"})
        tab = await photographer.browser.new_page(viewport={"width": 1280, "height": 900})
        await tab.goto(f"{staged.console.url}/b/broker/group")
        await tab.get_by_text("fila-2 has read all").wait_for()
        await tab.get_by_role("button", name="Move", exact=True).click()
        await tab.get_by_text("fila-2 serves.").wait_for()
        await photographer.one(tab, "grouped", "moved-light-1280")
        await tab.close()
        staged.nodes[0].process.kill()
        gone = {"gone": "group", "overview": ""}
        await asyncio.sleep(3)
        await photographer.every("grouped", staged.console, gone)


STATES: dict[str, Callable[[Photographer], Awaitable[None]]] = {
    each.__name__: each for each in (few, crowded, empty, failing, down, keyed, grouped)
}


async def main(folder: Path, chosen: list[str]) -> int:
    """The states that are named, or all."""
    from playwright.async_api import async_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        photographer = Photographer(browser, folder)
        for name in chosen or STATES:
            before = len(photographer.faults)
            await STATES[name](photographer)
            pictures = len([*(folder / name).glob("*.png")])
            found = photographer.faults[before:]
            print(*found, f"{name}: {pictures} pictures, {len(found)} faults", sep="\n", flush=True)
        await browser.close()
    return 1 if photographer.faults else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]), sys.argv[2:])))
