"""`[cluster]`: the group that a server is a node of, and what of it would not work."""

from __future__ import annotations

import contextlib
import re
from ipaddress import ip_address
from typing import Annotated

import msgspec
from msgspec import Meta

from fila_server.config.kafka import KafkaSettings
from fila_server.config.kinds import Address, AddressOrOff
from fila_server.config.sections import Section
from fila_server.errors import ConfigInvalid


class GroupName(str):
    """A name of a group or of a node, or nothing."""

    expected = (
        'a name of up to 63 letters, digits, ".", "_" and "-", which begins with a letter or a digit, or ""'
    )

    @classmethod
    def parse(cls, value: object) -> GroupName:
        """Check the shape."""
        if value == "" or re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", str(value)):
            return cls(value)
        raise ValueError


class LogPlace(str):
    """Where the log is: brokers and a topic, or nothing."""

    expected = 'a log such as "kafka://kafka-1:9092,kafka-2:9092/fila-log", or "" for none'

    @classmethod
    def parse(cls, value: object) -> LogPlace:
        """Check the shape; whether brokers and topic are there shows at the start."""
        if value == "":
            return cls("")
        match = re.fullmatch(r"kafka://([^/\s]+)/([A-Za-z0-9._-]{1,249})", str(value))
        if match is None or match[2] in (".", ".."):
            raise ValueError
        for broker in match[1].split(","):
            Address.parse(broker)
        return cls(value)

    @property
    def brokers(self) -> str:
        """As librdkafka takes them."""
        return self.removeprefix("kafka://").partition("/")[0]

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.removeprefix("kafka://").partition("/")[2]


class Addresses(str):
    """Addresses with commas between them; none by default."""

    expected = 'addresses such as "fila-1:5556, fila-2:5556", with commas between them'

    @classmethod
    def parse(cls, value: object) -> Addresses:
        """Check each one."""
        if not isinstance(value, str):
            raise ValueError
        addresses = cls(value)
        for each in addresses.each:
            Address.parse(each)
        return addresses

    @property
    def each(self) -> tuple[Address, ...]:
        """One by one."""
        return tuple(Address(part.strip()) for part in self.split(",")) if self.strip() else ()


class Cluster(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The group of this node ([cluster](cluster.md))."""

    name: Annotated[
        GroupName,
        Meta(
            description="Name of the group, the same on all its nodes. Empty: this server is a broker alone, and "
            "nothing of a group is loaded.",
        ),
    ] = GroupName("")
    node: Annotated[GroupName, Meta(description="Name of this node; no other node of the group has it.")] = (
        GroupName("")
    )
    log: Annotated[
        LogPlace,
        Meta(description="Brokers of Kafka's protocol, and the topic that is the group's log."),
    ] = LogPlace("")
    peers: Annotated[
        Addresses,
        Meta(
            description="`peer_addr` of each node. This node's own may be among them, so that all nodes have the same "
            "list; alone, it says that the group has one node."
        ),
    ] = Addresses("")
    peer_addr: Annotated[
        AddressOrOff,
        Meta(description="Where this node listens for the other nodes, as they reach it."),
    ] = AddressOrOff("")
    advertised_addr: Annotated[
        AddressOrOff,
        Meta(
            description="Address of this node's gRPC API as clients reach it, which other nodes name while this one "
            "serves. Empty: `server.listen_addr`."
        ),
    ] = AddressOrOff("")
    advertised_redis_addr: Annotated[
        AddressOrOff,
        Meta(
            description="Address of this node's Redis port as clients reach it, which those are told that ask for the "
            "owner as they ask Redis Sentinel. Empty: `redis.listen_addr`, where other machines reach it."
        ),
    ] = AddressOrOff("")
    cert_file: Annotated[
        str, Meta(description="Certificate chain by which this node and others know each other, PEM.")
    ] = ""
    key_file: Annotated[str, Meta(description="Private key of the certificate, PEM.")] = ""
    ca_file: Annotated[str, Meta(description="Authorities of all nodes' certificates, PEM.")] = ""
    secret_file: Annotated[
        str,
        Meta(
            description="File whose first line all nodes share, of 16 characters or more. In place of certificates "
            "where all nodes are on one machine, by loopback."
        ),
    ] = ""
    clock_skew_max_ms: Annotated[
        int,
        Meta(
            ge=100,
            le=60_000,
            description="A node whose clock is further off from those of most nodes does not ask to serve.",
        ),
    ] = 2000
    log_kept_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=31_536_000_000,
            description="For so long the log keeps what two nodes have on their disks. A node that was away for longer "
            "takes a copy from another one.",
        ),
    ] = 3_600_000
    log_kept_bytes: Annotated[
        int,
        Meta(
            ge=0,
            le=1 << 50,
            description="So much of that the log keeps at least, however old it is.",
        ),
    ] = 1 << 30
    accept_weak_topic: Annotated[
        bool,
        Meta(
            description="Start also where the topic's settings would break a promise, such as one replica. For tests: "
            "messages may be lost."
        ),
    ] = False
    kafka: Annotated[
        KafkaSettings,
        Meta(
            description="Settings of librdkafka, by its names: login, TLS, times. A name that ends in `_file` names a "
            "file whose first line is the value; secrets are taken from files alone."
        ),
    ] = KafkaSettings()

    @property
    def is_set(self) -> bool:
        """Whether this server is a node of a group."""
        return self.name != ""

    @property
    def has_certificates(self) -> bool:
        """Whether nodes know each other by certificates."""
        return self.cert_file != ""

    @property
    def other_nodes(self) -> tuple[Address, ...]:
        """Of `peers`, without this node's own."""
        own = _place(Address(self.peer_addr))
        return tuple(each for each in self.peers.each if _place(each) != own)


def redis_addr(cluster: Cluster, listen_addr: Address, client_addr: str) -> Address | None:
    """Where clients reach the Redis port of a node whose gRPC API they reach at `client_addr`; None: nowhere that could
    be told."""
    if cluster.advertised_redis_addr:
        return Address(cluster.advertised_redis_addr)
    if not listen_addr.port:
        return None
    if not _nobody_reaches(listen_addr, cluster):
        return listen_addr
    with contextlib.suppress(ValueError):
        if ip_address(listen_addr.host).is_unspecified:
            return Address(f"{client_addr.rpartition(':')[0]}:{listen_addr.port}")
    return None


def check_cluster(cluster: Cluster, listen_addr: Address) -> None:
    """Refuse what could not work, or would guard nothing. Raises ConfigInvalid."""
    if not cluster.is_set:
        _check_none(cluster)
        return
    for key, what in (
        ("node", "a name that no other node has"),
        ("log", LogPlace.expected.removesuffix(', or "" for none')),
        ("peer_addr", "the address at which other nodes reach this one"),
        ("peers", "cluster.peer_addr of each node"),
    ):
        if not getattr(cluster, key):
            raise _refused(key, f"a node of the group {cluster.name} needs it. Write {what}")
    _check_trust(cluster)
    _check_reach("peer_addr", Address(cluster.peer_addr), cluster)
    _check_peers(cluster)
    if cluster.advertised_redis_addr:
        _check_reach("advertised_redis_addr", Address(cluster.advertised_redis_addr), cluster)
    if cluster.advertised_addr:
        _check_reach("advertised_addr", Address(cluster.advertised_addr), cluster)
    elif _nobody_reaches(listen_addr, cluster):
        raise _refused(
            "advertised_addr",
            f"it is empty, and clients cannot reach server.listen_addr, {listen_addr}, from other machines. Write "
            "the address at which clients reach this node",
        )


def _check_none(cluster: Cluster) -> None:
    defaults = msgspec.structs.asdict(Cluster())
    for key, value in msgspec.structs.asdict(cluster).items():
        if key != "kafka" and value != defaults[key]:
            raise _refused(
                key,
                f"it is given without cluster.name, and this server would be a broker alone. Set cluster.name, or take "
                f"cluster.{key} away",
            )


def _check_trust(cluster: Cluster) -> None:
    files = {key: getattr(cluster, key) for key in ("cert_file", "key_file", "ca_file")}
    missing = [key for key, value in files.items() if not value]
    if not missing:
        if cluster.secret_file:
            raise _refused(
                "secret_file", "nodes know each other by certificates here. Take cluster.secret_file away"
            )
        return
    if len(missing) < len(files):
        raise _refused(
            missing[0],
            "it is missing: nodes need cluster.cert_file, key_file and ca_file together. Give all three",
        )
    if not cluster.secret_file:
        raise _refused(
            "cert_file",
            "without certificates anybody could be a node. Give cluster.cert_file, key_file and ca_file; where all "
            "nodes are on this machine, cluster.secret_file is enough",
        )
    for key, address in (("peer_addr", cluster.peer_addr), *(("peers", each) for each in cluster.peers.each)):
        if not _is_loopback(Address(address)):
            raise _refused(
                key,
                f"{address} is not on loopback, and cluster.secret_file alone guards nothing on a network. Give "
                "cluster.cert_file, key_file and ca_file in its place",
            )


def _check_peers(cluster: Cluster) -> None:
    written: dict[tuple[str, int], Address] = {}
    for each in cluster.peers.each:
        _check_reach("peers", each, cluster)
        if _place(each) in written:
            raise _refused(
                "peers",
                f"{each} and {written[_place(each)]} are one node. Write cluster.peer_addr of each node once",
            )
        written[_place(each)] = each


def _place(address: Address) -> tuple[str, int]:
    """The same for two addresses that are written differently and lead to one place; no name is looked up."""
    host = address.host.lower()
    with contextlib.suppress(ValueError):
        host = ip_address(host).compressed
    return "127.0.0.1" if host == "localhost" else host, address.port


def _check_reach(key: str, address: Address, cluster: Cluster) -> None:
    if not address.port:
        raise _refused(key, f"{address} has no port that others could know. Write one in place of 0")
    if _nobody_reaches(address, cluster):
        raise _refused(
            key,
            f"{address} leads nowhere from other machines. Write this machine's name or its address there",
        )


def _nobody_reaches(address: Address, cluster: Cluster) -> bool:
    """Whether it means another machine to each one that connects to it; on one machine all are on loopback."""
    try:
        host = ip_address(address.host)
    except ValueError:
        is_here = address.host == "localhost"
    else:
        if host.is_unspecified:
            return True
        is_here = host.is_loopback
    return is_here and not all(_is_loopback(each) for each in cluster.peers.each)


def _is_loopback(address: Address) -> bool:
    try:
        return ip_address(address.host).is_loopback
    except ValueError:
        return address.host == "localhost"


def _refused(key: str, why: str) -> ConfigInvalid:
    return ConfigInvalid(f"cluster.{key}: {why}", key=f"cluster.{key}")
