"""What people type, read into what the wire wants: durations, sizes, pairs, policies, moments.

Each parser raises click's BadParameter with the shape it expects, so a typo is answered by
an example and not by a stack trace.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from fila_cli.moments import NoMoment, moment_of

_BYTES_BY_UNIT = {"kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}
RATE_MIN, RATE_MAX = 0.001, 1_000_000_000
DEFAULT = "default"


class Duration(click.ParamType[int]):
    """`30s`, `500ms`, `1h30m`: milliseconds. A bare number would leave the unit to luck."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from fila.values import parse_duration

        if isinstance(value, int):
            return value
        try:
            return parse_duration(value)
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)


class LongerThanNothing(Duration):
    """A duration for which the wire takes 0 as "not given": a 0 that somebody typed must not become the default."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        ms = super().convert(value, param, ctx)
        if ms == 0:
            self.fail(
                "must be longer than 0; for the default, leave it out (update: use --reset)", param, ctx
            )
        return ms


class Size(click.ParamType[int]):
    """`64kb`, `16mb`, `1gb`, or plain bytes; units are powers of 1024."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from fila.values import parse_size

        if isinstance(value, int):
            return value
        try:
            return parse_size(value)
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)


class Pair(click.ParamType[tuple[str, str]]):
    """`key=value`; the value may hold further equal signs."""

    name = "key=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, separator, text = value.partition("=")
        if not separator or not key:
            self.fail(f"{value!r} has no key; write it like tenant=acme", param, ctx)
        return key, text


class Weight(click.ParamType[tuple[str, int]]):
    """`acme=3`: a fairness key and its share relative to others. Keys may hold equal signs."""

    name = "key=weight"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        key, _, weight = value.rpartition("=")
        if not key or not weight.isascii() or not weight.isdigit() or not 1 <= int(weight) <= 1000:
            self.fail(f"{value!r} is no weight; write it like acme=3, from 1 to 1000", param, ctx)
        return key, int(weight)


class Beginning(click.ParamType[str]):
    """What the names of limits begin with. An empty one, such as that of a variable that is not set, is none."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value:
            self.fail(
                "it is empty; give what the names of the limits begin with, such as tenant:, or leave it out "
                "('fila queue update' takes it away with --reset key-limit)",
                param,
                ctx,
            )
        return str(value)


class Reason(click.Choice[str]):
    """Why messages are given up."""

    def __init__(self) -> None:
        super().__init__(["max_attempts", "on_failure", "ttl", "rejected", "skipped"])


class Count(click.IntRange):
    """A whole number, and in an error the numbers that would do."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            least = self.min or 0
            bounds = f"from {least} to {self.max}" if self.max is not None else f"from {least} on"
            self.fail(f"{value!r} is no whole number {bounds}", param, ctx)


class OrDefault(click.ParamType[Any]):
    """What another type reads, or the word `default`."""

    def __init__(self, type_: click.ParamType[Any]) -> None:
        self._type = type_
        self.name = type_.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == DEFAULT else self._type.convert(value, param, ctx)


class Rate(click.ParamType[float]):
    """Messages a second: a number with or without a fraction, and not so small that nothing seems to happen."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            rate = float(value)
        except ValueError:
            rate = 0.0
        if not RATE_MIN <= rate <= RATE_MAX:
            self.fail(
                f"{value!r} is no rate; give messages a second, from {RATE_MIN} to {RATE_MAX:,}", param, ctx
            )
        return rate


class _OrFile:
    """Text as it is, or `@path` for the content of a file."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Files, behind their @."""
        begun = Path(incomplete.removeprefix("@"))
        folder = begun if incomplete.endswith("/") else begun.parent
        try:
            names = sorted(
                each for each in folder.iterdir() if str(each).startswith(incomplete.removeprefix("@"))
            )
        except OSError:
            return []
        return [CompletionItem(f"@{each}{'/' if each.is_dir() else ''}") for each in names]


class Payload(_OrFile, click.ParamType["bytes | None"]):
    """A message's bytes, or `@path` for those of a file; `-` is None: they come from stdin."""

    name = "text|@file|-"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes | None:
        if value == "-":
            return None
        if not value.startswith("@"):
            encoded: bytes = value.encode(errors="surrogateescape")
            return encoded
        try:
            return Path(value[1:]).read_bytes()
        except OSError as error:
            self.fail(
                f"cannot read {value[1:] or 'a file without a name'}: {error.strerror}; "
                "a text that begins with @ goes in by stdin",
                param,
                ctx,
            )


class Source(_OrFile, click.ParamType[str]):
    """A script's text, or `@path` for that of a file."""

    name = "lua|@file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.startswith("@"):
            if value.endswith(".lua"):
                self.fail(f"{value!r} is no Lua; for what is in that file write @{value}", param, ctx)
            return str(value)
        try:
            source = Path(value[1:]).read_text(encoding="utf-8")
            if not source.strip():
                self.fail(f"{value[1:]} is empty; to take a value away use --reset, or 'delete'", param, ctx)
            return source
        except OSError as error:
            self.fail(f"cannot read {value[1:]}: {error.strerror}", param, ctx)
        except UnicodeDecodeError:
            self.fail(f"{value[1:]} is no UTF-8 text", param, ctx)


class Retry(NamedTuple):
    """A retry policy; None where nothing was said, so that the broker's default holds."""

    kind: str
    base_ms: int
    cap_ms: int | None
    jitter: float | None


class RetryType(click.ParamType[Retry]):
    """`exponential:1s..60s`, `fixed:5s`, either with `,jitter=0.5`."""

    name = "policy"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Retry:
        from fila.values import parse_retry

        if isinstance(value, Retry):
            return value
        try:
            policy = parse_retry(value)
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)
        return Retry(policy["kind"], policy["base_ms"], policy.get("cap_ms"), policy.get("jitter"))


class Moment(click.ParamType[datetime]):
    """`2026-11-20 14:00`, `tomorrow 14:00 Europe/Berlin`, without a zone in local time; `-10m` is ten minutes
    ago, `+10m` in ten minutes."""

    name = "time"

    def __init__(self, *, is_ahead: bool = False) -> None:
        self._is_ahead = is_ahead

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        if value[:1] in ("-", "+"):
            offset_s = DURATION.convert(value[1:], param, ctx) / 1000 * (-1 if value[0] == "-" else 1)
            return datetime.fromtimestamp(datetime.now(UTC).timestamp() + offset_s, UTC)
        try:
            return moment_of(value, datetime.now(UTC), is_ahead=self._is_ahead)
        except NoMoment as wrong:
            self.fail(str(wrong), param, ctx)


OFFSET_MAX = 2**64 - 1


class Position(click.ParamType["int | datetime | str"]):
    """Where in a queue's log: an offset, a moment, or one of the words `head` and `oldest`."""

    name = "offset|time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | datetime | str:
        if not isinstance(value, str) or value in ("head", "oldest"):
            return value  # type: ignore[no-any-return]
        if value.isascii() and value.isdigit():
            # Python reads no number of thousands of digits.
            if len(value) > 20 or int(value) > OFFSET_MAX:
                self.fail(f"{value[:30]!r} is no offset; they go up to {OFFSET_MAX}", param, ctx)
            return int(value)
        return MOMENT.convert(value, param, ctx)


DURATION, SOME_TIME = Duration(), LongerThanNothing()
REASON = Reason()
SIZE, PAIR, WEIGHT, SOURCE, PAYLOAD = Size(), Pair(), Weight(), Source(), Payload()
RETRY, MOMENT, POSITION, RATE = RetryType(), Moment(), Position(), Rate()
MOMENT_AHEAD = Moment(is_ahead=True)
BEGINNING = Beginning()


def duration_text(ms: int) -> str:
    """The shortest way to say it that `Duration` reads back: 30s, 1h30m, 250ms."""
    from fila import values

    return values.duration_text(ms)


def age_text(ms: int) -> str:
    """A duration for people: two parts are enough."""
    if ms < 1_000:
        return f"{ms}ms"
    parts = re.findall(r"\d+[a-z]+", duration_text(ms - ms % 1_000))
    return "".join(parts[:2])


def rough_size_text(size: int) -> str:
    """A size for people: one decimal is enough."""
    for unit in ("tb", "gb", "mb", "kb"):
        if size >= _BYTES_BY_UNIT[unit]:
            return f"{size / _BYTES_BY_UNIT[unit]:.1f}{unit}"
    return f"{size} bytes"


def size_text(size: int) -> str:
    """The shortest way to say it that `Size` reads back exactly."""
    for unit in ("tb", "gb", "mb", "kb"):
        if size and size % _BYTES_BY_UNIT[unit] == 0:
            return f"{size // _BYTES_BY_UNIT[unit]}{unit}"
    return str(size)


def is_pause(value: Any) -> bool:
    """Whether a file may say so of a pause: that there is one, that there is none, or why there is one."""
    return isinstance(value, bool) or (isinstance(value, str) and bool(value))
