"""Nodes of a group know each other by certificates or a secret, and tell strangers nothing."""

from __future__ import annotations

import queue
import socket
import time
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from fila_server.cluster import peers
from fila_server.cluster.peers import STRANGERS_MAX, Peer, PeerPort, Trust
from fila_server.cluster.reports import Report
from fila_server.cluster.watching import Heard, Missed
from fila_server.config.cluster import Cluster, GroupName
from fila_server.config.kinds import Address, AddressOrOff
from tests.access.test_tls import authority, certificate

WAIT_S = 30
SECRET = "a word that both of them know"


@pytest.fixture
def address(kept_port):
    return kept_port.address


@pytest.fixture
def settings(tmp_path, address):
    def of(node="fila-1", group="orders", word=SECRET):
        path = tmp_path / f"{node}-secret"
        path.touch(0o600)
        path.write_text(word)
        return Cluster(
            name=GroupName(group),
            node=GroupName(node),
            peer_addr=AddressOrOff(address),
            secret_file=str(path),
        )

    return of


def answering(cluster: Cluster, told: Report | None = None) -> PeerPort:
    report = told or Report(1, str(cluster.node), 7, may_bid=True, wall_ms=0, owner_heard_ms=250)
    return PeerPort(cluster, Trust.of(cluster), lambda: report)


def asking(cluster: Cluster, address: str) -> tuple[Peer, queue.SimpleQueue[Heard | Missed]]:
    heard: queue.SimpleQueue[Heard | Missed] = queue.SimpleQueue()
    return Peer(Address(address), cluster, Trust.of(cluster), heard.put), heard


def test_a_node_that_is_asked_says_how_it_is_and_again_until_it_is_gone(settings, address):
    port = answering(settings())
    peer, heard = asking(settings("fila-2"), address)
    for _ in range(2):
        told = heard.get(timeout=WAIT_S)
        assert isinstance(told, Heard)
        assert (told.node, told.position, told.may_bid) == (1, 7, True)
        assert told.owner_heard_ms is not None
        assert told.owner_heard_ms >= 250
        assert told.clock_ms > 1_700_000_000_000
    port.close()
    told = heard.get(timeout=WAIT_S)
    assert told == Missed(1, is_refused=True)
    peer.close()


def certified(folder: Path, cluster: Cluster, name: str, signer: str) -> Cluster:
    return msgspec.structs.replace(
        cluster,
        secret_file="",
        cert_file=str(folder / f"{name}.pem"),
        key_file=str(folder / f"{name}.key"),
        ca_file=str(folder / f"{signer}.pem"),
    )


def test_nodes_know_each_other_by_certificates(settings, address, tmp_path):
    authority(tmp_path, "ca")
    for name in ("one", "two"):
        certificate(tmp_path, name, "DNS:localhost,IP:127.0.0.1")
    port = answering(certified(tmp_path, settings(), "one", "ca"))
    peer, heard = asking(certified(tmp_path, settings("fila-2"), "two", "ca"), address)
    assert isinstance(heard.get(timeout=WAIT_S), Heard)
    peer.close()
    port.close()


@pytest.fixture
def refused():
    """Waits for the reason why a connection was refused."""
    with capture_logs() as lines:

        def why() -> str:
            end = time.monotonic() + WAIT_S
            while not lines:
                assert time.monotonic() < end, "nobody was refused"
                time.sleep(0.01)
            assert lines[0]["event"] == "cluster.stranger"
            return str(lines[0]["detail"])

        yield why


def test_a_certificate_of_another_authority_is_told_nothing(settings, address, tmp_path, refused):
    for signer in ("ca", "other"):
        authority(tmp_path, signer)
        certificate(tmp_path, f"of-{signer}", "DNS:localhost,IP:127.0.0.1", signer)
    (tmp_path / "both.pem").write_text(
        (tmp_path / "ca.pem").read_text() + (tmp_path / "other.pem").read_text()
    )
    port = answering(certified(tmp_path, settings(), "of-ca", "ca"))
    peer, heard = asking(certified(tmp_path, settings("fila-2"), "of-other", "both"), address)
    assert "certificate" in refused().lower()
    assert heard.empty()
    peer.close()
    port.close()


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"word": "another word of some length"}, "its secret is another"),
        ({"group": "bills"}, "it is of the group bills"),
        ({"node": "fila-1"}, "its name is fila-1, as this node's"),
    ],
)
def test_a_stranger_is_told_nothing_and_the_node_says_why(settings, address, refused, other, why):
    port = answering(settings())
    peer, heard = asking(settings(**({"node": "fila-2"} | other)), address)
    assert why in refused()
    assert heard.empty()
    peer.close()
    port.close()


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_strangers_that_hold_their_places_keep_no_node_out(settings, address, tmp_path, is_encrypted):
    own, other = settings(), settings("fila-2")
    if is_encrypted:
        authority(tmp_path, "ca")
        for name in ("one", "two"):
            certificate(tmp_path, name, "DNS:localhost,IP:127.0.0.1")
        own, other = certified(tmp_path, own, "one", "ca"), certified(tmp_path, other, "two", "ca")
    port = answering(own)
    strangers = [
        socket.create_connection((Address(address).host, Address(address).port))
        for _ in range(3 * STRANGERS_MAX)
    ]

    peer, heard = asking(other, address)

    assert isinstance(heard.get(timeout=WAIT_S), Heard)
    strangers += [
        socket.create_connection((Address(address).host, Address(address).port))
        for _ in range(3 * STRANGERS_MAX)
    ]
    assert isinstance(heard.get(timeout=WAIT_S), Heard)
    assert isinstance(heard.get(timeout=WAIT_S), Heard)
    for each in strangers:
        each.close()
    peer.close()
    port.close()


def knocking(address: str, host: str) -> socket.socket:
    """A stranger's connection from that host; it is served, as the first line of it shows."""
    place = Address(address)
    connection = socket.create_connection((place.host, place.port), WAIT_S, source_address=(host, 0))
    assert b"challenge" in connection.recv(4096)
    return connection


def is_served(connection: socket.socket) -> bool:
    connection.settimeout(0)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True


def test_the_oldest_stranger_of_the_origin_that_has_most_makes_room(settings, address, monkeypatch):
    """None of them ends by its time here, so each that ends had to make room."""
    monkeypatch.setattr(peers, "ANSWER_S_MAX", 1000.0)
    port = answering(settings())
    alone = knocking(address, "127.0.0.3")
    many = [knocking(address, "127.0.0.2") for _ in range(STRANGERS_MAX - 1)]
    assert is_served(alone)
    assert all(map(is_served, many))

    for ended in range(1, STRANGERS_MAX):
        many.append(knocking(address, "127.0.0.2"))
        many[ended - 1].settimeout(WAIT_S)
        assert many[ended - 1].recv(1) == b""
        assert all(map(is_served, many[ended:]))
        assert is_served(alone)
    for each in (alone, *many):
        each.close()
    port.close()


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("fd00::1:2:3:4", "fd00::9:8:7:6", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("fd00::1", "fd00:0:0:1::1", False),
    ],
)
def test_an_origin_is_an_address_or_a_machines_network_of_ipv6(one, other, is_one):
    assert (peers._origin(one) == peers._origin(other)) == is_one


def test_a_greeting_nested_without_end_is_refused_in_a_line(settings, address, refused):
    port = answering(settings())
    with socket.create_connection((Address(address).host, Address(address).port)) as connection:
        connection.sendall(b'{"a":' + b"[" * 3_900 + b"\n")
        assert "cluster.peer_addr was refused" in refused()
    port.close()


def test_who_does_not_know_the_secret_is_not_believed(settings):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer, heard = asking(settings("fila-2"), f"127.0.0.1:{listener.getsockname()[1]}")
        connection, _ = listener.accept()
        with connection, connection.makefile("rwb") as lines:
            lines.write(b'{"challenge": "00"}\n')
            lines.flush()
            lines.readline()
            lines.write(
                b'{"proof": "guessed"}\n{"node":1,"name":"x","position":9,"may_bid":true,"wall_ms":0}\n'
            )
            lines.flush()
            assert lines.readline() == b""
        assert heard.empty()
        peer.close()
