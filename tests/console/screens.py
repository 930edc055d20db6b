"""Photographs every page of the console in both themes at three widths, for people to look at: of a broker without
queues, of a busy one, of one that asks for keys, and of one that stopped while the page was open.
`python tests/console/screens.py FOLDER`."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fila import FilaClient
from tests.console.conftest import RunningConsole, start_console
from tests.console.fake_prometheus import FakePrometheus
from tests.console.shots import BUSY_S, busy
from tests.e2e.conftest import launch, wait_until_started

WIDTHS = (390, 1280, 1920)
THEMES = ("light", "dark")
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
LIVE = ("overview", "events", "queue", "key", "past", "past-queue", "past-key")


async def settled(address: str) -> str:
    """Limits, schedules and a queue's second version beside the load; the address of a message's page."""
    async with FilaClient.connect(address) as client:
        await client.set_limit(
            "customer:*", rates=[{"per_second": 1}], budget={"amount": 500, "period_ms": "24h"}
        )
        await client.set_limit("trial:*", max_in_flight=2, shadow=True)
        await client.create_schedule("orders", "nightly", cron="0 2 * * *", time_zone="Europe/Berlin")
        await client.create_schedule("orders", "resting", every_ms=60_000, paused=True)
        await client.update_queue("mail", max_attempts=5, comment="the provider asks for it")
        message = (await client.peek("orders", max_messages=1))[0]
    return f"queues/orders/message?id={message.id}"


async def photograph(browser: Any, console: RunningConsole, pages: dict[str, str], folder: Path) -> None:
    """Each page, whole, in each theme at each width."""
    for name, path in pages.items():
        for theme in THEMES:
            tab: Any = await browser.new_page(color_scheme=theme)
            for width in WIDTHS:
                await tab.set_viewport_size({"width": width, "height": 900})
                await tab.goto(f"{console.url}{path if path.startswith('/') else '/b/broker/' + path}")
                if name in LIVE:
                    await tab.wait_for_selector("body[data-live=yes]", state="attached")
                await tab.wait_for_timeout(500)
                await tab.screenshot(path=folder / f"{name}-{theme}-{width}.png", full_page=True)
            await tab.close()


async def of_a_broker_that_stops(browser: Any, console: RunningConsole, stop: Any, folder: Path) -> None:
    """Pages that were open while it did."""
    tabs = {}
    for width in WIDTHS:
        tabs[width] = await browser.new_page(viewport={"width": width, "height": 900})
        await tabs[width].goto(f"{console.url}/b/broker/")
        await tabs[width].wait_for_selector("body[data-live=yes]", state="attached")
    await asyncio.to_thread(stop)
    for width, tab in tabs.items():
        await tab.wait_for_selector("#band:not([hidden])")
        await tab.screenshot(path=folder / f"down-light-{width}.png")
        await tab.close()


async def with_keys(browser: Any, temporary: Path, folder: Path) -> None:
    """The login, a tenant's page by its link, and several brokers side by side, one of them away."""
    log = temporary / "keyed.log"
    server = wait_until_started(launch(temporary / "keyed", log, FILA_AUTH__ENABLED="true"))
    address = server.addresses["grpc"]
    key = (temporary / "keyed" / "bootstrap-key").read_text().strip()
    console = start_console(address, "--broker", f"prod={address}", "--broker", "test=http://127.0.0.1:1")
    try:
        async with FilaClient.connect(address, api_key=key) as client:
            await client.create_queue("orders", fairness_key_header="tenant")
            for _ in range(20):
                await client.enqueue("orders", b"x", {"tenant": "acme"})
            link = (await client.create_tenant_link("orders", "acme")).key
        pages = {"login": "/b/prod/login", "tenant": f"/t/prod#{link}", "brokers": "/"}
        await photograph(browser, console, pages, folder)
    finally:
        console.stop()
        server.stop()


async def main(folder: Path) -> None:
    """All of it."""
    from playwright.async_api import async_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        with tempfile.TemporaryDirectory() as temporary:
            await with_keys(browser, Path(temporary), folder)
            server = wait_until_started(launch(Path(temporary, "data"), Path(temporary, "server.log")))
            past = FakePrometheus()
            threading.Thread(target=past.serve_forever, daemon=True).start()
            console = start_console(server.addresses["grpc"], "--prometheus", past.url)
            try:
                await photograph(browser, console, OF_A_BROKER, folder / "empty")
                load = asyncio.create_task(busy(server.addresses["grpc"]))
                await asyncio.sleep(BUSY_S / 3)
                message = {"message": await settled(server.addresses["grpc"])}
                await photograph(browser, console, OF_A_QUEUE | OF_A_BROKER | message, folder)
                await load
                await of_a_broker_that_stops(browser, console, server.stop, folder)
            finally:
                console.stop()
                server.stop()
        await browser.close()


if __name__ == "__main__":
    Path(sys.argv[1], "empty").mkdir(parents=True, exist_ok=True)
    asyncio.run(main(Path(sys.argv[1])))
