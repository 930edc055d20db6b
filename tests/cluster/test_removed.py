"""Which nodes nobody counts, by what an operator said, what the owner says, and who answers."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from fila_server.cluster.removed import REMOVED, RemovedNodes
from fila_server.cluster.reports import Report
from fila_server.config.kinds import Address

SAID = Report(3, "fila-3", 7, may_bid=True, wall_ms=0)
OWNER = msgspec.structs.replace(SAID, node=1, name="fila-1", owns=True)


@dataclass
class Peer:
    address: Address
    report: Report | None = None
    answers: bool = False


@pytest.fixture
def silent() -> Peer:
    return Peer(Address("10.0.0.3:5556"), SAID)


@pytest.fixture
def unknown() -> Peer:
    """One that has not answered since this process began."""
    return Peer(Address("10.0.0.3:5556"))


def test_a_removed_node_does_not_count_until_it_answers_again(tmp_path, silent):
    removed = RemovedNodes(tmp_path)
    assert removed.counts(silent)
    removed.remove("fila-3", "10.0.0.3:5556")
    removed.look([silent], None, owns=True)
    assert not removed.counts(silent)

    silent.answers = True
    assert removed.counts(silent), "before the owner has looked, too"
    removed.look([silent], None, owns=True)
    silent.answers = False
    assert removed.counts(silent)
    assert removed.words == ()


def test_a_node_is_known_by_its_name_or_by_its_address(tmp_path, silent, unknown):
    removed = RemovedNodes(tmp_path)
    removed.remove("fila-3", "fila-3.example:5556")
    assert not removed.counts(silent), "another node may write the address in another way"
    assert removed.counts(unknown)
    removed.remove("", "10.0.0.3:5556")
    assert not removed.counts(unknown)
    assert removed.counts(Peer(Address("10.0.0.2:5556"))), "a name that is not known is nobody's"


def test_other_nodes_have_the_list_of_the_owner_and_keep_it_while_none_is_known(tmp_path, silent):
    removed = RemovedNodes(tmp_path)
    owner = msgspec.structs.replace(OWNER, removed=("10.0.0.3:5556", "fila-3"))
    removed.look([silent], owner, owns=False)
    removed.look([silent], None, owns=False)
    assert not removed.counts(silent)
    silent.answers = True
    removed.look([silent], owner, owns=False)
    assert removed.words == owner.removed, "only the owner drops a node"
    removed.look([silent], OWNER, owns=False)
    assert removed.words == ()


def test_the_next_process_knows_it(tmp_path, silent, unknown):
    RemovedNodes(tmp_path).remove("fila-3", "10.0.0.3:5556")
    later = RemovedNodes(tmp_path)
    assert not later.counts(silent)
    assert not later.counts(unknown)
    later.look([Peer(Address("10.0.0.3:5556"), SAID, answers=True)], None, owns=True)
    assert RemovedNodes(tmp_path).words == ()


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_file_that_is_none_is_as_good_as_none(tmp_path, content):
    (tmp_path / REMOVED).write_bytes(content)
    assert RemovedNodes(tmp_path).words == ()


def test_a_disk_that_refuses_the_file_does_not_keep_the_list_from_counting(tmp_path, silent):
    removed = RemovedNodes(tmp_path / "nowhere")
    removed.remove("fila-3", "10.0.0.3:5556")
    assert not removed.counts(silent)
