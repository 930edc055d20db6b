"""Schedules in a file of `fila apply`, and in words.

    [queues.reports.schedules.daily]
    cron = "0 9 * * 1-5"
    tz = "Europe/Berlin"
    payload = "{}"                # or "@report.json", beside the file
    headers = { tenant = "acme" }
    missed = "all"

    [queues.reports.schedules.ping]
    every = "5m"
    ttl = "1h"

What a file does not name stays; `paused` stays as it is unless the file says it: true, false, or a text that says why.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fila_cli.values import DURATION, duration_text, is_pause

if TYPE_CHECKING:
    from fila.v1.schedule_pb2 import MissedRule, ScheduleSettings

WORDS = ("cron", "every", "tz", "payload", "payload-base64", "headers", "ttl", "missed", "paused")

Wrong = Callable[[str], Exception]


def schedules_of(
    path: Path, queue: str, tables: Any, wrong: Wrong
) -> dict[tuple[str, str], tuple[ScheduleSettings, str | None]]:
    """The schedules of a queue's table, by queue and name."""
    place = f"queues.{queue}.schedules"
    if not isinstance(tables, dict):
        raise wrong(f"{path}: {place} must be tables, as [{place}.daily]")
    return {
        (queue, name): settings_of(path, f"{place}.{name}", table, wrong) for name, table in tables.items()
    }


def settings_of(path: Path, place: str, table: Any, wrong: Wrong) -> tuple[ScheduleSettings, str | None]:
    """A schedule's settings, and why it is paused; None where the file does not say whether it is. Raises what `wrong`
    makes of a text."""
    from fila.v1 import schedule_pb2

    if not isinstance(table, dict):
        raise wrong(f"{path}: {place} must be a table")
    settings = schedule_pb2.ScheduleSettings(missed=schedule_pb2.MISSED_RULE_ONE)
    for word, value in table.items():
        if word not in WORDS:
            raise wrong(f"{path}: {place}.{word} is no setting; known are {', '.join(WORDS)}")
        _take(settings, path, f"{place}.{word}", word, value, wrong)
    said = table.get("paused")
    return settings, said if isinstance(said, str) else None if said is None else ""


def _take(settings: ScheduleSettings, path: Path, place: str, word: str, value: Any, wrong: Wrong) -> None:
    if word == "paused":
        if not is_pause(value):
            raise wrong(f"{path}: {place} must be true, false, or a text that says why")
        settings.paused = bool(value)
        return
    if word == "headers":
        if not (isinstance(value, dict) and all(isinstance(each, str) for each in value.values())):
            raise wrong(f'{path}: {place} must be a table of texts, as {{ tenant = "acme" }}')
        settings.headers.update(value)
        return
    if not isinstance(value, str):
        raise wrong(f"{path}: {place} must be text")
    try:
        if word == "missed":
            settings.missed = rule_called(value)
        elif word in ("every", "ttl"):
            setattr(settings, f"{word}_ms", DURATION.convert(value, None, None))
        elif word == "payload":
            settings.payload = (
                (path.parent / value[1:]).read_bytes() if value.startswith("@") else value.encode()
            )
        elif word == "payload-base64":
            settings.payload = base64.b64decode(value, validate=True)
        else:
            setattr(settings, "time_zone" if word == "tz" else word, value)
    except Exception as error:
        raise wrong(f"{path}: {place}: {getattr(error, 'message', error)}") from error


def schedule_lines(
    settings: ScheduleSettings, quoted: Callable[[str], str], why: str = ""
) -> list[tuple[str, str]]:
    """A schedule as such a file has it; `why` it is paused, where it is."""
    lines = []
    if settings.cron:
        lines.append(("cron", quoted(settings.cron)))
    if settings.every_ms:
        lines.append(("every", quoted(duration_text(settings.every_ms))))
    if settings.time_zone:
        lines.append(("tz", quoted(settings.time_zone)))
    if settings.payload:
        try:
            text = settings.payload.decode()
        except UnicodeDecodeError:
            text = "@"
        if text.startswith("@"):
            lines.append(("payload-base64", quoted(base64.b64encode(settings.payload).decode())))
        else:
            lines.append(("payload", quoted(text)))
    if settings.headers:
        pairs = ", ".join(
            f"{quoted(name)} = {quoted(value)}" for name, value in sorted(settings.headers.items())
        )
        lines.append(("headers", f"{{ {pairs} }}"))
    if settings.ttl_ms:
        lines.append(("ttl", quoted(duration_text(settings.ttl_ms))))
    if rule_of(settings) != "one":
        lines.append(("missed", quoted(rule_of(settings))))
    if settings.paused:
        lines.append(("paused", quoted(why) if why else "true"))
    return lines


def rule_called(word: str) -> MissedRule:
    """Raises ValueError for another word than `one`, `all` and `skip`."""
    from fila.v1 import schedule_pb2

    rules = {
        "one": schedule_pb2.MISSED_RULE_ONE,
        "all": schedule_pb2.MISSED_RULE_ALL,
        "skip": schedule_pb2.MISSED_RULE_SKIP,
    }
    if word not in rules:
        raise ValueError(f"must be one, all or skip, got {word}")
    return rules[word]


def rule_of(settings: ScheduleSettings) -> str:
    """`one`, `all` or `skip`."""
    from fila.v1 import schedule_pb2

    word = schedule_pb2.MissedRule.Name(settings.missed).removeprefix("MISSED_RULE_").lower()
    return "one" if word == "unspecified" else word


def duration_or_cron(settings: ScheduleSettings) -> str:
    """`every 5m`, or `0 9 * * 1-5 Europe/Berlin`."""
    if settings.every_ms:
        return f"every {duration_text(settings.every_ms)}"
    return f"{settings.cron} {settings.time_zone or 'UTC'}"
