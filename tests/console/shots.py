"""Photographs every page of the console, in front of a broker that is busy: `python tests/console/shots.py FOLDER`."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fila import FilaClient, NewMessage
from tests.console.conftest import RunningConsole, start_console
from tests.e2e.conftest import launch, wait_until_started

BUSY_S = 75.0
TENANTS = ("acme", "initech", "umbrella", "hooli", "stark", "wayne", "piedpiper", "vehement")
SCRIPT = """-- Big senders weigh less.
function on_enqueue(msg)
  local tenant = msg.headers["tenant"] or "nobody"
  return { fairness_key = tenant, weight = tenant == "globex" and 1 or 2 }
end
"""
PAGES = (
    ("overview", "", "light"),
    ("overview-dark", "", "dark"),
    ("queue", "queues/orders", "light"),
    ("queue-dark", "queues/orders", "dark"),
    ("key", "queues/orders/key?key=globex", "light"),
    ("dead-letters", "queues/orders.dlq/dead-letters", "light"),
    ("policy", "queues/mail/policy", "light"),
    ("log", "queues/orders/log", "light"),
    ("events", "events", "dark"),
    ("search", "", "light"),
)


async def busy(address: str) -> None:
    """Tenants of different sizes, one that floods, a slow provider, failures, a paused key, a queue nobody consumes."""
    dice = random.Random(7)
    async with FilaClient.connect(address) as client:
        await client.create_queue(
            "orders", fairness_key_header="tenant", weights={"acme": 3}, max_attempts=2, retry="fixed:100ms"
        )
        await client.create_queue(
            "mail", fairness_key_header="tenant", throttle_key_headers=["provider"], on_enqueue_script=SCRIPT
        )
        await client.create_queue("invoices", fairness_key_header="tenant")
        await client.create_queue("exports")
        await client.set_config("throttle.mailgun", "5,10")
        await client.set_key_policy("invoices", "umbrella", paused=True)
        await client.enqueue_many("exports", [b"row" for _ in range(30)])
        flood = [NewMessage(headers={"tenant": "globex"}, payload=b'{"order": 1}') for _ in range(500)]
        for _ in range(6):
            await client.enqueue_many("orders", flood)
        ends_s = time.monotonic() + BUSY_S

        async def produce(queue: str, tenant: str, per_second: float, **headers: str) -> None:
            while time.monotonic() < ends_s:
                order = b'{"order": %d, "lines": [{"sku": "A-%d", "count": 2}]}' % (
                    dice.randrange(10**6),
                    dice.randrange(99),
                )
                await client.enqueue(queue, order, {"tenant": tenant, **headers})
                await asyncio.sleep(dice.expovariate(per_second))

        async def consume(queue: str, seconds: float, bad: float) -> None:
            async for message in client.consume(queue, prefetch=4, name=f"worker-{queue}"):
                await asyncio.sleep(seconds)
                if dice.random() < bad:
                    await client.nack(
                        queue, message.id, error=f"card {dice.randrange(1000)} was declined by the bank"
                    )
                else:
                    await client.ack(queue, message.id)

        work = [
            asyncio.create_task(consume("orders", 0.02, 0.06)),
            asyncio.create_task(consume("mail", 0.01, 0.0)),
        ]
        work.append(asyncio.create_task(consume("invoices", 0.01, 0.0)))
        await asyncio.gather(
            *(produce("orders", tenant, 3.0) for tenant in TENANTS),
            produce("orders", "globex", 40.0),
            *(produce("mail", tenant, 2.0, provider="mailgun") for tenant in TENANTS[:4]),
            *(produce("invoices", tenant, 1.0) for tenant in TENANTS[:3]),
        )
        for task in work:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def photograph(console: RunningConsole, folder: Path) -> None:
    """Each page once it is alive."""
    from playwright.async_api import async_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name, address, scheme in PAGES:
            context: Any = {"viewport": {"width": 1440, "height": 900}, "color_scheme": scheme}
            tab: Any = await browser.new_page(**context)
            await tab.goto(f"{console.url}/b/broker/{address}")
            if name not in ("policy", "log"):
                await tab.wait_for_selector("body[data-live=yes]", state="attached")
            await tab.wait_for_timeout(1500)
            if name == "dead-letters":
                await tab.locator("tbody tr a").first.click()
                await tab.locator("#letter dd").first.wait_for()
            if name == "policy":
                await tab.get_by_label("on_enqueue").fill(SCRIPT.replace("1 or 2", "1 or 3"))
                await tab.get_by_role("tab", name="Dry run").click()
                await tab.get_by_role("button", name="Try it on them").click()
            if name == "search":
                await tab.keyboard.press("/")
                await tab.keyboard.type("or")
            await tab.wait_for_timeout(1200)
            await tab.screenshot(path=folder / f"console-{name}.png")
            await tab.close()
        await browser.close()


async def main(folder: Path) -> None:
    """All of it."""
    with tempfile.TemporaryDirectory() as temporary:
        server = wait_until_started(launch(Path(temporary, "data"), Path(temporary, "server.log")))
        console = start_console(server.addresses["grpc"])
        try:
            load = asyncio.create_task(busy(server.addresses["grpc"]))
            await asyncio.sleep(BUSY_S - 45)
            await photograph(console, folder)
            await load
        finally:
            console.stop()
            server.stop()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
