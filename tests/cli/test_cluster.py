"""`fila cluster`: the nodes of a group."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fila.v1 import cluster_pb2
from tests.cli.fake_broker import FakeBroker, assert_golden


def test_the_nodes_of_a_group_are_a_line_each(fila, broker: FakeBroker):
    now = datetime.now(UTC)
    nodes = [
        cluster_pb2.ClusterNode(
            node="fila-1", role=cluster_pb2.NODE_ROLE_OWNER, position=4711, in_sync=True, version="0.1.0",
            store_format=3, log_format=1,
        ),
        cluster_pb2.ClusterNode(
            node="fila-2", role=cluster_pb2.NODE_ROLE_STANDBY, behind_records=12, clock_offset_ms=-2500,
            version="0.2.0", store_format=3, log_format=1, lacks="its clock is off",
            differing_settings=["limits.headers_max", "storage.durability"],
        ),
        cluster_pb2.ClusterNode(peer_addr="10.0.0.3:5556", role=cluster_pb2.NODE_ROLE_GONE),
    ]  # fmt: skip
    for node, minutes in zip(nodes, (90, 5), strict=False):
        node.since.FromDatetime(now - timedelta(minutes=minutes, seconds=20))
    told = cluster_pb2.GetClusterStatusResponse(group="orders", term=4096, nodes=nodes)
    broker.answers["GetClusterStatus"] = told

    assert_golden("cluster_status.txt", fila("cluster", "status").out)
    broker.answers["GetClusterStatus"] = cluster_pb2.GetClusterStatusResponse()
    assert fila("cluster", "status").out == "the broker is alone: its cluster.name is empty\n"
