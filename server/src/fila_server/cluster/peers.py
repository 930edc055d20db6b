"""Nodes ask each other how they are: a port that answers, and a thread for each node that is asked.

A line is a JSON object. Over certificates (mutual TLS) the first line says who asks. Where all nodes are on one machine
a secret does: each side answers the other's challenge, so neither tells it.

    asked node      {"challenge": "..."}
    asking node     {"group": "orders", "node": "fila-1", "challenge": "...", "proof": "..."}
    asked node      {"proof": "..."}
    asking node     an empty line for each question
    asked node      a report (watching.Heard), with its name and its clock

A node that wants something else says so in its first line, and the code that has it answers (giving.py).

A stranger is told nothing, and is logged at most once a minute.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

import msgspec
import structlog

from fila_server import errors
from fila_server.cluster import starting
from fila_server.cluster.reports import Report
from fila_server.cluster.watching import PROBE_MS, Heard, Missed
from fila_server.config.cluster import Cluster
from fila_server.config.kinds import Address

log = structlog.get_logger("fila_server.cluster.peers")

ANSWER_S_MAX = 0.3
CONNECTS_S_MAX = 2.0
"""For so long who comes for something else than a probe waits for a connection, and for each answer on it."""
LINE_BYTES_MAX = 4096
STRANGERS_EVERY_S = 60.0
STRANGERS_MAX = 64
"""Connections of nobody that is known yet. One more, and one of the origin that has most of them ends, its oldest: so
those that only hold their places, or take new ones at once, keep no node out that comes from elsewhere."""


class Greeting(msgspec.Struct):
    """Who asks."""

    group: str
    node: str
    challenge: str
    proof: str
    asks: str = ""
    """For what it has come; empty: how the node is, again and again."""


class Challenge(msgspec.Struct):
    """What the asking node is to answer."""

    challenge: str


class Proof(msgspec.Struct):
    """The asked node's answer."""

    proof: str


class Stranger(Exception):
    """The other side is no node of this group."""


@dataclass
class Trust:
    """By what nodes of a group know each other."""

    secret: bytes
    server: ssl.SSLContext | None
    client: ssl.SSLContext | None

    @classmethod
    def of(cls, cluster: Cluster) -> Trust:
        """Read the files; starting.check has done so before. Raises ConfigInvalid."""
        if not cluster.has_certificates:
            return cls(starting.read_secret(cluster.secret_file), None, None)
        contexts = []
        for protocol in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT):
            context = ssl.SSLContext(protocol)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cluster.ca_file)
            context.load_cert_chain(cluster.cert_file, cluster.key_file)
            contexts.append(context)
        return cls(b"", *contexts)

    def proof(self, side: str, group: str, challenge: str) -> str:
        """What a side of that name answers to a challenge."""
        if self.server is not None:
            return ""
        said = f"{side}\n{group}\n{challenge}".encode()
        return hmac.new(self.secret, said, hashlib.sha256).hexdigest()


class Lines:
    """A connection, line by line."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.rest = connection, b""

    def read(self) -> bytes:
        """The next line; ConnectionError at the end."""
        while b"\n" not in self.rest:
            more = self.connection.recv(LINE_BYTES_MAX)
            if not more or len(self.rest) > LINE_BYTES_MAX:
                raise ConnectionError
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def read_piece(self, most: int) -> bytes:
        """What comes next of something that is no line, at most so much; ConnectionError at the end."""
        piece, self.rest = self.rest[:most], self.rest[most:]
        if not piece:
            piece = self.connection.recv(most)
        if not piece:
            raise ConnectionError("it ended the connection")
        return piece

    def write(self, said: msgspec.Struct | None) -> None:
        """An object, or an empty line."""
        self.connection.sendall((msgspec.json.encode(said) if said else b"") + b"\n")


@dataclass(eq=False)
class _Place:
    """A connection that is served."""

    connection: socket.socket
    origin: str
    """The address that it comes from; of IPv6 the network of 64 bits, which is one machine's as a rule."""


class PeerPort:
    """Answers the other nodes, from threads of its own, as long as the process lives."""

    def __init__(
        self,
        cluster: Cluster,
        trust: Trust,
        report: Callable[[], Report],
        others: Mapping[str, Callable[[Lines, str], None]] | None = None,
    ) -> None:
        """`others` answer nodes that ask for something else, by the word for it; each is told who asks."""
        self._cluster, self._trust, self._report, self._others = cluster, trust, report, others or {}
        self._logged_s: float | None = None
        self._is_closed = False
        self._lock = threading.Lock()
        self._strangers: dict[_Place, None] = {}
        """The oldest first."""
        self._known: dict[str, _Place] = {}
        """One of each node, for each thing that it asks: over its newest."""
        address = Address(cluster.peer_addr)
        try:
            family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
            self._listener = socket.create_server((address.host, address.port), family=family)
        except OSError as error:
            raise errors.PortTaken.of("cluster.peer_addr", address, error) from error
        threading.Thread(target=self._accept, name="fila-peers", daemon=True).start()

    def close(self) -> None:
        """Answer nobody any more: others take this node for gone at once."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # it wakes the thread that accepts
        self._listener.close()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                connection, (host, *_) = self._listener.accept()
            except OSError:
                continue
            place = _Place(connection, _origin(host))
            with self._lock:
                self._strangers[place] = None
                if len(self._strangers) > STRANGERS_MAX:
                    self._end(self._first_to_go())
            threading.Thread(target=self._serve, args=(place, host), daemon=True).start()

    def _first_to_go(self) -> _Place:
        """The oldest stranger of the origin that has most of them. The lock is held."""
        places = Counter(place.origin for place in self._strangers)
        most = max(places.values())
        return next(place for place in self._strangers if places[place.origin] == most)

    def _end(self, place: _Place) -> None:
        """Its thread, which waits for it, goes on and closes it. The lock is held."""
        self._strangers.pop(place, None)
        with contextlib.suppress(OSError):
            place.connection.shutdown(socket.SHUT_RDWR)

    def _is_known(self, place: _Place, node: str) -> None:
        """It has a place of its own from here on. Raises Stranger where it has lost the one that it had."""
        with self._lock:
            if place not in self._strangers:
                raise Stranger("others took its place before it said who it is")
            del self._strangers[place]
            older = self._known.get(node)
            self._known[node] = place
            if older is not None:
                self._end(older)

    def _leave(self, place: _Place) -> None:
        place.connection.close()
        with self._lock:
            self._strangers.pop(place, None)
            for node in [node for node, known in self._known.items() if known is place]:
                del self._known[node]

    def _serve(self, place: _Place, host: str) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as ending:
            ending.callback(self._leave, place)
            try:
                place.connection.settimeout(10 * ANSWER_S_MAX)
                if self._trust.server:
                    place.connection = encrypted = self._trust.server.wrap_socket(
                        place.connection, server_side=True, do_handshake_on_connect=False
                    )
                    encrypted.do_handshake()
                self._answer(place)
            except (Stranger, ssl.SSLError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                self._tell(host, error)

    def _answer(self, place: _Place) -> None:
        lines = Lines(place.connection)
        challenge = secrets.token_hex(16)
        lines.write(Challenge(challenge))
        greeting = msgspec.json.decode(lines.read(), type=Greeting)
        group = self._cluster.name
        if greeting.group != group:
            raise Stranger(f"it is of the group {greeting.group}; look at its cluster.peers")
        wanted = self._trust.proof("asks", group, challenge)
        if not hmac.compare_digest(greeting.proof.encode(), wanted.encode()):
            raise Stranger("its secret is another; give cluster.secret_file the same word on all nodes")
        if greeting.node == self._cluster.node:
            raise Stranger(
                f"its name is {greeting.node}, as this node's; give one of them another cluster.node"
            )
        self._is_known(place, f"{greeting.node} {greeting.asks}")
        lines.write(Proof(self._trust.proof("answers", group, greeting.challenge)))
        if greeting.asks:
            if greeting.asks in self._others:
                self._others[greeting.asks](lines, greeting.node)
            return
        while lines.read() == b"" and not self._is_closed:
            lines.write(self._report())

    def _tell(self, host: str, error: Exception) -> None:
        now_s = time.monotonic()
        if self._logged_s is None or now_s - self._logged_s >= STRANGERS_EVERY_S:
            self._logged_s = now_s
            log.warning(
                "cluster.stranger",
                host=host,
                detail=f"a connection to cluster.peer_addr was refused: {error}",
            )


def _origin(host: str) -> str:
    address = ip_address(host.partition("%")[0])
    if address.version == 4:
        return str(address)
    return str(address.ipv4_mapped or address.packed[:8].hex())


class Peer:
    """Asks one other node how it is, from a thread of its own, and hands on what it hears."""

    def __init__(
        self, address: Address, cluster: Cluster, trust: Trust, hear: Callable[[Heard | Missed], None]
    ) -> None:
        self._address, self._cluster, self._trust, self._hear = address, cluster, trust, hear
        self._lines: Lines | None = None
        self._is_refused = self._is_closed = False
        self.node: int | None = None
        """Its number, once it has answered."""
        self.report: Report | None = None
        """What it said last; by the wall clock when, and its clock then, as watching.Heard has it."""
        self.heard_ms = self.clock_ms = 0
        self.is_asked = self.answers = False
        """It has been asked once; it answered, when it was asked last."""
        threading.Thread(target=self._ask_on, name="fila-peer", daemon=True).start()

    @property
    def address(self) -> Address:
        """Where it is asked."""
        return self._address

    def close(self) -> None:
        """Ask no more."""
        self._is_closed = True

    def _ask_on(self) -> None:
        while not self._is_closed:
            begun_s = time.monotonic()
            is_connected = self._lines is not None
            heard = self._ask() or (self._ask() if is_connected else None)
            if heard is None and self.node is not None:
                self._hear(Missed(self.node, self._is_refused))
            elif heard is not None:
                self.node = heard.node
                self._hear(heard)
            self.is_asked = True
            time.sleep(max(0.0, PROBE_MS / 1000 - (time.monotonic() - begun_s)))

    def _ask(self) -> Heard | None:
        """None: it did not answer. A connection that ended is made anew at the next question."""
        self._is_refused = False
        try:
            lines = self._lines = self._lines or connected(self._address, self._cluster, self._trust)
            sent_ms = time.time_ns() // 1_000_000
            lines.write(None)
            report = msgspec.json.decode(lines.read(), type=Report)
        except (OSError, Stranger, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            self._is_refused = isinstance(error, ConnectionRefusedError)
            if self._lines is not None:
                self._lines.connection.close()
                self._lines = None
            self.answers = False
            return None
        took_ms = time.time_ns() // 1_000_000 - sent_ms
        owner_heard_ms = None if report.owner_heard_ms is None else report.owner_heard_ms + took_ms
        self.clock_ms = sent_ms + took_ms // 2 - report.wall_ms
        self.report, self.answers, self.heard_ms = report, True, sent_ms + took_ms
        return Heard(
            report.node, report.position, report.may_bid, self.clock_ms, owner_heard_ms, synced=report.synced
        )


def connected(
    address: Address, cluster: Cluster, trust: Trust, asks: str = "", wait_s: float = ANSWER_S_MAX
) -> Lines:
    """A connection to another node, over which each knows who the other is. Raises OSError, Stranger, or what comes of
    lines that are none."""
    encrypted, group = trust.client, cluster.name
    connection = socket.create_connection((address.host, address.port), wait_s)
    try:
        if encrypted:
            connection = encrypted.wrap_socket(connection, server_hostname=address.host)
        lines = Lines(connection)
        challenge = secrets.token_hex(16)
        asked = msgspec.json.decode(lines.read(), type=Challenge)
        proof = trust.proof("asks", group, asked.challenge)
        lines.write(Greeting(str(group), str(cluster.node), challenge, proof, asks))
        answered = msgspec.json.decode(lines.read(), type=Proof)
        wanted = trust.proof("answers", group, challenge)
        if not hmac.compare_digest(answered.proof.encode(), wanted.encode()):
            raise Stranger("its secret is another; give cluster.secret_file the same word on all nodes")
    except BaseException:
        connection.close()
        raise
    return lines
