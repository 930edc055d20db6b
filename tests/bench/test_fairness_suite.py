"""The questions tell a broker that is fair from one that is not, whatever its adapter."""

from collections import deque
from dataclasses import replace

import pytest
from fairness_suite.adapter import Ability, Message, Taken, decoded, encoded
from fairness_suite.properties import QUESTIONS, QUICK


class Queue:
    """What both toys share: nothing is lost, and nothing comes twice."""

    abilities: frozenset[Ability] = frozenset()
    order: deque[str]
    waiting: dict[str, deque[Message]]

    def open(self, tenants):
        self.waiting = {name: deque() for name in tenants}
        self.order = deque()

    def send(self, messages):
        for message in messages:
            self.waiting[message.tenant].append(message)
            self.order.append(message.tenant)

    def take(self, most, wait_s):
        taken: list[Taken] = []
        while len(taken) < most and any(self.waiting.values()):
            taken.append(Taken(self.waiting[self.next_tenant()].popleft(), None))
        return taken

    def next_tenant(self):
        raise NotImplementedError

    def settle(self, taken):
        pass

    def give_back(self, taken, after_s):
        self.send([each.message for each in taken])

    def reconnect(self, address):
        pass

    def close(self):
        pass


class InOrder(Queue):
    """First in, first out."""

    def next_tenant(self):
        return self.order.popleft()


class InTurn(Queue):
    """Every tenant in turn, cost or not."""

    def next_tenant(self):
        while True:
            tenant = self.order.popleft()
            self.order.append(tenant)
            if self.waiting[tenant]:
                return tenant

    def open(self, tenants):
        super().open(tenants)
        self.order = deque(tenants)

    def send(self, messages):
        for message in messages:
            self.waiting[message.tenant].append(message)


def answers(adapter, question):
    return QUESTIONS[question](adapter, QUICK, lambda: "")


@pytest.mark.parametrize("question", ["share", "starvation", "burst", "churn", "restart"])
def test_first_in_first_out_misses_what_a_turn_each_keeps(question):
    assert any(found.passed is False for found in answers(InOrder(), question))
    assert not any(found.passed is False for found in answers(InTurn(), question))


def test_a_turn_each_is_not_fair_where_messages_cost_differently():
    (found,) = answers(InTurn(), "cost")

    assert found.passed is False
    assert found.value == pytest.approx(82, abs=1)


def test_a_turn_each_is_not_fair_behind_a_limit_that_is_shared():
    (found,) = QUESTIONS["shared-limit"](InTurn(), replace(QUICK, rate_seconds=0.05), lambda: "")

    assert found.passed is False


def test_weights_are_asked_for_only_where_a_broker_knows_them():
    class Weighing(InTurn):
        abilities = frozenset({Ability.WEIGHTS})

    assert len(answers(InTurn(), "share")) == 1
    assert [found.passed for found in answers(Weighing(), "share")] == [True, False]


def test_a_broker_that_loses_messages_at_its_restart_is_found():
    class Forgetful(InTurn):
        def reconnect(self, address):
            self.waiting["t0"].clear()

    lost = next(found for found in answers(Forgetful(), "restart") if "lost" in found.question)

    assert lost.value > 0
    assert lost.passed is False


def test_a_broker_that_puts_a_failed_message_behind_the_others_keeps_no_order():
    class Blocking(InTurn):
        """One of each tenant at a time, and what comes back stands where it stood."""

        def take(self, most, wait_s):
            firsts = [self.waiting[name].popleft() for name in self.waiting if self.waiting[name]]
            return [Taken(message, None) for message in firsts]

        def give_back(self, taken, after_s):
            for each in taken:
                self.waiting[each.message.tenant].appendleft(each.message)

    (kept,) = answers(Blocking(), "order")
    (lost,) = answers(InTurn(), "order")

    assert (kept.value, kept.passed) == (0, True)
    assert lost.passed is False


def test_a_payload_says_which_message_it_is():
    message = Message("acme", 7, cost=3)

    assert decoded(encoded(message)) == message
