"""Scripts that try to reach what is not theirs: Python, other queues, the libraries. Each sentence is one attempt."""

from __future__ import annotations

import pytest

from fila_server.hooks.packed import Routing
from fila_server.hooks.sandbox import HookFailure, ScriptRefused
from tests.hooks.conftest import attack, compile_on_enqueue, cut_off, route, value_of

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
