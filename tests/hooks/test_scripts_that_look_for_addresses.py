"""Where the broker's memory lies is no script's business: a key made of it would be stored and shown."""

import re

import pytest

from fila_server.hooks.sandbox import HookFailure
from tests.hooks.conftest import compile_on_enqueue, route, value_of

LOOKS_LIKE_AN_ADDRESS = re.compile(rb"0x[0-9a-f]|[0-9a-f]{8}|nil\)")


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("{}", b"table"),
        ("print or error", b"function"),
        ("function() end", b"function"),
        ("string", b"table"),
        ("msg", b"table"),
        ("setmetatable({}, { __name = 'Tenant' })", b"Tenant"),
        ("string.format('%s and %s', {}, error)", b"table and function"),
        ("string.format('%10s|', {})", b"     table|"),
        ("('%s'):format({})", b"table"),
        ("select(2, pcall(error, 'x' .. tostring({})))", b"xtable"),
        ("select(2, pcall(rawset, string, {}, 1))", b"libraries are read-only, so table cannot be set"),
    ],
)
def test_no_address_is_shown(expression: str, shown: bytes):
    value = value_of(expression)

    assert value == shown or value.endswith(shown)
    assert not LOOKS_LIKE_AN_ADDRESS.search(value)


@pytest.mark.parametrize("template", ["%p", "%-20p", "%%%p", "ptr %s %p"])
def test_the_format_of_an_address_is_refused(template: str):
    hook = compile_on_enqueue(
        f"function on_enqueue(msg) return {{ fairness_key = string.format('{template}', 'a', 'b') }} end"
    )
    failure = route(hook)

    assert isinstance(failure, HookFailure)
    assert "%p is not available to hooks" in failure.text


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("tostring(nil)", b"nil"),
        ("tostring(true)", b"true"),
        ("tostring(1.5)", b"1.5"),
        ("tostring('ends like: 0xabc')", b"ends like: 0xabc"),
        ("setmetatable({}, { __tostring = function() return 'mine' end })", b"mine"),
        (
            "string.format('%s %d %5.1f %q %s %s %%p', 'a', 1, 2.5, 'q', nil, true)",
            b'a 1   2.5 "q" nil true %p',
        ),
        ("string.format('%q', true)", b"true"),
        ("string.format('plain p')", b"plain p"),
    ],
)
def test_everything_else_is_written_as_ever(expression: str, shown: bytes):
    assert value_of(expression) == shown


def test_a_format_without_its_arguments_says_so_as_ever():
    assert b"no value" in value_of("select(2, pcall(string.format, '%s'))")
