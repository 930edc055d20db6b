"""Scripts that try to run for ever, to take all memory, or to get out. Each sentence is one attempt."""

from __future__ import annotations

import time

import pytest

from fila_server.hooks.on_enqueue import Batch, Routing
from fila_server.hooks.sandbox import HookFailure, HookLimits, ScriptRefused, new_runtime_config
from tests.hooks.conftest import SteppingClock, attack, compile_on_enqueue, cut_off, route, value_of

LARGEST = [(b"%04d" % i + b"k" * 4092, b"v" * 4096) for i in range(64)]
"""As many and as long headers as a message may have."""

# --- time -------------------------------------------------------------------------------------


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


# --- memory -----------------------------------------------------------------------------------


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


# --- getting out ------------------------------------------------------------------------------

ALLOWED = (
    "assert error fila getmetatable ipairs math next pairs pcall rawequal rawget rawlen rawset select "
    "setmetatable string table tonumber tostring type utf8"
)


def test_the_globals_are_exactly_those_of_the_contract():
    hook = compile_on_enqueue("""
      function on_enqueue(msg)
        local names = {}
        for name in pairs(_ENV) do
          if name ~= 'on_enqueue' then names[#names + 1] = name end
        end
        table.sort(names)
        return { fairness_key = table.concat(names, ' ') }
      end""")
    assert route(hook) == Routing(ALLOWED.encode())


@pytest.mark.parametrize(
    "name",
    ["_G", "coroutine", "debug", "load", "loadstring", "loadfile", "dofile", "require", "package", "io", "os",
     "python", "print", "collectgarbage", "xpcall", "string.dump", "jit", "newproxy", "setfenv"],
)  # fmt: skip
def test_a_dangerous_global_does_not_exist(name):
    assert value_of(f"{name} == nil") == b"true"


def test_bytecode_is_refused():
    with pytest.raises(ScriptRefused, match="attempt to load a binary chunk"):
        compile_on_enqueue(b"\x1bLua")


def test_a_finalizer_is_refused():
    assert "__gc" in cut_off("setmetatable({}, { __gc = function() while true do end end })").text


def test_a_finalizer_added_later_never_runs():
    body = """
      local meta = {}
      for i = 1, 100 do setmetatable({}, meta) end
      meta.__gc = function() while true do end end
      for i = 1, 500 do local _ = ('x'):rep(1000) .. i end"""
    assert attack(body).failure is None


def test_a_finalizer_hidden_behind_index_never_runs():
    body = """
      local meta = setmetatable({}, { __index = { __gc = function() while true do end end } })
      for i = 1, 100 do setmetatable({}, meta) end
      for i = 1, 500 do local _ = ('x'):rep(1000) .. i end"""
    assert attack(body).failure is None


@pytest.mark.parametrize(
    "write",
    [
        "string.rep = nil",
        "rawset(string, 'rep', 1)",
        "table.insert(string, 1)",
        "table.move({ 1 }, 1, 1, 1, string)",
        "setmetatable(string, {})",
        "string.format = function() return 'evil' end",
        "math.floor = nil",
        "table.concat = nil",
        "utf8.char = nil",
        "fila.get = nil",
        "fila.helpers.max_retries = nil",
        "rawset(fila, 'get', 1)",
        "getmetatable('').__index = {}",
        "getmetatable(string).__index = {}",
        "(''):rep(1).x = 1",
    ],
)
def test_libraries_cannot_be_changed(write):
    statement = "local s = ('') s.x = 1" if write.startswith("(") else write
    assert cut_off(statement).kind == "error"


def test_walking_a_library_gives_no_way_to_change_it():
    hook = compile_on_enqueue("""
      function on_enqueue(msg)
        local _, state = pairs(string)
        if state then state.rep = function() return 'evil' end end
        for _, value in pairs(string) do if type(value) == 'table' then value.x = 1 end end
        return { fairness_key = ('ok'):rep(1) }
      end""")
    assert route(hook) == Routing(b"ok")
    assert route(hook) == Routing(b"ok")


def test_a_strings_metatable_cannot_be_had():
    assert value_of("getmetatable('')") == b"false"


def test_a_librarys_metatable_cannot_be_had():
    assert value_of("getmetatable(string)") == b"false"


def test_the_python_side_cannot_be_reached_through_what_a_script_gets():
    types = value_of(
        "type(msg) .. type(msg.headers) .. type(msg.payload_size) .. type(msg.queue) .. type(fila.get)"
    )
    assert types == b"tabletablenumberstringfunction"


def test_an_exception_in_the_clock_never_reaches_the_script_as_an_object():
    looks = iter([KeyboardInterrupt()])

    def interrupted_once() -> int:
        for problem in looks:
            raise problem
        return 0

    hook = compile_on_enqueue(
        """
        function on_enqueue(msg)
          local _, problem = pcall(function() for i = 1, 100000 do local _ = i end end)
          return { fairness_key = type(problem) }
        end""",
        now_ns=interrupted_once,
    )
    assert route(hook) == HookFailure("time", "the call was interrupted")


def test_nothing_leaks_from_one_queue_to_another():
    writer = compile_on_enqueue(
        "function on_enqueue(msg) leaked = 'secret' pcall(rawset, math, 'leaked', 1) return {} end"
    )
    reader = compile_on_enqueue(
        "function on_enqueue(msg) return { fairness_key = tostring(leaked or math.leaked) } end"
    )
    route(writer)
    assert route(reader) == Routing(b"nil")


def test_a_change_to_msg_does_not_reach_the_next_message():
    hook = compile_on_enqueue("""
      function on_enqueue(msg)
        local seen = msg.headers.mark or 'none'
        msg.headers.mark = 'mine'
        setmetatable(msg, { __index = function() return 'evil' end })
        return { fairness_key = seen }
      end""")
    assert route(hook) == Routing(b"none")
    assert route(hook) == Routing(b"none")


def test_replacing_the_environments_functions_harms_only_the_script_itself():
    hook = compile_on_enqueue("""
      function on_enqueue(msg)
        type, error, pairs, next, string, table, math = nil, nil, nil, nil, nil, nil, nil
        setmetatable(_ENV, { __index = function() while true do end end })
        return { fairness_key = 'still', weight = 3, throttle_keys = { 'a' } }
      end""")
    expected = Routing(b"still", 3, None, (b"a",))
    assert route(hook) == expected
    assert route(hook) == expected


# --- what comes back --------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["{}", "nil", "true", "function() end", "42", "fila", "msg"])
def test_an_error_object_of_any_type_is_only_a_failure(value):
    assert cut_off(f"error({value})").kind == "error"


def test_an_error_objects_tostring_is_never_asked():
    body = "error(setmetatable({}, { __tostring = function() while true do end end }))"
    failure = cut_off(body)
    assert failure == HookFailure("error", "the script raised an error object of type table")


def test_an_error_message_of_a_hundred_kilobytes_is_shortened():
    assert len(cut_off("error(('x'):rep(100000))").text) <= 512


def test_an_error_message_that_is_no_text_is_still_a_failure():
    assert cut_off("error('\\255\\254\\0', 0)").kind == "error"


def test_a_hundred_thousand_results_are_one_too_few_or_too_many_but_harmless():
    outcome = attack("return { fairness_key = 'many' }, table.unpack({}, 1, 4000)")
    assert outcome.routing == Routing(b"many")


@pytest.mark.parametrize(
    "result",
    [
        "nil", "1", "'text'", "true", "print", "function() end",
        "{ fairness_key = 1 }", "{ fairness_key = {} }", "{ fairness_key = ('x'):rep(257) }",
        "{ weight = 'heavy' }", "{ weight = '3' }", "{ weight = 0/0 }", "{ weight = {} }",
        "{ cost = 0 }", "{ cost = -1 }", "{ cost = 0/0 }", "{ cost = 1/0 }", "{ cost = 1000001 }", "{ cost = 'x' }",
        "{ throttle_keys = 'one' }", "{ throttle_keys = { 1 } }", "{ throttle_keys = { ('x'):rep(257) } }",
        "{ throttle_keys = { 'a','b','c','d','e','f','g','h','i','j','k','l','m','n','o','p','q' } }",
        "{ throttle_keys = { a = 'b' } }", "{ throttle_keys = { [2] = 'b' } }",
        "setmetatable({}, { __index = function() error('no') end })",
        "setmetatable({}, { __index = function() while true do end end })",
        "{ throttle_keys = setmetatable({}, { __index = function() return 'k' end }) }",
    ],
)  # fmt: skip
def test_a_result_of_the_wrong_kind_is_a_failure(result):
    assert cut_off(f"do return {result} end")


@pytest.mark.parametrize(
    ("result", "routing"),
    [
        ("{}", Routing()),
        ("{ fairness_key = '' }", Routing(b"")),
        ("{ fairness_key = '\\0\\195\\169' }", Routing(b"\0\xc3\xa9")),
        ("{ fairness_key = ('x'):rep(256) }", Routing(b"x" * 256)),
        ("{ weight = 7 }", Routing(None, 7)),
        ("{ weight = 7.9 }", Routing(None, 7)),
        ("{ weight = 0 }", Routing(None, 1)),
        ("{ weight = -5 }", Routing(None, 1)),
        ("{ weight = 1e9 }", Routing(None, 1000)),
        ("{ weight = 1/0 }", Routing(None, 1000)),
        ("{ weight = math.mininteger }", Routing(None, 1)),
        ("{ cost = 0.001 }", Routing(None, None, 0.001)),
        ("{ cost = 1000000 }", Routing(None, None, 1e6)),
        ("{ throttle_keys = {} }", Routing(None, None, None, ())),
        ("{ throttle_keys = { 'a', 'a' } }", Routing(None, None, None, (b"a", b"a"))),
    ],
)
def test_a_result_within_bounds_is_taken(result, routing):
    outcome = attack(f"do return {result} end")
    assert outcome.failure is None
    assert outcome.routing == routing
    if routing.cost is not None:
        assert isinstance(outcome.routing.cost, float)


@pytest.mark.parametrize("result", ["fairness_key = '\\255'", "throttle_keys = { 'fine', '\\xc3' }"])
def test_a_key_that_is_no_text_is_a_failure_and_its_neighbours_are_routed(result):
    hook = compile_on_enqueue(
        f"function on_enqueue(msg) if msg.headers.bad then return {{ {result} }} end return {{ weight = 2 }} end"
    )
    batch = Batch()
    for found in ([], [(b"bad", b"1")], []):
        batch.add(found, 0)

    answers = hook.route_batch(batch, b"orders")

    assert answers.routings == [Routing(None, 2)]
    assert answers.failure is not None
    assert "UTF-8" in answers.failure.text


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ("fairness_key = 'abcd'", "fairness_key must be at most 3 bytes, got 4"),
        ("throttle_keys = { 'abcd' }", "throttle_keys must be at most 3 bytes each, got 4"),
        ("throttle_keys = { 'a', 'b', 'c' }", "throttle_keys must be at most 2, got 3"),
    ],
)
def test_a_broker_with_tighter_limits_holds_hooks_to_them(result, problem):
    limits = HookLimits(fairness_key_bytes=3, throttle_key_bytes=3, throttle_keys=2)
    hook = compile_on_enqueue(f"function on_enqueue(msg) return {{ {result} }} end", limits=limits)

    answer = route(hook)

    assert isinstance(answer, HookFailure)
    assert answer.text == problem
