"""What a file says of single fairness keys, and what was set for them.

    [queues.orders.keys.acme]
    weight = 3
    cap = 10
    rate = 5
    burst = 20
    committed = 2
    paused = true                        # or a text, which says why

A number that the file does not name stays as it is; 0 takes it away, also where the queue has a default for each key.
A key is resumed only by `paused = false`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from fila_cli.values import is_pause

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import KeyDefaults, SetKeyPolicyRequest
    from fila.v1.events_pb2 import KeyPolicy

KeyValue = float | bool | str
KeySettings = dict[str, KeyValue]
"""Of one key, by the file's words."""

FIELDS = {
    "weight": "weight",
    "cap": "max_in_flight",
    "rate": "rate_per_second",
    "burst": "burst",
    "committed": "committed_per_second",
    "paused": "paused",
}
"""The file's words, and what KeyPolicy and SetKeyPolicyRequest call them."""

_DEFAULTED = ("cap", "rate", "committed")
"""What a queue may have a default of, and 0 says that a key has none."""
_WHOLE = ("weight", "cap")
_MOST = {"weight": 1000, "cap": 2**32 - 1, "rate": 1e9, "burst": 1e9, "committed": 1e9}


def key_settings(place: str, table: Any) -> dict[str, KeySettings]:
    """The tables of a queue's keys, checked; `place` is how a refusal begins."""
    if not isinstance(table, dict) or not all(isinstance(each, dict) for each in table.values()):
        raise _wrong(f"{place} must hold a table a key, as [{place}.acme]")
    return {key: dict(_checked(f"{place}.{key}", settings)) for key, settings in table.items()}


def _checked(place: str, settings: dict[str, Any]) -> Iterator[tuple[str, KeyValue]]:
    for name, value in settings.items():
        if name not in FIELDS:
            raise _wrong(f"{place}.{name} is no setting of a key; known are {', '.join(FIELDS)}")
        if name == "paused":
            if not is_pause(value):
                raise _wrong(f"{place}.paused must be true, false, or a text that says why")
        elif isinstance(value, bool) or not isinstance(value, int if name in _WHOLE else int | float):
            raise _wrong(f"{place}.{name} must be a {'whole ' if name in _WHOLE else ''}number")
        elif not 0 <= value <= _MOST[name]:
            raise _wrong(f"{place}.{name} must be 0 to {_MOST[name]:g}, got {value:g}")
        yield name, value


def _wrong(text: str) -> click.BadParameter:
    return click.BadParameter(text, param_hint="'FILE'")


def policies(admin: Any, queue: str, timeout_s: float | None) -> Iterator[KeyPolicy]:
    """What was set for each key of a queue, page after page, sorted by key; `admin` is FilaAdmin's stub."""
    from fila.v1 import events_pb2

    after = ""
    while True:
        request = events_pb2.ListKeyPoliciesRequest(queue=queue, after=after)
        page = admin.ListKeyPolicies(request, timeout=timeout_s).policies
        # An older broker knows no pages, and says the same again.
        if not page or page[-1].fairness_key <= after:
            return
        yield from page
        after = page[-1].fairness_key


def value_of(policy: KeyPolicy | None, name: str, defaults: KeyDefaults | None) -> KeyValue | None:
    """What an operator set of one setting, where the queue's keys have such defaults; None where nothing was set. The
    broker does not tell a 0 that was set from nothing where there is no default: both are None then."""
    if name == "paused":
        return policy is not None and (policy.pause.comment or policy.paused)
    if policy is None or name in _by_default(policy):
        return None
    value: float = getattr(policy, FIELDS[name])
    return value if value or _default(defaults, name) else None


def differs(
    policy: KeyPolicy | None,
    name: str,
    wanted: KeyValue,
    *,
    there: KeyDefaults | None,
    asked: KeyDefaults | None,
) -> bool:
    """Whether a file asks for anything else; where it pauses and does not say why, the reason that is there stays.

    `there` are the defaults that the queue's keys have, `asked` those that the file gives them. A 0 takes nothing away
    where nothing was set, unless a default would hold.
    """
    value = value_of(policy, name, there)
    if value is None and wanted == 0:
        return bool(_default(asked, name))
    return not value if wanted is True else value != wanted


def _default(defaults: KeyDefaults | None, name: str) -> float:
    """What a key of the queue has for which nothing was set; a burst goes with its rate, and is never 0 alone."""
    return getattr(defaults, FIELDS[name]) if defaults is not None and name in _DEFAULTED else 0


def _by_default(policy: KeyPolicy) -> tuple[str, ...]:
    return (
        ("cap",) * policy.cap_by_default
        + ("rate", "burst") * policy.rate_by_default
        + ("committed",) * policy.committed_by_default
    )


def text_of(value: KeyValue | None, quoted: Callable[[str], str]) -> str:
    """A value as a file has it; nothing where a file leaves it out."""
    if value is None:
        return ""
    if isinstance(value, str):
        return quoted(value)
    return str(value).lower() if isinstance(value, bool) else f"{value:.17g}"


def lines_of(policy: KeyPolicy, defaults: KeyDefaults | None, quoted: Callable[[str], str]) -> list[str]:
    """A key's table, as a file has it, without its heading; nothing where nothing was set."""
    told = ((name, value_of(policy, name, defaults)) for name in FIELDS)
    return [
        f"{name} = {text_of(value, quoted)}"
        for name, value in told
        if value is not None and value is not False
    ]


def request_of(queue: str, key: str, settings: KeySettings, names: Iterable[str]) -> SetKeyPolicyRequest:
    """The call that sets these of a key's settings."""
    from fila.v1 import admin_pb2

    given: Any = {FIELDS[name]: settings[name] for name in names}
    if isinstance(why := given.get("paused"), str):
        given |= {"paused": True, "comment": why}
    return admin_pb2.SetKeyPolicyRequest(queue=queue, fairness_key=key, **given)
