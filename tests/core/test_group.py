"""The owner of a group: what leaves waits for the log, and so does the store; a log that stands harms nobody."""

from __future__ import annotations

import shutil

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server import errors
from fila_server.core.log.model import SimulatedEnd, SimulatedLog
from fila_server.core.log.record import KIND_BARRIER, KIND_PART, KIND_PASS, KIND_TAKEOVER
from fila_server.core.protocol import commands
from fila_server.core.runtime.engine import CoreEngine
from fila_server.core.runtime.store_copy import FOLLOWS, HALTS, OWNS, RESIGNS, StoreCopy
from tests.core.driven_engine import MS, DrivenEngine
from tests.core.driven_group import CLUSTER, Serving, asks, lands, passes
from tests.simulation.log_replay import META, Replay, dumped

MINUTE_MS = 60_000


@pytest.mark.parametrize("what", ["enqueue", "lease", "stats", "nowhere"])
@pytest.mark.parametrize("durability", [admin.DURABILITY_OS, admin.DURABILITY_FSYNC])
def test_an_answer_waits_until_its_record_is_in_the_log(group, what, durability):
    """Emptiness, numbers and refusals that tell what the store holds, too: each owes its truth to the term."""
    owner = group.owner()
    owner.create_queue("p", durability=durability)
    owner.lands = False
    token = asks(owner)[what]()
    assert passes(owner) == []

    assert [out[0] for out in lands(owner)] == [token]


def test_a_delivery_waits_until_its_lease_is_in_the_log(group):
    owner = group.owner()
    owner.submit(commands.CONSUME_OPEN, service.ConsumeRequest(queue="q", max_in_flight=10), token=77)
    owner.settle_down()
    owner.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"one"))
    owner.lands = True
    owner.run_pass()
    owner.commit()
    outs = passes(owner)
    assert [kind for _, kind, _, _ in outs] == [commands.REPLY]
    assert [(token, kind) for token, kind, _, _ in lands(owner)] == [(77, commands.DELIVERY)]


def test_the_brokers_own_numbers_are_told_at_once_and_are_no_record(group):
    owner = group.owner()
    before = len(group.log)
    token = owner.submit(commands.METRICS)
    assert [out[0] for out in passes(owner)] == [token]
    lands(owner)
    assert len(group.log) == before


def dumped_while_open(owner: Serving) -> dict[int, dict[bytes, bytes]]:
    """Of a copy of its directory: RocksDB has written its log when a write returns."""
    beside = owner.directory.with_name(owner.directory.name + "-beside")
    shutil.copytree(owner.directory, beside)
    try:
        return dumped(beside)
    finally:
        shutil.rmtree(beside)


def test_the_store_has_what_is_confirmed_and_nothing_else(group):
    owner = group.owner()
    before = dumped_while_open(owner)
    owner.lands = False
    owner.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"waits"))
    passes(owner)
    assert dumped_while_open(owner) == before

    lands(owner)
    assert dumped_while_open(owner) == Replay(group.log).families()


def test_a_standby_and_a_node_that_starts_anew_come_to_the_same_store(group):
    owner, standby = group.owner(), group.node()
    for number in range(20):
        owner.enqueue("q", b"%d" % number)
    owner.ack("q", owner.lease("q", 7))
    while standby.follow():
        pass
    owner.node.kill()
    standby.kill()
    owner.node.start()
    while owner.node.follow():
        pass
    owner.node.kill()
    expected = Replay(group.log).families()
    assert dumped(owner.directory) == expected
    assert dumped(standby.directory) == expected
    assert expected[META]


def test_who_takes_over_has_all_that_was_answered_and_not_what_landed_behind_its_takeover(group):
    owner, standby = group.owner(), group.node()
    owner.enqueue("q", b"answered")
    owner.lands = False
    owner.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"late"))
    passes(owner)
    successor = standby.take_over(2)
    late = owner.node.kill()
    while late.turn(group.clock.now_ms, 999):
        pass
    successor.settle_down()
    assert successor.payloads("q") == [b"answered"]


def test_what_landed_before_the_takeover_is_there_though_nobody_was_answered(group):
    owner, standby = group.owner(), group.node()
    owner.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"landed"))
    owner.run_pass()
    while owner.node.end.turn(group.clock.now_ms, 999):
        pass
    owner.node.kill()
    successor = standby.take_over(2)
    successor.settle_down()
    assert successor.payloads("q") == [b"landed"]


def test_an_owner_that_was_deposed_answers_nothing_more_and_starts_anew(group):
    owner, standby = group.owner(), group.node()
    successor = standby.take_over(2)
    successor.settle_down()
    for ask in asks(owner).values():
        ask()
    assert lands(owner) == []
    assert owner.node.copy.state == RESIGNS
    assert owner.node.copy.why == ""

    owner.node.kill()
    owner.node.start()
    while owner.node.follow():
        pass
    assert owner.node.copy.state == FOLLOWS


def test_a_failed_record_ends_the_term_and_no_answer_behind_it_leaves(group):
    owner = group.owner()
    group.log.chances(error_lost=1000)
    for ask in asks(owner).values():
        ask()
        owner.run_pass()
    assert lands(owner) == []
    assert owner.node.copy.state == RESIGNS


def test_a_log_that_was_cut_halts_its_owner(group):
    owner = group.owner()
    group.log.cut(2)
    owner.submit(commands.GET_STATS, admin.GetStatsRequest(queue="q"))
    assert lands(owner) == []
    assert owner.node.copy.state == HALTS
    assert "lost its end" in owner.node.copy.why


# --- parts -------------------------------------------------------------------------------------


def test_a_pass_longer_than_a_record_is_there_with_its_last_part_and_not_before(group):
    owner, standby = group.owner(), group.node()
    first = len(group.log)
    owner.lands = False
    big = service.EnqueueBatchRequest()
    for number in range(3):
        big.messages.append(service.EnqueueMessage(queue="q", payload=b"%d" % number + bytes(700_000)))
    owner.submit(commands.ENQUEUE_BATCH, big)
    owner.run_pass()
    for _ in range(2):
        owner.node.end.turn(group.clock.now_ms, 999)
    assert group.kinds(first) == [KIND_PART, KIND_PART]
    while standby.follow():
        pass
    owner.core.commit()
    assert [out for out in passes(owner) if out[1] == commands.REPLY] == []

    assert len(lands(owner)) == 1
    owner.node.kill()
    successor = standby.take_over(2)
    successor.settle_down()
    assert [payload[:1] for payload in successor.payloads("q")] == [b"0", b"1", b"2"]


def test_parts_of_a_term_that_ended_are_applied_by_nobody(group):
    owner, standby = group.owner(), group.node()
    owner.enqueue("q", b"whole")
    owner.lands = False
    big = service.EnqueueBatchRequest()
    for _ in range(2):
        big.messages.append(service.EnqueueMessage(queue="q", payload=bytes(700_000)))
    owner.submit(commands.ENQUEUE_BATCH, big)
    owner.run_pass()
    owner.node.end.turn(group.clock.now_ms, 999)
    assert passes(owner) == []
    owner.node.kill()
    successor = standby.take_over(2)
    successor.settle_down()
    successor.call(commands.ENQUEUE_BATCH, big, service.EnqueueBatchResponse)
    assert [len(payload) for payload in successor.payloads("q")] == [5, 700_000, 700_000]
    standby.kill()
    assert dumped(standby.directory) == Replay(group.log).families()


def test_what_the_logs_queue_has_no_room_for_follows_when_it_has(group):
    owner = group.owner()
    owner.node.end.slow(sent_max=2)
    tokens = []
    owner.lands = False
    for _ in range(9):
        tokens.append(asks(owner)["enqueue"]())
        owner.run_pass()
    assert owner.node.copy.waiting[0] == 9
    assert [out[0] for out in lands(owner)] == tokens


# --- idle, and what is refused at the start ----------------------------------------------------------


def test_an_idle_owner_shows_that_it_lives(group):
    owner = group.owner()
    first = len(group.log)
    for _ in range(30):
        owner.advance(100)
        lands(owner)
    assert group.kinds(first) == [KIND_BARRIER] * 6


def test_a_term_begins_with_its_takeover_and_what_recovery_writes(group):
    group.owner()
    assert group.kinds()[:2] == [KIND_TAKEOVER, KIND_PASS]


def test_only_an_owners_copy_serves(group):
    node = group.node()
    with pytest.raises(ValueError, match="owner"):
        CoreEngine(str(node.directory), {}, mono_ns=0, wall_ns=MS, seed=1, copy=node.copy)
    assert node.copy.state == FOLLOWS


def test_a_copy_of_another_cluster_is_not_opened(group):
    node = group.owner().node
    node.kill()
    with pytest.raises(errors.StoreError, match="another cluster"):
        StoreCopy(str(node.directory), node.settings, SimulatedEnd(group.log), node=1, cluster=CLUSTER[::-1])


@pytest.fixture
def alone():
    engine = DrivenEngine()
    yield engine
    engine.remove()


def contents(directory):
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("format_file", ["there", "gone"])
def test_a_copy_is_not_served_alone_which_would_make_a_second_broker(group, format_file):
    owner = group.owner()
    owner.enqueue("q", b"answered")
    owner.node.kill()
    if format_file == "gone":
        (owner.directory / "format").unlink()
    before = contents(owner.directory)
    with pytest.raises(
        errors.StoreError, match=r"copy of a group's broker.* start it as a node of its group"
    ):
        CoreEngine(str(owner.directory), {}, mono_ns=0, wall_ns=MS, seed=1)
    if format_file == "there":
        assert contents(owner.directory) == before

    owner.node.start()
    again = owner.node.take_over(2)
    again.settle_down()
    assert again.payloads("q") == [b"answered"]


@pytest.mark.parametrize("format_file", ["there", "gone"])
def test_the_directory_of_a_broker_alone_is_no_copy(format_file, alone):
    alone.create_queue("q")
    alone.core.close()
    if format_file == "gone":
        (alone.directory / "format").unlink()
    with pytest.raises(errors.StoreError, match=r"of a broker alone.* name an empty data directory"):
        StoreCopy(str(alone.directory), alone.settings, SimulatedEnd(SimulatedLog()), node=1, cluster=CLUSTER)


def test_a_damaged_copy_is_not_opened(group):
    owner = group.owner()
    for number in range(50):
        owner.enqueue("q", b"%d" % number)
    owner.node.sync()
    owner.node.kill()
    log = max(owner.directory.rglob("*.log"), key=lambda path: path.stat().st_size)
    with log.open("r+b") as file:
        file.seek(log.stat().st_size // 2)
        file.write(b"damage")
    with pytest.raises(errors.StoreDamaged):
        owner.node.start()


def test_a_copy_keeps_whose_term_it_is_and_how_many_ended_too_soon(group):
    nodes = [group.node(), group.node()]
    for nonce in range(3):
        nodes[nonce % 2].kill()
        nodes[nonce % 2].start()
        nodes[nonce % 2].take_over(1 + nonce).settle_down()
        assert nodes[nonce % 2].copy.owner == (1 + nonce % 2, 1 + nonce)
    serving = nodes[0].engine
    nodes[1].kill()
    nodes[1].start()
    assert nodes[1].copy.owner == (2, 2)
    while nodes[1].follow():
        pass
    assert nodes[1].copy.owner == (1, 3)

    for _ in range(120):
        serving.advance(100)
        serving.settle_down()
    assert nodes[0].copy.owner == (1, 0)


def test_a_copy_knows_whether_it_has_read_all_that_the_log_has(group):
    owner, standby = group.owner(), group.node()
    before = standby.copy.answers
    assert before == (0, False)
    while standby.follow():
        pass
    answers, is_end = standby.copy.answers
    assert answers
    assert is_end
    for number in range(100):
        owner.enqueue("q", b"%d" % number)
    standby.follow()
    assert not standby.copy.answers[1]


def test_a_copy_that_looks_again_halts_where_its_last_record_is_another_one(group):
    group.owner()
    standby = group.node()
    while standby.follow():
        pass
    group.log.cut(1)
    end = SimulatedEnd(group.log)
    end.append(group.log.content(0), 1)
    end.turn(group.clock.now_ms, 999)
    standby.follow()
    assert standby.copy.state == FOLLOWS

    standby.copy.look_again()
    standby.follow()
    assert standby.copy.state == HALTS
    assert "is not the one that was read there" in standby.copy.why


def test_the_bid_that_comes_second_owns_nothing(group):
    one, other = group.node(), group.node()
    for node in (one, other):
        node.follow()
        assert node.copy.bid(node.number, group.clock.wall_ns // MS)
    for node in (one, other):
        node.end.turn(group.clock.now_ms, 999)
    for node in (one, other):
        while node.follow():
            pass
    assert [one.copy.state, other.copy.state] == [OWNS, FOLLOWS]
