"""Encrypted connections on both protocols: certificates of servers and clients, and files that change meanwhile."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
import structlog

from fila.v1 import admin_pb2, auth_pb2, service_pb2
from fila_server import errors
from fila_server.access.tls import Tls
from fila_server.config.sections import Tls as Settings
from tests.access.guarded_server import Client, Guarded, permission, refusal, with_key
from tests.e2e.conftest import RunningServer, launch, wait_until_started

pytestmark = pytest.mark.needs("openssl")


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def authority(folder: Path, name: str) -> None:
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem")  # fmt: skip


def certificate(folder: Path, name: str, alternative: str, signer: str = "ca") -> None:
    (folder / f"{name}.ext").write_text(f"subjectAltName={alternative}\n")
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", "/CN=admin", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr")  # fmt: skip
    openssl("x509", "-req", "-days", "2", "-in", folder / f"{name}.csr", "-CA", folder / f"{signer}.pem",
            "-CAkey", folder / f"{signer}.key", "-CAcreateserial", "-extfile", folder / f"{name}.ext",
            "-out", folder / f"{name}.pem")  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    authority(folder, "ca")
    authority(folder, "other-ca")
    certificate(folder, "server", "DNS:localhost,IP:127.0.0.1")
    certificate(folder, "newer", "DNS:localhost,IP:127.0.0.1")
    certificate(folder, "shop", "URI:spiffe://corp/shop")
    certificate(folder, "nobody", "DNS:nobody.example")
    certificate(folder, "stranger", "URI:spiffe://corp/shop", signer="other-ca")
    return folder


@pytest.fixture(scope="module")
def encrypted(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("encrypted")
    for name in ("pem", "key"):
        shutil.copy(files / f"server.{name}", folder / f"used.{name}")
    running = wait_until_started(
        launch(
            folder / "data", folder / "server.log", FILA_AUTH__ENABLED="true",
            FILA_TLS__CERT_FILE=str(folder / "used.pem"), FILA_TLS__KEY_FILE=str(folder / "used.key"),
            FILA_TLS__CLIENT_CA_FILE=str(files / "ca.pem"),
            FILA_TLS__REQUIRE_CLIENT_CERT="true",
        )
    )  # fmt: skip
    yield Guarded(running)
    assert running.stop() == 0, running.log_file.read_text()


def connect(running: RunningServer, files: Path, key: str = "", certificate_of: str = "nobody") -> Client:
    pair = (
        ((files / f"{certificate_of}.key").read_bytes(), (files / f"{certificate_of}.pem").read_bytes())
        if certificate_of
        else (None, None)
    )
    credentials = grpc.ssl_channel_credentials((files / "ca.pem").read_bytes(), *pair)
    address = running.addresses["grpc"].replace("127.0.0.1", "localhost")
    channel = grpc.secure_channel(
        address,
        credentials,
        options=[("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)],
    )
    running.channels.append(channel)
    return Client(with_key(channel, key), key)


def listed(client: Client) -> Any:
    return client.admin.ListQueues(admin_pb2.ListQueuesRequest(), timeout=10)


@pytest.mark.e2e
def test_a_key_over_tls_and_a_plain_connection_that_gets_nowhere(encrypted: Guarded, files: Path):
    listed(connect(encrypted.running, files, encrypted.admin_key))
    plain = encrypted.client(encrypted.admin_key)
    assert refusal(lambda: listed(plain))[0] in ("UNAVAILABLE", "DEADLINE_EXCEEDED")


@pytest.mark.e2e
def test_a_certificates_uri_is_a_principal_and_its_common_name_is_nothing(encrypted: Guarded, files: Path):
    admin = connect(encrypted.running, files, encrypted.admin_key)
    admin.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="orders"))
    admin.auth.Grant(
        auth_pb2.GrantRequest(name="spiffe://corp/shop", permissions=[permission("produce orders")])
    )
    shop = connect(encrypted.running, files, certificate_of="shop")
    assert shop.service.Enqueue(service_pb2.EnqueueRequest(queue="orders"), timeout=10).message_id
    assert (
        refusal(lambda: shop.service.Lease(service_pb2.LeaseRequest(queue="orders")))[0]
        == "PERMISSION_DENIED"
    )
    nobody = connect(encrypted.running, files, certificate_of="nobody")
    assert refusal(lambda: listed(nobody))[0] == "UNAUTHENTICATED"
    both = connect(encrypted.running, files, encrypted.admin_key, certificate_of="nobody")
    listed(both)
    for outsider in ("stranger", ""):
        outside = connect(encrypted.running, files, encrypted.admin_key, certificate_of=outsider)
        assert refusal(lambda outside=outside: listed(outside))[0] in ("UNAVAILABLE", "DEADLINE_EXCEEDED")


def redis(running: RunningServer, files: Path, certificate_of: str = "nobody") -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(files / "ca.pem"))
    if certificate_of:
        context.load_cert_chain(files / f"{certificate_of}.pem", files / f"{certificate_of}.key")
    host, port = running.addresses["redis"].rsplit(":", 1)
    return context.wrap_socket(socket.create_connection((host, int(port)), 10), server_hostname="localhost")


@pytest.mark.e2e
def test_redis_over_tls_with_a_key_and_with_a_certificate(encrypted: Guarded, files: Path):
    admin = connect(encrypted.running, files, encrypted.admin_key)
    admin.auth.Grant(
        auth_pb2.GrantRequest(name="spiffe://corp/shop", permissions=[permission("produce r.*")])
    )
    with redis(encrypted.running, files) as client:
        client.sendall(f"AUTH {encrypted.admin_key}\r\nSETNX r.one default\r\n".encode())
        assert client.recv(100) in (b"+OK\r\n", b"+OK\r\n+OK\r\n")
    with redis(encrypted.running, files, "shop") as client:
        client.sendall(b"RPUSH r.one hello\r\n")
        assert not client.recv(100).startswith(b"-")
        client.sendall(b"DEL r.one\r\n")
        assert client.recv(200).startswith(b"-NOPERM")


@pytest.mark.e2e
def test_who_leaves_before_its_handshake_costs_no_other_client_anything(encrypted: Guarded, files: Path):
    host, port = encrypted.running.addresses["redis"].rsplit(":", 1)
    for first in (b"", b"PING\r\n", bytes((22, 3, 1, 0, 200))):
        for _ in range(5):
            with socket.create_connection((host, int(port)), 10) as gone:
                gone.sendall(first)
            with redis(encrypted.running, files) as client:
                client.settimeout(10)
                client.sendall(f"AUTH {encrypted.admin_key}\r\n".encode())
                assert client.recv(100) == b"+OK\r\n"

    assert [line for line in encrypted.running.log if "exception" in line or line["level"] == "error"] == []


@pytest.mark.e2e
def test_large_pipelines_over_tls_lose_nothing_and_wait_for_nothing(encrypted: Guarded, files: Path):
    pushes = b"".join(
        b"*3\r\n$5\r\nRPUSH\r\n$5\r\nr.two\r\n$60000\r\n%b\r\n" % (bytes((65 + n,)) * 60_000)
        for n in range(25)
    )
    with redis(encrypted.running, files) as client:
        client.settimeout(20)
        client.sendall(f"AUTH {encrypted.admin_key}\r\nSETNX r.two default\r\n".encode())
        replies = client.makefile("rb")
        assert [replies.readline() for _ in range(2)] == [b"+OK\r\n"] * 2
        for _ in range(8):
            client.sendall(pushes)
            assert [replies.readline() for _ in range(25)] == [b":1\r\n"] * 25
            client.sendall(b"HMGET r.two default 25 5\r\n")
            assert replies.readline() == b"*25\r\n"
            for n in range(25):
                head = [replies.readline() for _ in range(4)]
                assert (head[0], head[3]) == (b"*3\r\n", b"$60000\r\n")
                assert replies.read(60_002) == bytes((65 + n,)) * 60_000 + b"\r\n"


@pytest.mark.e2e
def test_new_files_are_used_while_old_connections_go_on(encrypted: Guarded, files: Path):
    before = connect(encrypted.running, files, encrypted.admin_key)
    listed(before)
    folder = encrypted.running.data_dir.parent

    def serial() -> int:
        host, port = encrypted.running.addresses["grpc"].rsplit(":", 1)
        context = ssl.create_default_context(cafile=str(files / "ca.pem"))
        context.set_alpn_protocols(["h2"])
        context.load_cert_chain(files / "nobody.pem", files / "nobody.key")
        with context.wrap_socket(
            socket.create_connection((host, int(port)), 10), server_hostname="localhost"
        ) as s:
            return int(str(s.getpeercert()["serialNumber"]), 16)

    old = serial()
    (folder / "used.key").write_bytes((files / "newer.key").read_bytes())
    (folder / "used.pem").write_bytes((files / "newer.pem").read_bytes())
    ends_s = time.monotonic() + 15
    while serial() == old and time.monotonic() < ends_s:
        time.sleep(0.2)
    assert serial() != old
    listed(before)
    with redis(encrypted.running, files) as client:
        assert int(str(client.getpeercert()["serialNumber"]), 16) == serial()


def ending_certificate(folder: Path, name: str, alternative: str, ends_in_s: float) -> None:
    """A certificate that is valid for seconds only."""
    (folder / "index.txt").write_text("")
    (folder / "ca.cnf").write_text(
        f"[ca]\ndefault_ca=d\n[d]\ndatabase={folder}/index.txt\nnew_certs_dir={folder}\nrand_serial=yes\n"
        f"default_md=sha256\npolicy=p\nx509_extensions=x\n[p]\n[x]\nsubjectAltName={alternative}\n"
    )
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=short",
            "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr")  # fmt: skip
    moment = lambda s: time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + s))  # noqa: E731
    openssl("ca", "-config", folder / "ca.cnf", "-batch", "-notext", "-in", folder / f"{name}.csr",
            "-cert", folder / "ca.pem", "-keyfile", folder / "ca.key", "-startdate", moment(-60),
            "-enddate", moment(ends_in_s), "-out", folder / f"{name}.pem")  # fmt: skip


@pytest.fixture(scope="module")
def inviting(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A server that takes certificates, and does without."""
    folder = tmp_path_factory.mktemp("inviting")
    running = wait_until_started(
        launch(
            folder / "data", folder / "server.log", FILA_AUTH__ENABLED="true",
            FILA_TLS__CERT_FILE=str(files / "server.pem"), FILA_TLS__KEY_FILE=str(files / "server.key"),
            FILA_TLS__CLIENT_CA_FILE=str(files / "ca.pem"), FILA_TLS__MIN_VERSION="1.3",
        )
    )  # fmt: skip
    yield Guarded(running)
    assert running.stop() == 0, running.log_file.read_text()


def shake(running: RunningServer, files: Path, **given: Any) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(files / "ca.pem"))
    if given.get("protocols", ["h2"]):
        context.set_alpn_protocols(given.get("protocols", ["h2"]))
    context.maximum_version = given.get("newest", ssl.TLSVersion.MAXIMUM_SUPPORTED)
    if "certificate_of" in given:
        name = given["certificate_of"]
        context.load_cert_chain(files / f"{name}.pem", files / f"{name}.key")
    host, port = running.addresses["grpc"].rsplit(":", 1)
    return context.wrap_socket(socket.create_connection((host, int(port)), 10), server_hostname="localhost")


@pytest.mark.e2e
def test_a_certificate_is_asked_for_and_none_is_needed(inviting: Guarded, files: Path):
    listed(connect(inviting.running, files, inviting.admin_key, certificate_of=""))
    admin = connect(inviting.running, files, inviting.admin_key)
    nobody = connect(inviting.running, files, certificate_of="shop")
    code, sentence, _ = refusal(lambda: listed(nobody))
    assert (code, "no principal has a name of this certificate" in sentence) == ("UNAUTHENTICATED", True)
    admin.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="asked"))
    admin.auth.Grant(
        auth_pb2.GrantRequest(name="spiffe://corp/shop", permissions=[permission("produce asked")])
    )
    assert nobody.service.Enqueue(service_pb2.EnqueueRequest(queue="asked"), timeout=10).message_id
    shown = nobody.auth.GetPrincipal(auth_pb2.GetPrincipalRequest(), timeout=10).principal
    assert shown.name == "spiffe://corp/shop"


@pytest.mark.e2e
def test_what_is_no_http2_or_too_old_does_not_get_through_its_handshake(inviting: Guarded, files: Path):
    with shake(inviting.running, files) as good:
        assert (good.selected_alpn_protocol(), good.version()) == ("h2", "TLSv1.3")
    with pytest.raises(ssl.SSLError):
        shake(inviting.running, files, newest=ssl.TLSVersion.TLSv1_2)
    with pytest.raises(ssl.SSLError):
        shake(inviting.running, files, protocols=["http/1.1"])
    with shake(inviting.running, files, protocols=[]) as silent:
        assert silent.recv(100) == b""
    with socket.create_connection(
        ("127.0.0.1", int(inviting.running.addresses["grpc"].rsplit(":")[-1])), 10
    ) as plain:
        plain.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(100))
        with contextlib.suppress(ConnectionResetError):
            while plain.recv(1000):
                pass
    listed(connect(inviting.running, files, inviting.admin_key))


@pytest.mark.e2e
def test_a_connection_ends_with_its_certificate(inviting: Guarded, files: Path):
    ending_certificate(files, "short", "URI:spiffe://corp/short", ends_in_s=4)
    began = time.monotonic()
    with (
        redis(inviting.running, files, "short") as other,
        shake(inviting.running, files, certificate_of="short") as lasting,
    ):
        other.sendall(f"AUTH {inviting.admin_key}\r\n".encode())
        assert other.recv(100) == b"+OK\r\n"
        lasting.settimeout(15)
        lasting.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
        while lasting.recv(1000):
            pass
        assert other.recv(100) == b""
    assert 2 < time.monotonic() - began < 10


@pytest.mark.e2e
def test_large_frames_go_through_whole_in_both_directions(inviting: Guarded, files: Path):
    """Many records, more than a socket takes at once, and a reader that stops in between."""
    admin = connect(inviting.running, files, inviting.admin_key)
    admin.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="large"))
    payloads = [bytes([n]) * 1_000_000 for n in range(12)]
    batch = service_pb2.EnqueueBatchRequest(
        queue="large", messages=[service_pb2.EnqueueMessage(payload=payload) for payload in payloads]
    )
    assert all(result.message_id for result in admin.service.EnqueueBatch(batch, timeout=60).results)
    stream = admin.service.Consume(service_pb2.ConsumeRequest(queue="large", max_in_flight=12), timeout=60)
    found = []
    for answer in stream:
        found += [message.payload for message in answer.messages or [answer.message]]
        time.sleep(0.05)
        if len(found) == 12:
            stream.cancel()
            break
    assert sorted(found) == payloads


def test_files_that_do_not_fit_are_told_before_anything_starts(files: Path):
    def settings(cert_file: str, key_file: str = "") -> Settings:
        return Settings(cert_file=str(files / cert_file), key_file=str(files / key_file) if key_file else "")

    with pytest.raises(errors.ConfigInvalid, match=r"tls\.key_file"):
        Tls(settings(cert_file="server.pem"))
    with pytest.raises(errors.ConfigInvalid, match="do not fit together"):
        Tls(settings(cert_file="server.pem", key_file="newer.key"))
    with pytest.raises(errors.ConfigInvalid, match="cannot be read"):
        Tls(settings(cert_file="none.pem", key_file="newer.key"))
    with pytest.raises(errors.ConfigInvalid, match="client_ca_file"):
        Tls(Settings(
            cert_file=str(files / "server.pem"), key_file=str(files / "server.key"), require_client_cert=True
        ))  # fmt: skip


def warned(cert_file: Path, now_s: float, *later_s: float) -> list[dict[str, Any]]:
    """What the server's log is told of its certificate then, and later."""
    with structlog.testing.capture_logs() as logs:
        tls = Tls(Settings(cert_file=str(cert_file), key_file=str(cert_file.with_suffix(".key"))))
        for moment_s in (now_s, *later_s):
            tls.warn_of_end(moment_s)
    return cast("list[dict[str, Any]]", logs)


def test_a_certificate_that_ends_soon_or_has_ended_is_warned_of_once_a_day(files: Path):
    now_s = time.time()
    assert warned(files / "server.pem", now_s - 30 * 86_400) == []
    twice = warned(files / "server.pem", now_s, now_s + 60, now_s + 86_401)
    assert [said["event"] for said in twice] == ["tls.certificate_ends"] * 2
    assert twice[0]["ends"] > time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s + 86_400))

    ending_certificate(files, "ended", "DNS:localhost", ends_in_s=-30)
    [refused] = warned(files / "ended.pem", now_s)
    assert (refused["event"], refused["log_level"]) == ("tls.certificate_refused", "warning")
    assert "certificate has expired" in refused["detail"]
