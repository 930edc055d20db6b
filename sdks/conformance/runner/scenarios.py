"""What a scenario file holds: names, and steps in order. A mistake in a file is found when it is read.

Next: play.py, which plays them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

STEP_KEYS = {"as", "expect", "error", "background", "cancelled", "within_ms", "times"}
"""What may stand in a step beside its one operation."""

SCENARIO_KEYS = {
    "name",
    "given",
    "when",
    "then",
    "own_broker",
    "connect",
    "options",
    "needs",
    "counts_frames",
}


@dataclass(frozen=True)
class Step:
    """One operation, and what is expected of it."""

    operation: str
    arguments: Any
    remember_as: str | None
    expected: Any
    error: dict[str, Any] | None
    background: str | None
    cancelled: bool
    within_ms: int | None
    times: int


@dataclass(frozen=True)
class Scenario:
    """One behaviour that all SDKs share."""

    name: str
    file: str
    steps: tuple[Step, ...]
    connects: bool
    """Whether a client named `c` is connected before the first step."""
    options: dict[str, Any]
    """The options of that client."""
    broker_settings: dict[str, str] | None
    """None: the shared broker will do. Else this scenario has one to itself, with these settings."""
    needs: frozenset[str]
    """What a language must be capable of; `drivers.yaml` says what one lacks by its nature."""
    counts_frames: bool
    """Whether what counts the frames of its clients stands in front of the broker."""


class MalformedScenario(Exception):
    """A scenario file says something the runner does not understand."""


def load(folder: Path) -> list[Scenario]:
    """Return the scenarios of every file in `folder`, in the order of names and lines."""
    scenarios = []
    for path in sorted(folder.glob("*.yaml")):
        for item in yaml.load(path.read_text(), yaml.CSafeLoader) or []:
            try:
                scenarios.append(_scenario(item, path.stem))
            except (KeyError, TypeError, ValueError) as wrong:
                raise MalformedScenario(f"{path.name}: {item.get('name', item)}: {wrong}") from wrong
    names = [scenario.name for scenario in scenarios]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise MalformedScenario(f"two scenarios have the name {twice[0]!r}")
    return scenarios


def _scenario(item: dict[str, Any], file: str) -> Scenario:
    unknown = set(item) - SCENARIO_KEYS
    if unknown:
        raise ValueError(f"unknown key {min(unknown)!r}; known are {', '.join(sorted(SCENARIO_KEYS))}")
    steps = [_step(step) for part in ("given", "when", "then") for step in item.get(part) or []]
    own = item.get("own_broker")
    return Scenario(
        name=item["name"],
        file=file,
        steps=tuple(steps),
        connects=item.get("connect") != "none",
        options=item.get("options") or {},
        broker_settings=None if not own else ({} if own is True else {k: str(v) for k, v in own.items()}),
        needs=frozenset(item.get("needs") or ()),
        counts_frames=bool(item.get("counts_frames")),
    )


def _step(item: dict[str, Any]) -> Step:
    operations = [key for key in item if key not in STEP_KEYS]
    if len(operations) != 1:
        raise ValueError(f"a step has one operation, found {operations or 'none'} in {item}")
    operation = operations[0]
    if "expect" in item and "error" in item:
        raise ValueError(f"a step expects an answer or an error, not both: {item}")
    return Step(
        operation=operation,
        arguments=item[operation],
        remember_as=item.get("as"),
        expected=item.get("expect"),
        error=item.get("error"),
        background=item.get("background"),
        cancelled=bool(item.get("cancelled")),
        within_ms=item.get("within_ms"),
        times=item.get("times", 1),
    )
