"""fila.helpers and the rest of what a script is offered, as docs/lua-patterns.md promises."""

from __future__ import annotations

import pytest

from fila_server.hooks.on_failure import DeadLetter, Retry
from fila_server.hooks.packed import Routing
from fila_server.hooks.sandbox import HookFailure
from tests.hooks.conftest import compile_on_enqueue, compile_on_failure, cut_off, failed, route, value_of

# --- exponential_backoff ----------------------------------------------------------------------


def delays(attempts: int, base_ms: int, max_ms: int, *, seed: int = 1, count: int = 200) -> list[int]:
    hook = compile_on_failure(
        "function on_failure(msg) return { action = 'retry', "
        f"delay_ms = fila.helpers.exponential_backoff(msg.attempts, {base_ms}, {max_ms}) }} end",
        seed=seed,
    )
    found = []
    for _ in range(count):
        decision = hook.decide(failed(attempts=attempts))
        assert isinstance(decision, Retry)
        assert decision.delay_ms is not None
        found.append(decision.delay_ms)
    return found


@pytest.mark.parametrize(
    ("attempts", "full"), [(1, 100), (2, 200), (3, 400), (7, 6400), (11, 60000), (5000, 60000)]
)
def test_backoff_doubles_up_to_its_cap_and_leaves_the_upper_half_to_chance(attempts, full):
    found = delays(attempts, 100, 60000)
    assert full // 2 <= min(found)
    assert max(found) <= full
    assert len(set(found)) > 10


def test_jitter_depends_on_the_seed_alone():
    assert delays(5, 100, 60000, seed=7) == delays(5, 100, 60000, seed=7)
    assert delays(5, 100, 60000, seed=7) != delays(5, 100, 60000, seed=8)


def test_backoff_of_nothing_is_nothing():
    assert set(delays(5, 0, 1000, count=5)) == {0}


@pytest.mark.parametrize("arguments", ["'x', 1, 1", "1, -1, 10", "1, 1, 1/0", "nil, 1, 1", "1, 0/0, 1", ""])
def test_backoff_refuses_what_is_no_time(arguments):
    assert "exponential_backoff" in cut_off(f"fila.helpers.exponential_backoff({arguments})").text


# --- max_retries, tenant_route, rate_limit_keys -----------------------------------------------


@pytest.mark.parametrize(("attempts", "used_up"), [(1, b"false"), (3, b"false"), (4, b"true")])
def test_three_retries_are_used_up_at_the_fourth_failure(attempts, used_up):
    assert value_of(f"fila.helpers.max_retries({attempts}, 3)") == used_up


def test_tenant_route_takes_the_fairness_key_from_a_header():
    hook = compile_on_enqueue("function on_enqueue(msg) return fila.helpers.tenant_route(msg, 'tenant') end")
    assert route(hook, [(b"tenant", b"acme")]) == Routing(b"acme")
    assert route(hook) == Routing()


def test_rate_limit_keys_fill_in_headers_and_leave_out_what_cannot_be_filled():
    hook = compile_on_enqueue("""
      function on_enqueue(msg)
        return { throttle_keys = fila.helpers.rate_limit_keys(msg,
          { "provider:{provider}", "{tenant}/{region}", "global", "{missing}", "odd{" }) }
      end""")
    headers = [(b"provider", b"stripe"), (b"tenant", b"acme"), (b"region", b"eu")]
    expected = (b"provider:stripe", b"acme/eu", b"global", b"odd{")
    assert route(hook, headers) == Routing(None, None, None, expected)


def test_a_header_value_with_braces_is_not_filled_in_again():
    hook = compile_on_enqueue(
        "function on_enqueue(msg) return { throttle_keys = fila.helpers.rate_limit_keys(msg, { 'a:{a}' }) } end"
    )
    assert route(hook, [(b"a", b"{b}"), (b"b", b"x")]) == Routing(None, None, None, (b"a:{b}",))


@pytest.mark.parametrize(
    "call", ["tenant_route(1, 'x')", "rate_limit_keys(msg, 'x')", "rate_limit_keys({}, { '{a}' })"]
)
def test_helpers_name_themselves_in_their_errors(call):
    assert "fila.helpers." in cut_off(f"fila.helpers.{call}").text


def test_get_refuses_keys_that_are_no_text():
    assert "fila.get" in cut_off("fila.get({})").text


def test_get_of_a_key_longer_than_any_key_is_nothing():
    assert value_of("fila.get(('x'):rep(1000))") == b"nil"


# --- what messages look like ------------------------------------------------------------------


def test_on_enqueue_sees_headers_payload_size_and_queue():
    hook = compile_on_enqueue("""
      function on_enqueue(msg)
        local names = {}
        for name in pairs(msg) do names[#names + 1] = name end
        table.sort(names)
        return { fairness_key = table.concat(names, ' '), throttle_keys = { msg.queue, msg.headers.a },
                 weight = msg.payload_size }
      end""")
    answer = route(hook, [(b"a", b"\xc3\xa9\x00")], 7)
    assert answer == Routing(b"headers payload_size queue", 7, None, (b"orders", b"\xc3\xa9\x00"))


def test_on_failure_sees_everything_the_contract_names():
    hook = compile_on_failure("""
      function on_failure(msg)
        assert(msg.headers.a == 'b' and msg.id == 'id-1' and msg.attempts == 1 and msg.queue == 'orders')
        assert(msg.channel == 'default' and msg.error == 'boom' and msg.fairness_key == 'acme')
        return { action = 'dlq' }
      end""")
    assert hook.decide(failed(headers=[(b"a", b"b")])) == DeadLetter()


def test_on_failure_gets_the_attempts_as_its_second_argument_too():
    hook = compile_on_failure("""
      function on_failure(msg, attempts)
        assert(math.type(attempts) == 'integer' and attempts == msg.attempts)
        return { action = 'retry', delay_ms = attempts * 100 }
      end""")

    assert hook.decide(failed(attempts=3)) == Retry(300)


@pytest.mark.parametrize(
    ("result", "decision"),
    [
        ("{ action = 'retry' }", Retry(None)),
        ("{ action = 'retry', delay_ms = 0 }", Retry(0)),
        ("{ action = 'retry', delay_ms = 1.9 }", Retry(1)),
        ("{ action = 'dlq', delay_ms = 'ignored' }", DeadLetter()),
    ],
)
def test_a_decision_within_bounds_is_taken(result, decision):
    assert compile_on_failure(f"function on_failure(msg) return {result} end").decide(failed()) == decision


@pytest.mark.parametrize(
    "result",
    ["nil", "'retry'", "{}", "{ action = 'drop' }", "{ action = 1 }", "{ action = 'retry', delay_ms = -1 }",
     "{ action = 'retry', delay_ms = '5' }", "{ action = 'retry', delay_ms = 0/0 }",
     "{ action = 'retry', delay_ms = 1/0 }", "{ action = ('x'):rep(100000) }"],
)  # fmt: skip
def test_a_decision_of_the_wrong_kind_is_a_failure(result):
    decision = compile_on_failure(f"function on_failure(msg) return {result} end").decide(failed())
    assert isinstance(decision, HookFailure)


def test_an_endless_on_failure_is_cut_off():
    decision = compile_on_failure("function on_failure(msg) while true do end end").decide(failed())
    assert isinstance(decision, HookFailure)
    assert decision.kind == "time"


# --- bounded library functions still do what Lua's manual says --------------------------------


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("('a,b,,c'):gsub(',', ';')", b"a;b;;c"),
        ("(('hello world'):match('^(%w+)'))", b"hello"),
        ("('k=v'):match('(%w+)=(%w+)')", b"k"),
        ("string.find('abc', 'b', 1, true)", b"2"),
        ("select(2, ('x.y'):find('.', 2, true))", b"2"),
        ("(string.gsub('abc', '%w', '%0%0', 2))", b"aabbc"),
        ("(string.gsub('abc', '%w', { a = 'x' }))", b"xbc"),
        ("(string.gsub('abc', '%w', string.upper))", b"ABC"),
        ("(('[x]'):match('%[(.-)%]'))", b"x"),
        ("('a]b'):match('[]]')", b"]"),
        ("('THE (quick) fox'):find('%((%a+)%)')", b"5"),
        ("('f(a(b)c)d'):match('%b()')", b"(a(b)c)"),
        ("('THE (quick) fox'):gsub('%f[%a]%a+', 'w')", b"w (w) w"),
        ("string.find(1234, 3)", b"3"),
        ("('x'):rep(3, '-')", b"x-x-x"),
        ("('x'):rep(0)", b""),
        ("('x'):rep(-1)", b""),
        ("('abc'):byte(-1)", b"99"),
        ("select('#', ('abc'):byte(1, -1))", b"3"),
        ("select('#', ('abc'):byte(10, 20))", b"0"),
        ("string.format('%5.1f|%q|%s', 3.14159, 'a', true)", b'  3.1|"a"|true'),
        ("table.concat({ 1, 2, 3 }, '-', 2)", b"2-3"),
        ("table.concat({})", b""),
        ("select('#', table.unpack({ 1, nil, 3 }, 1, 3))", b"3"),
        ("(function() local t = { 1, 2, 3 } table.insert(t, 2, 9) return table.concat(t, ' ') end)()", b"1 9 2 3"),
        ("(function() local t = { 1, 2, 3 } table.insert(t, 9) return table.concat(t, ' ') end)()", b"1 2 3 9"),
        ("(function() local t = { 1, 2, 3 } return table.remove(t, 1) .. table.concat(t) end)()", b"123"),
        ("(function() local t = { 1, 2, 3 } return table.remove(t) .. table.concat(t) end)()", b"312"),
        ("table.remove({})", b"nil"),
        ("table.concat(table.move({ 1, 2, 3 }, 1, 3, 2))", b"1123"),
        ("table.concat(table.move({ 1, 2, 3 }, 2, 3, 1))", b"233"),
        ("(function() local t = { 3, 1, 2 } table.sort(t) return table.concat(t) end)()", b"123"),
        ("(function() local t = { 1, 2 } table.sort(t, function(a, b) return a > b end) return t[1] end)()", b"2"),
        ("table.pack(1, nil, 3).n", b"3"),
        ("utf8.len('aé')", b"2"),
        ("utf8.codepoint('é')", b"233"),
        ("utf8.char(233)", "é".encode()),
        ("pcall(error, { 1 })", b"false"),
        ("select('#', pcall(function() return 1, nil, nil end))", b"4"),
        ("select(2, pcall(error, 'x', 0))", b"x"),
        ("math.type(math.tointeger('8'))", b"integer"),
        ("#string.pack('>I4', 7)", b"4"),
        ("string.unpack('>I4', '\\0\\0\\0\\7')", b"7"),
    ],
)  # fmt: skip
def test_a_library_function_keeps_its_meaning(expression, value):
    assert value_of(expression) == value
