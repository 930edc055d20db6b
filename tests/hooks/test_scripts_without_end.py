"""Scripts that try to run for ever. Each sentence is one attempt."""

from __future__ import annotations

import time

import pytest

from fila_server.hooks.packed import Routing
from fila_server.hooks.sandbox import HookFailure, ScriptRefused
from tests.hooks.conftest import SteppingClock, compile_on_enqueue, cut_off, route


def test_an_endless_loop_is_cut_off():
    assert cut_off("while true do end").kind == "time"


def test_an_endless_loop_inside_pcall_is_cut_off():
    assert cut_off("pcall(function() while true do end end)").kind == "time"


def test_a_loop_that_swallows_every_error_is_cut_off():
    assert cut_off("while true do pcall(error, 'again') end").kind == "time"


def test_a_loop_that_swallows_the_cut_off_itself_is_cut_off():
    assert cut_off("while true do pcall(function() while true do end end) end").kind == "time"


def test_nested_pcalls_cannot_stack_up_time():
    body = """
      local function deep(n)
        if n == 0 then while true do end end
        pcall(deep, n - 1)
        while true do end
      end
      deep(150)"""
    assert cut_off(body).kind == "time"


def test_a_pcall_of_pcall_cannot_hide_the_cut_off():
    assert cut_off("while true do pcall(pcall, pcall, error) end").kind == "time"


def test_a_close_handler_cannot_go_on_after_the_cut_off():
    body = """
      local function spin() while true do end end
      local guard <close> = setmetatable({}, { __close = spin })
      spin()"""
    assert cut_off(body).kind == "time"


def test_a_thousand_close_handlers_cannot_stack_up_time():
    body = """
      local function spin() while true do end end
      local meta = { __close = spin }
      local function deep(n)
        local guard <close> = setmetatable({}, meta)
        if n == 0 then spin() end
        deep(n - 1)
      end
      deep(1000)"""
    assert cut_off(body, now_ns=time.monotonic_ns).kind in {"time", "memory"}


def test_a_pattern_with_three_stars_is_refused_on_one_kibibyte():
    assert "string.match" in cut_off("local _ = string.match(string.rep('a', 1024), 'a*a*a*b')").text


def test_a_pattern_called_as_a_method_is_bounded_too():
    assert "string.find" in cut_off("local _ = (('a'):rep(1024)):find('a*a*a*b')").text


def test_a_pattern_in_gsub_is_bounded():
    assert "string.gsub" in cut_off("local _ = string.gsub(('a'):rep(1024), 'a*a*a*b', '')").text


def test_a_pattern_in_gmatch_is_bounded():
    assert "string.gmatch" in cut_off("for _ in string.gmatch(('a'):rep(1024), 'a*a*a*b') do end").text


def test_optional_items_in_a_pattern_are_bounded():
    body = "local _ = (('a'):rep(30)):match(('a?'):rep(30) .. ('a'):rep(30) .. 'b')"
    assert "string.match" in cut_off(body).text


def test_lazy_repetitions_in_a_pattern_are_bounded():
    assert "string.match" in cut_off("local _ = (('a'):rep(2000)):match('.-.-.-b')").text


def test_balanced_matches_in_a_pattern_are_bounded():
    assert "string.find" in cut_off("local _ = (('('):rep(4000)):find('%b()%b()%b()')").text


def test_a_long_set_in_a_pattern_is_bounded():
    body = "local _ = (('a'):rep(300)):find('[' .. ('x'):rep(900) .. 'a]*b')"
    assert "string.find" in cut_off(body).text


def test_a_pattern_that_is_cheap_once_cannot_be_repeated_for_ever():
    assert cut_off("while true do local _ = ('abcabcabc'):match('^(.-)c(.*)$') end").kind == "time"


def test_a_match_is_charged_for_what_it_may_take():
    assert cut_off("for i = 1, 200 do local _ = (('a'):rep(100)):find('a*b') end").kind == "time"


def test_a_refused_pattern_can_be_caught_but_not_for_ever():
    assert cut_off("while true do pcall(string.match, ('a'):rep(1024), 'a*a*a*b') end").kind == "time"


def test_a_plain_search_is_bounded_too():
    body = """
      local text, part = ('a'):rep(250000), ('a'):rep(120000) .. 'b'
      while true do local _ = text:find(part, 1, true) end"""
    assert cut_off(body).kind in {"time", "memory"}


def test_an_endless_chain_of_index_metamethods_is_cut_off():
    assert cut_off(
        "local t = {} setmetatable(t, { __index = function(s, k) return s[k .. 'x'] end }) local _ = t.a"
    )


def test_a_metamethod_that_calls_itself_is_cut_off():
    assert cut_off("local t = setmetatable({}, { __add = function(a, b) return a + b end }) local _ = t + t")


def test_an_endless_tostring_is_cut_off():
    body = "return setmetatable({}, { __tostring = function() while true do end end }) .. ''"
    assert cut_off(body)
    body = "local _ = tostring(setmetatable({}, { __tostring = function() while true do end end }))"
    assert cut_off(body).kind == "time"


def test_an_endless_comparison_in_sort_is_cut_off():
    body = "table.sort({ 3, 2, 1 }, function() while true do end end)"
    assert cut_off(body).kind == "time"


def test_a_lying_comparison_in_sort_is_cut_off():
    body = """
      local list = {}
      for i = 1, 20000 do list[i] = i end
      while true do pcall(table.sort, list, function() return true end) end"""
    assert cut_off(body, now_ns=time.monotonic_ns).kind == "time"


def test_a_comparison_written_in_c_cannot_sort_uncounted():
    body = """
      local endless = setmetatable({}, { __len = function() return 1 << 30 end, __index = function() return 1 end,
                                         __newindex = function() end })
      table.sort(endless, rawequal)"""
    assert cut_off(body).kind == "time"


def test_neither_comparison_nor_metamethods_in_c_can_sort_uncounted():
    body = """
      local function length() return 1 << 30 end
      local endless = setmetatable({}, { __len = length, __index = rawlen, __newindex = rawlen })
      table.sort(endless, math.ult)"""
    assert cut_off(body).kind == "time"


def test_sorting_long_strings_is_cut_off():
    body = """
      local list, long = {}, ('a'):rep(100000)
      local longer = long .. 'x'
      for i = 1, 10000 do list[i] = i % 2 == 0 and longer or long end
      table.sort(list)"""
    assert cut_off(body, now_ns=time.monotonic_ns).kind == "time"


def test_comparing_long_strings_is_cut_off():
    body = "local s = ('\\0'):rep(120000) local a, b = s .. 'a', s .. 'b' while true do local _ = a < b end"
    assert cut_off(body, now_ns=time.monotonic_ns).kind == "time"


def test_long_strings_made_without_any_function_are_noticed_by_the_heap():
    # 256 KiB of NULs take 1.3 ms to compare, in one instruction.
    body = "local s = msg.headers.nul for i = 1, 6 do s = s .. s end while true do local _ = s < s end"
    headers = [(b"nul", b"\0" * 4096)]
    assert cut_off(body, headers=headers, now_ns=time.monotonic_ns, cpu_seconds_max=0.12).kind == "time"


@pytest.mark.parametrize("make", ["('x'):rep(20000)", "table.concat({ ('x'):rep(10000), ('y'):rep(10000) })"])
def test_once_a_long_string_was_made_the_clock_is_read_every_few_instructions(make):
    hook = compile_on_enqueue(
        f"""
        function on_enqueue(msg)
          if msg.headers.attack then
            count = 0
            local s = {make}
            while true do count = count + 1 end
          end
          return {{ weight = count }}
        end""",
        now_ns=SteppingClock(step_ns=5_000_000),
    )
    assert isinstance(route(hook, [(b"attack", b"1")]), HookFailure)
    answer = route(hook)
    assert isinstance(answer, Routing)
    assert answer.weight is not None
    assert answer.weight < 30


@pytest.mark.parametrize("calls_before", range(6))  # so that one call or another meets the next look
def test_once_a_long_string_may_have_been_kept_every_later_call_is_timed_from_its_beginning(calls_before):
    hook = compile_on_enqueue(
        """
        function on_enqueue(msg)
          if msg.headers.keep then kept = (kept or '') .. msg.headers.keep .. msg.headers.keep end
          if msg.headers.attack then
            count = 0
            while true do count = count + 1 end
          end
          return { weight = count }
        end""",
        now_ns=SteppingClock(step_ns=5_000_000),
    )
    for _ in range(calls_before):
        route(hook)
    for _ in range(2):
        route(hook, [(b"keep", b"x" * 10_000)])

    assert isinstance(route(hook, [(b"attack", b"1")]), HookFailure)

    answer = route(hook)
    assert isinstance(answer, Routing)
    assert answer.weight is not None
    assert answer.weight < 120


def test_a_call_that_only_takes_long_is_cut_off_by_the_clock():
    failure = cut_off("for i = 1, 1000 do local _ = i end", now_ns=SteppingClock(step_ns=2_000_000))
    assert failure == HookFailure("time", "the script took more than 10 ms")


def test_hashing_long_strings_is_cut_off():
    body = "local t, s = {}, ('a'):rep(250000) while true do local _ = t[s .. 'x'] end"
    assert cut_off(body, now_ns=time.monotonic_ns).kind == "time"


@pytest.mark.parametrize(
    "call",
    [
        "table.insert(endless, 1, 0)",
        "table.remove(endless, 1)",
        "table.concat(endless)",
        "table.concat({}, '', 1, 1 << 62)",
        "table.unpack(endless)",
        "table.unpack({}, 1, 1 << 62)",
        "table.unpack({}, 1, 1000000)",
        "table.move(endless, 1, 1 << 60, 2)",
        "table.sort(endless)",
    ],
)
def test_a_table_that_lies_about_its_length_is_cut_off(call):
    prelude = """
      local function length() return 1 << 60 end
      local endless = setmetatable({}, { __len = length, __index = type, __newindex = rawlen })"""
    assert cut_off(call, prelude=prelude)


def test_concatenating_for_ever_without_growing_is_cut_off():
    # getmetatable is a function in C that returns whatever the script likes: here an empty string.
    body = """
      local endless = setmetatable({}, { __index = getmetatable, __metatable = '' })
      local _ = table.concat(endless, '', 1, 1 << 40)"""
    assert cut_off(body).kind == "time"


def test_unpacking_thousands_of_values_is_refused():
    assert "table.unpack" in cut_off("local _ = table.unpack({}, 1, 5000)").text


def test_moving_a_table_onto_itself_for_ever_is_cut_off():
    assert cut_off("table.move({}, 1, 1 << 40, 2)").kind == "time"


def test_walking_over_a_million_empty_slots_is_cut_off():
    body = """
      local t = {}
      for i = 1, 30000 do t[i] = i end
      for i = 1, 30000 do t[i] = nil end
      while next(t) == nil do end"""
    assert cut_off(body, now_ns=time.monotonic_ns).kind == "time"


def test_decoding_utf8_for_ever_is_cut_off():
    assert cut_off("local s = ('é'):rep(50000) for i = 1, 100 do local _ = utf8.len(s) end").kind == "time"


def test_decoding_a_huge_string_at_once_is_refused():
    assert "utf8.codepoint" in cut_off("local _ = utf8.codepoint(('a'):rep(100000), 1, -1)").text


def test_iterating_endlessly_with_pairs_is_cut_off():
    body = (
        "for _ in pairs(setmetatable({}, { __pairs = function() return function() return 1 end end })) do end"
    )
    assert cut_off(body).kind == "time"


def test_reading_the_config_for_ever_is_cut_off():
    assert cut_off("local i = 0 while true do i = i + 1 fila.get('key' .. i) end").kind == "time"


def test_helpers_with_endless_lists_are_cut_off():
    body = """
      local meta = { __len = function() return 1 << 60 end, __index = function() return '{x}' end }
      local patterns = setmetatable({}, meta)
      while true do fila.helpers.rate_limit_keys(msg, patterns) end"""
    assert cut_off(body).kind == "time"


def test_a_script_that_never_ends_at_its_top_level_is_refused():
    with pytest.raises(ScriptRefused, match=r"instructions|ms"):
        compile_on_enqueue("while true do end function on_enqueue() end")


def test_a_top_level_may_take_as_long_as_a_call():
    hook = compile_on_enqueue(
        "local n = 0 for i = 1, 10000 do n = n + 1 end function on_enqueue() return { weight = n / 100 } end"
    )
    assert route(hook) == Routing(None, 100)


def test_a_cut_off_call_leaves_no_hook_armed_for_the_next_one():
    hook = compile_on_enqueue("""
      function on_enqueue(msg)
        if msg.headers.attack then while true do end end
        local n = 0
        for i = 1, 50000 do n = n + i end
        return { fairness_key = tostring(n) }
      end""")
    for _ in range(5):
        assert isinstance(route(hook, [(b"attack", b"1")]), HookFailure)
        assert isinstance(route(hook), Routing)
