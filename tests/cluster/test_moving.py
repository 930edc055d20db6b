"""An owner asks a standby whether it would take over, and tells it when; over a real connection."""

from __future__ import annotations

import queue
from contextlib import closing

import msgspec
import pytest

from fila_server import errors
from fila_server.cluster.moving import MOVE, Mover, Taker, offer
from fila_server.cluster.peers import PeerPort, Trust
from fila_server.cluster.watching import Handed
from fila_server.config.cluster import Cluster
from fila_server.config.kinds import Address
from fila_server.telemetry.group import NodeStatus
from tests.ports import KeptPort

WAIT_S = 30
OWNER = 7


@pytest.fixture
def standby(tmp_path):
    """Opens its port; what it would lack, what it loaded, and what it heard."""
    (tmp_path / "secret").touch(0o600)
    (tmp_path / "secret").write_text("a word of some length\n")
    with closing(KeptPort()) as port:
        address = Address(f"127.0.0.1:{port.port}")
        base = msgspec.structs.replace(
            Cluster(), name="orders", peer_addr=address, secret_file=str(tmp_path / "secret")
        )
        cluster = msgspec.structs.replace(base, node="fila-2")
        heard: queue.SimpleQueue[Handed] = queue.SimpleQueue()
        loaded: list[str] = []
        lacks: list[str] = [""]
        taker = Taker(
            lambda owner: lacks[0] if owner == OWNER else "another node serves",
            lambda: loaded.append("all"),
            lambda: loaded.append("clients wait"),
            heard.put,
        )
        made = PeerPort(cluster, Trust.of(cluster), lambda: None, {MOVE: taker.take})

        def ask(owner: int = OWNER, log_format: int = 0):
            asking = msgspec.structs.replace(base, node="fila-1")
            node = NodeStatus(str(address), "fila-2", client_addr="fila-2:5555")
            return offer(node, asking, Trust.of(asking), owner, log_format)

        yield ask, lacks, loaded, heard, taker
        made.close()


def test_a_standby_that_is_ready_has_loaded_and_bids_when_it_is_told(standby):
    ask, _, loaded, heard, _ = standby
    handover = ask()
    assert loaded == ["all"]
    assert heard.empty()
    assert handover.client_addr == "fila-2:5555"
    handover.prepare()
    assert loaded == ["all", "clients wait"]
    assert heard.empty()
    handover.tell()
    assert heard.get(timeout=WAIT_S) == Handed(OWNER)
    handover.close()


def test_a_standby_that_is_not_told_goes_on(standby):
    ask, _, _, heard, _ = standby
    ask().close()
    prepared = ask()
    prepared.prepare()
    prepared.close()
    ask().close()
    assert heard.empty()


def test_a_standby_says_what_it_lacks_and_loads_nothing(standby):
    ask, lacks, loaded, _, _ = standby
    lacks[0] = "the copy is damaged"
    with pytest.raises(errors.Conflict, match=r"^fila-2 would not take over: the copy is damaged$"):
        ask()
    lacks[0] = ""
    with pytest.raises(errors.Conflict, match="another node serves"):
        ask(OWNER + 1)
    assert not loaded


def test_a_node_that_does_not_answer_is_told():
    with closing(KeptPort()) as port:
        nowhere = Address(port.address)
        with pytest.raises(errors.Conflict, match=f"fila-3 does not answer at {nowhere}: "):
            offer(NodeStatus(str(nowhere), "fila-3"), Cluster(), Trust(b"a word", None, None), OWNER)


def test_a_node_that_is_alone_hands_over_to_itself_and_then_writes_what_was_raised():
    wanted: list[int] = []
    mover = Mover(Cluster(), Trust(b"a word", None, None), OWNER, lambda _name, _addr: None, wanted.append)
    again = mover.offer(NodeStatus("10.0.0.1:5556", "fila-1", OWNER, client_addr="fila-1:5555"), 2)
    again.prepare()
    again.close()
    assert not wanted
    again.tell()
    assert wanted == [2]


def test_a_standby_is_told_the_format_that_it_is_to_write(standby):
    ask, _, _, heard, taker = standby
    handover = ask(log_format=2)
    handover.prepare()
    handover.tell()
    assert heard.get(timeout=WAIT_S) == Handed(OWNER)
    assert taker.format == 2
    ask().close()
    assert taker.format == 0, "a later move raises nothing"
