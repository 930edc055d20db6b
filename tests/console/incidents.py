"""Stages six incidents, each at a broker of its own, and answers each from the console's address alone.

A browser begins at `/` and presses only what is on the screen. `python tests/console/incidents.py [KIND ...]` prints
how many presses, typed values and seconds each took from `/` to the effect of the lever. It takes four minutes, most of
them until the broker calls it trouble.

`--pairs` stages ten pairs of them at once: the sentences are those two, the worse first, and no other, and both are
answered. `--read-only` shows each to somebody who may only view: the same first sentence, and no lever behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
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
AT_ONCE = 5
"""Brokers beside each other; the operator answers one at a time."""
MENDED = 'function on_enqueue(msg)\n  return { fairness_key = msg.headers["tenant"] or "nobody" }\nend\n'


@dataclass
class Operator:
    """Somebody with a browser: counts what is pressed and typed."""

    tab: Any
    handler_is_mended: asyncio.Event
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
    stage: Callable[[FilaClient, asyncio.Event], Coroutine[Any, Any, None]]
    """Goes on until it is cancelled; where it fails by its handlers, until these are mended."""
    answer: Callable[[Operator], Awaitable[None]]
    is_over: Callable[[FilaClient], Awaitable[bool]]


async def _send(client: FilaClient, queue: str, tenant: str, often_s: float, **headers: str) -> None:
    while True:
        await client.enqueue(queue, b"x", {"tenant": tenant, **headers})
        await asyncio.sleep(often_s)


# Nobody consumes.


async def _stage_nobody(client: FilaClient, _: asyncio.Event) -> None:
    await client.create_queue("exports")
    await client.enqueue_many("exports", [b"row"] * 120)


async def _answer_nobody(operator: Operator) -> None:
    await operator.press("link", "Start a consumer")
    await operator.see("fila consume exports")


async def _over_nobody(client: FilaClient) -> bool:
    return True  # a console starts nobody's programs: the line is there to copy


# Every delivery fails.


async def _stage_failing(client: FilaClient, handler_is_mended: asyncio.Event) -> None:
    await client.create_queue("webhooks", max_attempts=1)
    sending = asyncio.create_task(_send(client, "webhooks", "hooli", 0.3))
    try:
        async for message in client.consume("webhooks", prefetch=2):
            if not handler_is_mended.is_set():
                await client.nack("webhooks", message.id, error="their webhook answers 500", dead_letter=True)
            else:
                await client.ack("webhooks", message.id)
    finally:
        sending.cancel()


async def _answer_failing(operator: Operator) -> None:
    operator.handler_is_mended.set()  # no console mends a handler: what died is the console's part
    await operator.press("link", "See why they fail")
    await operator.see("their webhook answers 500")
    await operator.unfold("Many at once")
    await operator.press("button", "Move them back")


async def _over_failing(client: FilaClient) -> bool:
    return (await client.get_stats("webhooks.dlq")).depth == 0


# A paused key.


async def _stage_paused(client: FilaClient, _: asyncio.Event) -> None:
    await client.create_queue("kept", fairness_key_header="tenant")
    await client.set_key_policy("kept", "umbrella", paused=True, comment="their webhook is down")
    await client.enqueue_many("kept", [NewMessage(headers={"tenant": "umbrella"}, payload=b"x")] * 500)


async def _answer_paused(operator: Operator) -> None:
    await operator.press("link", "Resume umbrella")
    await operator.press("button", "Resume", exact=True)


async def _over_paused(client: FilaClient) -> bool:
    return not any(each.paused for each in await client.list_key_policies("kept"))


# A provider's limit lets less through than comes.


async def _stage_limit(client: FilaClient, _: asyncio.Event) -> None:
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


async def _stage_flood(client: FilaClient, _: asyncio.Event) -> None:
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


async def _stage_script(client: FilaClient, _: asyncio.Event) -> None:
    await client.create_queue("routed", fairness_key_header="tenant", on_enqueue_script=BROKEN)
    sending = asyncio.create_task(_send(client, "routed", "acme", 0.1))
    try:
        async for message in client.consume("routed", prefetch=4):
            await client.ack("routed", message.id)
    finally:
        sending.cancel()


async def _answer_script(operator: Operator) -> None:
    await operator.press("link", "Mend the script")
    await operator.type("on_enqueue", MENDED)
    await operator.press("button", "Save", exact=True)


async def _over_script(client: FilaClient) -> bool:
    hooks = (await client.get_stats("routed")).hooks
    return all(each.breaker_state == "closed" for each in hooks if each.hook == "on_enqueue")


INCIDENTS = (
    Incident("circuit_open", _stage_script, _answer_script, _over_script),
    Incident("nobody_consumes", _stage_nobody, _answer_nobody, _over_nobody),
    Incident("failing", _stage_failing, _answer_failing, _over_failing),
    Incident("paused", _stage_paused, _answer_paused, _over_paused),
    Incident("limit_behind", _stage_limit, _answer_limit, _over_limit),
    Incident("flood", _stage_flood, _answer_flood, _over_flood),
)
"""In order of harm."""
PAIRS = [pair for number, pair in enumerate(itertools.combinations(INCIDENTS, 2)) if number % 3 != 1]
"""Ten of fifteen, in which each of them is with others before it and behind it."""


async def _told(client: FilaClient, kinds: list[str]) -> float:
    """Wait until the broker calls it so, and nothing else; how many seconds that took."""
    began_s = time.monotonic()
    told: list[str] = []
    while time.monotonic() - began_s < TROUBLE_S_MAX:
        told = [each.kind for each in (await client.get_status(max_troubles=4)).troubles]
        if strange := set(told) - set(kinds):
            raise ValueError(f"told of {', '.join(strange)}, which is not so")
        if told == kinds:
            return time.monotonic() - began_s
        await asyncio.sleep(0.5)
    raise TimeoutError(
        f"no sentences of {', '.join(kinds)} within {TROUBLE_S_MAX:g} s, but of {', '.join(told)}"
    )


async def _answered(operator: Operator, url: str, client: FilaClient, incident: Incident) -> None:
    await operator.tab.goto(url)
    operator.read = [each for each in await operator.tab.locator(".sentence").all_inner_texts() if each]
    await incident.answer(operator)
    give_up_s = time.monotonic() + EFFECT_S_MAX
    while not await incident.is_over(client):
        if time.monotonic() > give_up_s:
            await operator.tab.screenshot(path=f"/tmp/incident-{incident.kind}.png", full_page=True)
            raise TimeoutError(f"the lever of {incident.kind} had no effect")
        await asyncio.sleep(0.05)


@dataclass
class Staged:
    """Incidents that the broker has told of."""

    url: str
    client: FilaClient
    key: str
    handler_is_mended: asyncio.Event
    told_s: float


@contextlib.asynccontextmanager
async def _staged(some: tuple[Incident, ...], folder: Path, *, keys: bool = False) -> AsyncIterator[Staged]:
    name = "-".join(each.kind for each in some)
    settings = {"FILA_AUTH__ENABLED": "true"} if keys else {}
    server = wait_until_started(launch(folder / name, folder / f"{name}.log", **settings))
    key = (folder / name / "bootstrap-key").read_text().strip() if keys else ""
    console = start_console(server.addresses["grpc"])
    stages: list[asyncio.Task[None]] = []
    try:
        async with FilaClient.connect(server.addresses["grpc"], api_key=key) as client:
            is_mended = asyncio.Event()
            stages += [asyncio.create_task(each.stage(client, is_mended)) for each in some]
            try:
                told_s = await _told(client, [each.kind for each in some])
                yield Staged(f"{console.url}/", client, key, is_mended, told_s)
            finally:
                for stage in stages:
                    stage.cancel()
                await asyncio.gather(*stages, return_exceptions=True)
    finally:
        console.stop()
        server.stop()


class Judge:
    """Stages, reads and answers. Brokers stand beside each other, and one operator at a time is at work."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self.browser = browser
        self.folder = folder
        self.places = asyncio.Semaphore(AT_ONCE)
        self.turn = asyncio.Lock()

    async def _tab(self) -> Any:
        return await self.browser.new_page(viewport={"width": 1280, "height": 900})

    async def answers(self, some: tuple[Incident, ...]) -> bool:
        """Each is answered, the worst first."""
        is_good = True
        async with self.places, _staged(some, self.folder) as staged, self.turn:
            for number, incident in enumerate(some):
                operator = Operator(await self._tab(), staged.handler_is_mended)
                began_s = time.monotonic()
                await _answered(operator, staged.url, staged.client, incident)
                took_s = time.monotonic() - began_s
                is_right = number > 0 or len(operator.read) == len(some)
                is_quick = operator.presses <= PRESSES_MAX and operator.typed <= TYPED_MAX
                # Of pairs the sentences are judged: a machine with ten brokers on it takes its time.
                is_good = is_good and is_right and is_quick and (len(some) > 1 or took_s <= SECONDS_MAX)
                print(
                    f"{incident.kind:16} told after {staged.told_s:5.1f} s; {operator.presses} presses, "
                    f"{operator.typed} typed, {took_s:.1f} s{'' if is_good else '  TOO MUCH'}\n"
                    + "".join(f"{'':16} read: {each}\n" for each in operator.read),
                    end="",
                    flush=True,
                )
                await operator.tab.close()
        return is_good

    async def shows(self, some: tuple[Incident, ...]) -> bool:
        """Somebody who may view all queues reads the same first, and is offered nothing that would be refused."""
        async with self.places, _staged(some, self.folder, keys=True) as staged, self.turn:
            key = await staged.client.create_key("viewer")
            await staged.client.grant("viewer", view=["*"])
            told = (await staged.client.get_status(max_troubles=1)).troubles[0]
            tab = await self._tab()
            await tab.goto(staged.url)
            await tab.locator("#key").fill(key)
            await tab.locator("button[type=submit]").click()
            await tab.locator(".sentence").first.wait_for()
            read = (await tab.locator(".sentence").all_inner_texts())[0]
            lever = tab.get_by_role("link", name=told.lever).first
            address = await lever.get_attribute("href") or ""
            await lever.click(timeout=20_000)
            await tab.wait_for_url(f"**{address}")
            forms = await tab.locator("main form[hx-post]:visible").count()
            says = await tab.locator("main", has_text="needs the right").count()
            begins = read.split(" for ")[0]
            is_good = told.text.startswith(begins.split(" by ")[0]) and not forms
            behind = f"{forms} forms, {'names the right' if says else 'nothing to change'}"
            print(
                f"{some[0].kind:16} read: {read}\n"
                f"{'':16} behind {told.lever!r}: {behind}{'' if is_good else '  WRONG'}",
                flush=True,
            )
            await tab.close()
        return is_good


async def main() -> int:
    """All of them, beside each other."""
    from playwright.async_api import async_playwright

    kinds = {each for each in sys.argv[1:] if not each.startswith("--")}
    alone = [(each,) for each in INCIDENTS]
    staged: list[tuple[Incident, ...]] = [*PAIRS] if "--pairs" in sys.argv else [*alone]
    staged = [some for some in staged if not kinds or kinds & {each.kind for each in some}]
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        with tempfile.TemporaryDirectory() as temporary:
            judge = Judge(browser, Path(temporary))
            one = judge.shows if "--read-only" in sys.argv else judge.answers
            ended = await asyncio.gather(*(one(some) for some in staged), return_exceptions=True)
        await browser.close()
    for some, end in zip(staged, ended, strict=True):
        if isinstance(end, BaseException):
            print(f"{' and '.join(each.kind for each in some)} FAILED: {end}")
    good = sum(end is True for end in ended)
    print(f"{good} of {len(staged)} were told and answered as they should be")
    return 0 if good == len(staged) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
