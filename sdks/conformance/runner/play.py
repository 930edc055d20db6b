"""One scenario, played through one driver: step after step, until one comes out otherwise than expected."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .broker import Broker
from .drivers import Driver
from .expectations import differences
from .faults import NO_FAULT
from .keys import Admin
from .meddler import Fault, Meddler
from .proxy import Proxy
from .scenarios import Scenario, Step
from .standby import Standby
from .values import for_driver, from_driver, resolve

ANSWER_S_MAX = 60.0
POLL_S = 0.05

_PLAYED = itertools.count(1)

NAMED_BY_RUNNER = ("consumer",)
"""Arguments that name something in the driver: made unlike those of other scenarios that play beside this one."""

WITHOUT_CLIENT = {
    "cancel",
    "receive",
    "receive_batch",
    "leave",
    "ack",
    "nack",
    "reject",
    "release",
    "limited",
    "extend",
    "await_lost",
    "span_of",
}
"""Operations that belong to something else than a client."""


class Failed(Exception):
    """A step came out otherwise than expected; the text says which, and how."""


@dataclass
class Play:
    """What a scenario has going on while it plays."""

    scenario: Scenario
    driver: Driver
    broker: Broker
    proxy: Proxy
    address: str
    """Where clients connect to: the broker, or what stands in front of it."""
    certificates: Path
    """Where certificates for TLS are; `$tls` in scenarios."""
    standby: Standby | None = None
    """Of a scenario that needs a group."""
    meddler: Meddler | None = None
    """What stands in front of the broker, and counts frames."""
    known: dict[str, Any] = field(default_factory=dict)
    clients: set[str] = field(default_factory=set)
    under_way: dict[str, tuple[int, asyncio.Future[dict[str, Any]], Step]] = field(default_factory=dict)
    prefix: str = field(default_factory=lambda: f"s{next(_PLAYED)}")

    def __post_init__(self) -> None:
        slug = re.sub(r"[^a-z0-9]+", "-", self.scenario.name.lower())[:60].strip("-")
        self.known |= {
            "broker": self.address,
            "proxy": self.proxy.address,
            "tls": str(self.certificates),
            "standby": self.standby.address if self.standby else "",
            **{name: f"{self.prefix}-{slug}-{name}" for name in ("q", "q2", "q3")},
            "dlq": f"{self.prefix}-{slug}-q.dlq",
        }

    async def run(self) -> None:
        """Play it all; raise Failed at the first difference. Queues and clients it made are gone afterwards."""
        try:
            if self.scenario.connects:
                await self._expect_ok(
                    "connect", {"client": "c", "target": "$broker", "options": self.scenario.options}
                )
            for position, step in enumerate(self.scenario.steps, 1):
                try:
                    await self._play(step)
                except Failed as failed:
                    raise Failed(f"step {position}, {step.operation}: {failed}") from None
        finally:
            await self._clean_up()

    async def _clean_up(self) -> None:
        self.proxy.set_mode("pass")
        with contextlib.suppress(Exception):
            if self.scenario.broker_settings is None:
                await self._delete_queues()
        for client in self.clients:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self._ask("close", {"client": client}), 10)

    async def _delete_queues(self) -> None:
        # A client of its own: the scenario's may be closed, or broken on purpose.
        name = f"{self.prefix}-cleaner"
        options = {"connect_timeout_s": 2, "retry_for_s": 0}
        await self._ask("connect", {"client": name, "target": self.broker.address, "options": options})
        for queue in ("q", "q2", "q3"):
            await self._ask("delete_queue", {"client": name, "queue": self.known[queue]})
        self.clients.add(name)

    async def _play(self, step: Step) -> None:
        runner_step = RUNNER_STEPS.get(step.operation)
        if runner_step is not None:
            await runner_step(self, step)
            return
        if step.background is not None:
            arguments = self._arguments(step.operation, step.arguments)
            number, answer = self.driver.begin(step.operation, arguments)
            self.known[step.background] = number
            self.under_way[step.background] = (number, answer, step)
            return
        for n in range(step.times):
            self.known["n"] = n
            await self._until_expected(
                step, lambda: self._ask(step.operation, self._arguments(step.operation, step.arguments))
            )

    async def _until_expected(self, step: Step, ask: Callable[[], Any]) -> None:
        deadline = time.monotonic() + (step.within_ms or 0) / 1000
        while True:
            answer = await ask()
            wrong = self._judge(step, answer)
            if not wrong:
                return
            if time.monotonic() >= deadline:
                raise Failed("; ".join(wrong))
            await asyncio.sleep(POLL_S)

    def _judge(self, step: Step, answer: dict[str, Any]) -> list[str]:
        """Return what is wrong with an answer, and remember it when nothing is."""
        if "unsupported" in answer:
            return [f"the driver can't do it: {answer['unsupported']}"]
        if step.cancelled:
            return [] if answer.get("cancelled") else [f"expected it to be cancelled, got {answer}"]
        if step.error is not None:
            if "error" not in answer:
                return [f"expected the error {step.error}, got {str(answer)[:300]}"]
            error = from_driver(answer["error"])
            wrong = list(differences(resolve(step.error, self.known), error, "error"))
            if not wrong and step.remember_as:
                self.known[step.remember_as] = error
            return [f"{line} (of {str(error)[:600]})" for line in wrong]
        if "ok" not in answer:
            return [f"expected an answer, got {str(answer)[:600]}"]
        result = from_driver(answer["ok"])
        wrong = [] if step.expected is None else list(differences(resolve(step.expected, self.known), result))
        if not wrong and step.remember_as:
            self.known[step.remember_as] = result
        return wrong

    def _arguments(self, operation: str, arguments: Any) -> dict[str, Any]:
        resolved = dict(resolve(arguments or {}, self.known))
        for name in NAMED_BY_RUNNER:
            if name in resolved:
                resolved[name] = f"{self.prefix}-{resolved[name]}"
        if operation not in WITHOUT_CLIENT:
            client = resolved.setdefault("client", "c")
            if not client.startswith(self.prefix):
                resolved["client"] = f"{self.prefix}-{client}"
            if operation == "connect":
                self.clients.add(resolved["client"])
        sent: dict[str, Any] = for_driver(resolved)
        return sent

    async def _ask(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        number, answer = self.driver.begin(operation, arguments)
        try:
            return await asyncio.wait_for(answer, ANSWER_S_MAX)
        except TimeoutError:
            raise Failed(f"no answer to request {number} within {ANSWER_S_MAX} s") from None

    async def _expect_ok(self, operation: str, arguments: dict[str, Any]) -> None:
        answer = await self._ask(operation, self._arguments(operation, arguments))
        if "ok" not in answer:
            raise Failed(f"{operation}: {answer}")

    # Steps that are the runner's own.

    async def _broker(self, step: Step) -> None:
        if self.scenario.broker_settings is None:
            raise Failed("only a scenario with own_broker may do this")
        match step.arguments:
            case "stop":
                await self.broker.stop()
            case "kill":
                await self.broker.kill()
            case "start":
                await self.broker.start()
            case "restart":
                await self.broker.stop()
                await self.broker.start()
            case other:
                raise Failed(f"broker: {other} is none of stop, kill, start, restart")

    async def _network(self, step: Step) -> None:
        self.proxy.set_mode(step.arguments)

    async def _frames(self, step: Step) -> None:
        if self.meddler is None:
            raise Failed("only a scenario with counts_frames may do this")
        wrong = self._judge(step, {"ok": {"sent": self.meddler.frames[step.arguments]}})
        if wrong:
            raise Failed("; ".join(wrong))

    async def _wait_ms(self, step: Step) -> None:
        await asyncio.sleep(step.arguments / 1000)

    async def _client(self, step: Step) -> None:
        given = step.arguments if isinstance(step.arguments, dict) else {"name": step.arguments}
        arguments = {
            "client": given["name"],
            "target": given.get("target", "$broker"),
            "options": given.get("options", {}),
        }
        answer = await self._ask("connect", self._arguments("connect", arguments))
        wrong = self._judge(step, answer)
        if wrong:
            raise Failed("; ".join(wrong))

    async def _await(self, step: Step) -> None:
        if step.arguments not in self.under_way:
            raise Failed(f"nothing called {step.arguments!r} is under way")
        number, answer, _ = self.under_way.pop(step.arguments)
        try:
            result = await asyncio.wait_for(answer, ANSWER_S_MAX)
        except TimeoutError:
            raise Failed(f"no answer to request {number} within {ANSWER_S_MAX} s") from None
        wrong = self._judge(step, result)
        if wrong:
            raise Failed("; ".join(wrong))

    async def _key(self, step: Step) -> None:
        """`key: {name: shop, grants: [produce $q]}`: an admin makes it; `as` names it and its id."""
        given = resolve(step.arguments, self.known)
        made = await self._admin().make_key(given["name"], given["grants"])
        if step.remember_as:
            self.known[step.remember_as] = made

    async def _end_key(self, step: Step) -> None:
        await self._admin().revoke_key(resolve(step.arguments, self.known))

    def _admin(self) -> Admin:
        by_tls = any(name.startswith("FILA_TLS__") for name in self.scenario.broker_settings or ())
        return Admin(self.broker.address, self.broker.data_dir, self.certificates if by_tls else None)

    async def _expect(self, step: Step) -> None:
        """`that: {value: $a, is: ...}`: compares two things that are known already."""
        given = resolve(step.arguments, self.known)
        wrong = list(differences(given["is"], given["value"], "value"))
        if wrong:
            raise Failed("; ".join(wrong))


RUNNER_STEPS: dict[str, Callable[[Play, Step], Any]] = {
    "broker": Play._broker,
    "network": Play._network,
    "frames": Play._frames,
    "wait_ms": Play._wait_ms,
    "client": Play._client,
    "await": Play._await,
    "that": Play._expect,
    "key": Play._key,
    "end_key": Play._end_key,
}


@dataclass
class Stage:
    """Where scenarios play: one driver, one shared broker, and a folder for brokers of their own."""

    driver: Driver
    shared: Broker
    folder: Path
    certificates: Path
    fault: Fault | None = None
    """Planted between driver and broker."""

    async def play(self, scenario: Scenario) -> str | None:
        """Return what went wrong, or None."""
        own = scenario.broker_settings
        broker = self.shared
        if own is not None:
            settings = resolve(own, {"tls": str(self.certificates)})
            broker = Broker(self.folder / f"own-{next(_PLAYED)}", settings)
            await broker.start()
        meddler = None
        if self.fault is not None or scenario.counts_frames:
            meddler = Meddler(broker.address, self.fault or NO_FAULT)
        if meddler is not None:
            await meddler.start()
        address = broker.address if meddler is None else meddler.address
        proxy = Proxy(address)
        await proxy.start()
        standby = Standby(address) if "group" in scenario.needs else None
        try:
            play = Play(scenario, self.driver, broker, proxy, address, self.certificates, standby, meddler)
            await play.run()
        except Exception as failed:  # noqa: BLE001 - whatever it is, it belongs to this scenario alone
            return f"{type(failed).__name__}: {failed}"
        else:
            return None
        finally:
            await proxy.stop()
            if standby is not None:
                standby.stop()
            if meddler is not None:
                await meddler.stop()
            if own is not None:
                await broker.kill()
