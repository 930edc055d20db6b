"""A node takes another one's copy over the port between nodes: whole and in place, or not at all, with a sentence."""

from __future__ import annotations

import hashlib
import shutil
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from fila_server import errors
from fila_server.cluster import fetching, giving, seeding, sources
from fila_server.cluster.copy_lines import COPY, PIECE_BYTES, File, Offer, Sum
from fila_server.cluster.directories import SET_ASIDE, Directories
from fila_server.cluster.fetching import NotTaken
from fila_server.cluster.giving import GIVING, SLOW_S_MAX, Giver, pause_s
from fila_server.cluster.peers import Lines, PeerPort, Trust, connected
from fila_server.cluster.reports import Report
from fila_server.cluster.seeding import Seeding, Want
from fila_server.cluster.sources import Lack
from fila_server.cluster.written import WrittenFormat
from fila_server.config.cluster import Cluster, GroupName
from fila_server.config.kinds import Address, AddressOrOff
from fila_server.core.log.kafka import LogRefused
from fila_server.core.runtime.store_copy import FORMAT, StoreCopy
from tests.access.test_tls import authority, certificate
from tests.cluster.test_peers import certified
from tests.core.driven_group import CLUSTER, Group, Node
from tests.ports import KeptPort
from tests.simulation.log_replay import Replay, dumped

WAIT_S = 30
NOTHING_IN_PLACE: dict[str, bytes] = {}


@pytest.fixture
def group():
    made = Group()
    yield made
    for node in made.nodes:
        node.remove()


@dataclass
class Other:
    """Another node, as far as one that seeks a copy sees it."""

    address: Address
    report: Report | None
    is_asked: bool = True
    answers: bool = True


class Side:
    """Nodes that give, and one that takes."""

    def __init__(self, folder: Path, group: Group) -> None:
        self.folder, self.group = folder, group
        self.held: list[KeptPort] = []
        self.ports: list[PeerPort] = []
        self.others: list[Other] = []
        self.log_start = 0
        self.data_dir = folder / "data"
        self.data_dir.mkdir()
        self.directories = Directories(self.data_dir)
        self.settings: Callable[[Cluster, str], Cluster] = lambda cluster, _: cluster
        self.ticks = 0
        self.removes: list[Other] = []
        """Nodes that an operator removes once this one has said for what it waits."""
        self.heard: list[str] = []

    def cluster(self, node: str, address: str = "") -> Cluster:
        path = self.folder / "secret"
        path.touch(0o600)
        path.write_text("a word that all of them know")
        made = Cluster(
            name=GroupName("orders"),
            node=GroupName(node),
            peer_addr=AddressOrOff(address),
            secret_file=str(path),
        )
        return self.settings(made, node)

    def answers(self, name: str, serve: Callable[[Lines, str], None], **said: object) -> PeerPort:
        """Another node, which is asked for its copy and does as told."""
        self.held.append(KeptPort())
        address = self.held[-1].address
        cluster = self.cluster(name, address)
        report = Report(1, name, 7, may_bid=True, wall_ms=0, gives=True)
        report = msgspec.structs.replace(report, **said)
        self.ports.append(PeerPort(cluster, Trust.of(cluster), lambda: report, {COPY: serve}))
        self.others.append(Other(Address(address), report))
        return self.ports[-1]

    def gives(self, node: Node, name: str = "fila-1", log_format: int = 1, **said: object) -> Giver:
        copy = node.copy
        offer = Offer(cluster=CLUSTER.hex(), format=FORMAT, position=copy.position, log_format=log_format)
        giver = Giver(node.directory, 0, lambda: msgspec.structs.replace(offer), copy.checkpoint)
        self.answers(name, giver.give, position=copy.position, **said)
        return giver

    def open_copy(self, directory: Path) -> StoreCopy:
        mine = self.group.nodes[0]
        return StoreCopy(str(directory), mine.settings, mine.end, node=99, cluster=CLUSTER, name="late")

    def ends(self, wait_ms: int = 0) -> tuple[int, int]:
        if self.log_start < 0:
            raise LogRefused("the brokers are away")
        return self.log_start, len(self.group.log)

    def takes(self, lack: Lack = Lack.EMPTY, spare_bytes: int = 0, needed: int = -1) -> StoreCopy:
        """Until it goes on with a copy. Raises Halted with the sentence where it does not."""
        cluster = self.cluster("fila-9", "127.0.0.1:1")
        seeks = Seeding(
            cluster,
            Trust.of(cluster),
            CLUSTER,
            self.directories,
            spare_bytes,
            self,
            self.open_copy,
            WrittenFormat(self.data_dir),
        )

        def tick() -> None:
            self.ticks += 1
            with pytest.raises(errors.DataDirInUse), Directories(self.data_dir).locked():
                pass
            if seeks.why not in (lack.value, ""):
                if not self.removes:
                    raise Halted(seeks.why)
                self.heard.append(seeks.why)
                self.others.remove(self.removes.pop())
                seeks.why = ""

        return seeks.run(Want(lack, needed=needed), lambda: self.others, tick)

    @property
    def in_place(self) -> dict[str, bytes]:
        store = self.data_dir / "rocksdb"
        return {path.name: path.read_bytes() for path in store.iterdir()} if store.exists() else {}


class Halted(Exception):
    """It waits, and says for what."""


@pytest.fixture
def side(tmp_path, group):
    made = Side(tmp_path, group)
    yield made
    for port in made.ports:
        port.close()
    for each in made.held:
        each.close()


def written(group: Group) -> tuple[Node, Node]:
    """An owner and a standby that has read all."""
    owner, standby = group.owner(), group.node()
    for number in range(30):
        owner.enqueue("q", b"%d" % number * 10_000)
    while standby.follow():
        pass
    return owner.node, standby


def follows_to_the_same(copy: StoreCopy, side: Side) -> None:
    while copy.follow():
        pass
    copy.close()
    assert dumped(side.data_dir) == Replay(side.group.log).families()


def test_an_empty_node_takes_the_copy_of_a_standby_and_follows_from_there(side, group):
    owner, standby = written(group)
    side.gives(owner, "owner", owns=True)
    side.gives(standby, "standby")
    standby_gives = standby.copy.position
    assert owner.engine is not None
    owner.engine.enqueue("q", b"behind it")
    owner.end.truncate(standby_gives)
    side.log_start = standby_gives

    copy = side.takes()
    assert copy.position == standby_gives
    follows_to_the_same(copy, side)
    assert not (standby.directory / GIVING).exists()
    assert not (side.data_dir / SET_ASIDE).exists()


def test_over_certificates_too(side, group, tmp_path):
    authority(tmp_path, "ca")
    for name in ("standby", "fila-9"):
        certificate(tmp_path, name, "DNS:localhost,IP:127.0.0.1")
    side.settings = lambda cluster, node: certified(tmp_path, cluster, node, "ca")
    side.gives(written(group)[1], "standby")
    follows_to_the_same(side.takes(), side)


@pytest.mark.parametrize("lack", [Lack.DAMAGED, Lack.BEHIND])
def test_a_copy_that_cannot_go_on_is_set_aside_once_another_is_whole(side, group, lack):
    _, standby = written(group)
    (side.data_dir / "rocksdb").mkdir()
    (side.data_dir / "rocksdb" / "CURRENT").write_text("damaged")
    (side.data_dir / "format").write_text("fila 3\n")
    side.directories.say_damaged()
    assert side.directories.is_damaged
    with pytest.raises(Halted):
        side.takes(lack, spare_bytes=1)
    assert side.in_place == {"CURRENT": b"damaged"}, "no other node has one"

    side.gives(standby)
    follows_to_the_same(side.takes(lack), side)
    assert (side.data_dir / SET_ASIDE / "rocksdb" / "CURRENT").read_text() == "damaged"
    assert not side.directories.is_damaged


def test_a_copy_of_a_newer_format_comes_with_the_note_of_it(side, group, monkeypatch):
    monkeypatch.setattr("fila_server.cluster.written.READS", 2)
    _, standby = written(group)
    side.gives(standby, log_format=2)
    follows_to_the_same(side.takes(), side)
    assert WrittenFormat(side.data_dir).format == 2


def sends(content: bytes, *, told: str = "", name: str = "rocksdb/CURRENT", size: int | None = None):
    """A node that says one file."""

    def serve(lines: Lines, _: str) -> None:
        lines.write(Offer(cluster=CLUSTER.hex(), format=FORMAT, position=7, files=1, bytes=len(content)))
        lines.write(File(name, len(content) if size is None else size))
        lines.connection.sendall(content)
        lines.write(Sum(told or hashlib.sha256(content).hexdigest()))

    return serve


def offers(**said: object):
    offer = msgspec.structs.replace(Offer(cluster=CLUSTER.hex(), format=FORMAT, position=7), **said)

    def serve(lines: Lines, _: str) -> None:
        lines.write(offer)

    return serve


def says(line: bytes):
    def serve(lines: Lines, _: str) -> None:
        lines.connection.sendall(line)

    return serve


@pytest.mark.parametrize(
    ("serve", "why"),
    [
        (offers(refused="it has no copy yet"), "fila-1: it has no copy yet"),
        (offers(cluster="00" * 16), f"of the cluster {'00' * 16}, and this node is of {CLUSTER.hex()}"),
        (offers(format=FORMAT + 1), f"format {FORMAT + 1}, and this server knows up to {FORMAT}: upgrade"),
        (offers(log_format=2), "the group writes format 2 of the log, and this server reads up to 1: upgrade"),
        (offers(position=3), "its copy ends at offset 3, and 6 is needed"),
        (offers(files=0), "its copy is not whole: files are missing"),
        (sends(b"whole"), "its copy is not whole: files are missing"),
        (sends(b"forged", told="0" * 64), "rocksdb/CURRENT is not what it sent: its SHA-256 is another"),
        (sends(b"x", name="../../etc/passwd"), "which its copy cannot have"),
        (sends(b"x", name="rocksdb/../x"), "which its copy cannot have"),
        (sends(b"x", name="access-marker"), "which its copy cannot have"),
        (sends(b"x", size=2), "which its copy cannot have"),
        (sends(b"x", size=-1), "which its copy cannot have"),
        (says(b'{"offer": 1, "files": "many"}\n'), "it says what no node says"),
        (says(b"\xff\xfe\n"), "it says what no node says"),
        (says(b"x" * 100_000), "the connection ended before the copy was whole"),
        (says(b""), "the connection ended before the copy was whole"),
    ],
)  # fmt: skip
def test_what_is_no_whole_copy_of_this_cluster_is_refused_with_a_sentence_and_nothing_is_in_place(
    side, group, serve, why
):
    written(group)
    side.log_start = 7
    side.answers("fila-1", serve)
    with pytest.raises(Halted) as halted:
        side.takes()
    assert why in str(halted.value)
    assert side.in_place == NOTHING_IN_PLACE


def test_where_one_node_dies_in_the_middle_the_next_one_gives_it(side, group):
    _, standby = written(group)

    def dies(lines: Lines, _: str) -> None:
        lines.write(Offer(cluster=CLUSTER.hex(), format=FORMAT, position=70, files=3, bytes=3 << 20))
        lines.write(File("rocksdb/000004.sst", 2 << 20))
        lines.connection.sendall(b"x" * PIECE_BYTES)
        lines.connection.shutdown(socket.SHUT_RDWR)

    side.answers("dies", dies, position=70)
    side.gives(standby)
    side.log_start = 1
    follows_to_the_same(side.takes(), side)
    assert side.ticks


def test_a_damaged_copy_of_another_node_is_not_put_in_place(side, group):
    _, standby = written(group)

    def damaged(path: str) -> None:
        standby.copy.checkpoint(path)
        log = next(Path(path).glob("*.log"))
        content = bytearray(log.read_bytes())
        content[len(content) // 2] ^= 1
        log.unlink()
        log.write_bytes(content)

    offer = Offer(cluster=CLUSTER.hex(), format=FORMAT, position=standby.copy.position)
    side.answers("fila-1", Giver(standby.directory, 0, lambda: offer, damaged).give, position=offer.position)
    side.log_start = standby.copy.position
    with pytest.raises(Halted, match=r"its copy cannot be opened|its copy ends at offset"):
        side.takes()
    assert side.in_place == NOTHING_IN_PLACE


def test_a_disk_without_room_says_so_and_asks_no_other_node(side, group):
    _, standby = written(group)
    side.gives(standby)
    side.log_start = 5
    with pytest.raises(Halted, match=r"MiB free and .* are to be written\. Make room"):
        side.takes(spare_bytes=shutil.disk_usage(side.data_dir).total)
    assert side.in_place == NOTHING_IN_PLACE


def test_a_disk_that_refuses_a_file_says_so(side, group, monkeypatch):
    _, standby = written(group)
    side.gives(standby)
    side.log_start = 5

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device", "rocksdb/000004.sst")

    monkeypatch.setattr(fetching, "write_pieces", full)
    with pytest.raises(Halted, match=r"this node cannot write it: .*: No space left on device\. Make room"):
        side.takes()


def test_a_node_that_is_removed_is_not_waited_for_any_more(side, group):
    written(group)
    side.log_start = 5
    silent = Report(3, "fila-3", 7, may_bid=True, wall_ms=0)
    side.removes = [Other(Address("127.0.0.1:1"), silent, answers=False)]
    side.others = [*side.removes]
    with pytest.raises(Halted, match="and the group has no other node"):
        side.takes()
    assert [why.rpartition("; ")[2] for why in side.heard] == ["it waits for a copy of fila-3"]


def test_while_the_log_does_not_answer_it_waits(side, group):
    _, standby = written(group)
    side.gives(standby)
    side.log_start = -1
    with pytest.raises(Halted, match="the log does not answer"):
        side.takes()


def test_a_new_group_reads_its_log(side, group):
    owner = group.owner()
    side.answers("fila-1", offers(refused="it has no copy yet"), gives=False)
    copy = side.takes()
    assert copy.position == -1
    owner.enqueue("q", b"one")
    follows_to_the_same(copy, side)


def test_another_process_has_the_directory(side, group):
    written(group)
    with side.directories.locked(), pytest.raises(errors.DataDirInUse):
        side.takes()


# --- the one that gives


def asks(side: Side, node: str = "fila-9") -> Lines:
    cluster = side.cluster(node)
    lines = connected(side.others[0].address, cluster, Trust.of(cluster), COPY)
    lines.connection.settimeout(WAIT_S)
    return lines


def test_one_copy_is_given_at_a_time_and_its_checkpoint_goes_with_the_connection(side, group):
    _, standby = written(group)
    made, goes_on = threading.Event(), threading.Event()

    def held(path: str) -> None:
        standby.copy.checkpoint(path)
        made.set()
        goes_on.wait(WAIT_S)

    offer = Offer(cluster=CLUSTER.hex(), format=FORMAT, position=standby.copy.position)
    giver = Giver(standby.directory, 0, lambda: msgspec.structs.replace(offer), held)
    side.answers("fila-1", giver.give)
    first = asks(side)
    assert made.wait(WAIT_S)
    with pytest.raises(NotTaken, match="giving its copy to another node"):
        fetching.read_offer(asks(side, "fila-8"))
    goes_on.set()
    assert fetching.read_offer(first).files > 3
    first.connection.close()
    again = asks(side)
    while True:
        try:
            assert fetching.read_offer(again).files > 3
            break
        except NotTaken:  # the first one is not noticed to be gone yet
            again = asks(side)
    again.connection.close()
    for port in side.ports:
        port.close()
    end = threading.Event()
    while (standby.directory / GIVING).exists():
        end.wait(0.01)


def test_without_room_for_a_checkpoint_it_gives_none(side, group):
    _, standby = written(group)
    offer = Offer(cluster=CLUSTER.hex(), format=FORMAT, position=7)
    spare = shutil.disk_usage(standby.directory).total
    side.answers("fila-1", Giver(standby.directory, spare, lambda: offer, standby.copy.checkpoint).give)
    with pytest.raises(NotTaken, match="its checkpoint failed: a checkpoint takes up to"):
        fetching.read_offer(asks(side))


def test_a_node_of_an_earlier_version_gives_none(side, group):
    written(group)
    side.answers("fila-1", says(b""))
    cluster = side.cluster("fila-9")
    lines = connected(side.others[0].address, cluster, Trust.of(cluster), "what only later versions know")
    with pytest.raises(NotTaken, match="the connection ended"):
        fetching.read_offer(lines)


def test_probes_of_a_node_go_on_while_it_takes_a_copy(side, group):
    _, standby = written(group)
    side.gives(standby)
    cluster = side.cluster("fila-9")
    probing = connected(side.others[0].address, cluster, Trust.of(cluster))
    taking = asks(side)
    fetching.read_offer(taking)
    probing.connection.settimeout(WAIT_S)
    probing.write(None)
    assert msgspec.json.decode(probing.read(), type=Report).gives
    probing.connection.close()
    taking.connection.close()


def test_giving_keeps_its_pace_and_gives_up_who_takes_too_slowly():
    assert pause_s(0, 0.0) == 0.0
    assert pause_s(giving.BYTES_A_SECOND, 0.25) == 0.75
    assert pause_s(giving.BYTES_A_SECOND, 2.0) == 0.0
    assert pause_s(0, SLOW_S_MAX) == 0.0
    assert pause_s(0, SLOW_S_MAX + 0.01) is None
    hour_bytes = 3600 * giving.SLOWEST_BYTES_A_SECOND
    assert pause_s(hour_bytes, 3600 + SLOW_S_MAX) == 0.0
    assert pause_s(hour_bytes, 3601 + SLOW_S_MAX) is None
    assert sources.AGAIN_MS > seeding.TURN_S * 1000
