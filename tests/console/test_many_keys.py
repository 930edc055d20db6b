"""A queue of 100,000 keys: its pages load and say what the broker says, and twenty who look are one to the broker."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time

import pytest

from fila import NewMessage
from tests.console.conftest import live, shown, until
from tests.waiting import within

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

KEYS = 100_000
CLIENTS = 20
MOVES_S_MAX = 2.0
HOME = "/b/broker/"


@pytest.fixture(scope="module")
def crowded(keyed):
    """A message of each key, and one key with more."""
    with keyed.client() as client:
        client.create_queue("crowd", fairness_key_header="tenant")
        client.enqueue_many(
            "crowd",
            [NewMessage(payload=b"x", headers={"tenant": f"key{number:06}"}) for number in range(KEYS)],
        )
        client.enqueue_many("crowd", [NewMessage(payload=b"x", headers={"tenant": "acme"})] * 50)
    return keyed


def digits(text: str) -> int:
    return int("".join(each for each in text if each.isdigit()))


@pytest.mark.needs("chromium")
@pytest.mark.timeout(180)  # twenty seconds of it are what the page takes for so many keys
@pytest.mark.costly("a queue of many keys, and each of its pages in a browser")
def test_each_page_of_a_crowded_queue_says_what_the_broker_says(crowded, page):
    page.goto(f"{crowded.console.url}{HOME}login")
    page.fill("#key", crowded.admin_key)
    page.click("button[type=submit]")
    page.wait_for_url(f"**{HOME}")
    with crowded.client() as client:
        stats = client.get_stats("crowd", max_keys=1)
        assert stats.active_fairness_keys == KEYS + 1

        live(page, f"{crowded.console.url}{HOME}queues/crowd")
        assert digits(shown(page, "number-waiting")) == stats.depth
        assert digits(shown(page, "number-keys")) == KEYS + 1
        # A key of so many is come by within some twenty seconds.
        assert until(page.locator("table tbody tr", has_text="acme").count)

        def moves(attempt: int) -> float:
            before = digits(shown(page, "number-waiting"))
            began_s = time.monotonic()
            client.enqueue("crowd", b"x", {"tenant": f"new{attempt}"})
            until(lambda: digits(shown(page, "number-waiting")) == before + 1)
            return time.monotonic() - began_s

        within(MOVES_S_MAX, moves)
        assert digits(shown(page, "number-waiting")) == client.get_stats("crowd", max_keys=1).depth
    for path in ("", "queues/crowd/key?key=key000007"):
        live(page, f"{crowded.console.url}{HOME}{path}")


def test_twenty_browsers_are_one_watch_to_the_broker(crowded):
    """By what the broker counts of the key that they share: a stream for all queues, and one for the queue."""
    with crowded.client() as client:
        key = client.create_key("watcher")
        client.grant("watcher", admin=True)
        crowded.console.log_in(key)
        host, port = crowded.console.address.split(":")
        paths = itertools.cycle(("live/overview", "live/queue?queue=crowd"))
        with contextlib.ExitStack() as stack:
            for path, _ in zip(paths, range(CLIENTS), strict=False):
                stream = stack.enter_context(socket.create_connection((host, int(port)), 20))
                stream.sendall(
                    f"GET {HOME}{path} HTTP/1.1\r\nHost: {crowded.console.address}\r\n"
                    f"Cookie: {crowded.console.cookie}\r\n\r\n".encode()
                )
                told = b""
                while b"event: whole" not in told:
                    told = told[-32:] + (piece := stream.recv(65536))
                    assert piece
            assert client.get_principal("watcher").streams == 2
        # Nobody looks any more: they end, some seconds later.
        until(lambda: client.get_principal("watcher").streams == 0)
    crowded.console.cookie = ""
