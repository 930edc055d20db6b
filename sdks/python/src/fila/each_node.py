"""What the nodes of a group say, each of itself, where none of them serves and knows of the others."""

from __future__ import annotations

from collections.abc import Sequence

from fila.v1.cluster_pb2 import GetClusterStatusResponse


def joined(answers: Sequence[GetClusterStatusResponse]) -> GetClusterStatusResponse:
    """What the first one says, and of each other that answered its own words in the place of what others say of it."""
    told = GetClusterStatusResponse()
    told.CopyFrom(answers[0])
    # Where it takes a key to ask, each node tells of itself alone, and no address.
    told.nodes.extend(answer.nodes[0] for answer in answers[1:] if not answer.nodes[0].peer_addr)
    own = {answer.nodes[0].peer_addr: answer.nodes[0] for answer in answers if answer.nodes[0].peer_addr}
    furthest = max((node.position for node in [*told.nodes, *own.values()]), default=-1)
    for node in told.nodes:
        if mine := own.get(node.peer_addr):
            node.node, node.role, node.position = mine.node, mine.role, mine.position
            node.in_sync, node.lacks, node.version = mine.in_sync, mine.lacks, mine.version
            node.store_format, node.log_format = mine.store_format, mine.log_format
            node.since.CopyFrom(mine.since)
        node.behind_records = max(furthest - node.position, 0)
    return told
