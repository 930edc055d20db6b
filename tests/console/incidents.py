"""Stages six incidents, each at a broker of its own, and answers each from the console's address alone.

A browser begins at `/` and presses only what is on the screen. `python tests/console/incidents.py [KIND ...]` prints
how many presses, typed values and seconds each took from `/` to the effect of the lever. It takes four minutes, most of
them until the broker calls it trouble.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fila import FilaClient, NewMessage
from tests.console.conftest import start_console
from tests.e2e.conftest import launch, wait_until_started

TROUBLE_S_MAX = 300.0
EFFECT_S_MAX = 20.0
PRESSES_MAX, TYPED_MAX, SECONDS_MAX = 4, 1, 10.0
BROKEN = 'function on_enqueue(msg)\n  return { fairness_key = msg.headers["tenant"] .. nil }\nend\n'
HANDLER_IS_MENDED = asyncio.Event()
MENDED = 'function on_enqueue(msg)\n  return { fairness_key = msg.headers["tenant"] or "nobody" }\nend\n'


@dataclass
class Operator:
    """Somebody with a browser: counts what is pressed and typed."""

    tab: Any
    presses: int = 0
    typed: int = 0
    read: list[str] = field(default_factory=list)

    async def press(self, role: Any, name: str, *, exact: bool = False) -> None:
        """Press something that is in sight."""
        await self.tab.get_by_role(role, name=name, exact=exact).first.click(timeout=8_000)
        self.presses += 1

    async def unfold(self, text: str) -> None:
        """Press a heading that hides a form."""
        await self.tab.locator("summary", has_text=text).first.click(timeout=8_000)
        self.presses += 1

    async def type(self, label: str, value: str) -> None:
        """Type one value."""
        await self.tab.get_by_label(label, exact=False).first.fill(value, timeout=8_000)
        self.typed += 1

    async def see(self, text: str) -> None:
        """Wait until it can be read."""
        await self.tab.get_by_text(text).first.wait_for(timeout=8_000)


@dataclass
class Incident:
    """What goes wrong, what somebody does about it from `/`, and what has to be so then."""

    kind: str
    stage: Callable[[FilaClient], Coroutine[Any, Any, None]]
    answer: Callable[[Operator], Awaitable[None]]
    is_over: Callable[[FilaClient], Awaitable[bool]]


async def _send(client: FilaClient, queue: str, tenant: str, often_s: float, **headers: str) -> None:
    while True:
        await client.enqueue(queue, b"x", {"tenant": tenant, **headers})
        await asyncio.sleep(often_s)


# Nobody consumes.


async def _stage_nobody(client: FilaClient) -> None:
    await client.create_queue("exports")
    await client.enqueue_many("exports", [b"row"] * 120)


async def _answer_nobody(operator: Operator) -> None:
    await operator.press("link", "Start a consumer")
    await operator.see("fila consume exports")


async def _over_nobody(client: FilaClient) -> bool:
    return True  # a console starts nobody's programs: the line is there to copy


# Every delivery fails.


async def _stage_failing(client: FilaClient) -> None:
    await client.create_queue("webhooks", max_attempts=1)
    sending = asyncio.create_task(_send(client, "webhooks", "hooli", 0.3))
    try:
        async for message in client.consume("webhooks", prefetch=2):
            if not HANDLER_IS_MENDED.is_set():
                await client.nack("webhooks", message.id, error="their webhook answers 500", dead_letter=True)
            else:
                await client.ack("webhooks", message.id)
    finally:
        sending.cancel()


async def _answer_failing(operator: Operator) -> None:
    HANDLER_IS_MENDED.set()  # no console mends a handler: what died is the console's part
    await operator.press("link", "See why they fail")
    await operator.see("their webhook answers 500")
    await operator.unfold("Many at once")
    await operator.press("button", "Move them back")


async def _over_failing(client: FilaClient) -> bool:
    return (await client.get_stats("webhooks.dlq")).depth == 0


# A paused key.


async def _stage_paused(client: FilaClient) -> None:
    await client.create_queue("kept", fairness_key_header="tenant")
    await client.set_key_policy("kept", "umbrella", paused=True, comment="their webhook is down")
    await client.enqueue_many("kept", [NewMessage(headers={"tenant": "umbrella"}, payload=b"x")] * 500)


async def _answer_paused(operator: Operator) -> None:
    await operator.press("link", "Resume umbrella")
    await operator.press("button", "Resume", exact=True)


async def _over_paused(client: FilaClient) -> bool:
    return not any(each.paused for each in await client.list_key_policies("kept"))


# A provider's limit lets less through than comes.


async def _stage_limit(client: FilaClient) -> None:
    await client.create_queue("mail", fairness_key_header="tenant", throttle_key_headers=["provider"])
    await client.set_config("throttle.sendgrid", "2,2")
    tenants = ("acme", "initech", "hooli", "stark")
    for tenant in tenants:
        headers = {"tenant": tenant, "provider": "sendgrid"}
        await client.enqueue_many("mail", [NewMessage(headers=headers, payload=b"x")] * 60)
    sending = [asyncio.create_task(_send(client, "mail", each, 1.0, provider="sendgrid")) for each in tenants]
    try:
        async for message in client.consume("mail", prefetch=4):
            await client.ack("mail", message.id)
    finally:
        for each in sending:
            each.cancel()


async def _answer_limit(operator: Operator) -> None:
    await operator.press("link", "Raise the rate of sendgrid")
    await operator.press("link", "sendgrid", exact=True)
    await operator.type("Rates", "20/s,20")
    await operator.see("gain.")
    await operator.press("button", "Set it")


async def _over_limit(client: FilaClient) -> bool:
    told = await client.get_limit("sendgrid")
    return told is not None and told.limit.rates[0].per_second == 20


# A tenant floods.


async def _stage_flood(client: FilaClient) -> None:
    await client.create_queue("orders", fairness_key_header="tenant")
    for tenant in ("acme", "initech", "umbrella"):
        await client.enqueue_many("orders", [NewMessage(headers={"tenant": tenant}, payload=b"x")] * 20)
    await client.enqueue_many("orders", [NewMessage(headers={"tenant": "hooli"}, payload=b"x")] * 300)
    sending = asyncio.create_task(_send(client, "orders", "hooli", 0.2))
    try:
        async for message in client.consume("orders", prefetch=1):
            await asyncio.sleep(5)
            await client.ack("orders", message.id)
    finally:
        sending.cancel()


async def _answer_flood(operator: Operator) -> None:
    await operator.press("link", "Slow hooli")
    suggested = operator.tab.locator("[data-text=rate-half]")
    if await suggested.is_visible():
        await suggested.click()
        operator.presses += 1
    else:  # it got nothing lately that a number could go by
        await operator.type("Most delivered a second", "0.1")
    await operator.press("button", "Set", exact=True)


async def _over_flood(client: FilaClient) -> bool:
    return any(
        each.rate_per_second for each in await client.list_key_policies("orders", fairness_key="hooli")
    )


# A script fails.


async def _stage_script(client: FilaClient) -> None:
    await client.create_queue("routed", fairness_key_header="tenant", on_enqueue_script=BROKEN)
    await _send(client, "routed", "acme", 0.1)


async def _answer_script(operator: Operator) -> None:
    await operator.press("link", "Mend the script")
    await operator.type("on_enqueue", MENDED)
    await operator.press("button", "Save", exact=True)


async def _over_script(client: FilaClient) -> bool:
    hooks = (await client.get_stats("routed")).hooks
    return all(each.breaker_state == "closed" for each in hooks if each.hook == "on_enqueue")


INCIDENTS = (
    Incident("nobody_consumes", _stage_nobody, _answer_nobody, _over_nobody),
    Incident("failing", _stage_failing, _answer_failing, _over_failing),
    Incident("paused", _stage_paused, _answer_paused, _over_paused),
    Incident("limit_behind", _stage_limit, _answer_limit, _over_limit),
    Incident("flood", _stage_flood, _answer_flood, _over_flood),
    Incident("circuit_open", _stage_script, _answer_script, _over_script),
)


async def _told(client: FilaClient, kind: str) -> float:
    """Wait until the broker calls it so; how many seconds that took."""
    began_s = time.monotonic()
    while time.monotonic() - began_s < TROUBLE_S_MAX:
        if any(each.kind == kind for each in (await client.get_status(max_troubles=4)).troubles):
            return time.monotonic() - began_s
        await asyncio.sleep(0.5)
    raise TimeoutError(f"no sentence of {kind} within {TROUBLE_S_MAX:g} s")


async def _answered(browser: Any, url: str, client: FilaClient, incident: Incident) -> Operator:
    tab = await browser.new_page(viewport={"width": 1280, "height": 900})
    operator = Operator(tab)
    await tab.goto(url)
    operator.read = [each for each in await tab.locator(".sentence").all_inner_texts() if each]
    await incident.answer(operator)
    give_up_s = time.monotonic() + EFFECT_S_MAX
    while not await incident.is_over(client):
        if time.monotonic() > give_up_s:
            await tab.screenshot(path=f"/tmp/incident-{incident.kind}.png", full_page=True)
            raise TimeoutError(f"the lever of {incident.kind} had no effect")
        await asyncio.sleep(0.05)
    return operator


async def _run(browser: Any, incident: Incident, folder: Path) -> bool:
    server = wait_until_started(launch(folder / incident.kind, folder / f"{incident.kind}.log"))
    console = start_console(server.addresses["grpc"])
    try:
        async with FilaClient.connect(server.addresses["grpc"]) as client:
            staged = asyncio.create_task(incident.stage(client))
            try:
                told_s = await _told(client, incident.kind)
                began_s = time.monotonic()
                operator = await _answered(browser, f"{console.url}/", client, incident)
                took_s = time.monotonic() - began_s
            finally:
                staged.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await staged
    finally:
        console.stop()
        server.stop()
    is_good = operator.presses <= PRESSES_MAX and operator.typed <= TYPED_MAX and took_s <= SECONDS_MAX
    print(
        f"{incident.kind:16} told after {told_s:5.1f} s; {operator.presses} presses, {operator.typed} typed, "
        f"{took_s:.1f} s{'' if is_good else '  TOO MUCH'}\n{'':16} read first: {operator.read[0]}",
        flush=True,
    )
    return is_good


async def main() -> int:
    """All of them, beside each other."""
    from playwright.async_api import async_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        with tempfile.TemporaryDirectory() as temporary:
            chosen = [each for each in INCIDENTS if each.kind in sys.argv[1:] or not sys.argv[1:]]
            runs = (_run(browser, each, Path(temporary)) for each in chosen)
            ended = await asyncio.gather(*runs, return_exceptions=True)
        await browser.close()
    for incident, end in zip(chosen, ended, strict=True):
        if isinstance(end, BaseException):
            print(f"{incident.kind:16} FAILED: {end}")
    return 0 if all(end is True for end in ended) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
