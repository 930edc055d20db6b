"""Scripts that try to take all memory, at once or call by call. Each sentence is one attempt."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fila_server.hooks.packed import Routing
from fila_server.hooks.sandbox import HookFailure, new_runtime_config
from tests.hooks.conftest import SteppingClock, attack, compile_on_enqueue, cut_off, route, route_many

LARGEST = [(b"%04d" % i + b"k" * 4092, b"v" * 4096) for i in range(64)]
"""As many and as long headers as a message may have."""


def around_the_limit(first: int, end: int) -> list[Any]:
    """Every five KiB, of which `make soak` tries nine in ten."""
    return [
        pytest.param(kib, marks=[] if number % 10 == 0 else [pytest.mark.soak])
        for number, kib in enumerate(range(first, end, 5))
    ]


def test_a_string_doubled_for_ever_is_cut_off():
    assert cut_off("local s = 'x' while true do s = s .. s end").kind == "memory"


def test_running_out_of_memory_cannot_be_caught():
    assert (
        cut_off("while true do pcall(function() local s = 'x' while true do s = s .. s end end) end").kind
        == "memory"
    )


def test_a_table_that_grows_for_ever_is_cut_off():
    assert cut_off("local t = {} while true do t[#t + 1] = { 1, 2, 3 } end").kind in {"memory", "time"}


def test_a_repetition_of_a_gigabyte_is_refused():
    assert "string.rep" in cut_off("local _ = string.rep('x', 1 << 30)").text


def test_a_repetition_called_as_a_method_is_refused_too():
    assert "string.rep" in cut_off("local _ = ('x'):rep(1 << 30)").text


def test_a_repetition_of_nothing_is_bounded_too():
    assert "string.rep" in cut_off("local _ = (''):rep(1 << 50)").text


def test_a_repetition_with_a_separator_is_bounded_too():
    assert "string.rep" in cut_off("local _ = ('x'):rep(1 << 20, ('y'):rep(1000))").text


def test_a_width_of_99999_in_format_is_refused():
    assert "invalid conversion" in cut_off("local _ = string.format('%99999d', 1)").text


def test_format_cannot_make_an_endless_string():
    assert cut_off("local s = 'x' while true do s = string.format('%s%s', s, s) end").kind == "memory"


def test_concat_cannot_make_an_endless_string():
    body = "local s, t = ('x'):rep(100000), {} for i = 1, 1000 do t[i] = s end local _ = table.concat(t)"
    assert cut_off(body).kind == "memory"


def test_gsub_cannot_make_an_endless_string():
    body = "local s = ('x'):rep(1000) local _ = s:gsub('x', ('y'):rep(10000))"
    assert cut_off(body).kind == "memory"


def test_pack_cannot_make_an_endless_string():
    assert cut_off("local _ = string.pack('c1000000000', 'x')").kind == "memory"


def test_endless_recursion_is_cut_off():
    assert cut_off("local function deeper(n) return 1 + deeper(n + 1) end deeper(1)")


def test_endless_recursion_through_c_is_cut_off():
    assert cut_off("local function deeper() return (('x'):gsub('x', deeper)) end deeper()")


def test_endless_recursion_through_pcall_is_cut_off():
    assert cut_off("local function deeper() pcall(deeper) return deeper() end deeper()")


def test_errors_at_the_end_of_the_c_stack_count_even_if_caught():
    # Down there the count hook itself cannot be called. Descending through metamethods, not
    # through pcall, lands every lost hook in the same place.
    body = """
      local function descend(n)
        if n == 0 then while true do end end
        local below = setmetatable({}, { __index = function() return descend(n - 1) end })
        return below.x
      end
      while true do pcall(descend, 250) end"""
    assert cut_off(body).kind == "time"
    assert cut_off(body, now_ns=time.monotonic_ns).kind == "time"


def test_endless_recursion_through_sort_is_cut_off():
    assert cut_off("local function deeper() table.sort({ 2, 1 }, deeper) end deeper()")


def test_a_script_that_keeps_too_much_fails_and_starts_afresh():
    hook = compile_on_enqueue("""
      kept = {}
      function on_enqueue(msg)
        kept[#kept + 1] = (msg.headers.fill):rep(16)
        return { fairness_key = tostring(#kept) }
      end""")
    counts = []
    for i in range(80):
        answer = route(hook, [(b"fill", b"%04d" % i * 1000)])
        counts.append(int(answer.fairness_key or 0) if isinstance(answer, Routing) else 0)

    assert counts[:10] == list(range(1, 11))
    assert 10 < max(counts) < 30
    after_the_failure = counts[counts.index(0) :]
    assert 1 in after_the_failure


def test_a_script_cannot_fill_the_memory_that_the_next_message_needs():
    hook = compile_on_enqueue("""
      local kept, size = {}, 65536
      function on_enqueue(msg)
        local function grab(bytes) kept[#kept + 1] = ('x'):rep(bytes - 60) .. #kept end
        if msg.headers.attack then
          for i = 1, 100000 do grab(1024) end
        end
        return { fairness_key = 'fine' }
      end""")
    messages = [[(b"name-%d" % i, b"v" * size) for i in range(64)] for size in (10, 100, 1000, 2000, 4000)]
    for message in messages * 2:
        assert isinstance(route(hook, [(b"attack", b"1")]), HookFailure)
        # Were there no room for this one, Lua would abort the whole process.
        route(hook, message)
    assert isinstance(route(hook, messages[-1]), Routing)


def test_a_script_that_hoards_just_below_the_limit_is_reset_before_the_next_message_does_not_fit():
    hook = compile_on_enqueue("""
      local kept = {}
      function on_enqueue(msg)
        for i = 1, tonumber(msg.headers.take or 0) do kept[#kept + 1] = ('x'):rep(1000) .. #kept end
        return { weight = #kept }
      end""")
    for _ in range(3):
        taken = 0
        while taken < 1300:
            taken += 50
            if isinstance(route(hook, [(b"take", b"50")]), HookFailure):
                break
            # Were there no room for this one, Lua would abort the whole process.
            route(hook, [(b"%d" % i, b"v" * 1000) for i in range(64)])
        assert taken > 500


def test_a_config_value_never_meets_the_memory_limit_halfway():
    config = new_runtime_config()
    config.replace({b"big%d" % i: b"v" * 65536 for i in range(50)})
    hook = compile_on_enqueue(
        """
        function on_enqueue(msg)
          local kept, piece = {}, ('x'):rep(8000)
          while true do
            kept[#kept + 1] = piece .. #kept
            local _ = fila.get('big' .. #kept % 50)
          end
        end""",
        config=config,
    )
    # A value that did not fit would make Lua jump over Python's frames, which crashes or hangs.
    for _ in range(3):
        answer = route(hook)
        assert isinstance(answer, HookFailure)
        assert answer.kind == "memory"


def test_most_of_a_mebibyte_may_be_used():
    outcome = attack("local parts = {} for i = 1, 9 do parts[i] = ('x'):rep(100000) .. i end")
    assert outcome.failure is None


def test_two_mebibytes_may_not_be_used():
    failure = cut_off("local parts = {} for i = 1, 20 do parts[i] = ('x'):rep(100000) .. i end")
    assert failure.kind == "memory"


def test_the_largest_message_does_not_count_against_the_script():
    hook = compile_on_enqueue("""
      function on_enqueue(msg)
        local parts = {}
        for i = 1, 9 do parts[i] = ('x'):rep(100000) .. i end
        return { fairness_key = 'fine' }
      end""")
    assert isinstance(route(hook, LARGEST), Routing)


def test_the_largest_message_leaves_the_next_one_no_more_memory_than_usual():
    hook = compile_on_enqueue("""
      function on_enqueue(msg)
        local parts = {}
        if msg.headers.attack then for i = 1, 17 do parts[i] = ('x'):rep(100000) .. i end end
        return {}
      end""")
    assert isinstance(route(hook, LARGEST), Routing)
    answer = route(hook, [(b"attack", b"1")])
    assert isinstance(answer, HookFailure)
    assert answer.kind == "memory"


def test_a_queue_does_not_go_on_holding_its_largest_message():
    hook = compile_on_enqueue("function on_enqueue(msg) return {} end")

    assert route(hook, [(name + b"k" * 60_000, value * 16) for name, value in LARGEST]) == Routing()

    assert hook._sandbox._runtime.get_memory_used(total=True) < 1 << 20


@pytest.mark.parametrize("kept_kib", around_the_limit(1150, 1350))
def test_a_message_that_leaves_no_room_fails_itself_and_not_the_one_after_it(kept_kib):
    hook = compile_on_enqueue(f"""
      function on_enqueue(msg)
        if msg.headers.attack then
          kept = {{}}
          for i = 1, {kept_kib} do kept[i] = ('x'):rep(960) .. i end
        end
        return {{ fairness_key = ('x'):rep(200) }}
      end""")
    long = ([(b"%d" % i, b"v" * 1000) for i in range(15)], 0)

    routings, failure = route_many(hook, [long, ([(b"attack", b"1")], 0), long, long])

    if failure is None:
        assert len(routings) == 4
    else:
        assert (len(routings), failure.kind) == (1, "memory")
        assert "memory" in failure.text


@pytest.mark.parametrize("kept_kib", around_the_limit(1150, 1400))
def test_what_a_failed_call_keeps_does_not_fail_the_next_message(kept_kib):
    # Whether it fails for its memory or just so; `attack` looks at the message after it.
    outcome = attack(f"kept = {{}} for i = 1, {kept_kib} do kept[i] = ('x'):rep(960) .. i end error('x')")
    assert outcome.failure is not None


KEEPS_400_KIB = """
  local state, collected = {}, 0
  local gone = setmetatable({}, { __mode = "v" })
  function on_enqueue(msg)
    for i = #state + 1, math.min(#state + 200, 4000) do state[i] = msg.headers.fill .. i end
    if gone[1] == nil then gone[1], collected = {}, collected + 1 end
    return { weight = collected }
  end"""


def test_a_script_that_keeps_much_is_not_searched_for_garbage_at_every_call():
    hook = compile_on_enqueue(KEEPS_400_KIB)
    collections = []
    for _ in range(520):
        answer = route(hook, [(b"fill", b"x" * 70)])
        assert isinstance(answer, Routing)
        collections.append(answer.weight or 0)

    assert collections[-1] - collections[20] in range(1, 6)


class ClockThatCollects:
    """Stands still, but for a second whenever the hook's heap got smaller: a collection that takes long."""

    def __init__(self) -> None:
        self.ns = 0
        self.used_bytes = lambda: 0
        self.last_bytes = 0

    def __call__(self) -> int:
        used_bytes = self.used_bytes()
        if used_bytes < self.last_bytes - 65536:
            self.ns += 1_000_000_000
        self.last_bytes = used_bytes
        return self.ns


def test_the_time_that_searching_for_garbage_takes_is_the_scripts():
    clock = ClockThatCollects()
    hook = compile_on_enqueue(KEEPS_400_KIB, now_ns=clock)
    runtime = hook._sandbox._runtime
    clock.used_bytes = lambda: runtime.get_memory_used(total=True)

    answers = [route(hook, [(b"fill", b"x" * 70)]) for _ in range(520)]

    failures = [answer for answer in answers if isinstance(answer, HookFailure)]
    assert 1 <= len(failures) <= 6
    assert {failure.kind for failure in failures} == {"time"}


def test_a_crossing_that_begins_with_a_long_search_for_garbage_still_answers_a_message():
    # 3 ms a look: more than a crossing should take, less than a call may.
    hook = compile_on_enqueue(KEEPS_400_KIB, now_ns=SteppingClock(step_ns=3_000_000))

    for _ in range(520):
        routings, failure = route_many(hook, [([(b"fill", b"x" * 70)], 0)] * 2)
        assert routings or failure
