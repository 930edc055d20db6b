"""A whole core, with its threads, that owns by a log over Kafka's protocol: three brokers that break as told."""

from __future__ import annotations

import select
import time

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.core.runtime.scheduler_thread import Engine
from fila_server.core.runtime.store_copy import OWNS, StoreCopy
from tests.core.driven_engine import BALLAST_BYTES, WAL_BYTES_MAX, empty_directory
from tests.core.driven_group import CLUSTER
from tests.log.running_brokers import WAIT_MS

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:confluent_kafka")]

PRODUCE, TOO_LARGE = 0, 10
SETTINGS: dict[str, int | str] = {
    "storage.min_free_bytes": 0,
    "storage.ballast_bytes": BALLAST_BYTES,
    "storage.wal_bytes_max": WAL_BYTES_MAX,
}


class Running:
    """A node: it follows, and serves once it owns."""

    def __init__(self, log, number, directory=None):
        self.log, self.number = log, number
        self.directory = directory or empty_directory()
        self.copy = StoreCopy(str(self.directory), SETTINGS, log, node=number, cluster=CLUSTER)
        self.engine = None
        self.tokens = 0
        self.answers = {}

    def read_to_the_end(self):
        while self.copy.follow(wait_ms=300):
            pass

    def own(self):
        self.read_to_the_end()
        assert self.copy.bid(self.number, time.time_ns() // 1_000_000)
        end = time.monotonic() + WAIT_MS / 1000
        while self.copy.state != OWNS:
            assert time.monotonic() < end, "its takeover never came"
            self.copy.follow(wait_ms=100)
        self.engine = Engine(
            str(self.directory),
            SETTINGS,
            mono_ns=time.monotonic_ns(),
            wall_ns=time.time_ns(),
            seed=7,
            copy=self.copy,
        )
        self.engine.start()
        while not self.copy.serves:
            assert time.monotonic() < end, "the first record of its term is not confirmed"
            time.sleep(0.001)
        return self

    def ask(self, kind, request):
        self.tokens += 1
        self.engine.submit(kind, self.tokens, request.SerializeToString())
        return self.tokens

    def hear(self, token):
        """The answer's bytes; AssertionError when none comes."""
        end = time.monotonic() + WAIT_MS / 1000
        while token not in self.answers:
            assert time.monotonic() < end, f"call {token} is not answered"
            select.select([self.engine.wake_fd], [], [], 0.1)
            for owner, kind, status, payload in self.engine.drain():
                if kind == commands.REPLY:
                    self.answers[owner] = (status, payload)
        status, payload = self.answers[token]
        assert status == 0, payload
        return payload

    def create(self):
        request = admin.CreateQueueRequest(name="q", config=admin.QueueConfig())
        self.hear(self.ask(commands.CREATE_QUEUE, request))

    def enqueue(self, payload):
        return self.ask(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=payload))

    def payloads(self):
        answer = self.hear(self.ask(commands.LEASE, service.LeaseRequest(queue="q", max_messages=100)))
        return [message.payload for message in service.LeaseResponse.FromString(answer).messages]

    def end(self):
        if self.engine is not None:
            self.engine.stop()
        self.copy.close()
        self.log.close()


@pytest.fixture
def node(opened):
    """Nodes by their topic; they end with the test."""
    running = []

    def start(topic, number=1):
        running.append(Running(opened(topic), number))
        return running[-1]

    yield start
    for each in running:
        each.end()


def test_an_owner_answers_over_the_log_and_another_node_makes_the_same_store_of_it(node):
    owner = node("serves").own()
    owner.create()
    tokens = [owner.enqueue(b"%d" % number) for number in range(200)]
    for token in tokens:
        owner.hear(token)

    successor = node("serves", 2).own()
    assert successor.payloads() == [b"%d" % number for number in range(100)]


def test_an_owner_that_waits_for_the_log_runs_no_pass_until_something_comes(brokers, node):
    owner = node("rests").own()
    owner.create()
    brokers.do("rtt 1 400")
    before = owner.engine.counters()["passes"]
    owner.hear(owner.enqueue(b"waits"))
    passes = owner.engine.counters()["passes"] - before
    brokers.do("rtt 1 0")
    assert passes < 50


def test_an_owner_that_was_deposed_answers_nothing_more(node):
    owner = node("succeeds").own()
    owner.create()
    owner.hear(owner.enqueue(b"answered"))
    successor = node("succeeds", 2).own()
    late = owner.enqueue(b"late")
    assert owner.engine.term_over.wait(WAIT_MS / 1000)
    assert all(token != late for token, _, _, _ in owner.engine.drain())
    assert successor.payloads() == [b"answered"]


def test_a_copy_at_the_logs_end_is_answered_when_it_looks_again(node):
    """Brokers say nothing of a log in which nothing happens."""
    owner = node("looks").own()
    owner.create()
    owner.engine.stop()
    standby = node("looks", 2)
    while not standby.copy.answers[1]:
        standby.copy.follow(wait_ms=100)
    before = standby.copy.answers[0]
    standby.copy.follow(wait_ms=100)
    assert standby.copy.answers[0] == before

    end = time.monotonic() + WAIT_MS / 1000
    standby.copy.look_again()
    while standby.copy.answers[0] == before or not standby.copy.answers[1]:
        assert time.monotonic() < end, "the log does not answer"
        standby.copy.follow(wait_ms=100)


def test_an_owner_goes_on_when_the_leader_moves(brokers, node):
    owner = node("follows-leader").own()
    owner.create()
    for number in range(6):
        if number in (2, 4):
            brokers.do(f"leader follows-leader {1 + number // 2}")
        owner.hear(owner.enqueue(b"%d" % number))
    assert owner.payloads() == [b"%d" % number for number in range(6)]


def test_what_was_asked_while_all_brokers_were_away_is_answered_when_they_are_back(brokers, node):
    owner = node("away").own()
    owner.create()
    for number in (1, 2, 3):
        brokers.do(f"down {number}")
    token = owner.enqueue(b"asked")
    for number in (1, 2, 3):
        brokers.do(f"up {number}")
    owner.hear(token)
    assert owner.payloads() == [b"asked"]


def test_a_failed_record_ends_the_term_without_an_answer(brokers, node):
    owner = node("fails").own()
    owner.create()
    brokers.do(f"error {PRODUCE} {TOO_LARGE} 1")
    token = owner.enqueue(b"fails")
    assert owner.engine.term_over.wait(WAIT_MS / 1000)
    assert all(other != token for other, _, _, _ in owner.engine.drain())
