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


def standby(name, addr, others=(), **more):
    own = cluster_pb2.ClusterNode(
        node=name, peer_addr=addr, role=cluster_pb2.NODE_ROLE_STANDBY, store_format=3, log_format=1, **more
    )
    return cluster_pb2.GetClusterStatusResponse(group="orders", nodes=[own, *others])


def gone(name, addr, **more):
    return cluster_pb2.ClusterNode(
        node=name, peer_addr=addr, role=cluster_pb2.NODE_ROLE_GONE, lacks="it answers no probe", **more
    )


def test_where_no_node_serves_each_that_answers_is_as_it_says_itself(fila, broker: FakeBroker):
    other, away = FakeBroker(), FakeBroker()
    away.stop()
    both = "--addr", f"{broker.address},{away.address},{other.address}", "cluster", "status"
    third = gone("fila-3", "c:1", position=70)
    broker.answers["GetClusterStatus"] = standby(
        "fila-1", "a:1", [gone("fila-2", "b:1", position=80), third], position=90, lacks="its clock is off"
    )
    other.answers["GetClusterStatus"] = standby("fila-2", "b:1", position=99, lacks="the disk is low")
    told = fila(*both)
    assert told.code == 0
    first, second, last, summary = told.out.splitlines()[1:]
    assert first.startswith("fila-1  standby  -         9  no")
    assert first.endswith("its clock is off")
    assert second.startswith("fila-2  standby  -         0  no")
    assert second.endswith("the disk is low")
    assert last.startswith("fila-3  gone     -        29  no")
    assert summary == "group orders, where no node serves: 2 of 3 nodes said how it is itself"

    # Somebody serves by now: it alone is asked for the others.
    serving = standby("fila-2", "b:1", [third])
    serving.nodes[0].role = cluster_pb2.NODE_ROLE_OWNER
    other.answers["GetClusterStatus"] = serving
    assert "group orders, term 0: 0 of 2 nodes in sync" in fila(*both).out
    other.stop()


def test_where_no_node_serves_and_it_takes_a_key_to_ask_each_one_tells_of_itself_alone(
    fila, broker: FakeBroker
):
    other = FakeBroker()
    for each, name, lacks in ((broker, "fila-1", "the log lost its end"), (other, "fila-2", "")):
        node = cluster_pb2.ClusterNode(
            node=name, role=cluster_pb2.NODE_ROLE_STANDBY, position=7, lacks=lacks, in_sync=not lacks
        )
        each.answers["GetClusterStatus"] = cluster_pb2.GetClusterStatusResponse(group="orders", nodes=[node])
    told = fila("--addr", f"{broker.address},{other.address}", "cluster", "status").out.splitlines()[1:]
    assert [line.split()[:2] for line in told[:2]] == [["fila-1", "standby"], ["fila-2", "standby"]]
    assert told[0].endswith("the log lost its end")
    assert told[2] == "group orders, where no node serves: 2 of 2 nodes said how it is itself"
    other.stop()


def test_a_move_is_over_when_the_other_node_serves(fila, broker: FakeBroker):
    broker.answers["MoveOwner"] = cluster_pb2.MoveOwnerResponse(node="fila-2", term=4096)
    owner = cluster_pb2.ClusterNode(node="fila-2", role=cluster_pb2.NODE_ROLE_OWNER)
    broker.answers["GetClusterStatus"] = cluster_pb2.GetClusterStatusResponse(term=4200, nodes=[owner])
    assert fila("cluster", "move").out == "fila-2 serves, since term 4200\n"

    owner.node = "fila-3"
    broker.answers["GetClusterStatus"] = cluster_pb2.GetClusterStatusResponse(term=4200, nodes=[owner])
    refused = fila("cluster", "move", "fila-2")
    assert refused.code == 1
    assert refused.err == "fila: fila-2 was told to take over, and fila-3 did: look at the log of fila-2\n"


def test_a_node_that_is_removed_is_named_by_its_name_or_else_by_its_address(fila, broker: FakeBroker):
    broker.answers["RemoveNode"] = cluster_pb2.RemoveNodeResponse(node="fila-3", peer_addr="fila-3:5556")
    assert fila("cluster", "remove", "fila-3").out == "fila-3 does not count any more, until it answers\n"
    broker.answers["RemoveNode"] = cluster_pb2.RemoveNodeResponse(peer_addr="fila-3:5556")
    assert fila("cluster", "remove", "fila-3:5556").out == (
        "fila-3:5556 does not count any more, until it answers\n"
    )


def test_a_group_is_upgraded_once_it_writes_the_newer_format(fila, broker: FakeBroker):
    raised = cluster_pb2.UpgradeGroupResponse(format=2, is_raised=True, node="fila-2", term=4096)
    broker.answers["UpgradeGroup"] = raised
    owner = cluster_pb2.ClusterNode(node="fila-2", role=cluster_pb2.NODE_ROLE_OWNER)
    told = cluster_pb2.GetClusterStatusResponse(term=4200, nodes=[owner], written_format=2)
    broker.answers["GetClusterStatus"] = told
    assert fila("cluster", "upgrade").out == (
        "the group writes format 2 of the log; fila-2 serves, since term 4200\n"
    )
    told.written_format = 1
    broker.answers["GetClusterStatus"] = told
    refused = fila("cluster", "upgrade")
    assert (refused.code, refused.err) == (
        1, "fila: fila-2 serves, and writes format 1 as before: run the command again\n"
    )  # fmt: skip
    broker.answers["UpgradeGroup"] = cluster_pb2.UpgradeGroupResponse(format=2)
    said = "the group writes format 2 of the log, the newest that its nodes read\n"
    assert fila("cluster", "upgrade").out == said


def test_the_status_says_that_nodes_read_more_than_the_group_writes(fila, broker: FakeBroker):
    nodes = [cluster_pb2.ClusterNode(node=f"fila-{number}", log_format=2) for number in (1, 2)]
    nodes[0].role = cluster_pb2.NODE_ROLE_OWNER
    told = cluster_pb2.GetClusterStatusResponse(group="orders", nodes=nodes, written_format=1)
    broker.answers["GetClusterStatus"] = told
    assert fila("cluster", "status").out.splitlines()[-1] == (
        "it writes format 1 of the log. All nodes read format 2: `fila cluster upgrade` lets it write that"
    )
    told.nodes[1].log_format = 1
    broker.answers["GetClusterStatus"] = told
    assert fila("cluster", "status").out.splitlines()[-1] == (
        "it writes format 1 of the log. Some nodes read format 2: `fila cluster upgrade` once all do"
    )
    told.written_format = 2
    broker.answers["GetClusterStatus"] = told
    assert "it writes" not in fila("cluster", "status").out
