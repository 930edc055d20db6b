"""Whatever a script returns or raises becomes a routing within the bounds, or a failure. Nothing else."""

from __future__ import annotations

import pytest

from fila_server.hooks.packed import KeyLimits, Routing
from fila_server.hooks.sandbox import HookFailure
from tests.hooks.conftest import FakeFrame, attack, compile_on_enqueue, cut_off, route_many


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

    routings, failure = route_many(hook, [([], 0), ([(b"bad", b"1")], 0), ([], 0)])

    assert routings == [Routing(None, 2)]
    assert failure is not None
    assert "UTF-8" in failure.text


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ("fairness_key = 'abcd'", "fairness_key must be at most 3 bytes, got 4"),
        ("throttle_keys = { 'abcd' }", "throttle_keys must be at most 3 bytes each, got 4"),
        ("throttle_keys = { 'a', 'b', 'c' }", "throttle_keys must be at most 2, got 3"),
    ],
)
async def test_a_broker_with_tighter_limits_holds_hooks_to_them(stage, result, problem):
    stage.set_queue("orders", f"function on_enqueue(msg) return {{ {result} }} end")
    messages = FakeFrame(
        [(b"orders", [])], limits=KeyLimits(fairness_key_bytes=3, throttle_key_bytes=3, throttle_keys=2)
    )

    await stage.route(messages)

    assert messages.routings == {}
    assert stage.status("orders")[0].counters.last_error == problem
