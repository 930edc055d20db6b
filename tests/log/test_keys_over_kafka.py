"""Keys, rights and quotas are the group's: they hold over a takeover, and no node makes a first key of its own."""

from __future__ import annotations

import grpc
import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import auth_pb2 as auth
from fila.v1 import auth_pb2_grpc, cluster_pb2
from fila.v1 import service_pb2 as service
from tests.e2e.conftest import wait_until_started
from tests.log.test_copies_over_kafka import Nodes, kill
from tests.log.test_nodes_over_kafka import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:confluent_kafka")]

KEYS = {"FILA_AUTH__ENABLED": "true"}


@pytest.fixture
def nodes(brokers, tmp_path):
    made = Nodes(tmp_path, brokers, "keyed")
    yield made
    made.close()


def by(key):
    return {"metadata": [("authorization", f"Bearer {key}")]}


def refused(call):
    with pytest.raises(grpc.RpcError) as error:
        call()
    return error.value.code()


def enqueue(server, payload, **of):
    return server.service.Enqueue(service.EnqueueRequest(queue="q", payload=payload), **of)


def test_keys_and_rights_hold_over_a_takeover(nodes):
    owner = wait_until_started(nodes.start(0, **KEYS))
    key = nodes.data_dir(0).joinpath("bootstrap-key").read_text().strip()
    keys = auth_pb2_grpc.FilaAuthStub(owner.channel())
    owner.admin.CreateQueue(admin.CreateQueueRequest(name="q"), **by(key))
    program = keys.CreateKey(auth.CreateKeyRequest(name="program"), **by(key))
    gone = keys.CreateKey(auth.CreateKeyRequest(name="program"), **by(key))
    produces = auth.Permission(right=auth.RIGHT_PRODUCE, queue="q")
    keys.Grant(auth.GrantRequest(name="program", permissions=[produces]), **by(key))
    keys.RevokeKey(auth.RevokeKeyRequest(key_id=gone.key_id), **by(key))
    assert enqueue(owner, b"0", **by(program.key)).message_id
    standby = nodes.start(1, **KEYS)
    wait_for(standby, "cluster.standby")
    status = cluster_pb2.GetClusterStatusRequest()
    while not owner.admin.GetClusterStatus(status, **by(key)).nodes[1].in_sync:
        assert standby.process.poll() is None
    assert refused(lambda: owner.admin.GetClusterStatus(status)) is grpc.StatusCode.UNAUTHENTICATED

    kill(owner)
    serves = wait_until_started(standby)
    assert enqueue(serves, b"1", **by(program.key)).message_id
    lease = service.LeaseRequest(queue="q", max_messages=10)
    assert (
        refused(lambda: serves.service.Lease(lease, **by(program.key))) is grpc.StatusCode.PERMISSION_DENIED
    )
    assert refused(lambda: enqueue(serves, b"2", **by(gone.key))) is grpc.StatusCode.UNAUTHENTICATED
    assert refused(lambda: enqueue(serves, b"2")) is grpc.StatusCode.UNAUTHENTICATED
    assert [each.payload for each in serves.service.Lease(lease, **by(key)).messages] == [b"0", b"1"]
    assert not nodes.data_dir(1).joinpath("bootstrap-key").exists()
    assert serves.event("auth.first_key") is None
