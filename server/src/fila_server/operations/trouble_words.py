"""The sentence of a trouble, and the lever: the words that the console, the command line and events have in common.

A caller that sees some of the places of a trouble is told of these and of no other by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from fila.shell_words import command_line
from fila_server.broker.mirror import DEFAULT_CHANNEL, DLQ_SUFFIX
from fila_server.operations import trouble_kinds as kinds
from fila_server.operations.trouble_facts import ACKNOWLEDGED, Circuit, Disk, Found, Limit, Pause
from fila_server.operations.trouble_kinds import Kind
from fila_server.operations.trouble_rates import FailingNow, FloodNow, LimitNow

ALL_IS_WELL = "All is well."
ALL_IS_WELL_IN_PART = "All is well, of what you may see."
STOPPING = "The broker is stopping: nothing new is taken."
COMMENT_CHARS_MAX = 200
NOT_LOOKED_YET = "The broker has just started and has not looked around yet."


class Words(NamedTuple):
    text: str
    lever: str
    command: str = ""


class About(NamedTuple):
    """What a trouble is about; what does not apply is empty."""

    kind: Kind
    queue: str = ""
    channel: str = ""
    fairness_key: str = ""
    throttle_key: str = ""
    part: str = ""
    """The script; or that the queue as a whole is meant, apart from its key without a name."""


def words(about: About, fact: Any, waiting: int, since_ms: int, now_ms: int) -> Words:
    """What is told of it at a moment; `fact` is what its kind is judged by."""
    age = age_text(now_ms - since_ms)
    kind = about.kind
    if kind in (kinds.LOST, kinds.DAMAGED):
        return _of_damage(kind, fact, age, now_ms)
    if kind is kinds.DISK:
        return _of_disk(fact, age)
    if kind is kinds.CIRCUIT_OPEN:
        return _of_circuit(fact, age)
    if kind is kinds.NOBODY_CONSUMES:
        command = command_line("fila consumer list", about.queue)
        text = f"Nobody has consumed {_where(about)} for {age}: {_wait(waiting)}."
        return Words(text, "Start a consumer", command)
    if kind is kinds.FAILING:
        return _of_failing(about, fact, waiting, age)
    if kind is kinds.PAUSED:
        return _of_pause(about, fact, waiting, age)
    if kind is kinds.LIMIT_BEHIND:
        return _of_limit(about, fact, waiting, age)
    if kind is kinds.BUDGET_SPENT:
        return _of_budget(fact, waiting, age, now_ms)
    return _of_flood(about, fact, waiting, age)


def _of_damage(kind: Kind, found: Found, age: str, now_ms: int) -> Words:
    until = datetime.fromtimestamp(math.ceil(now_ms / 1000), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    command = f"fila config set {ACKNOWLEDGED} {until}"
    if kind is kinds.DAMAGED:
        text = f"The disk damaged the store, and nothing is lost: found {age} ago, when the broker started."
        return Words(text, "Look at the disk, then acknowledge it", command)
    lost = f"{_counted(found.messages, 'message')} in " if found.messages else ""
    text = f"Messages are lost to damage: {lost}{_counted(found.ranges, 'range')}, found {age} ago."
    return Words(text, "Look at the disk and the log, then acknowledge it", command)


def _of_disk(disk: Disk, age: str) -> Words:
    refused = "every write is refused" if disk.is_full else "enqueues are refused"
    level = "full" if disk.is_full else "nearly full"
    text = f"The disk has been {level} for {age}, {disk.free_bytes // 1_000_000:,} MB left: {refused}."
    return Words(text, "Make room on it", "fila queue list")


def _of_circuit(circuit: Circuit, age: str) -> Words:
    decides = "route its messages" if circuit.hook == "on_enqueue" else "decide its failures"
    text = (
        f"The script {circuit.hook} of {circuit.queue} has failed for {age} and is not called: the queue's settings "
        f"{decides}."
    )
    return Words(text, "Mend the script", command_line("fila hook show", circuit.queue))


def _of_failing(about: About, now: FailingNow, waiting: int, age: str) -> Words:
    said = []
    if now.ended:
        said.append(f"{now.part:.0%} of its deliveries in the last minute")
    if now.dead_a_minute >= 1:
        said.append(f"{now.dead_a_minute:,.0f} dead letters a minute")
    elif now.dead:
        said.append(f"{_counted(now.dead, 'dead letter')} within {kinds.DEAD_S / 60:.0f} min")
    behind = f"; {_wait(waiting)}" if waiting else ""
    text = f"{about.queue} has been failing for {age}: {', '.join(said)}{behind}."
    return Words(text, "See why they fail", command_line("fila dlq group", about.queue + DLQ_SUFFIX))


def _of_pause(about: About, pause: Pause, waiting: int, age: str) -> Words:
    by = f" by {pause.by}" if pause.by else ""
    least = "" if pause.since_ms else "at least "
    why = f' ("{_quotable(pause.comment)}")' if pause.comment else ""
    if pause.is_queue:
        text = f"{about.queue} has been paused{by} for {least}{age}{why}: {_wait(waiting)}."
        return Words(text, f"Resume {about.queue}", command_line("fila queue resume", about.queue))
    if pause.channel:
        where = f"the channel {about.channel} of {about.queue}"
        text = f"{where[0].upper()}{where[1:]} has been paused{by} for {least}{age}{why}: {_wait(waiting)}."
        command = command_line("fila channel resume", about.queue, about.channel)
        return Words(text, f"Resume {where}", command)
    key = named(about.fairness_key)
    text = f"{key} in {about.queue} has been paused{by} for {least}{age}{why}: {_wait(waiting)}."
    command = command_line("fila key resume", about.queue, about.fairness_key)
    return Words(text, f"Resume {key}", command)


def _of_limit(about: About, now: LimitNow, waiting: int, age: str) -> Words:
    bucket = about.throttle_key
    slots = f", with its {_counted(now.slots, 'slot')} in use" if now.slots else ""
    text = (
        f"{bucket} has fallen behind for {age}: {_rate(now.needed)} a second need it, and it lets {_rate(now.rate)} "
        f"through{slots}; {_wait(waiting)} in {_queues(now.places)}."
    )
    if now.is_compound:  # a limit is set as a whole, and which part of it may be more is for people to say
        return Words(text, f"Raise the limit of {bucket}", command_line("fila limit show", bucket))
    wanted = math.ceil(max(now.needed, now.rate) * 1.2)
    value = f"{wanted:g},{max(now.burst, wanted):g}"
    return Words(
        text, f"Raise the rate of {bucket}", command_line("fila config set", f"throttle.{bucket}", value)
    )


def _of_budget(row: Limit, waiting: int, age: str, now_ms: int) -> Words:
    bucket = row.throttle_key
    amount = f"{row.amount:,.0f}" if row.amount == int(row.amount) else f"{row.amount:,.10g}"
    allowed = f"cost {amount}" if row.in_cost else f"{amount} messages"
    text = (
        f"{bucket} has spent its budget of {allowed} in {age_text(row.period_ms)} for {age}: {_wait(waiting)} in "
        f"{_queues(row.places)} for the next one, in {age_text(row.ends_ms - now_ms)}."
    )
    return Words(text, f"Raise the budget of {bucket}, or wait", command_line("fila limit show", bucket))


def _of_flood(about: About, now: FloodNow, waiting: int, age: str) -> Words:
    key = named(about.fairness_key)
    others = "1 other key waits" if now.others == 1 else f"{now.others:,} other keys wait"
    text = (
        f"{key} has flooded {_where(about)} for {age}: {_counted(waiting, 'message')}, {now.part:.0%} of what waits; "
        f"{_rate(now.arriving)} a second come and {_rate(now.served)} are delivered; {others} for it."
    )
    rate = max(now.served / 2, 1)
    command = command_line("fila key rate", about.queue, about.fairness_key, _rate(rate).replace(",", ""))
    return Words(text, f"Slow {key}", command)


def age_text(milliseconds: int) -> str:
    """`40 s`, `12 min`, `5 h 10 min`, `3 days`."""
    seconds = max(milliseconds, 0) // 1000
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    if seconds < 48 * 3600:
        return f"{seconds // 3600} h {seconds % 3600 // 60} min"
    return f"{seconds // 86_400} days"


def named(fairness_key: str) -> str:
    """A key as people read it; the empty one has a name too."""
    return fairness_key or "(no key)"


def _quotable(comment: str) -> str:
    """What people wrote, short, on one line, and without characters that steer a terminal or turn text around."""
    shown = comment if len(comment) <= COMMENT_CHARS_MAX else comment[: COMMENT_CHARS_MAX - 3] + "..."
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in shown)


def _where(about: About) -> str:
    return about.queue if about.channel in ("", DEFAULT_CHANNEL) else f"{about.queue} / {about.channel}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def _wait(messages: int) -> str:
    return f"{_counted(messages, 'message')} {'waits' if messages == 1 else 'wait'}"


def _rate(a_second: float) -> str:
    return f"{a_second:,.0f}" if a_second >= 10 else f"{a_second:.2g}"


def _queues(places: Sequence[tuple[str, str, int]]) -> str:
    return _listed(sorted({queue for queue, _, _ in places}))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and others"
