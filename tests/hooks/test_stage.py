"""The stage between edge and mailbox: who is asked, who falls back, who waits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from fila_server import errors
from fila_server.hooks.on_failure import DeadLetter, Retry
from fila_server.hooks.packed import Routing
from fila_server.hooks.sandbox import HookFailure
from fila_server.hooks.stage import FALLBACK_HOLD, BreakerSettings, HookStage
from tests.hooks.conftest import FakeFrame, ManualClock, SteppingClock, compile_on_enqueue, failed, route_many

BY_TENANT = "function on_enqueue(msg) return { fairness_key = msg.headers.tenant, weight = 2 } end"
BROKEN_ON_DEMAND = """
function on_enqueue(msg)
  if fila.get("broken") == "yes" or msg.headers.poison then error("broken") end
  return { fairness_key = "fine" }
end"""


def frame(*tenants: str, queue: bytes = b"orders") -> FakeFrame:
    return FakeFrame([(queue, [(b"tenant", tenant.encode())]) for tenant in tenants])


def poison(count: int = 1) -> FakeFrame:
    return FakeFrame([(b"orders", [(b"poison", b"1")])] * count)


async def test_a_frame_of_a_queue_without_a_script_is_left_alone(stage):
    stage.set_queue("other", BY_TENANT)
    messages = frame("acme")

    await stage.route(messages)

    assert messages.routings == {}


async def test_every_message_of_a_frame_gets_its_own_routing(stage):
    stage.set_queue("orders", BY_TENANT)
    messages = frame(*(f"t{i}" for i in range(1000)))

    await stage.route(messages)

    assert messages.routings == {i: Routing(b"t%d" % i, 2) for i in range(1000)}


async def test_messages_of_different_queues_in_one_frame_meet_their_own_scripts(stage):
    stage.set_queue("a", "function on_enqueue(msg) return { fairness_key = 'A' } end")
    stage.set_queue("b", "function on_enqueue(msg) return { fairness_key = msg.queue } end")
    messages = FakeFrame([(b"a", []), (b"plain", []), (b"b", []), (b"b", []), (b"a", [])])

    await stage.route(messages)

    keys = {i: routing.fairness_key for i, routing in messages.routings.items()}
    assert keys == {0: b"A", 2: b"b", 3: b"b", 4: b"A"}


async def test_a_message_whose_script_fails_keeps_the_declarative_policy_and_its_neighbours_do_not_notice(
    stage,
):
    stage.set_queue("orders", BROKEN_ON_DEMAND)
    messages = FakeFrame([(b"orders", []), (b"orders", [(b"poison", b"1")]), (b"orders", [])])

    await stage.route(messages)

    assert messages.routings == {0: Routing(b"fine"), 2: Routing(b"fine")}
    (status,) = stage.status("orders")
    assert (status.counters.runs, status.counters.errors, status.counters.fallbacks) == (3, 1, 1)
    assert "broken" in status.counters.last_error


async def test_a_key_that_the_core_cannot_take_costs_its_neighbours_no_second_call(stage):
    stage.set_queue(
        "orders",
        "n = 0 function on_enqueue(msg) n = n + 1 return { fairness_key = msg.headers.tenant, weight = n } end",
    )
    messages = frame("ok", "x" * 257, "ok", "ok", "x" * 257, "x" * 257, "ok", "x" * 257)

    await stage.route(messages)

    assert messages.routings == {i: Routing(b"ok", i + 1) for i in (0, 2, 3, 6)}
    (status,) = stage.status("orders")
    assert (status.breaker, status.counters.errors, status.counters.fallbacks) == ("closed", 4, 4)


async def test_three_keys_in_a_row_that_the_core_cannot_take_open_the_circuit(stage):
    stage.set_queue("orders", BY_TENANT)
    messages = frame("ok", *["x" * 257] * 3, "ok")

    await stage.route(messages)

    assert set(messages.routings) == {0}
    (status,) = stage.status("orders")
    assert (status.breaker, status.counters.errors, status.counters.fallbacks) == ("open", 3, 4)


async def test_a_queue_is_scripted_until_its_script_is_taken_away(stage):
    assert not stage.scripted
    stage.set_queue("orders", BY_TENANT)
    assert stage.scripted
    stage.set_queue("orders")
    assert not stage.scripted
    stage.set_queue("orders", BY_TENANT)
    stage.remove_queue("orders")
    assert not stage.scripted
    assert stage.status("orders") == []


async def test_three_failures_in_a_row_open_the_circuit_and_a_success_after_the_cooldown_closes_it(
    stage, clock
):
    stage.set_queue("orders", BROKEN_ON_DEMAND)

    await stage.route(poison(5))

    (status,) = stage.status("orders")
    assert (status.breaker, status.counters.runs, status.counters.fallbacks) == ("open", 3, 5)
    clock.advance(ms=9_999)
    await stage.route(frame("acme"))
    assert stage.status("orders")[0].counters.runs == 3
    clock.advance(ms=1)
    assert stage.status("orders")[0].breaker == "half_open"
    await stage.route(frame("acme"))
    (status,) = stage.status("orders")
    assert (status.breaker, status.counters.runs) == ("closed", 4)


async def test_a_failure_after_the_cooldown_opens_the_circuit_again_at_once(stage, clock):
    stage.set_queue("orders", BROKEN_ON_DEMAND)
    await stage.route(poison(3))
    clock.advance(ms=10_000)

    await stage.route(poison(3))

    (status,) = stage.status("orders")
    assert (status.breaker, status.counters.runs) == ("open", 4)


async def test_two_failures_and_a_success_leave_the_circuit_closed(stage):
    stage.set_queue("orders", BROKEN_ON_DEMAND)
    await stage.route(poison(2))
    await stage.route(frame("acme"))
    await stage.route(poison(2))
    assert stage.status("orders")[0].breaker == "closed"


async def test_a_half_open_circuit_lets_one_call_through_not_a_batch(stage, clock):
    stage.set_queue("orders", BROKEN_ON_DEMAND)
    await stage.route(poison(3))
    clock.advance(ms=10_000)
    messages = FakeFrame([(b"orders", [])] * 10)

    await stage.route(messages)

    assert len(messages.routings) == 10
    assert stage.status("orders")[0].counters.runs == 13


async def test_an_unchanged_script_keeps_its_circuit_and_a_changed_one_starts_afresh(stage):
    stage.set_queue("orders", BROKEN_ON_DEMAND)
    await stage.route(poison(3))

    stage.set_queue("orders", BROKEN_ON_DEMAND)
    assert stage.status("orders")[0].breaker == "open"

    stage.set_queue("orders", BROKEN_ON_DEMAND + " -- repaired")
    assert stage.status("orders")[0].breaker == "closed"


async def test_a_weight_out_of_bounds_is_clamped_and_counted(stage):
    stage.set_queue("orders", "function on_enqueue(msg) return { weight = tonumber(msg.headers.tenant) } end")
    messages = frame("0", "5", "1000000")

    await stage.route(messages)

    assert [messages.routings[i].weight for i in range(3)] == [1, 5, 1000]
    assert stage.status("orders")[0].counters.clamped_weights == 2


async def test_the_duration_histogram_holds_every_call(stage):
    stage.set_queue("orders", BY_TENANT)
    await stage.route(frame(*"abcdefghij"))
    counters = stage.status("orders")[0].counters
    assert sum(counters.duration_counts) == counters.runs == 10


# --- letting others run -----------------------------------------------------------------------


def test_a_crossing_ends_when_its_calls_have_taken_long():
    hook = compile_on_enqueue(
        "function on_enqueue(msg) for i = 1, 450 do local _ = i end return {} end",
        now_ns=SteppingClock(step_ns=1_000_000),
    )
    routings, failure = route_many(hook, [([], 0)] * 10)

    assert failure is None
    assert 1 <= len(routings) < 5


async def test_what_a_crossing_left_goes_with_the_next():
    stage = HookStage(now_ns=SteppingClock(step_ns=1_000_000), seed=1)
    stage.set_queue(
        "orders",
        "function on_enqueue(msg) for i = 1, 450 do local _ = i end return { fairness_key = msg.headers.tenant } end",
    )
    messages = frame(*(f"t{i}" for i in range(100)))

    await stage.route(messages)

    assert {i: routing.fairness_key for i, routing in messages.routings.items()} == {
        i: b"t%d" % i for i in range(100)
    }


# --- hold -------------------------------------------------------------------------------------


@dataclass
class TurnedClock:
    """A sleep that ends at once and turns the clock by what was slept."""

    clock: ManualClock

    async def __call__(self, seconds: float) -> None:
        self.clock.ns += int(seconds * 1e9)
        await asyncio.sleep(0)


async def never(_seconds: float) -> None:
    await asyncio.Event().wait()


async def test_a_held_message_is_routed_when_the_circuit_closes(clock):
    stage = HookStage(now_ns=clock, seed=1, sleep=TurnedClock(clock))
    stage.set_queue("orders", BROKEN_ON_DEMAND, fallback=FALLBACK_HOLD)
    stage.set_config("broken", "yes")
    messages = frame("a", "b", "c", "d", "e")
    routed = asyncio.ensure_future(stage.route(messages))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not routed.done()
    assert messages.routings == {}
    assert stage.held_count == 5

    stage.set_config("broken", "")
    await asyncio.wait_for(routed, 5)

    assert len(messages.routings) == 5
    assert stage.held_count == 0
    assert stage.status("orders")[0].counters.held == 5
    assert stage.status("orders")[0].counters.fallbacks == 0


async def test_a_repaired_script_lets_held_messages_go_at_once(clock):
    stage = HookStage(now_ns=clock, seed=1, sleep=never)
    stage.set_queue("orders", "function on_enqueue(msg) error('x') end", fallback=FALLBACK_HOLD)
    messages = frame("acme")
    routed = asyncio.ensure_future(stage.route(messages))
    await asyncio.sleep(0)

    stage.set_queue("orders", BY_TENANT, fallback=FALLBACK_HOLD)
    await asyncio.wait_for(routed, 5)

    assert messages.routings == {0: Routing(b"acme", 2)}


async def test_held_messages_of_a_queue_that_is_removed_go_on_to_the_core(clock):
    stage = HookStage(now_ns=clock, seed=1, sleep=never)
    stage.set_queue("orders", "function on_enqueue(msg) error('x') end", fallback=FALLBACK_HOLD)
    routed = asyncio.ensure_future(stage.route(frame("acme")))
    await asyncio.sleep(0)

    stage.remove_queue("orders")
    await asyncio.wait_for(routed, 5)

    assert stage.held_count == 0


async def test_the_waiting_room_is_bounded(clock):
    stage = HookStage(now_ns=clock, seed=1, held_messages_max=2, sleep=never)
    stage.set_queue("orders", "function on_enqueue(msg) error('x') end", fallback=FALLBACK_HOLD)
    waiting = asyncio.ensure_future(stage.route(frame("a", "b")))
    await asyncio.sleep(0)

    with pytest.raises(errors.Overloaded, match="hook_fallback"):
        await stage.route(frame("c"))

    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert stage.held_count == 0


async def test_the_waiting_room_is_bounded_in_bytes_too(clock, monkeypatch):
    monkeypatch.setattr("fila_server.hooks.stage.HELD_BYTES_MAX", 150)
    stage = HookStage(now_ns=clock, seed=1, sleep=never)
    stage.set_queue("orders", "function on_enqueue(msg) error('x') end", fallback=FALLBACK_HOLD)
    waiting = asyncio.ensure_future(stage.route(frame("a")))
    await asyncio.sleep(0)

    with pytest.raises(errors.HooksFull, match="100 bytes"):
        await stage.route(frame("b"))

    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_a_message_that_is_refused_already_is_not_asked_about(stage):
    stage.set_queue("orders", BROKEN_ON_DEMAND, fallback=FALLBACK_HOLD)
    messages = FakeFrame([(b"orders", []), (b"orders", [(b"poison", b"1")]), (b"orders", [])], refused={1})

    await stage.route(messages)

    assert messages.routings == {0: Routing(b"fine"), 2: Routing(b"fine")}
    assert stage.status("orders")[0].counters.runs == 2


async def test_a_stage_that_closes_lets_nobody_wait(clock):
    stage = HookStage(now_ns=clock, seed=1, sleep=never)
    stage.set_queue("orders", "function on_enqueue(msg) error('x') end", fallback=FALLBACK_HOLD)
    waiting = asyncio.ensure_future(stage.route(frame("a")))
    await asyncio.sleep(0)

    stage.close()

    with pytest.raises(errors.Unavailable):
        await asyncio.wait_for(waiting, 5)
    with pytest.raises(errors.Unavailable):
        await stage.route(frame("b"))
    assert stage.held_count == 0


async def test_try_route_says_which_messages_have_to_wait(stage):
    stage.set_queue("orders", BROKEN_ON_DEMAND, fallback=FALLBACK_HOLD)
    messages = FakeFrame([(b"orders", []), (b"orders", [(b"poison", b"1")]), (b"orders", [])])
    assert await stage.try_route(messages) == [1]


# --- config -----------------------------------------------------------------------------------

FROM_CONFIG = "function on_enqueue(msg) return { fairness_key = fila.get('tier') or 'none' } end"


async def key_of(stage: HookStage, queue: bytes = b"orders") -> bytes | None:
    messages = frame("acme", queue=queue)
    await stage.route(messages)
    return messages.routings[0].fairness_key


async def test_scripts_see_the_config_as_of_the_call(stage):
    stage.set_queue("orders", FROM_CONFIG)
    stage.set_queue("others", FROM_CONFIG)
    assert await key_of(stage) == b"none"

    stage.set_config("tier", "gold")
    assert await key_of(stage) == await key_of(stage, b"others") == b"gold"
    stage.set_config("tier", "silver")
    assert await key_of(stage) == b"silver"
    stage.set_config("tier", "")
    assert await key_of(stage) == b"none"


async def test_the_longest_config_value_can_be_read_by_a_script_that_uses_much_memory(stage):
    stage.set_config("tier", "v" * 65536)
    stage.set_queue(
        "orders",
        """
        function on_enqueue(msg)
          local parts = {}
          for i = 1, 100 do parts[i] = ('x'):rep(10000) .. i end
          return { fairness_key = tostring(#fila.get('tier')) }
        end""",
    )
    for _ in range(20):
        messages = frame("acme")
        await stage.route(messages)
        assert messages.routings.get(0) in {Routing(b"65536"), None}


def test_a_config_value_longer_than_the_limit_is_refused(stage):
    with pytest.raises(errors.LimitExceeded, match="65536"):
        stage.set_config("tier", "v" * 65537)


# --- compile errors ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scripts", "field", "text"),
    [
        (("function on_enqueue(msg)\n  return {{\nend", ""), "on_enqueue_script", "on_enqueue:3:"),
        (("local x = 1", ""), "on_enqueue_script", "does not define function on_enqueue"),
        (("on_enqueue = 1", ""), "on_enqueue_script", "does not define function on_enqueue"),
        (("error('at load')", ""), "on_enqueue_script", "at load"),
        (("undefined.x = 1", ""), "on_enqueue_script", "on_enqueue:1:"),
        (("", "return return"), "on_failure_script", "on_failure:1:"),
        ((BY_TENANT, BY_TENANT), "on_failure_script", "does not define function on_failure"),
        (("local x = " + "(" * 10000, ""), "on_enqueue_script", "nests too deeply"),
        (("--" + "x" * 65536, ""), "on_enqueue_script", "65536"),
    ],
)
def test_a_script_that_cannot_work_is_refused_by_field_with_the_line(stage, scripts, field, text):
    with pytest.raises(errors.Invalid) as refusal:
        stage.check_scripts(*scripts)
    assert refusal.value.field == f"config.{field}"
    assert text in refusal.value.message


def test_scripts_that_work_pass_the_check(stage):
    stage.check_scripts("", "")
    stage.check_scripts(BY_TENANT, "function on_failure(msg) return { action = 'retry' } end")


async def test_a_stored_script_that_no_longer_compiles_falls_back_instead_of_stopping_anything(stage):
    stage.set_queue("orders", "return return")
    messages = frame("acme")
    await stage.route(messages)
    assert messages.routings == {}
    assert stage.status("orders")[0].counters.errors == 1


# --- failures ---------------------------------------------------------------------------------


def test_a_queue_without_on_failure_leaves_the_decision_to_the_policy(stage):
    stage.set_queue("orders", BY_TENANT)
    assert stage.decide_failure(failed()) is None


def test_the_script_decides_what_becomes_of_a_failed_message(stage):
    stage.set_queue(
        "orders",
        "",
        """
        function on_failure(msg)
          if msg.attempts >= 3 then return { action = "dlq" } end
          return { action = "retry", delay_ms = msg.attempts * 100 }
        end""",
    )
    assert stage.decide_failure(failed(attempts=2)) == Retry(200)
    assert stage.decide_failure(failed(attempts=3)) == DeadLetter()
    assert not stage.scripted


def test_failures_of_on_failure_open_its_own_circuit(stage, clock):
    stage.set_queue("orders", BY_TENANT, "function on_failure(msg) error('no idea') end")
    kinds = []
    for _ in range(4):
        decision = stage.decide_failure(failed())
        assert isinstance(decision, HookFailure)
        kinds.append(decision.kind)
    assert kinds == ["error", "error", "error", "circuit_open"]
    on_enqueue, on_failure = stage.status("orders")
    assert (on_enqueue.breaker, on_failure.breaker) == ("closed", "open")
    assert on_failure.counters.fallbacks == 4


async def test_breaker_settings_are_followed(clock):
    stage = HookStage(now_ns=clock, seed=1, breaker=BreakerSettings(threshold=1, cooldown_ms=5))
    stage.set_queue("orders", BROKEN_ON_DEMAND)
    await stage.route(poison(1))
    assert stage.status("orders")[0].breaker == "open"
    clock.advance(ms=5)
    assert stage.status("orders")[0].breaker == "half_open"
