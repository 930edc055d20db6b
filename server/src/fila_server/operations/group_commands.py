"""What operators of a group ask its owner to do: MoveOwner, RemoveNode, UpgradeGroup. Each is in the audit, and so is
each takeover."""

from __future__ import annotations

import asyncio

from google.protobuf.message import Message

from fila.v1 import cluster_pb2 as pb
from fila_server import errors
from fila_server.access.admission import Caller
from fila_server.broker.calls import Broker
from fila_server.core.protocol import commands
from fila_server.events import emit
from fila_server.operations.audit import Record, carry_out, field
from fila_server.telemetry.group import GONE, GroupReader, GroupStatus, NodeCommands, NodeStatus

ANSWERED_S = 0.05
"""So long the answer of a move has to leave before the node stops."""
_SERVES = "it serves already"


def named(group: GroupStatus, name: str) -> NodeStatus:
    """The node of that name. Raises errors.NotFound."""
    for node in group.nodes:
        if name and node.node == name:
            return node
    known = ", ".join(node.node for node in group.nodes if node.node)
    raise errors.NotFound(f'no node of the group {group.group} is named "{name}"; there are {known}')


def removable(group: GroupStatus, name: str) -> NodeStatus:
    """The node of that name, or of that peer address, which has to be gone. Raises errors.FilaServerError."""
    by_address = {node.peer_addr: node for node in group.nodes}
    node = by_address.get(name) or named(group, name)
    if node is group.own:
        raise errors.Conflict(f"{name} serves the group. Only a node that is gone for good can be removed")
    if node.role != GONE:
        raise errors.Conflict(
            f"{name} answers: it is {node.role}. Stop it for good first, and take it out of cluster.peers"
        )
    return node


def successor(group: GroupStatus, name: str = "") -> NodeStatus:
    """Who is to take over: the one of that name, or the one that has read most. Raises errors.FilaServerError."""
    if name:
        node = named(group, name)
        if why := _unfit(group, node):
            raise errors.Conflict(f"{name} cannot take over: {why}")
        return node
    fit = [node for node in group.nodes[1:] if not _unfit(group, node)]
    if not fit:
        reasons = "; ".join(
            f"{each.node or each.peer_addr}: {_unfit(group, each)}" for each in group.nodes[1:]
        )
        raise errors.Conflict(f"no standby can take over. {reasons or 'The group has no other node'}")
    return max(fit, key=lambda node: node.position)


def raised_format(group: GroupStatus) -> int:
    """The newest format that all nodes read, which each of them has to have said. Raises errors.Conflict."""
    newest = max(node.log_format for node in group.nodes)
    for node in group.nodes:
        name = node.node or node.peer_addr
        if node.role == GONE:
            raise errors.Conflict(
                f"{name} does not answer, and may not read format {newest}. Start it, or remove it if it is gone for "
                "good (fila cluster remove)"
            )
        if node.log_format < newest:
            raise errors.Conflict(
                f"{name} reads the log up to format {node.log_format}, and is Fila {node.version or '?'}: upgrade it "
                f"first. The group writes format {group.written_format}, and goes on so"
            )
    return newest


def _unfit(group: GroupStatus, node: NodeStatus) -> str:
    if node is group.own:
        return _SERVES
    if not node.node:
        return "it has never answered"
    if node.role == GONE:
        return "it answers no probe"
    return "" if node.is_synced else node.lacks or f"it is {node.role}"


class GroupCommands:
    """Of the node that serves, or of a broker alone, which refuses them."""

    def __init__(self, broker: Broker, group: GroupReader | None, node: NodeCommands | None) -> None:
        self._broker, self._group, self._node = broker, group, node
        self._moves_to = ""

    async def move(self, request: pb.MoveOwnerRequest, caller: Caller) -> bytes:
        """Let another node serve. Answered before this one stops."""
        group, own = self._of_group()
        chosen = successor(group, request.node)
        await self._hand_over(own, chosen, "MoveOwner", pb.MoveOwnerRequest(node=chosen.node), caller)
        emit("cluster.moves", to=chosen.node, peer=caller.peer, principal=caller.name)
        return pb.MoveOwnerResponse(node=chosen.node, term=group.term).SerializeToString()

    async def _hand_over(
        self,
        own: NodeCommands,
        chosen: NodeStatus,
        name: str,
        act: Message,
        caller: Caller,
        log_format: int = 0,
    ) -> None:
        """Once the answer has left, and if that node is ready for it. Raises errors.FilaServerError."""
        if self._moves_to:
            raise errors.Conflict(f"the group moves to {self._moves_to} already")
        self._moves_to = chosen.node
        try:
            loop = asyncio.get_running_loop()
            handover = await loop.run_in_executor(None, own.offer, chosen, log_format)
            try:
                await carry_out(self._broker.call, name, commands.ACCESS_CHANGE, act, caller, b"")
            except errors.FilaServerError:
                handover.close()
                raise
        except errors.FilaServerError:
            self._moves_to = ""
            raise
        loop.call_later(ANSWERED_S, own.hand_over, handover)

    async def remove(self, request: pb.RemoveNodeRequest, caller: Caller) -> bytes:
        """Count a node no more that is gone for good."""
        group, own = self._of_group()
        node = removable(group, request.node)
        act = pb.RemoveNodeRequest(node=node.node or node.peer_addr)
        await carry_out(self._broker.call, "RemoveNode", commands.ACCESS_CHANGE, act, caller, b"")
        own.remove(node)
        emit("cluster.removed", node=node.node or node.peer_addr, peer=caller.peer, principal=caller.name)
        return pb.RemoveNodeResponse(node=node.node, peer_addr=node.peer_addr).SerializeToString()

    async def upgrade(self, _request: pb.UpgradeGroupRequest, caller: Caller) -> bytes:
        """Let the next owner write the newest format that all nodes read. Answered before this one stops."""
        group, own = self._of_group()
        newest = raised_format(group)
        if newest <= group.written_format:
            return pb.UpgradeGroupResponse(format=group.written_format).SerializeToString()
        chosen = successor(group) if len(group.nodes) > 1 else group.own
        act = pb.UpgradeGroupResponse(format=newest, node=chosen.node)
        await self._hand_over(own, chosen, "UpgradeGroup", act, caller, newest)
        emit("cluster.upgrades", format=newest, to=chosen.node, peer=caller.peer, principal=caller.name)
        return pb.UpgradeGroupResponse(
            format=newest, is_raised=True, node=chosen.node, term=group.term
        ).SerializeToString()

    async def record_takeover(self) -> None:
        """Who serves from here on, and why."""
        group, own = self._of_group()
        details = {"node": group.own.node, "term": str(group.term), "why": own.why}
        reported = Record(act="TakeOver", principal="", peer="", details=details)
        await self._broker.call(commands.ACCESS_CHANGE, field(reported))

    def _of_group(self) -> tuple[GroupStatus, NodeCommands]:
        if self._group is None or self._node is None:
            raise errors.Conflict("the broker is alone: its cluster.name is empty")
        return self._group(), self._node
