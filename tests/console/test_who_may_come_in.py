"""Logins, foreign pages, foreign names, a console that changes nothing, a broker that asks for no key, bad input."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import pytest

from fila.sync import FilaClient
from fila_console.routes import ASKED, CHANGES, PAGES, STREAMS, console_of, routes_of
from fila_console.settings import Broker, Settings
from fila_console.streams import ENDED
from tests.console.conftest import start_console, until
from tests.waiting import within

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

HOME = "/b/broker/"


def filled(path: str) -> str:
    return HOME + path.replace("{queue}", "orders")


def test_every_answer_carries_the_policy_that_lets_no_foreign_script_in(console):
    for path in (HOME, "/nowhere", "/assets/x/main.js", HOME + "queues/none", "/healthz"):
        policy = console.get(path).headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
    assert console.get(HOME).headers["referrer-policy"] == "no-referrer"
    assert console.get(HOME).headers["cache-control"] == "no-store"


def test_a_page_has_no_script_or_style_of_its_own(console, broker):
    page = console.get(HOME).text
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", page)


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "localhost:1", "127.0.0.1.evil.example:{port}", ""]
)
def test_a_name_that_was_not_listed_is_not_served(console, host):
    port = console.address.rpartition(":")[2]
    answer = console.get(HOME, Host=host.format(port=port))

    assert answer.status in (400, 421)
    assert "csrf" not in answer.text


def test_the_names_of_this_machine_are_served(console):
    port = console.address.rpartition(":")[2]
    assert console.get(HOME, Host=f"localhost:{port}").status == 200
    assert console.get(HOME, Host=f"LOCALHOST:{port}").status == 200


@pytest.fixture(scope="module")
def csrf(broker, console):
    """The token that a page of ours would send."""
    with FilaClient.connect(broker.addresses["grpc"]) as client:
        client.create_queue("entered", exist_ok=True)
    return console.get(HOME + "queues/entered/policy").csrf


@pytest.mark.parametrize("path", [*CHANGES, *ASKED])
def test_a_change_from_another_page_is_refused(console, csrf, path):
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": f"https://{console.address}"},
        {"Origin": f"{console.url}/"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        answer = console.post(filled(path), {"csrf": csrf}, **headers)
        assert (answer.status, "from a page of this console" in answer.text) == (403, True), headers


@pytest.mark.parametrize("path", [*CHANGES, *ASKED])
def test_a_change_without_the_pages_token_is_refused(console, path):
    for fields in ({}, {"csrf": ""}, {"csrf": "x" * 43}, {"csrf": "é"}):
        answer = console.post(filled(path), fields)
        assert answer.status == 403
        assert "too old" in answer.text


def test_every_address_that_takes_a_form_is_a_change_or_is_known_to_change_nothing():
    console = console_of(Settings(brokers=[Broker("broker", "http://localhost:1")]))
    posted = {route.path for route in routes_of(console) if "POST" in route.methods}
    known = {"/b/{broker}/" + path for path in (*CHANGES, *ASKED, "login", "logout")}
    # A tenant's stream is posted for, since its key goes as a bearer.
    assert posted - known == {"/t/{broker}/live"}


def test_a_console_that_changes_nothing_refuses_every_change_in_the_server(broker, csrf):
    quiet = start_console(broker.addresses["grpc"], "--read-only")
    try:
        for path in CHANGES:
            answer = quiet.post(filled(path), {"csrf": "whatever"})
            assert (answer.status, "--read-only" in answer.text) == (403, True)
        page = quiet.get(HOME + "queues/entered/policy")
        assert "Go back to" not in quiet.get(HOME + "queues/entered/policy/version?number=1").text
        assert "Pause the queue" not in quiet.get(HOME + "queues/entered").text
        # What changes nothing is answered: a page that only shows shows this, too.
        answer = quiet.post(HOME + "queues/entered/policy/diff", {"csrf": page.csrf, "max_attempts": "7"})
        assert (answer.status, "+7" in answer.text) == (200, True)
        answer = quiet.post(HOME + "queues/entered/policy/dry-run", {"csrf": page.csrf})
        assert (answer.status, "nothing to try it on" in answer.text) == (200, True)
    finally:
        quiet.stop()


# Keys.


def test_nothing_is_shown_before_somebody_logs_in(keyed):
    keyed.console.cookie = ""
    for path in STREAMS:
        assert keyed.console.get(filled(path)).text == ENDED
    for path in PAGES:
        answer = keyed.console.get(filled(path))
        assert answer.status == 303
        assert answer.headers["location"].startswith("/b/broker/login?")
    for path in CHANGES:
        assert keyed.console.post(filled(path), {"csrf": "x"}).status == 303


def test_a_key_opens_the_pages_and_is_in_none_of_them(keyed):
    answer = keyed.console.log_in(keyed.admin_key)
    cookie = answer.headers["set-cookie"]

    assert (answer.status, answer.headers["location"]) == (303, HOME)
    port = keyed.console.address.rpartition(":")[2]
    assert cookie.startswith(f"fila-console-{port}=")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    page = keyed.console.get(HOME)
    assert page.status == 200
    assert keyed.admin_key not in page.text + str(page.headers)
    assert "asks for no key" not in page.text


def test_a_name_where_a_proxy_ends_tls_has_that_scheme_and_a_cookie_for_tls_alone(keyed):
    behind = start_console(keyed.server.addresses["grpc"], "--allow-host", "https://console.example")
    try:
        told = {
            scheme: behind.post(
                "/b/broker/login",
                {"key": keyed.admin_key},
                Host="console.example",
                Origin=f"{scheme}://console.example",
            )
            for scheme in ("https", "http")
        }
    finally:
        behind.stop()
    assert told["http"].status == 403
    assert told["https"].status == 303
    cookie = told["https"].headers["set-cookie"]
    assert cookie.startswith("__Host-fila-console-")
    assert "Secure" in cookie


@pytest.mark.parametrize("key", ["", "fila_nobody_" + "x" * 43, "x" * 600, "a b", "clé", "a\nb"])
def test_a_wrong_key_is_told_so_in_words_and_opens_nothing(keyed, key):
    keyed.console.cookie = ""
    answer = keyed.console.log_in(key)

    assert answer.status in (400, 401)
    assert 'role="alert"' in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "after",
    ["//evil.example/", "https://evil.example/", "/b/broker/\\evil", "javascript:alert(1)", "/assets/x"],
)
def test_after_the_login_one_goes_nowhere_else(keyed, after):
    answer = keyed.console.post("/b/broker/login", {"key": keyed.admin_key, "after": after})

    assert answer.headers["location"] == HOME


def test_logging_out_ends_the_login(keyed):
    keyed.console.log_in(keyed.admin_key)
    page = keyed.console.get(HOME)
    cookie = keyed.console.cookie

    answer = keyed.console.post("/b/broker/logout", {"csrf": page.csrf})

    assert answer.headers["location"] == "/b/broker/login"
    keyed.console.cookie = cookie
    assert keyed.console.get(HOME).status == 303


def open_stream(console, path: str):
    """A page's stream."""
    stream = socket.create_connection(tuple(console.address.split(":")), 20)
    stream.sendall(
        f"GET {HOME}{path} HTTP/1.1\r\nHost: {console.address}\r\nCookie: {console.cookie}\r\n\r\n".encode()
    )
    return stream


def read_until(stream, words: bytes) -> bytes:
    told = b""
    while words not in told:
        chunk = stream.recv(65536)
        assert chunk, told[-500:]
        told += chunk
    return told


def test_a_revoked_key_ends_its_pages_within_two_seconds(keyed):
    def ends(number):
        name = f"anna-{number}"
        key = client.create_key(name)
        client.grant(name, admin=True)
        keyed.console.log_in(key)
        with open_stream(keyed.console, "live/overview") as stream:
            read_until(stream, b"event: whole")
            began_s = time.monotonic()
            client.revoke_key(key.split("_")[1])
            read_until(stream, b"event: ended")
            took_s = time.monotonic() - began_s
        assert keyed.console.get(HOME).status == 303
        return took_s

    with keyed.client() as client:
        within(2.0, ends)


def test_the_broker_says_what_a_key_may_see_and_do(keyed):
    with keyed.client() as client:
        client.create_queue("shop.orders", exist_ok=True)
        client.create_queue("secret", exist_ok=True)
        key = client.create_key("shop")
        client.grant("shop", produce=["shop.*"], consume=["shop.*"])
    keyed.console.log_in(key)

    overview = keyed.console.get(HOME)
    assert "shop.orders" in overview.text
    assert "secret" not in overview.text
    assert keyed.console.get(HOME + "queues/secret").status == 404
    assert keyed.console.get(HOME + "queues/shop.orders").status == 200
    assert keyed.console.get(HOME + "queues/shop.orders/policy").status == 403
    answer = keyed.console.post(HOME + "queues/shop.orders/key?key=a", {"csrf": overview.csrf, "weight": "2"})
    assert answer.status == 403
    assert "manage" in answer.text


def test_a_key_that_may_look_is_shown_numbers_and_neither_messages_nor_settings(keyed):
    with keyed.client() as client:
        client.create_queue("looked.at", fairness_key_header="tenant", exist_ok=True)
        client.enqueue("looked.at", b"a secret payload", {"tenant": "acme", "card": "4111"})
        key = client.create_key("looks")
        client.grant("looks", view=["looked.*"])
    keyed.console.log_in(key)

    told = {
        path: keyed.console.get(f"{HOME}{path.replace('{queue}', 'looked.at')}?{urlencode({'key': 'acme'})}")
        for path in PAGES
    }
    csrf = told[""].csrf

    for path in ("", "queues/{queue}", "queues/{queue}/key", "events"):
        assert told[path].status == 200, path
    # A queue that is younger than the broker's look of this second comes with the next.
    assert until(lambda: "looked.at" in keyed.console.get(HOME).text)
    assert "acme" in told["queues/{queue}"].text
    for path in ("queues/{queue}/policy", "queues/{queue}/log"):
        assert told[path].status == 403, path
    assert not any("secret payload" in each.text or "4111" in each.text for each in told.values())
    for path in CHANGES:
        answer = keyed.console.post(
            HOME + path.replace("{queue}", "looked.at"), {"csrf": csrf, "key": "acme", "sure": "yes"}
        )
        assert answer.status in (400, 403, 404), (path, answer.status)
    with keyed.client() as client:
        assert client.get_stats("looked.at").depth == 1


PRINCIPALS: dict[str, dict[str, Any]] = {
    "produces": {"produce": ["shop.*"]},
    "consumes": {"consume": ["shop.*"]},
    "manages": {"manage": ["shop.*"]},
    "administers": {"admin": True},
    "views": {"view": ["shop.*"]},
    "tenant": {"produce": ["shop.*"]},
    "tenant-views": {"view": ["shop.*"]},
    "link": {},
    "stranger": {},
}
ASKS = {
    "key": "acme",
    "offset": "1",
    "number": "1",
    "as": "csv",
    "q": "a",
    "from": "1",
    "queue": "shop.orders",
}
NONSENSE = {
    "key": "\x00\u202e",
    "offset": "-1",
    "number": "1e9",
    "as": "exe",
    "q": "\ud7ff" * 900,
    "from": "x",
    "queue": "../x",
    "weight": "nan",
    "last": "0x1",
    "version": "999999999999999999999",
}


def _unless_late(answer):
    return None if answer.status == HTTPStatus.SERVICE_UNAVAILABLE else answer


@pytest.mark.timeout(180)  # hundreds of requests, one after the other
@pytest.mark.parametrize("who", PRINCIPALS)
def test_every_address_answers_every_key_in_words(keyed, who):
    """What a key may not is refused by the broker, and said; nothing is a failure of the console."""
    with keyed.client() as client:
        client.create_queue("shop.orders", exist_ok=True)
        client.enqueue("shop.orders", b"x", {"tenant": "acme"})
        if who == "link":
            key = client.create_tenant_link("shop.orders", "acme").key
        else:
            key = client.create_key(f"{who}.key", as_tenant="acme" if who.startswith("tenant") else "")
        if PRINCIPALS[who]:
            client.grant(f"{who}.key", **PRINCIPALS[who])
    keyed.console.log_in(key)
    home = keyed.console.get(HOME)
    assert home.status == 200, home.text[-1500:]
    csrf = home.csrf
    paths = [
        HOME + path.replace("{queue}", queue)
        for path in PAGES
        for queue in ("shop.orders", "shop.orders.dlq")
    ]
    for path in paths:
        for asked in (ASKS, NONSENSE):
            # On a busy machine the broker may be late, which a page says, too; not each time.
            url = f"{path}?{urlencode(asked)}"
            answer = until(lambda url=url: _unless_late(keyed.console.get(url)))
            assert 200 <= answer.status < 500, (path, asked, answer.text[-2000:])
    for path in (*ASKED, *CHANGES):
        for asked in ({}, NONSENSE):
            answer = keyed.console.post(
                HOME + path.replace("{queue}", "shop.orders.dlq"), asked | {"csrf": csrf, "sure": "yes"}
            )
            assert 200 <= answer.status < 500, (path, asked, answer.text[-2000:])
    for path in STREAMS:
        with open_stream(keyed.console, f"{path}?{urlencode(ASKS | {'queue': 'shop.orders.dlq'})}") as stream:
            assert b"The console failed" not in read_until(stream, b"}\n")


# Who is shown a broker that asks for no key.


def test_other_machines_are_not_lent_the_trust_in_this_one(broker):
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            "from fila_cli.main import main; main()",
            "--addr",
            broker.addresses["grpc"],
            "console",
            "--listen",
            "0.0.0.0:0",
            "--allow-plaintext",
        ],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert run.returncode == 2
    assert "asks for no key" in run.stderr
    assert "127.0.0.1" in run.stderr


def test_keys_do_not_cross_the_network_unprotected():
    run = subprocess.run(
        [sys.executable, "-c", "from fila_cli.main import main; main()", "console", "--listen", "0.0.0.0:0"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert run.returncode == 2
    assert "--allow-plaintext" in run.stderr


def test_a_band_says_that_no_key_is_asked_for(console):
    assert "anybody on this machine may do everything" in console.get(HOME).text


# Bad input.


@pytest.mark.parametrize(
    "body",
    [b"[" * (1 << 20), b"\xff\xfe" * 1000, b"a=1&" * 100_000, b"csrf=%ff%fe", b"\0" * 100],
    ids=lambda b: repr(b[:8]),
)
def test_a_body_that_is_no_form_is_refused_in_words(console, body):
    for path in (HOME + "queues/orders/key", "/b/broker/login"):
        answer = console.ask("POST", path, body, Origin=console.url)
        assert 400 <= answer.status < 500
        assert answer.text


def test_a_chunked_body_is_bounded_too(console):
    answer = console.ask("POST", HOME + "queues/orders/key", iter([b"x" * 65536] * 32), Origin=console.url)

    assert answer.status == 413


@pytest.mark.parametrize(
    "path",
    [
        HOME + "queues/%00",
        HOME + "queues/..%2f..%2fetc",
        HOME + "queues/orders/key?key=%ff%00%e2%80%ae",
        HOME + "queues/" + "x" * 4000,
        HOME + "queues/orders/dead-letters/letter?offset=99999999999999999999999",
        HOME + "queues/orders/log?from=-1",
        HOME + "queues/orders/log?time=yesterday",
        HOME + "events?kind=%3Cscript%3E",
        HOME + "events?queue=%00",
        HOME + "queues/orders/key/preview?key=a&weight=%ff",
        HOME + "queues/orders.dlq/dead-letters/meant?reason=boredom",
        HOME + "queues/orders/policy/version?number=99999",
        HOME + "queues/orders/log/preview?offset=1&time=2026-01-01T00:00",
        HOME + "search?queue=none&q=%00",
        "/assets/../../etc/passwd",
        "/b/nobody/",
    ],
)
def test_an_address_that_is_none_is_answered_in_words(console, path):
    answer = console.get(path)

    assert 200 <= answer.status < 500
    assert "Traceback" not in answer.text


def test_a_broker_that_goes_away_is_told_in_words_and_comes_back(tmp_path):
    from tests.e2e.conftest import launch, wait_until_started

    first = wait_until_started(launch(tmp_path / "data", tmp_path / "one.log"))
    away = start_console(first.addresses["grpc"])
    try:
        assert away.get(HOME).status == 200
        first.stop()

        # What was told a moment ago is shown a moment longer.
        gone = until(lambda: answer if (answer := away.get(HOME)).status == 503 else None)
        assert "does not answer" in gone.text
        assert first.addresses["grpc"] in gone.text

        again = wait_until_started(
            launch(tmp_path / "data", tmp_path / "two.log", FILA_SERVER__LISTEN_ADDR=first.addresses["grpc"])
        )
        until(lambda: away.get(HOME).status == 200)
        again.stop()
    finally:
        away.stop()
