"""What Redis clients ask to find the node that serves: ROLE, INFO's section of replication, and Sentinel's questions.

Each node of a group answers them, an owner and a standby alike (cluster/standby_ports.py), and is a Sentinel of its
group's name. Functions of what the node knows: a Group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fila_server.edge.redis.reply_bytes import RESP2, Value, encode, error_reply

Sections = Mapping[str, Mapping[str, str | int]]
"""Of INFO's text: title, then names and values."""
SWITCHED = b"+switch-master"
"""What Sentinels publish once another node serves."""
CHANNELS_MAX = 16
"""So many a connection may subscribe to."""
CHANNEL_BYTES_MAX = 256


@dataclass(frozen=True)
class Member:
    """A node, as the others know it."""

    node: str
    host: str
    """Of its Redis port; empty: it does not say."""
    port: int
    position: int
    """Of the last record of the log that it has read."""
    is_gone: bool = False
    """It answers no question."""


@dataclass(frozen=True)
class Group:
    """What a node knows of its group."""

    name: str
    own: Member
    others: tuple[Member, ...]
    owner: Member | None
    """None: none is known, or it is gone."""

    @property
    def is_owner(self) -> bool:
        """Whether this node serves."""
        return self.owner is self.own

    @property
    def standbys(self) -> list[Member]:
        """Every node that tells where its Redis port is, but the owner."""
        return [each for each in (self.own, *self.others) if each is not self.owner and each.host]


def role(group: Group | None, protocol: int) -> bytes:
    """ROLE, of a node or of a broker alone."""
    if group is None or group.is_owner:
        live = [each for each in group.standbys if not each.is_gone] if group else []
        followers = [[each.host, str(each.port), str(each.position)] for each in live]
        return encode(["master", group.own.position if group else 0, followers], protocol)
    owner = group.owner
    if owner is None or not owner.host:
        return encode(["slave", "", 0, "connect", group.own.position], protocol)
    return encode(["slave", owner.host, owner.port, "connected", group.own.position], protocol)


def replication(group: Group | None) -> dict[str, str | int]:
    """INFO's section."""
    if group is None:
        return {"role": "master", "connected_slaves": 0}
    if group.is_owner:
        live = [each for each in group.standbys if not each.is_gone]
        about: dict[str, str | int] = {"role": "master", "connected_slaves": len(live)}
        for number, each in enumerate(live):
            about[f"slave{number}"] = (
                f"ip={each.host},port={each.port},state=online,offset={each.position},lag=0"
            )
        return about | {"master_repl_offset": group.own.position}
    owner = group.owner
    return {
        "role": "slave",
        "master_host": owner.host if owner else "",
        "master_port": owner.port if owner else 0,
        "master_link_status": "up" if owner else "down",
        "slave_repl_offset": group.own.position,
        "slave_read_only": 1,
        "connected_slaves": 0,
    }


def sections(about: Sections) -> str:
    """INFO's text."""
    return "\r\n".join(
        f"# {title}\r\n" + "".join(f"{name}:{value}\r\n" for name, value in lines.items())
        for title, lines in about.items()
    )


def answer(group: Group, args: Sequence[bytes], protocol: int) -> bytes:
    """SENTINEL question [name]"""
    question = args[0].upper()
    if question == b"MASTERS" and len(args) == 1:
        return encode(_masters(group), protocol)
    if question == b"MYID" and len(args) == 1:
        return encode(_id(group.own), protocol)
    if question not in (b"GET-MASTER-ADDR-BY-NAME", b"MASTER", b"REPLICAS", b"SLAVES", b"SENTINELS"):
        text = args[0][:128].decode("utf-8", "replace")
        return error_reply(
            "ICOM",
            f"SENTINEL has GET-MASTER-ADDR-BY-NAME, MASTER, MASTERS, REPLICAS, SENTINELS and MYID, not '{text}'",
        )
    if len(args) != 2:
        return error_reply("MPA" if len(args) < 2 else "IPA", "usage: SENTINEL question name-of-the-group")
    masters = _masters(group) if args[1] == group.name.encode() else []
    if question == b"GET-MASTER-ADDR-BY-NAME":
        if not masters:
            return b"*-1\r\n" if protocol == RESP2 else encode(None, protocol)
        return encode([masters[0]["ip"], masters[0]["port"]], protocol)
    if args[1] != group.name.encode() or (question == b"MASTER" and not masters):
        return error_reply("ERR", f"No such master with that name: the group is {group.name}")
    if question == b"MASTER":
        return encode(masters[0], protocol)
    if question == b"SENTINELS":
        known = [each for each in group.others if each.host]
        return encode([_state(each, "sentinel") for each in known], protocol)
    return encode([_replica(group, each) for each in group.standbys], protocol)


def _masters(group: Group) -> list[dict[str, Value]]:
    """The owner, or nothing while none is known: clients then ask the next node, and again."""
    owner = group.owner
    if owner is None or not owner.host:
        return []
    others = sum(bool(each.host) for each in group.others)
    about = _state(owner, "master") | {
        "num-slaves": str(len(group.standbys)),
        "num-other-sentinels": str(others),
        "quorum": str((others + 1) // 2 + 1),
    }
    return [about | {"name": group.name}]


def _replica(group: Group, member: Member) -> dict[str, Value]:
    owner = group.owner
    return _state(member, "slave") | {
        "master-host": owner.host if owner else "?",
        "master-port": str(owner.port if owner else 0),
        "master-link-status": "ok" if owner else "err",
        "slave-repl-offset": str(member.position),
    }


def _state(member: Member, kind: str) -> dict[str, Value]:
    return {
        "name": member.node,
        "ip": member.host,
        "port": str(member.port),
        "runid": _id(member),
        "flags": f"s_down,{kind},disconnected" if member.is_gone else kind,
    }


def _id(member: Member) -> str:
    return hashlib.sha256(member.node.encode()).hexdigest()[:40]


def subscribed(channels: set[bytes], named: Sequence[bytes], protocol: int) -> bytes:
    """SUBSCRIBE channel [channel ...]"""
    if len(channels.union(named)) > CHANNELS_MAX or any(len(name) >= CHANNEL_BYTES_MAX for name in named):
        return error_reply(
            "IPA",
            f"a connection has at most {CHANNELS_MAX} channels, with names below {CHANNEL_BYTES_MAX} bytes",
        )
    replies = []
    for name in named:
        channels.add(name)
        replies.append(_push([b"subscribe", name, len(channels)], protocol))
    return b"".join(replies)


def unsubscribed(channels: set[bytes], named: Sequence[bytes], protocol: int) -> bytes:
    """UNSUBSCRIBE [channel ...]"""
    replies = []
    ended: Sequence[bytes | None] = named or sorted(channels) or [None]
    for name in ended:
        channels.discard(name or b"")
        replies.append(_push([b"unsubscribe", name, len(channels)], protocol))
    return b"".join(replies)


def switched(group: str, before: tuple[str, int], now: tuple[str, int], protocol: int) -> bytes:
    """What a client that subscribed is sent."""
    said = f"{group} {before[0]} {before[1]} {now[0]} {now[1]}"
    return _push([b"message", SWITCHED, said], protocol)


def _push(parts: list[Value], protocol: int) -> bytes:
    encoded = encode(parts, protocol)
    return encoded if protocol == RESP2 else b">" + encoded[1:]
