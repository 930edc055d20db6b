"""A gateway in a process of its own before a real server, and a client that says what was answered."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

from tests import forked_python

START_S_MAX = 20.0
WAIT_S_MAX = 20.0
JSON = "application/json"

COMMAND = "from fila_cli.main import main; main()"
BOUNDED = """
import json, sys
from fila_http import server
from fila_http.options import Bounds, Gateway
server.serve(Gateway(port=0, bounds=Bounds(**json.loads(sys.argv[1]))), sys.argv[2])
"""


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def refusal(self) -> tuple[int, str]:
        """(status, reason) of a problem; whatever is none fails."""
        assert self.headers["content-type"] == "application/problem+json", self
        problem = self.json
        assert problem["status"] == self.status
        assert problem["type"] == f"urn:fila:{problem['reason']}"
        assert problem["detail"]
        return self.status, problem["reason"]


@dataclass
class Gateway:
    """A running gateway."""

    process: subprocess.Popen[bytes]
    log_file: Path
    port: int = 0

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S_MAX)

    def call(
        self,
        verb: str,
        path: str,
        value: Any = None,
        *,
        body: bytes | None = None,
        key: str = "",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own; `value` goes as JSON, `body` as it is."""
        sent = dict(headers or {})
        if value is not None:
            body, sent["content-type"] = json.dumps(value).encode(), JSON
        if key:
            sent["authorization"] = f"Bearer {key}"
        connection = self.connect()
        try:
            connection.request(verb, path, body=body, headers=sent)
            answer = connection.getresponse()
            told = {name.lower(): text for name, text in answer.getheaders()}
            return Answer(answer.status, told, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **given: Any) -> Answer:
        return self.call("GET", path, **given)

    def post(self, path: str, value: Any = None, **given: Any) -> Answer:
        return self.call("POST", path, {} if value is None and "body" not in given else value, **given)

    def follow(self, path: str, headers: dict[str, str] | None = None) -> Stream:
        connection = self.connect()
        connection.request("GET", path, headers=headers or {})
        return Stream(connection, connection.getresponse())

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(WAIT_S_MAX)


@dataclass
class Event:
    """One server-sent event."""

    name: str
    data: Any
    id: str


class Stream:
    """Server-sent events as they come."""

    def __init__(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._answer = answer
        self.status = answer.status
        self.headers = {name.lower(): text for name, text in answer.getheaders()}
        self.last_id = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._answer.close()
        self._connection.close()

    def events(self) -> Iterator[Event]:
        name, data = "", ""
        while line := self._answer.readline().decode():
            field, _, text = line.rstrip("\n").partition(": ")
            if field == "event":
                name = text
            elif field == "data":
                data = text
            elif field == "id":
                self.last_id = text
            elif not field and data:
                yield Event(name, json.loads(data), self.last_id)
                name, data = "", ""

    def take(self, count: int) -> list[Event]:
        events = self.events()
        return [next(events) for _ in range(count)]


def launch_gateway(folder: Path, arguments: list[str], key: str = "", *, afresh: bool = False) -> Gateway:
    """Start one without waiting for it, with `key` in its environment. It is forked, unless `afresh`."""
    folder.mkdir(parents=True, exist_ok=True)
    log_file = folder / f"gateway-{len(list(folder.iterdir()))}.log"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    environ = kept | {"FILA_API_KEY": key, "XDG_CONFIG_HOME": str(folder)}
    with log_file.open("wb") as log:
        python = sys.executable if afresh else forked_python.program()
        process = subprocess.Popen([python, "-c", *arguments], env=environ, stderr=log, cwd=folder)
    return Gateway(process, log_file)


def wait_for_gateway(gateway: Gateway) -> Gateway:
    deadline = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline and gateway.process.poll() is None:
        if said := re.search(r"serves https?://[^\s]+:(\d+) ", gateway.log):
            gateway.port = int(said[1])
            return gateway
        time.sleep(0.02)
    gateway.process.kill()
    pytest.fail(f"the gateway did not open:\n{gateway.log}")


def start_by_command(folder: Path, broker: str, *options: str, key: str = "") -> Gateway:
    return launch_gateway(
        folder, [COMMAND, "http", "--addr", broker, "--listen", "127.0.0.1:0", *options], key
    )


def start_bounded(folder: Path, broker: str, *, afresh: bool = False, **bounds: Any) -> Gateway:
    return launch_gateway(folder, [BOUNDED, json.dumps(bounds), broker], afresh=afresh)
