"""Whether an answer is what a scenario expects, and if not, where they differ.

A mapping is compared by the fields that are expected; a list as a whole; a mapping with a word of `MATCHERS`
alone states a property instead of a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from .values import to_bytes

_MISSING = object()


def differences(expected: Any, actual: Any, where: str = "answer") -> Iterator[str]:
    """Yield one line for each place where `actual` is not as expected."""
    if isinstance(expected, dict):
        words = set(expected) & set(MATCHERS)
        if words:
            for word in sorted(words):
                yield from MATCHERS[word](expected, actual, where)
            return
        if where.endswith(".payload"):
            yield from _same(to_bytes(expected), actual, where)
            return
        if not isinstance(actual, dict):
            yield f"{where}: expected {_short(expected)}, got {_short(actual)}"
            return
        for key, value in expected.items():
            yield from differences(value, actual.get(key, _MISSING), f"{where}.{key}")
    elif isinstance(expected, list):
        if not isinstance(actual, list):
            yield f"{where}: expected a list, got {_short(actual)}"
        elif len(expected) != len(actual):
            yield f"{where}: expected {len(expected)} items, got {len(actual)}: {_short(actual)}"
        else:
            for i, (one, other) in enumerate(zip(expected, actual, strict=True)):
                yield from differences(one, other, f"{where}.{i}")
    elif isinstance(actual, bytes):
        yield from _same(to_bytes(expected), actual, where)
    else:
        yield from _same(expected, actual, where)


def _same(expected: Any, actual: Any, where: str) -> Iterator[str]:
    if expected != actual or isinstance(expected, bool) != isinstance(actual, bool):
        yield f"{where}: expected {_short(expected)}, got {_short(actual)}"


def _short(value: Any) -> str:
    if value is _MISSING:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}... ({len(text)} characters)"


def _matches(expected: Any, actual: Any, where: str) -> Iterator[str]:
    if not isinstance(actual, str) or not re.search(expected["matches"], actual):
        yield f"{where}: expected something like {expected['matches']!r}, got {_short(actual)}"


def _bound(word: str, holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any, str], Iterator[str]]:
    def judge(expected: Any, actual: Any, where: str) -> Iterator[str]:
        bound = expected[word] + expected.get("plus", 0)
        if isinstance(actual, bool) or not isinstance(actual, int | float) or not holds(actual, bound):
            yield f"{where}: expected {word} {bound}, got {_short(actual)}"

    return judge


def _length(expected: Any, actual: Any, where: str) -> Iterator[str]:
    if not isinstance(actual, list | str | bytes | dict):
        yield f"{where}: expected something with a length, got {_short(actual)}"
    else:
        yield from differences(expected["length"], len(actual), f"{where} (length)")


def _contains(expected: Any, actual: Any, where: str) -> Iterator[str]:
    wanted = expected["contains"]
    if isinstance(actual, list):
        if not any(not list(differences(wanted, item)) for item in actual):
            yield f"{where}: expected an item like {_short(wanted)}, got {_short(actual)}"
    elif not isinstance(actual, str) or wanted not in actual:
        yield f"{where}: expected to contain {wanted!r}, got {_short(actual)}"


def _set(expected: Any, actual: Any, where: str) -> Iterator[str]:
    wanted = expected["set"]
    if not isinstance(actual, list) or len(actual) != len(wanted):
        yield f"{where}: expected, in any order, {_short(wanted)}, got {_short(actual)}"
        return
    left = list(actual)
    for item in wanted:
        found = next((i for i, other in enumerate(left) if not list(differences(item, other))), None)
        if found is None:
            yield f"{where}: expected an item like {_short(item)}, got {_short(actual)}"
            return
        del left[found]


def _each(expected: Any, actual: Any, where: str) -> Iterator[str]:
    if not isinstance(actual, list) or not actual:
        yield f"{where}: expected a list with items, got {_short(actual)}"
        return
    for i, item in enumerate(actual):
        yield from differences(expected["each"], item, f"{where}.{i}")


def _any(_expected: Any, actual: Any, where: str) -> Iterator[str]:
    if actual is _MISSING or actual is None:
        yield f"{where}: expected something, got nothing"


def _absent(_expected: Any, actual: Any, where: str) -> Iterator[str]:
    if actual is not _MISSING and actual is not None:
        yield f"{where}: expected nothing, got {_short(actual)}"


def _field(item: Any, path: str) -> Any:
    for part in path.split("."):
        item = item[part]
    return item


def _distinct(expected: Any, actual: Any, where: str) -> Iterator[str]:
    values = [_field(item, expected["distinct"]) for item in actual]
    twice = [value for value in values if values.count(value) > 1] if len(values) != len(set(values)) else []
    if twice:
        yield f"{where}: {expected['distinct']} {_short(twice[0])} comes more than once"


def _ascending(expected: Any, actual: Any, where: str) -> Iterator[str]:
    newest: dict[Any, Any] = {}
    for i, item in enumerate(actual):
        group = _field(item, expected["per"]) if "per" in expected else None
        value = _field(item, expected["ascending"])
        value = int(value) if isinstance(value, bytes) else value
        if group in newest and value <= newest[group]:
            yield f"{where}.{i}: {expected['ascending']} {value} comes after {newest[group]} (of {group!r})"
            return
        newest[group] = value


MATCHERS: dict[str, Callable[[Any, Any, str], Iterator[str]]] = {
    "matches": _matches,
    "at_least": _bound("at_least", lambda actual, bound: actual >= bound),
    "at_most": _bound("at_most", lambda actual, bound: actual <= bound),
    "length": _length,
    "contains": _contains,
    "set": _set,
    "each": _each,
    "any": _any,
    "absent": _absent,
    "distinct": _distinct,
    "ascending": _ascending,
}
