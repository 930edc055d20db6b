"""What nodes tell each other, put together: how each node of the group is, as one of them knows it.

Functions of reports and times, without a clock or a socket.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from fila_server.config.kinds import Address, AddressOrOff, HostNames
from fila_server.config.load import settings_by_section
from fila_server.config.schema import Config
from fila_server.edge.redis.sentinel import Group, Member
from fila_server.telemetry.group import GONE, NodeStatus

SETTINGS_MAX = 20
"""Of more settings that are no defaults the rest is told as one, so that a report stays a short line."""
REST = "others"
_OF_ONE_NODE = ("log", "metrics", "telemetry", "cluster")
"""Sections that may well differ from node to node."""
_OF_ITS_MACHINE = ("_file", "_dir", "_threads")


class Report(msgspec.Struct):
    """How a node is, as it tells another one. What an earlier version does not say has a default."""

    node: int
    name: str
    position: int
    may_bid: bool
    wall_ms: int
    owner_heard_ms: int | None = None
    client_addr: str = ""
    """Where clients reach it."""
    redis_addr: str = ""
    """Where Redis clients do; empty where they cannot, or none could be told."""
    synced: int = -1
    """Of the last record that is on its disk for certain."""
    gives: bool = False
    """It has a copy that another node may take."""
    owns: bool = False
    role: str = ""
    since_ms: int = 0
    """Since when it has that role."""
    lacks: str = ""
    """Why it could not take over at once."""
    version: str = ""
    formats: tuple[int, int] = (0, 0)
    """Of its store, and the newest of the log that it reads."""
    incarnation: int = 0
    """Of the last term that it has read."""
    record_ms: int = 0
    """The time in the last record that counts."""
    removed: tuple[str, ...] = ()
    """Nodes that an operator removed, by what it knows (removed.py)."""
    written: int = 0
    """The format that the group writes, as far as it has read the log (written.py); 0: it does not know."""
    settings: dict[str, str] = {}
    """Those that are no defaults: the name, and a word of four bytes that is another one for another value."""


@dataclass(frozen=True)
class Asked:
    """Another node: what it said last, if it ever did."""

    peer_addr: str
    report: Report | None
    clock_ms: int
    """The clock of the node that asks, less its."""
    heard_ms: int
    """When it answered, by the wall clock."""
    is_gone: bool


def shared_settings(config: Config) -> dict[str, str]:
    """What a report says of the settings that all nodes should share."""
    words: dict[str, str] = {}
    for section, settings in settings_by_section().items():
        if section in _OF_ONE_NODE:
            continue
        for key, setting in settings.items():
            value = getattr(getattr(config, section), key)
            is_of_its_machine = f"_{key}".endswith(_OF_ITS_MACHINE) or isinstance(
                value, Address | AddressOrOff | HostNames
            )
            if value != setting.default and not is_of_its_machine:
                words[setting.name] = _word(repr(value))
    names = sorted(words)
    kept = {name: words[name] for name in names[:SETTINGS_MAX]}
    if rest := names[SETTINGS_MAX:]:
        kept[REST] = _word("\n".join(f"{name} {words[name]}" for name in rest))
    return kept


def _word(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def differing(mine: Mapping[str, str], others: Mapping[str, str]) -> tuple[str, ...]:
    """The settings that two nodes have in different ways."""
    return tuple(name for name in sorted({*mine, *others}) if mine.get(name) != others.get(name))


def nodes_of(own_addr: str, own: Report, asked: Sequence[Asked]) -> tuple[NodeStatus, ...]:
    """Every node of the group: this one, then the others as the settings name them."""
    furthest = max(
        (each.report.position for each in asked if each.report and not each.is_gone), default=own.position
    )
    furthest = max(furthest, own.position)
    found = [_node(own_addr, own, furthest)]
    for each in asked:
        if each.report is None:
            found.append(NodeStatus(each.peer_addr))
            continue
        node = _node(
            each.peer_addr,
            each.report,
            furthest,
            -each.clock_ms,
            differing(own.settings, each.report.settings),
        )
        if each.is_gone:
            node = replace(node, role=GONE, since_ms=each.heard_ms, lacks="it answers no probe")
        found.append(node)
    return tuple(found)


def _node(
    peer_addr: str, report: Report, furthest: int, clock_ms: int = 0, differs: tuple[str, ...] = ()
) -> NodeStatus:
    return NodeStatus(
        peer_addr,
        report.name,
        report.node,
        report.role,
        report.since_ms,
        report.position,
        max(furthest - report.position, 0),
        report.lacks,
        report.version,
        *report.formats,
        clock_ms,
        differs,
        report.client_addr,
        report.redis_addr,
    )


def redis_group(
    name: str, own: Report, asked: Sequence[Asked], owner: Report | None, *, serves: bool
) -> Group:
    """What Redis clients are told; `owner` is another node that serves, if one is known."""
    this = _member(own)
    others, serving = [], this if serves else None
    for each in asked:
        if each.report is not None:
            others.append(_member(each.report, is_gone=each.is_gone))
            if owner and each.report.node == owner.node and not serves:
                serving = others[-1]
    return Group(name, this, tuple(others), serving)


def _member(report: Report, *, is_gone: bool = False) -> Member:
    place = Address(report.redis_addr or ":0")
    return Member(report.name, place.host, place.port, report.position, is_gone)
