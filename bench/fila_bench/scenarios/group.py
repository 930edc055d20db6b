"""A group of three nodes over three brokers of Apache Kafka: its cost beside one node, and how long it is silent."""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc

from fila.v1 import admin_pb2_grpc, cluster_pb2
from fila_bench import frames
from fila_bench.admin import Admin
from fila_bench.callers import percentile
from fila_bench.group import Group
from fila_bench.group_callers import Callers, Crowd
from fila_bench.load import Load
from fila_bench.pairs import in_turn, ratio_of
from fila_bench.plan import ConsumerPlan, Counter, ProducerPlan, now_ns
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.full_life import QUEUE, Life, measure_life, producer_plan
from fila_bench.server import Server

_WAITING = "waiting"
_PAIRS = 5
_CALLS = 3_000
_IDLE_S = 60
_FILL_S_MAX = 900
_SHORT_TERM_S = 12
"""Terms that end sooner make bids wait, so nothing is broken before."""
_CALM_S = 4
_LOOK_S = 15
"""A broker is stopped for so long, and so long a gap is looked for."""
_KILLS = 25
_MOVES = 8
_ROUNDS = 3

_HOW = (
    "Three brokers of Apache Kafka 4.3.1, with the settings of `tools/cluster/brokers.py`, three nodes and the load on "
    "one machine. Each line has the machine's load while it was measured: `load` is what other work made of it, too."
)
_CROWD = (
    "Beside it messages of 1 KB in batches of 100 live at half the rate that the group bore just before. The caller is "
    "the Python SDK with all addresses, one call at a time; a silence is the time from one of its answers to the next."
)


@dataclass(frozen=True)
class _Life:
    """A full life at a group: rates and CPU of its second half."""

    per_s: float
    owner_us: float
    owner_ms_a_mb: float
    standby_ms_a_mb: float
    brokers_ms_a_mb: float


def _lives(group: Group, budget: Budget) -> _Life:
    owner, standbys, life = group.owner, group.standbys, Life()
    consumer = ConsumerPlan(address=owner.address, queue=QUEUE)

    def used() -> tuple[float, float, float]:
        return owner.cpu_s(), sum(node.cpu_s() for node in standbys) / 2, group.brokers_cpu_s()

    with Load([producer_plan(life, owner.address)], [consumer]) as load:
        load.measure(warm_up_s=0, seconds=budget.warm_up_s)
        before = used()
        steady = load.measure(warm_up_s=0, seconds=budget.seconds)
        owner_s, standby_s, brokers_s = (after - first for after, first in zip(used(), before, strict=True))
    count = max(1.0, steady.acked_per_s * steady.seconds)
    mb = count * life.payload_bytes / 1e6
    return _Life(
        steady.acked_per_s,
        owner_s / count * 1e6,
        owner_s / mb * 1e3,
        standby_s / mb * 1e3,
        brokers_s / mb * 1e3,
    )


@benchmark(
    "group/life", "a full life at a group and at one node, in turn: throughput, and each process's CPU", _HOW
)
def life(budget: Budget) -> Iterator[Finding]:
    with Group() as group:
        with Admin(group.owner.address) as admin:
            admin.create(QUEUE, fairness_key_header="tenant")
        alone: list[tuple[float, float]] = []

        def single() -> float:
            steady, us = measure_life(Life(), budget)
            alone.append((steady.acked_per_s, us))
            return us

        shared: list[_Life] = []

        def grouped() -> float:
            shared.append(_lives(group, budget))
            group.wait_until_in_sync()
            return shared[-1].owner_us

        cpu = in_turn({"single": single, "group": grouped}, _PAIRS)
    yield from _beside(alone, shared, cpu)


def _beside(
    alone: list[tuple[float, float]], shared: list[_Life], cpu: dict[str, list[float]]
) -> Iterator[Finding]:
    load = {"load": os.getloadavg()[0]}
    throughput = ratio_of([rate for rate, _ in alone], [each.per_s for each in shared])
    of_cpu = ratio_of(cpu["single"], cpu["group"])
    middle = statistics.median
    yield Finding(
        benchmark="group",
        case=f"messages a second, 1 KB, batch 100: group / one node, median of {_PAIRS} pairs",
        value=throughput.median,
        unit="",
        reach=0.15,
        high=throughput.high,
        details={
            "90 % interval": throughput.interval,
            "group msg/s": middle(each.per_s for each in shared),
            "one node msg/s": middle(rate for rate, _ in alone),
            "CPU ms a MB: owner": middle(each.owner_ms_a_mb for each in shared),
            "a standby": middle(each.standby_ms_a_mb for each in shared),
            "the brokers together": middle(each.brokers_ms_a_mb for each in shared),
            **load,
        },
    )
    yield Finding(
        benchmark="group",
        case=f"CPU a message: owner / one node, median of {_PAIRS} pairs",
        value=of_cpu.median,
        unit="",
        reach=1.75,
        better="less",
        details={
            "90 % interval": of_cpu.interval,
            "owner us": middle(cpu["group"]),
            "one node us": middle(cpu["single"]),
            **load,
        },
    )
    yield Finding(
        benchmark="group",
        case=f"CPU a MB applied: a standby / the owner, median of {_PAIRS} runs",
        value=middle(each.standby_ms_a_mb / each.owner_ms_a_mb for each in shared),
        unit="",
        reach=0.3,
        better="less",
        details=load,
    )


@benchmark("group/call", "one caller at a group: an answer less one append to the log", _HOW)
def call(_budget: Budget) -> Iterator[Finding]:
    from fila_server.cluster.kafka_settings import all_settings, library
    from fila_server.config.kafka import KafkaSettings
    from fila_server.core.log.kafka import KafkaLog

    with Group() as group:
        owner = group.owner
        with Admin(owner.address) as admin:
            admin.create(QUEUE, fairness_key_header="tenant")
        group.make_topic("beside")
        settings = all_settings(group.log_addresses, KafkaSettings.parse({}))
        log = KafkaLog(library(), "beside", settings, appends=True)
        record = bytes(1200)
        request = frames.enqueue_message({"tenant": "k"}, bytes(1024), queue=QUEUE)
        answers_ns: list[int] = []
        appends_ns: list[int] = []
        with grpc.insecure_channel(owner.address) as channel:
            enqueue: Any = channel.unary_unary(frames.ENQUEUE)
            for number in range(_CALLS + 200):
                began = now_ns()
                enqueue(request)
                answered = now_ns()
                log.append(record, number)
                while not log.reports(wait_ms=10_000):
                    pass
                if number >= 200:
                    answers_ns.append(answered - began)
                    appends_ns.append(now_ns() - answered)
        log.close()
    answers_ns.sort()
    appends_ns.sort()
    yield Finding(
        benchmark="group",
        case="one message, one caller, 1 KB: p50 of an answer less p50 of an append",
        value=(percentile(answers_ns, 0.5) - percentile(appends_ns, 0.5)) / 1e6,
        unit="ms",
        reach=1,
        better="less",
        details={
            "answer ms, p50": percentile(answers_ns, 0.5) / 1e6,
            "p99": percentile(answers_ns, 0.99) / 1e6,
            "append ms, p50": percentile(appends_ns, 0.5) / 1e6,
            "p99 of it": percentile(appends_ns, 0.99) / 1e6,
            "load": os.getloadavg()[0],
        },
    )


@benchmark("group/idle", "a group without clients: CPU of a node, and what its log grows", _HOW)
def idle(_budget: Budget) -> Iterator[Finding]:
    with Group() as group:
        time.sleep(10)
        owner, *standbys = group.owner, *group.standbys
        nodes = [owner, *standbys]
        began, cpu_s, log_bytes = time.monotonic(), [node.cpu_s() for node in nodes], group.log_bytes()
        time.sleep(_IDLE_S)
        seconds = time.monotonic() - began
        shares = [(node.cpu_s() - before) / seconds * 100 for node, before in zip(nodes, cpu_s, strict=True)]
        grown = (group.log_bytes() - log_bytes) / seconds
    load = {"load": os.getloadavg()[0]}
    for who, share in (("the owner", shares[0]), ("a standby", statistics.mean(shares[1:]))):
        yield Finding(
            benchmark="group",
            case=f"idle, CPU of {who}",
            value=share,
            unit="% of a core",
            reach=1,
            better="less",
            details=load,
        )
    yield Finding(
        benchmark="group",
        case="idle, what the log grows",
        value=grown / 1000,
        unit="KB/s",
        reach=1,
        better="less",
        details=load,
    )


def _fill(group: Group, count: int) -> None:
    address = group.owner.address
    with Admin(address) as admin:
        admin.create(_WAITING, fairness_key_header="tenant")
    plan = ProducerPlan(address=address, queue=_WAITING, batch=500, window_frames=4, message_count=count)
    with Load([plan]) as load:
        load.wait_for(Counter.PRODUCED, count, timeout_s=_FILL_S_MAX)
    group.wait_until_in_sync()


@benchmark("group/memory", "memory of a standby beside its owner's, with 1,000,000 messages waiting", _HOW)
def memory(budget: Budget) -> Iterator[Finding]:
    with Group() as group:
        _fill(group, budget.message_count)
        time.sleep(10)
        owner = group.owner.resident_bytes()
        standbys = [node.resident_bytes() for node in group.standbys]
    yield Finding(
        benchmark="group",
        case=f"memory, {budget.message_count:,} messages of 1 KB waiting: a standby / the owner",
        value=max(standbys) / owner,
        unit="",
        reach=0.4,
        better="less",
        details={
            "owner MB": owner / 1e6,
            "standbys MB": " and ".join(f"{each / 1e6:.0f}" for each in standbys),
            "load": os.getloadavg()[0],
        },
    )


def _half_load(group: Group, budget: Budget) -> Crowd:
    """What to have beside the faults. The rate is measured now, and the queue is made."""
    with Admin(group.owner.address) as admin:
        admin.create(QUEUE, fairness_key_header="tenant", dedup_window_ms=30_000)
    per_s = _lives(group, budget).per_s / 2
    group.wait_until_in_sync()
    return Crowd(addresses=group.addresses, queue=QUEUE, per_s=per_s)


def _silence_s(
    group: Group, callers: Callers, breaks: Callable[[], None], *, calm_s: float, look_s: float = 0
) -> float:
    """The longest time without an answer from this fault on, once all has been whole again for `calm_s`."""
    group.wait_until_in_sync()
    time.sleep(calm_s)
    since_ns = now_ns()
    breaks()
    time.sleep(look_s)
    callers.wait_for_answers(200)
    return callers.longest_gap_s(since_ns)


def _silences(
    case: str, found: list[float], reach: float, callers: Callers, crowd: Crowd, **more: object
) -> Finding:
    return Finding(
        benchmark="group",
        case=f"{case}, the longest silence of {len(found)}",
        value=max(found),
        unit="s",
        reach=reach,
        better="less",
        details={
            "p50 s": statistics.median(found),
            "the shortest": min(found),
            "msg/s beside": crowd.per_s,
            "of them acked": callers.acked_per_s,
            "load": os.getloadavg()[0],
            **more,
        },
    )


@benchmark(
    "group/kill",
    "the owner is killed with 1,000,000 messages waiting: how long until the next answer",
    f"{_HOW} {_CROWD}",
)
def kill(budget: Budget) -> Iterator[Finding]:
    with Group() as group:
        _fill(group, budget.message_count)
        crowd = _half_load(group, budget)
        found: list[float] = []

        def dies() -> None:
            owners.append(group.owner)
            owners[-1].stop(how=signal.SIGKILL)

        owners: list[Server] = []
        with Callers(crowd) as callers:
            for _ in range(_KILLS if budget.message_count > 500_000 else 3):
                found.append(_silence_s(group, callers, dies, calm_s=_SHORT_TERM_S))
                owners[-1].start()
                print(f"killed: {found[-1]:.2f} s", flush=True)
        case = f"owner killed, {budget.message_count:,} waiting"
        yield _silences(case, found, 6, callers, crowd)
        yield Finding(
            benchmark="group",
            case=f"{case}, p50 of {len(found)} silences",
            value=statistics.median(found),
            unit="s",
            reach=3,
            better="less",
        )


@benchmark("group/move", "a planned move, with 100,000 and 1,000,000 messages waiting", f"{_HOW} {_CROWD}")
def move(budget: Budget) -> Iterator[Finding]:
    for count, reach in ((budget.message_count // 10, 0.5), (budget.message_count, 2.0)):
        with Group() as group:
            _fill(group, count)
            crowd = _half_load(group, budget)
            with Callers(crowd) as callers:
                moves = partial(_moves, group)
                found = []
                for _ in range(_MOVES):
                    found.append(_silence_s(group, callers, moves, calm_s=_CALM_S, look_s=3))
                    print(f"moved: {found[-1]:.2f} s", flush=True)
                yield _silences(f"planned move, {count:,} waiting", found, reach, callers, crowd)


def _moves(group: Group) -> None:
    with grpc.insecure_channel(group.owner.address) as channel:
        admin_pb2_grpc.FilaAdminStub(channel).MoveOwner(cluster_pb2.MoveOwnerRequest(), timeout=30)


@benchmark("group/broker", "a broker of the log is killed or stopped", f"{_HOW} {_CROWD}")
def broker(budget: Budget) -> Iterator[Finding]:
    with Group() as group:
        crowd = _half_load(group, budget)
        term = _term(group)
        with Callers(crowd) as callers:
            for is_leader in (True, False):
                for how in (signal.SIGKILL, signal.SIGSTOP):
                    found = [_broken(group, callers, how, is_leader=is_leader) for _ in range(_ROUNDS)]
                    now, takeovers = _term(group), 0
                    if now != term:
                        term, takeovers = now, 1
                    who = "leading broker" if is_leader else "following broker"
                    word = "killed" if how == signal.SIGKILL else f"stopped for {_LOOK_S} s"
                    yield _silences(
                        f"{who} of the log {word}",
                        found,
                        6,
                        callers,
                        crowd,
                        takeover="NO" if not takeovers else "YES",
                    )


def _broken(group: Group, callers: Callers, how: signal.Signals, *, is_leader: bool) -> float:
    group.wait_for_brokers()
    leader = group.leader()
    number = leader if is_leader else leader % 3 + 1
    found = _silence_s(
        group, callers, partial(group.signal_broker, number, how), calm_s=_CALM_S, look_s=_LOOK_S
    )
    if how == signal.SIGKILL:
        group.start_broker(number)
    else:
        group.signal_broker(number, signal.SIGCONT)
    print(f"broken: {found:.2f} s", flush=True)
    return found


def _term(group: Group) -> int:
    with grpc.insecure_channel(group.owner.address) as channel:
        request = cluster_pb2.GetClusterStatusRequest()
        return int(admin_pb2_grpc.FilaAdminStub(channel).GetClusterStatus(request, timeout=30).term)
