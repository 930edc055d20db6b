"""How the group is: GetClusterStatus, and what other answers say of a group's nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from fila.v1 import cluster_pb2 as pb
from fila_server.events import emit
from fila_server.telemetry.group import GONE, HALTED, OWNER, STANDBY, GroupReader, NodeStatus

_ROLES = {
    OWNER: pb.NODE_ROLE_OWNER,
    STANDBY: pb.NODE_ROLE_STANDBY,
    HALTED: pb.NODE_ROLE_HALTED,
    GONE: pb.NODE_ROLE_GONE,
}


LOOK_S = 1.0
_KINDS = {STANDBY: "cluster.standby", HALTED: "cluster.halted", GONE: "cluster.gone"}


class Reported:
    """What was said last of each other node; what is wrong with one is said once, and that it is well again."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def changes(self, nodes: Sequence[NodeStatus]) -> Iterator[tuple[str, NodeStatus]]:
        """Events that are due. A node that only reads on, or fetches a copy, is none."""
        for node in nodes[1:]:
            role = node.role if node.is_synced or node.role in (HALTED, GONE) else ""
            if node.node and role in _KINDS and self._said.get(node.node) != role:
                self._said[node.node] = role
                yield _KINDS[role], node


async def report_nodes(group: GroupReader) -> None:
    """Tell of the other nodes, as long as this one serves."""
    reported = Reported()
    while True:
        for kind, node in reported.changes(group().nodes):
            if node.role == STANDBY:
                emit(kind, node=node.node)
            else:
                emit(kind, level="warning", node=node.node, detail=node.lacks)
        await asyncio.sleep(LOOK_S)


class ClusterCalls:
    """Answers for a node of a group, or for a broker alone."""

    def __init__(self, group: GroupReader | None) -> None:
        self._group = group

    def status(self) -> bytes:
        """Every node, the one that answers first."""
        if self._group is None:
            return pb.GetClusterStatusResponse().SerializeToString()
        group = self._group()
        return pb.GetClusterStatusResponse(
            group=group.group,
            nodes=[_node(each) for each in group.nodes],
            term=group.term,
            short_terms=group.short_terms,
            unconfirmed_records=group.unconfirmed[0],
            unconfirmed_bytes=group.unconfirmed[1],
            takeovers=group.takeovers,
            skipped_records=group.skipped,
            written_format=group.written_format,
        ).SerializeToString()

    def status_of_standby(self, *, needs_key: bool) -> bytes:
        """Of a node that judges no key. Where it takes one to ask, anybody is told of this node alone, and of it what
        an operator needs to make the group serve: its role, how far it is, and what it lacks."""
        if not needs_key or self._group is None:
            return self.status()
        group = self._group()
        own = _node(group.own)
        node = pb.ClusterNode(
            node=own.node, role=own.role, position=own.position, in_sync=own.in_sync, lacks=own.lacks
        )
        if own.HasField("since"):
            node.since.CopyFrom(own.since)
        return pb.GetClusterStatusResponse(group=group.group, nodes=[node]).SerializeToString()

    @property
    def counts(self) -> tuple[int, int, int]:
        """Nodes of the group, the number of the one that serves, and how many have all that was answered."""
        if self._group is None:
            return 1, 0, 0
        group = self._group()
        return len(group.nodes), group.own.number, group.synced


def _node(status: NodeStatus) -> pb.ClusterNode:
    node = pb.ClusterNode(
        node=status.node,
        role=_ROLES.get(status.role, pb.NODE_ROLE_UNSPECIFIED),
        position=status.position,
        behind_records=status.behind,
        in_sync=status.is_synced,
        lacks=status.lacks,
        version=status.version,
        store_format=status.store_format,
        log_format=status.log_format,
        clock_offset_ms=status.clock_ms,
        differing_settings=status.differing,
        client_addr=status.client_addr,
        redis_addr=status.redis_addr,
        peer_addr=status.peer_addr,
        node_id=status.number,
    )
    if status.since_ms:
        node.since.FromMilliseconds(status.since_ms)
    return node
