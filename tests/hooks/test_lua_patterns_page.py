"""docs/lua-patterns.md says what its examples do, message by message; here they do it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fila_server.hooks.on_failure import DeadLetter, FailedMessage, Retry
from fila_server.hooks.packed import Routing
from fila_server.hooks.sandbox import HookFailure, new_runtime_config
from tests.hooks.conftest import compile_on_enqueue, compile_on_failure, route

PAGE = (Path(__file__).parents[2] / "docs" / "lua-patterns.md").read_text()
EXAMPLE = re.compile(
    r"```lua\n(?P<script>[^`]*)```\n\n\| (?P<kind>message|failure) .*\n\|---\|---\|\n(?P<rows>(?:\|.*\n)+)"
)


@dataclass
class Given:
    """The first cell of a row: headers, config and fields of msg."""

    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    config: dict[bytes, bytes] = field(default_factory=dict)
    msg: dict[str, str] = field(default_factory=dict)


def examples() -> list[tuple[str, str, str, str]]:
    found = []
    for match in EXAMPLE.finditer(PAGE):
        for row in match["rows"].strip().splitlines():
            _, given, expected, _ = row.split("|")
            found.append((match["kind"], match["script"], given.strip(), expected.strip()))
    return found


def read_given(cell: str) -> Given:
    given = Given()
    for span in re.findall(r"`([^`]*)`", cell):
        name, value = span.split("=", 1)
        if name.startswith("config "):
            given.config[name.removeprefix("config ").encode()] = value.encode()
        elif name.startswith("msg."):
            given.msg[name.removeprefix("msg.")] = value
        else:
            given.headers.append((name.encode(), value.encode()))
    return given


def read_routing(cell: str) -> Routing:
    fields = dict(span.split("=", 1) for span in re.findall(r"`([^`]*)`", cell))
    keys = fields.get("throttle_keys")
    return Routing(
        fields["fairness_key"].encode() if "fairness_key" in fields else None,
        int(fields["weight"]) if "weight" in fields else None,
        float(fields["cost"]) if "cost" in fields else None,
        None if keys is None else tuple(key.encode() for key in keys.split(",") if key),
    )


def test_every_example_on_the_page_has_its_table():
    assert PAGE.count("```lua") == len(EXAMPLE.findall(PAGE)) >= 15


@pytest.mark.parametrize(("kind", "script", "given", "expected"), examples())
def test_an_example_does_what_its_table_says(kind, script, given, expected):
    about = read_given(given)
    config = new_runtime_config()
    config.replace(about.config)
    if kind == "message":
        hook = compile_on_enqueue(script, config=config)
        answer = route(hook, about.headers, int(about.msg.get("payload_size", 0)))
        assert answer == read_routing(expected)
        return
    failure = FailedMessage(
        b"orders", b"default", about.headers, b"id", int(about.msg.get("attempts", 1)),
        about.msg.get("error", "").encode(), b"acme",
    )  # fmt: skip
    decision = compile_on_failure(script, config=config).decide(failure)
    if "dlq" in expected:
        assert decision == DeadLetter()
        return
    assert isinstance(decision, Retry)
    bounds = [int(number) for number in re.findall(r"\d+", expected)]
    if not bounds:
        assert decision.delay_ms is None
    else:
        assert decision.delay_ms is not None
        assert bounds[0] <= decision.delay_ms <= bounds[-1]


def pattern_rows() -> list[tuple[int, str, str]]:
    head, _, *rows = PAGE[PAGE.index("| `string.match` on") :].split("\n\n")[0].splitlines()
    patterns = re.findall(r'`"(.*?)"`', head)
    found = []
    for row in rows:
        size, *verdicts = [cell.strip() for cell in row.strip("|").split("|")]
        count, unit = size.split()
        length = int(count) * (1024 if unit == "KiB" else 1)
        found += [(length, pattern, verdict) for pattern, verdict in zip(patterns, verdicts, strict=True)]
    return found


@pytest.mark.parametrize(("length", "pattern", "verdict"), pattern_rows())
def test_the_page_says_which_patterns_are_refused_at_which_length(length, pattern, verdict):
    hook = compile_on_enqueue(
        f"function on_enqueue(msg) local _ = string.match(msg.headers.subject, '{pattern}') return {{}} end"
    )
    answer = route(hook, [(b"subject", b"a" * length)])
    assert isinstance(answer, HookFailure if verdict == "refused" else Routing), answer
