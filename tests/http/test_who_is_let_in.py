"""Where the gateway may stand, whose keys it takes, and what it says when the broker is not there."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.access.guarded_server import Guarded
from tests.access.test_tls import authority, certificate
from tests.e2e.conftest import launch, wait_until_started
from tests.http.running_gateway import COMMAND, Gateway, launch_gateway, start_by_command, wait_for_gateway

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine", "module:uvicorn")]

TEXT = {"content-type": "text/plain"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    running = wait_until_started(launch(folder / "data", folder / "server.log", FILA_AUTH__ENABLED="true"))
    yield Guarded(running)
    running.stop()


@pytest.fixture(scope="module")
def open_to_all(guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway on every address of the machine, before a broker that asks for keys."""
    options = ("--listen", "0.0.0.0:0", "--allow-host", "127.0.0.1", "--allow-plaintext")
    origin = ("--allow-origin", "https://shop.example")
    folder = tmp_path_factory.mktemp("gateway")
    # What the gateway's own environment holds must never stand in for a caller's key, were it an admin's.
    broker, key = guarded.running.addresses["grpc"], guarded.admin_key
    running = wait_for_gateway(start_by_command(folder, broker, *options, *origin, key=key))
    # Until it has asked the broker whether it asks for keys, it lets nobody in.
    until(running, lambda answer: answer.status != 503)
    yield running
    running.stop()


def test_every_caller_has_the_rights_of_its_own_key(open_to_all, guarded):
    gateway = open_to_all
    admin = guarded.admin_key
    gateway.post("/v1/queues", {"name": "orders"}, key=admin)
    shop = guarded.make_key("shop", "produce orders").key
    path = "/v1/queues/orders/messages"

    assert gateway.post(path, body=b"x", headers=TEXT, key=shop).status == 200
    assert gateway.post("/v1/queues/orders/lease", key=shop).refusal == (403, "PERMISSION_DENIED")
    assert gateway.get("/v1/queues/others/stats", key=shop).refusal == (404, "QUEUE_NOT_FOUND")
    assert gateway.get("/v1/auth/principals", key=shop).refusal[0] == 403
    assert gateway.get("/v1/auth/principal", key=shop).json["principal"]["name"] == "shop"


@pytest.mark.parametrize(
    "given", ["", "Basic YTpi", "Bearer", "Bearer fila_a_b", "Bearer a b", "Bearer " + "x" * 600]
)
def test_no_key_or_a_wrong_one_is_401_and_never_the_gateways_own(open_to_all, given):
    headers = {"authorization": given} if given else {}
    for answer in (
        open_to_all.get("/v1/status", headers=headers),
        open_to_all.post("/v1/queues/orders/messages", body=b"x", headers=TEXT | headers),
    ):
        assert answer.refusal == (401, "UNAUTHENTICATED")
        assert answer.headers["www-authenticate"] == "Bearer"


def test_the_audit_has_the_callers_address_as_the_gateway_claims_it_and_never_one_a_caller_wrote(
    open_to_all, guarded
):
    lied = {"fila-client-address": "203.0.113.9", "x-forwarded-for": "203.0.113.9"}
    answer = open_to_all.post("/v1/queues", {"name": "audited"}, key=guarded.admin_key, headers=lied)
    records = open_to_all.get("/v1/auth/audit", key=guarded.admin_key).json["records"]

    assert answer.status == 200
    assert [each["claimedAddress"] for each in records if each["queue"] == "audited"] == ["127.0.0.1"]


def test_a_key_that_is_revoked_ends_with_it(open_to_all, guarded):
    gateway = open_to_all
    gateway.post("/v1/queues", {"name": "orders"}, key=guarded.admin_key)
    client = guarded.make_key("leaving", "produce orders")
    path = "/v1/queues/orders/messages"
    assert gateway.post(path, body=b"x", headers=TEXT, key=client.key).status == 200
    gateway.post("/v1/auth/keys/revoke", {"keyId": client.key.split("_")[1]}, key=guarded.admin_key)

    deadline = time.monotonic() + 30
    # What was under way while the key ended may have lost its answer; whatever comes then is refused.
    while (answer := gateway.post(path, body=b"x", headers=TEXT, key=client.key)).status in (200, 503):
        assert time.monotonic() < deadline
    assert answer.refusal == (401, "UNAUTHENTICATED")


def test_pages_of_a_listed_origin_may_call_and_no_cookie_counts(open_to_all):
    asked = {"Origin": "https://shop.example", "Access-Control-Request-Method": "POST"}
    preflight = open_to_all.call("OPTIONS", "/v1/queues", headers=asked)
    answer = open_to_all.get("/healthz", headers={"Origin": "https://shop.example", "Cookie": "key=fila_a_b"})

    assert preflight.status == 200
    assert answer.headers["access-control-allow-origin"] == "https://shop.example"
    assert "access-control-allow-credentials" not in preflight.headers | answer.headers


def refused_start(*options: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", COMMAND, "http", "--listen", "127.0.0.1:0", *options],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ran.returncode == 1, ran.stderr
    (line,) = ran.stderr.splitlines()
    return line


def test_other_machines_are_not_served_in_plain_text_or_by_every_name():
    assert "--allow-plaintext" in refused_start("--listen", "0.0.0.0:0")
    assert "--allow-host" in refused_start("--listen", "0.0.0.0:0", "--allow-plaintext")
    assert "--key-file" in refused_start("--cert-file", "cert.pem")


def test_a_broker_without_keys_is_served_to_its_own_machine_alone(start_server):
    address = start_server().addresses["grpc"]
    told = refused_start("--addr", address, "--listen", "0.0.0.0:0", "--allow-host", "x", "--allow-plaintext")
    assert "auth.enabled" in told


def test_a_gateway_that_others_reach_shuts_when_its_broker_asks_for_keys_no_more(
    start_server, kept_port, tmp_path
):
    address = kept_port.address
    first = start_server(FILA_SERVER__LISTEN_ADDR=address, FILA_AUTH__ENABLED="true")
    options = ("--listen", "0.0.0.0:0", "--allow-host", "127.0.0.1", "--allow-plaintext")
    gateway = wait_for_gateway(start_by_command(tmp_path / "gateway", address, *options))
    try:
        assert until(gateway, lambda answer: answer.status == 401)
        first.stop()
        assert until(gateway, lambda answer: answer.status == 503)
        start_server(FILA_SERVER__LISTEN_ADDR=address, FILA_AUTH__ENABLED="false")
        shut = until(gateway, lambda answer: b"asks for no keys" in answer.body)
        assert shut.refusal == (503, "UNAVAILABLE")
        with_a_key = gateway.get("/v1/queues", key="fila_any_thing")
        assert with_a_key.refusal == (503, "UNAVAILABLE"), "any key would do for a broker that asks for none"
    finally:
        gateway.process.kill()
        gateway.process.wait()


def until(gateway, holds):
    deadline = time.monotonic() + 30
    while not holds(answer := gateway.get("/v1/queues")):
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)
    return answer


def test_a_broker_that_vanishes_is_an_answer_in_words_and_one_that_comes_back_is_found(
    start_server, kept_port, tmp_path
):
    address = kept_port.address
    server = start_server(FILA_SERVER__LISTEN_ADDR=address)
    gateway = wait_for_gateway(start_by_command(tmp_path / "gateway", address))
    try:
        gateway.post("/v1/queues", {"name": "orders"})
        path = "/v1/queues/orders/messages"
        assert gateway.post(path, body=b"x", headers=TEXT).status == 200
        server.process.kill()
        server.process.wait()

        for answer in (
            gateway.get("/v1/status"),
            gateway.post(path, body=b"x", headers=TEXT),
            gateway.post("/v1/queues/orders/lease", {"waitMs": 1000}),
            gateway.get("/v1/queues/orders/consume"),
            gateway.get("/readyz"),
        ):
            assert answer.status == 503
            assert answer.refusal[1] in ("UNAVAILABLE", "ANSWER_LOST")
            assert answer.headers["retry-after"] == "1"
        assert gateway.get("/healthz").status == 200

        start_server(data_dir=server.data_dir, FILA_SERVER__LISTEN_ADDR=address)
        deadline = time.monotonic() + 30
        while (back := gateway.post(path, body=b"y", headers=TEXT)).status != 200:
            assert time.monotonic() < deadline, back
        assert int(back.json["offset"]) >= 2
    finally:
        gateway.process.kill()
        gateway.process.wait()


@pytest.mark.needs("openssl")
def test_keys_travel_by_tls_where_the_gateway_has_a_certificate(guarded: Guarded, tmp_path: Path):
    authority(tmp_path, "ca")
    certificate(tmp_path, "gateway", "DNS:localhost,IP:127.0.0.1")
    files = ("--cert-file", str(tmp_path / "gateway.pem"), "--key-file", str(tmp_path / "gateway.key"))
    broker = guarded.running.addresses["grpc"]
    gateway = wait_for_gateway(start_by_command(tmp_path / "gateway-folder", broker, *files))
    try:
        trusting = ssl.create_default_context(cafile=tmp_path / "ca.pem")
        url = f"https://127.0.0.1:{gateway.port}/v1/auth/whoami"
        asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {guarded.admin_key}"})
        with urllib.request.urlopen(asked, context=trusting, timeout=10) as answer:
            assert json.load(answer)["principal"] == "admin"
        with pytest.raises(OSError):
            gateway.get("/healthz")  # not encrypted
    finally:
        gateway.process.kill()
        gateway.process.wait()


def test_a_certificate_that_can_not_be_read_is_one_sentence(guarded: Guarded, tmp_path: Path):
    (tmp_path / "no.pem").write_text("no certificate")
    files = ("--cert-file", str(tmp_path / "no.pem"), "--key-file", str(tmp_path / "no.pem"))
    assert "no.pem can't be used" in refused_start("--addr", guarded.running.addresses["grpc"], *files)


def test_without_the_libraries_the_command_says_how_to_install_them(tmp_path: Path):
    hidden = "import sys; sys.modules['uvicorn'] = None; from fila_cli.main import main; main()"
    gateway = launch_gateway(tmp_path, [hidden, "http"], afresh=True)
    assert gateway.process.wait(20) == 1
    (line,) = gateway.log.splitlines()
    assert "pip install httptools orjson starlette uvicorn uvloop" in line


def test_a_port_that_is_taken_is_one_sentence(server_port: int):
    assert "can't be listened on" in refused_start("--listen", f"127.0.0.1:{server_port}")


@pytest.fixture
def server_port(guarded: Guarded) -> int:
    return int(guarded.running.addresses["grpc"].rsplit(":", 1)[1])
