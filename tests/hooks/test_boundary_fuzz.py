"""Whatever bytes go in and whatever a script makes of them, the answer is a Routing or a HookFailure."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fila_server.hooks.on_failure import DeadLetter, Retry
from fila_server.hooks.packed import Routing
from fila_server.hooks.sandbox import HookFailure
from tests.hooks.conftest import compile_on_enqueue, compile_on_failure, failed, route, route_many

texts = st.binary(max_size=300)
headers = st.lists(st.tuples(texts, texts), max_size=8)


def is_text(raw: bytes) -> bool:
    """Whether it could travel as a string."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


ECHO = compile_on_enqueue("""
function on_enqueue(msg)
  local count, text = 0, ""
  for name, value in pairs(msg.headers) do
    count = count + 1
    assert(type(name) == "string" and type(value) == "string")
  end
  return { fairness_key = msg.headers.k, weight = count, cost = msg.payload_size + 1, throttle_keys = { msg.queue } }
end""")


@given(messages=st.lists(st.tuples(headers, st.integers(0, 1 << 20)), min_size=1, max_size=40), queue=texts)
def test_arbitrary_header_bytes_arrive_and_return_as_they_are(messages, queue):
    routings, failure = route_many(ECHO, messages, queue)

    expected = []
    for found, size in messages:
        as_map = dict(found)
        key = as_map.get(b"k")
        if len(queue) > 256 or (key is not None and len(key) > 256) or size + 1 > 1_000_000:
            break
        if not (is_text(queue) and is_text(key or b"")):
            break
        weight = min(max(len(as_map), 1), 1000)
        expected.append(Routing(key, weight, size + 1.0, (queue,)))
    assert routings == expected
    assert (failure is None) == (len(expected) == len(messages))


lua_values = st.recursive(
    st.one_of(
        st.just("nil"),
        st.booleans().map(lambda b: str(b).lower()),
        st.integers(-(1 << 62), 1 << 62).map(str),
        st.floats().map(
            lambda f: "0/0" if f != f else ("1/0" if f > 1e308 else "-1/0" if f < -1e308 else repr(f))
        ),
        st.binary(max_size=300).map(lambda raw: '"' + "".join(f"\\{byte:03d}" for byte in raw) + '"'),
        st.sampled_from(
            ["print", "pcall", "fila", "msg", "string", "function() end", "setmetatable({}, {})", "_ENV"]
        ),
    ),
    lambda inner: st.lists(inner, max_size=20).map(lambda items: "{" + ", ".join(items) + "}"),
    max_leaves=25,
)
fields = st.sampled_from(["fairness_key", "weight", "cost", "throttle_keys", "action", "delay_ms", "other"])
results = st.one_of(
    lua_values,
    st.dictionaries(
        fields, st.one_of(lua_values, st.sampled_from(['"retry"', '"dlq"', '{ "a" }', "5"])), max_size=6
    ).map(lambda chosen: "{" + ", ".join(f"{name} = {value}" for name, value in chosen.items()) + "}"),
)


@settings(max_examples=150)
@given(result=results)
def test_results_of_any_type_become_a_valid_routing_or_a_failure(result):
    answer = route(compile_on_enqueue(f"function on_enqueue(msg) return {result} end"))

    if isinstance(answer, HookFailure):
        assert answer.kind == "error"
        return
    assert answer.fairness_key is None or (
        type(answer.fairness_key) is bytes
        and len(answer.fairness_key) <= 256
        and is_text(answer.fairness_key)
    )
    assert answer.weight is None or (type(answer.weight) is int and 1 <= answer.weight <= 1000)
    assert answer.cost is None or (type(answer.cost) is float and 0.001 <= answer.cost <= 1e6)
    if answer.throttle_keys is not None:
        assert len(answer.throttle_keys) <= 16
        assert all(type(key) is bytes and len(key) <= 256 and is_text(key) for key in answer.throttle_keys)


@settings(max_examples=150)
@given(result=results)
def test_decisions_of_any_type_become_a_valid_decision_or_a_failure(result):
    decision = compile_on_failure(f"function on_failure(msg) return {result} end").decide(failed())

    assert isinstance(decision, (Retry, DeadLetter, HookFailure))
    if isinstance(decision, Retry) and decision.delay_ms is not None:
        assert type(decision.delay_ms) is int
        assert 0 <= decision.delay_ms <= 366 * 24 * 3600 * 1000


@given(found=headers, message_id=texts, error=texts, key=texts, attempts=st.integers(1, 1 << 31))
def test_arbitrary_bytes_of_a_failed_message_arrive_as_they_are(found, message_id, error, key, attempts):
    decision = SEEN.decide(
        failed(headers=found, message_id=message_id, error=error, fairness_key=key, attempts=attempts)
    )
    expected = len(message_id) + len(error) + len(key) + sum(len(a) + len(b) for a, b in dict(found).items())
    assert decision == Retry(expected)


SEEN = compile_on_failure("""
function on_failure(msg)
  local total = #msg.id + #msg.error + #msg.fairness_key
  for name, value in pairs(msg.headers) do total = total + #name + #value end
  return { action = "retry", delay_ms = total }
end""")


pieces = st.sampled_from(
    ["a", "b", ".", "%a", "%d", "[ab]", "[^a]", "%b()", "%f[a]", "(a)", "()", "a?", "%%"]
)
suffixes = st.sampled_from(["", "", "*", "+", "-", "?"])
patterns = st.lists(st.tuples(pieces, suffixes).map("".join), min_size=1, max_size=5).map("".join)
UNBOUNDED = __import__("lupa").lua54.LuaRuntime(encoding=None).execute(b"return string.match")
BOUNDED = compile_on_enqueue("""
function on_enqueue(msg)
  local found = { pcall(string.match, msg.headers.subject, msg.headers.pattern) }
  if not found[1] then return { fairness_key = "error" } end
  for i = 2, #found do found[i] = tostring(found[i]) end
  return { fairness_key = "found", throttle_keys = { table.unpack(found, 2) } }
end""")


@settings(max_examples=300)
@given(subject=st.text("ab1()", max_size=25), pattern=patterns)
def test_bounded_patterns_match_what_lua_matches(subject, pattern):
    answer = route(BOUNDED, [(b"subject", subject.encode()), (b"pattern", pattern.encode())])
    try:
        found = UNBOUNDED(subject.encode(), pattern.encode())
    except Exception:  # noqa: BLE001  (whatever Lua says of a bad pattern)
        assert answer == Routing(b"error")
        return
    values = found if isinstance(found, tuple) else () if found is None else (found,)
    expected = tuple(value if isinstance(value, bytes) else str(value).encode() for value in values)
    if answer != Routing(b"error"):  # too costly for a hook is a right answer too
        assert answer == Routing(b"found", None, None, expected)
