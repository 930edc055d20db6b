"""A standby whose disk is nearly full: it takes nothing more of the log, says so, and goes on when there is room."""

from __future__ import annotations

import os
import shutil
import time
import urllib.request
from contextlib import closing

import grpc
import pytest

from fila.v1 import cluster_pb2 as cluster
from fila.v1 import service_pb2 as service
from tests.e2e.conftest import START_S_MAX, wait_until_started
from tests.log.test_copies_over_kafka import Nodes, fill, kill, numbers
from tests.log.test_nodes_over_kafka import wait_for
from tests.ports import KeptPort

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:confluent_kafka")]

TOPIC = "full"
MIB = 1 << 20
SMALL_DISK_BYTES = 420 * MIB
SETTINGS = {
    "FILA_STORAGE__MIN_FREE_BYTES": str(128 * MIB),
    "FILA_STORAGE__BALLAST_BYTES": str(16 * MIB),
    "FILA_STORAGE__WAL_BYTES_MAX": str(48 * MIB),
}


@pytest.fixture
def nodes(brokers, tmp_path, small_disk):
    """The second node's data directory is on the small disk."""
    made = Nodes(tmp_path, brokers, TOPIC)
    (small_disk / "data-1").mkdir()
    made.data_dir(1).symlink_to(small_disk / "data-1")
    yield made
    made.close()


def hog(disk, left_bytes):
    with (disk / "hog").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free - left_bytes)


def standby_of(owner):
    told = owner.admin.GetClusterStatus(cluster.GetClusterStatusRequest())
    return told.nodes[1]


def until(owner, is_so):
    end = time.monotonic() + START_S_MAX
    while not is_so(found := standby_of(owner)):
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found


def test_a_standby_without_room_stops_says_so_and_goes_on_by_itself(nodes, small_disk):
    owner = wait_until_started(nodes.start(0))
    with closing(KeptPort()) as page:
        standby = nodes.start(1, FILA_METRICS__LISTEN_ADDR=f"127.0.0.1:{page.port}", **SETTINGS)
        wait_for(standby, "cluster.standby")
        until(owner, lambda node: node.in_sync)

        hog(small_disk, 80 * MIB)
        wait_for(standby, "cluster.halted")
        assert "less than 128 MiB free (storage.min_free_bytes)" in standby.event("cluster.halted")["detail"]
        assert standby.event("disk.low")["free_bytes"] < 128 * MIB
        fill(owner, 2)
        found = until(owner, lambda node: node.role == cluster.NODE_ROLE_HALTED and node.behind_records >= 2)
        assert "Make room on it" in found.lacks
        told = urllib.request.urlopen(f"http://127.0.0.1:{page.port}/metrics", timeout=START_S_MAX).read()
        assert b"\nfila_storage_disk_level 1\n" in told

        (small_disk / "hog").unlink()
        wait_for(standby, "disk.roomy")
        until(owner, lambda node: node.in_sync)
        assert standby.event("cluster.goes_on")
        happened = [line["event"] for line in standby.log]
        assert happened.count("cluster.copy_wanted") == 1  # its first, of the start

        # Somebody has to serve: with a disk that is low a node does, as a broker alone, and takes no messages.
        hog(small_disk, 80 * MIB)
        wait_for(standby, "cluster.halted", 2)
        fill(owner, 1, first=2)
        kill(owner)
        wait_until_started(standby)
        with pytest.raises(grpc.RpcError) as refused:
            standby.service.Enqueue(service.EnqueueRequest(queue="q", payload=b"more"))
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert numbers(standby) == [0, 1, 2]
