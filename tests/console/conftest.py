"""A console of its own process, in front of a real broker of its own; and one browser, Debian's, for all tests."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests import forked_python
from tests.e2e.conftest import RunningServer, launch, wait_until_started

GIVE_UP_S = 25.0
_ENTRY = "from fila_cli.main import main; main()"


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    text: str

    @property
    def csrf(self) -> str:
        return re.search(r'name="csrf" value="([^"]+)"', self.text)[1]


@dataclass
class RunningConsole:
    """One console; `cookie` is sent along once somebody logged in."""

    process: subprocess.Popen[str]
    address: str
    cookie: str = ""
    opened: list[http.client.HTTPConnection] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request, with headers as they are given: `Host` too."""
        connection = http.client.HTTPConnection(self.address, timeout=50)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            sent.setdefault("Cookie", self.cookie)
        connection.request(method, path, body, sent)
        told = connection.getresponse()
        answer = Answer(told.status, told.headers, told.read().decode("utf-8", "replace"))
        connection.close()
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, None, **headers)

    def post(self, path: str, fields: Any = (), **headers: str) -> Answer:
        """A form from a page of ours, unless headers say otherwise."""
        headers = {"Origin": self.url, "Content-Type": "application/x-www-form-urlencoded"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return self.ask("POST", path, urlencode(fields).encode(), **headers)

    def log_in(self, key: str) -> Answer:
        answer = self.post("/b/broker/login", {"key": key})
        self.cookie = answer.headers.get("Set-Cookie", "").partition(";")[0]
        return answer

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)


def start_console(broker: str, *arguments: str, listen: str = "127.0.0.1:0") -> RunningConsole:
    """Start a console for the broker at `broker`; pytest.fail when it says why it does not."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    process = subprocess.Popen(
        [forked_python.program(), "-c", _ENTRY, "--addr", broker, "console", "--listen", listen, *arguments],
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
    )
    line = process.stdout.readline()
    if not (found := re.search(r"https?://([^/]+)/", line)):
        process.kill()
        pytest.fail(f"the console did not start: {line}")
    return RunningConsole(process, found[1])


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A broker that asks for no key, for all modules: each takes queues of its own."""
    folder = tmp_path_factory.mktemp("broker")
    running = wait_until_started(launch(folder / "data", folder / "server.log"))
    yield running
    assert running.stop() == 0, running.log_file.read_text()


@pytest.fixture(scope="session")
def console(broker: RunningServer) -> Iterator[RunningConsole]:
    """Its console."""
    running = start_console(broker.addresses["grpc"])
    yield running
    running.stop()


@pytest.fixture
def start() -> Iterator[Callable[..., RunningConsole]]:
    """Consoles of brokers at the addresses that are given; they end with the test."""
    running: list[RunningConsole] = []

    def started(broker: str) -> RunningConsole:
        running.append(start_console(broker))
        return running[-1]

    yield started
    for each in running:
        each.stop()


@dataclass
class Keyed:
    """A broker that asks for keys, and its console."""

    server: RunningServer
    console: RunningConsole
    admin_key: str

    def client(self, key: str = "") -> Any:
        from fila.sync import FilaClient

        return FilaClient.connect(self.server.addresses["grpc"], api_key=key or self.admin_key)


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    folder = tmp_path_factory.mktemp("keyed")
    server = wait_until_started(launch(folder / "data", folder / "server.log", FILA_AUTH__ENABLED="true"))
    key = (folder / "data" / "bootstrap-key").read_text().strip()
    # A Prometheus that is away, so that each address is asked of everybody, and its failure is in words.
    running = start_console(server.addresses["grpc"], "--prometheus", "http://127.0.0.1:1")
    yield Keyed(server, running, key)
    running.stop()
    assert server.stop() == 0, server.log_file.read_text()


# The browser.


# For each module anew: its driver keeps an event loop running on this thread, beside which no other test has its own.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Debian's chromium; none is downloaded."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        # One process draws all tabs: to start one for each takes half of what a page costs.
        options = ["--no-sandbox", "--disable-gpu", "--renderer-process-limit=1"]
        browser = playwright.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()


class Complaints(list[str]):
    """What a page complained of: refusals of the content policy, errors of scripts, scripts that ran."""


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@pytest.fixture(scope="module")
def window(chromium: Any) -> Any:
    """What the tabs of a module's tests are in."""
    opened = chromium.new_context(viewport={"width": 1440, "height": 900})
    opened.new_page()  # stays, and keeps the process that draws
    return opened


@pytest.fixture
def page(window: Any, complaints: Complaints) -> Iterator[Any]:
    """A new tab; the test fails if a script of it fails or the content policy refuses anything."""
    tab = window.new_page()
    tab.on("pageerror", lambda error: complaints.append(f"error: {error}"))

    def asked(dialog: Any) -> None:
        complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    tab.on("dialog", asked)

    def told(message: Any) -> None:
        # A page that says no is no fault of a page; a file that is missing is.
        is_answer = "the server responded with" in message.text and "/assets/" not in message.location["url"]
        if message.type == "error" and not is_answer:
            complaints.append(message.text)

    tab.on("console", told)
    tab.set_default_timeout(25_000)
    yield tab
    tab.close()
    assert complaints == []


def live(tab: Any, url: str) -> Any:
    """Open a page, and wait until its stream has told it something."""
    tab.goto(url)
    tab.wait_for_selector("body[data-live=yes]", state="attached")
    return tab


def shown(tab: Any, name: str) -> str:
    """A text of the page's state."""
    text: str = tab.locator(f"[data-text='{name}']").first.inner_text()
    return text


def until(holds: Any) -> Any:
    """What `holds` returns once it is true. When to give up is no bound of anything: a busy machine takes its time."""
    give_up_s = time.monotonic() + GIVE_UP_S
    while True:
        if found := holds():
            return found
        assert time.monotonic() < give_up_s, "it did not come true"
        time.sleep(0.05)


@pytest.fixture(scope="session")
def axe() -> Callable[..., list[dict[str, Any]]]:
    """Run axe in a page; what it found. The content policy lets no foreign script in: it comes by the driver."""
    root = Path(__file__).resolve().parents[2]
    source = (root / "console/node_modules/axe-core/axe.min.js").read_text()

    def run(tab: Any, *, colours_only: bool = False) -> list[dict[str, Any]]:
        """With `colours_only` the rules that a theme can break, and no other."""
        if not tab.evaluate("() => 'axe' in window"):
            tab.evaluate(f"() => {{ {source}\n; window.axe = window.axe || axe; }}")
        colours = "['color-contrast', 'link-in-text-block']"
        chosen = f", runOnly: {{ type: 'rule', values: {colours} }}" if colours_only else ""
        found = tab.evaluate(f"() => axe.run(document, {{ resultTypes: ['violations']{chosen} }})")
        violations: list[dict[str, Any]] = found["violations"]
        return violations

    return run
