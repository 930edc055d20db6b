"""A broker's data become the first copy of a group, and a copy a broker's again: nothing is lost, wherever it ends."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from fila.v1 import messages_pb2 as messages
from fila_server import errors
from fila_server.cluster import founding
from fila_server.cluster.founding import NOTE, Identity, begin_group
from fila_server.cluster.leaving import leave_group
from fila_server.core.log.model import SimulatedEnd, SimulatedLog
from fila_server.core.runtime import store_copy
from fila_server.core.runtime.store_copy import FOUNDED, HALTS, StoreCopy
from tests.core.driven_engine import MS, DrivenEngine
from tests.core.driven_group import CLUSTER, Group

WHO = Identity(1, "n1", CLUSTER)
LEASE_MS = 60_000


class Ended(BaseException):
    """The process ends here."""


class Ends:
    """Ends the process at one of the steps that are counted; 0: at none."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.steps = at, 0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.at:
            raise Ended


class Log:
    """A simulated log, as one over Kafka's protocol."""

    def __init__(self, log: SimulatedLog, ends: Ends | None = None, start: int = 0) -> None:
        self.log, self.end, self.cut, self.start = log, SimulatedEnd(log), ends or Ends(), start

    def ends(self, wait_ms: int = 0) -> tuple[int, int]:
        return self.start, self.start + len(self.log)

    def read(self, first: int, room: int = 64, wait_ms: int = 0) -> tuple[list[tuple[int, bytes]], int, int]:
        return self.end.read(first, room)

    def append(self, content: bytes, tag: int) -> bool:
        self.cut.step()
        is_taken = self.end.append(content, tag) == 0
        while self.end.turn(0, 999):
            pass
        self.cut.step()
        return is_taken

    def reports(self, room: int = 64, wait_ms: int = 0) -> list[tuple[int, int, int, int]]:
        return self.end.reports(room)


class Standing(DrivenEngine):
    """A broker alone."""

    leased: messages.Message


class Store:
    """A store whose changes are steps."""

    def __init__(self, store: store_copy.TurningStore, ends: Ends) -> None:
        self._store, self._ends = store, ends

    def __getattr__(self, name: str):
        found = getattr(self._store, name)
        if name not in ("begin_group", "leave_group", "write_format"):
            return found

        def done(*args):
            self._ends.step()
            found(*args)
            self._ends.step()

        return done


@pytest.fixture
def group():
    made = Group()
    yield made
    for node in made.nodes:
        node.remove()


@pytest.fixture
def broker():
    """One alone that stands still: a message waits, one is leased, one was acked, and one is held back."""
    engine = Standing()
    engine.create_queue("q", visibility_timeout_ms=LEASE_MS, max_attempts=3)
    for payload in (b"acked", b"leased", b"waits"):
        engine.enqueue("q", payload)
    first, second = engine.lease("q", 2)
    assert engine.ack("q", [first]) == [0]
    engine.leased = second
    engine.kill()
    yield engine
    shutil.rmtree(engine.directory, ignore_errors=True)


def as_owner(group: Group, directory: Path, wall_ns: int):
    """The node that has this copy, once it serves."""
    node = group.node()
    node.kill()
    shutil.rmtree(node.directory, ignore_errors=True)
    node.directory = directory
    group.clock.wall_ns = wall_ns
    node.start()
    serving = node.take_over()
    serving.settle_down()
    return serving


def judge(serving, leased) -> None:
    """Everything is there that was, and once."""
    assert serving.payloads("q") == [b"waits"]
    assert serving.ack("q", [leased]) == [0]
    serving.sleep(LEASE_MS + 1_000, 1_000)
    assert serving.payloads("q") == [b"waits"]


def test_a_brokers_data_are_a_copy_of_a_group_with_each_message_and_each_lease(broker, group):
    assert begin_group(broker.directory, broker.settings, "t", Log(group.log), WHO)
    assert (broker.directory / "format").read_text() == "fila 3\n"
    assert not (broker.directory / NOTE).exists()
    with pytest.raises(
        errors.StoreError, match="make it a broker's alone again with fila-server cluster leave"
    ):
        broker.reopen()
    judge(as_owner(group, broker.directory, broker.wall_ns), broker.leased)


def test_a_node_that_has_no_copy_does_not_begin_such_a_group_without_its_data(broker, group):
    begin_group(broker.directory, broker.settings, "t", Log(group.log), WHO)
    stranger = group.node()
    while stranger.follow():
        pass
    assert stranger.copy.state == HALTS
    assert stranger.copy.halted == (FOUNDED, 1)
    assert stranger.copy.applied == -1
    assert "only a copy has it" in stranger.copy.why

    serving = as_owner(group, broker.directory, broker.wall_ns)
    serving.enqueue("q", b"behind")
    copied = stranger.directory.with_name(f"{stranger.directory.name}-copy")
    copied.mkdir()
    serving.core.copy.checkpoint(str(copied / "rocksdb"))
    (copied / "format").write_text("fila 3\n")
    stranger.kill()
    shutil.rmtree(stranger.directory)
    stranger.directory = copied
    stranger.start()
    while stranger.follow():
        pass
    assert stranger.copy.state != HALTS
    assert stranger.copy.position >= serving.core.copy.applied


def test_a_directory_is_begun_with_once_and_only_in_a_topic_without_a_record(broker, group):
    log = Log(group.log)
    begin_group(broker.directory, broker.settings, "t", log, WHO)
    with pytest.raises(errors.StoreError, match="is a copy of a group's already: start it as a node"):
        begin_group(broker.directory, broker.settings, "t", log, WHO)
    another = DrivenEngine()
    another.kill()
    with pytest.raises(errors.StartError, match=r"cluster\.log: the topic t is not empty: it has 2 records"):
        begin_group(another.directory, another.settings, "t", log, WHO)
    with pytest.raises(
        errors.StartError, match="the topic t is not empty: it has 0 records, from offset 9 on"
    ):
        begin_group(another.directory, another.settings, "t", Log(SimulatedLog(), start=9), WHO)
    assert not (another.directory / NOTE).exists()
    # A note of its own does not make another group's log its own.
    founding.Note.new().write(another.directory)
    with pytest.raises(errors.StartError, match="is not empty"):
        begin_group(another.directory, another.settings, "t", log, WHO)
    another.reopen()
    another.remove()


def test_where_another_node_is_faster_the_group_is_its_and_the_data_stay_a_brokers(broker, group):
    other = group.node()

    class Raced(Log):
        def append(self, content: bytes, tag: int) -> bool:
            done = super().append(content, tag)
            if len(self.log) == 1:
                other.take_over(2)
            return done

    with pytest.raises(
        errors.StartError, match="is not empty: it has 2 records, another node began the group"
    ):
        begin_group(broker.directory, broker.settings, "t", Raced(group.log), WHO)
    broker.reopen()
    assert broker.payloads("q") == [b"waits"]
    broker.kill()


def test_what_is_damaged_or_no_data_directory_is_refused(broker, tmp_path):
    with pytest.raises(errors.StoreError, match="is no data directory of a Fila server"):
        begin_group(tmp_path, broker.settings, "t", Log(SimulatedLog()), WHO)
    (broker.directory / "salvage").touch()
    log = SimulatedLog()
    with pytest.raises(errors.StoreError, match="start the server once, without a group, which repairs it"):
        begin_group(broker.directory, broker.settings, "t", Log(log), WHO)
    with pytest.raises(errors.StoreError, match="is damaged, and would be a broker that lacks something"):
        leave_group(broker.directory, broker.settings, None)
    assert len(log) == 0


def test_a_copy_with_damage_in_it_does_not_leave(behind):
    (behind.directory / "rocksdb" / "CURRENT").write_text("MANIFEST-999999\n")
    with pytest.raises(
        errors.StoreError, match="Take another node's, or start this node once more"
    ) as refused:
        leave_group(behind.directory, behind.settings, None)
    assert "on_damage" not in str(refused.value)
    assert (behind.directory / "format").read_text() == "fila 3\n"


def test_a_broker_that_runs_is_left_alone(broker):
    broker.reopen()
    with pytest.raises(errors.DataDirInUse):
        begin_group(broker.directory, broker.settings, "t", Log(SimulatedLog()), WHO)
    with pytest.raises(errors.DataDirInUse):
        leave_group(broker.directory, broker.settings, None)
    broker.kill()


STEPS = ("rename", "replace", "fsync", "unlink", "open")


def counted(patch, ends: Ends) -> None:
    """Each change of a disk is a step."""
    for name in STEPS:
        real = getattr(os, name)

        def done(*args, _real=real, **named):
            ends.step()
            return _real(*args, **named)

        patch.setattr(os, name, done)
    for module in ("founding", "leaving"):
        patch.setattr(
            f"fila_server.cluster.{module}.opened",
            lambda *args: Store(store_copy.TurningStore(str(args[0]), args[1]), ends),
        )


def opens_alone(engine: DrivenEngine) -> bool:
    try:
        engine.reopen()
    except errors.StoreError as error:
        assert "is a copy of a group's broker" in str(error)  # noqa: PT017 - both ends are right ones
        return False
    assert engine.payloads("q", 1) == [b"waits"]
    engine.cut_power()
    return True


def test_wherever_init_ends_the_broker_starts_as_before_or_init_goes_on(broker, monkeypatch):
    at, alone, copies = 0, 0, 0
    kept = broker.directory
    while True:
        at += 1
        group, ends = Group(), Ends(at)
        broker.directory = kept.with_name(f"{kept.name}-{at}")
        shutil.copytree(kept, broker.directory)
        is_over = False
        with monkeypatch.context() as patch:
            counted(patch, ends)
            try:
                begin_group(broker.directory, broker.settings, "t", Log(group.log, ends), WHO)
                is_over = True
            except Ended:
                pass
        is_alone = not is_over and opens_alone(broker)
        alone += is_alone
        copies += not is_alone
        if not is_over and (is_alone or (broker.directory / NOTE).exists()):
            begin_group(broker.directory, broker.settings, "t", Log(group.log), WHO)
        assert (broker.directory / "format").read_text() == "fila 3\n"
        serving = as_owner(group, broker.directory, broker.wall_ns)
        if not is_alone:
            assert serving.payloads("q") == [b"waits"]
        assert serving.ack("q", [broker.leased]) == [0]
        for node in group.nodes:
            node.remove()
        if is_over:
            break
    broker.directory = kept
    assert alone > 6
    assert copies > 3


def copy_of(group: Group, directory: Path, settings) -> StoreCopy:
    end = SimulatedEnd(group.log)
    end.read(0)
    return StoreCopy(str(directory), settings, end, node=1, cluster=CLUSTER, name="n1")


@pytest.fixture
def behind(group):
    """A node that stands still, and lacks the last message of its group; no node runs."""
    owner, node = group.owner(), group.node()
    owner.enqueue("q", b"first")
    (leased,) = owner.lease("q")
    while node.follow():
        pass
    owner.enqueue("q", b"last")
    node.kill()
    node.leased, node.wall_ns = leased, owner.wall_ns
    owner.node.kill()
    return node


def alone(node) -> DrivenEngine:
    engine = DrivenEngine(node.settings, directory=node.directory)
    engine.wall_ns = node.wall_ns
    return engine


def test_a_copy_that_leaves_reads_the_log_to_its_end_and_is_a_broker_with_all_of_it(
    behind, group, monkeypatch
):
    monkeypatch.setattr("fila_server.cluster.leaving.LIVES_S", 0)
    position = leave_group(
        behind.directory, behind.settings, lambda: copy_of(group, behind.directory, behind.settings)
    )
    assert position == len(group.log) - 1
    with pytest.raises(errors.StoreError, match="begin the group with it by fila-server cluster init"):
        behind.start()
    engine = alone(behind)
    assert engine.core.open_report()["damaged_blocks"] == 0
    assert engine.payloads("q") == [b"last"]
    assert engine.ack("q", [behind.leased]) == [0]
    engine.kill()
    with pytest.raises(errors.StoreError, match="is the data of a broker alone already: start it"):
        leave_group(behind.directory, behind.settings, None)


def test_a_copy_leaves_as_it_is_where_that_is_asked_for(behind, group):
    own = [behind.directory / name for name in ("log-marks", "removed-nodes")]
    for file in own:
        file.touch()
    (behind.directory / "seeding").mkdir()
    position = leave_group(behind.directory, behind.settings, None)
    assert position is not None
    assert position < len(group.log) - 1
    assert not any(file.exists() for file in own)
    assert not (behind.directory / "seeding").exists()
    engine = alone(behind)
    assert engine.payloads("q") == []
    assert engine.ack("q", [behind.leased]) == [0]
    engine.kill()


def test_a_copy_does_not_leave_while_another_node_serves(behind, group, monkeypatch):
    owner = group.nodes[0]
    owner.start()
    serving = owner.take_over(2)
    serving.settle_down()

    class Copy:
        """Each look at the log's end finds more."""

        def __init__(self) -> None:
            self.real = copy_of(group, behind.directory, behind.settings)

        def __getattr__(self, name: str):
            return getattr(self.real, name)

        def follow(self, _wait_ms: int = 0) -> int:
            serving.advance(600)
            serving.settle_down()
            return self.real.follow()

    follow: Any = Copy
    with pytest.raises(errors.StartError, match="a node serves the group: its log goes on"):
        leave_group(behind.directory, behind.settings, follow)
    behind.start()


@pytest.mark.parametrize("why", ["halts", "is silent"])
def test_a_copy_that_cannot_know_the_logs_end_says_up_to_where_it_is_and_how_to_go_on(
    behind, group, why, monkeypatch
):
    monkeypatch.setattr("fila_server.cluster.leaving.SILENT_S_MAX", 0)
    if why == "halts":
        group.log.cut(len(group.log) - 1)
    else:
        group.log.stall(True)
    with pytest.raises(errors.StartError, match="give --as-it-is to go on with what it has") as refused:
        leave_group(
            behind.directory, behind.settings, lambda: copy_of(group, behind.directory, behind.settings)
        )
    assert "offset" in str(refused.value)
    group.log.stall(False)
    assert (behind.directory / "format").read_text() == "fila 3\n"


def test_wherever_leave_ends_the_copy_opens_or_leave_goes_on(behind, group, monkeypatch):
    at, copies, brokers, kept = 0, 0, 0, behind.directory
    while True:
        at += 1
        ends = Ends(at)
        behind.directory = kept.with_name(f"{kept.name}-{at}")
        shutil.copytree(kept, behind.directory)
        with monkeypatch.context() as patch:
            counted(patch, ends)
            try:
                leave_group(behind.directory, behind.settings, None)
                break
            except Ended:
                pass
        try:
            copy_of(group, behind.directory, behind.settings).close()
            copies += 1
        except errors.StoreError as error:
            assert "is of a broker alone" in str(error)  # noqa: PT017 - both ends are right ones
            brokers += 1
        try:
            leave_group(behind.directory, behind.settings, None)
        except errors.StoreError as error:
            assert "is the data of a broker alone already" in str(error)  # noqa: PT017 - it was at its end
        engine = alone(behind)
        assert engine.ack("q", [behind.leased]) == [0]
        engine.remove()
    shutil.rmtree(kept, ignore_errors=True)
    assert copies >= 1
    assert brokers >= 2


def test_wall_times_of_leases_go_on(broker, group):
    """A lease that ends while the broker stands still has ended in the group."""
    begin_group(broker.directory, broker.settings, "t", Log(group.log), WHO)
    serving = as_owner(group, broker.directory, broker.wall_ns + (LEASE_MS + 1_000) * MS)
    serving.sleep(2_000)
    assert sorted(serving.payloads("q")) == [b"leased", b"waits"]
