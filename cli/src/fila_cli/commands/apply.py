"""`fila apply`, `diff` and `export`: queues kept in a file."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fila_cli.arguments import limits_there, without_doubles
from fila_cli.colors import Meaning, paint
from fila_cli.commands.channel import set_channel_paused
from fila_cli.commands.schedule import listed_schedules
from fila_cli.declared import (
    Declared,
    Difference,
    as_toml,
    differences,
    differing,
    limit_differences,
    paused_channels_text,
    quoted,
    read,
)
from fila_cli.declared_keys import differs, lines_of, policies, request_of, text_of, value_of
from fila_cli.declared_schedules import WORDS, schedule_lines
from fila_cli.failures import BrokerError, reason_of
from fila_cli.output import counted, printable, show
from fila_cli.session import Command, Session

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import KeyDefaults, QueueConfig
    from fila.v1.events_pb2 import KeyPolicy


def _takes_file(command: Callable[..., Any]) -> Callable[..., Any]:
    """FILE, or -f FILE as kubectl has it, handed on as `path`."""

    @click.argument("path", type=click.Path(path_type=Path), metavar="FILE", required=False)
    @click.option(
        "-f", "--file", "same", type=click.Path(path_type=Path), metavar="FILE", help="The same as FILE"
    )
    @functools.wraps(command)
    def with_file(*args: Any, path: Path | None, same: Path | None, **given: Any) -> Any:
        if (path is None) == (same is None):
            raise click.UsageError("give one FILE, in TOML; 'fila export > queues.toml' writes one")
        return command(*args, path=path or same, **given)

    return with_file


class Change(NamedTuple):
    """One thing that differs."""

    what: str
    """`create`, `update`, `channel`, `pauses` (of channels), `key`, `config`, `limit`, `schedule` (a new one) or
    `reschedule`."""
    name: str
    fields: list[str]
    """Of the contract's QueueConfig, as an update's mask names them."""
    settings: list[Difference]
    """The same in the file's words."""


@click.command(
    cls=Command,
    examples="""
    fila apply queues.toml
    fila apply queues.toml -o json
    """,
)
@_takes_file
@click.pass_obj
def apply(session: Session, path: Path) -> None:
    """Create and change what FILE asks for. What it does not name stays as it is; nothing is deleted."""
    declared = read(path)
    changes = _changes(session, declared)
    for at, change in enumerate(changes):
        try:
            _carry_out(session, declared, change)
        except BaseException:
            # One of them was refused, or somebody stops it: what was changed before stays changed.
            if at:
                _show(session, changes[:at], f"changed, and {len(changes) - at} not")
            raise
    _show(session, changes, "changed")


@click.command(cls=Command, examples="fila diff queues.toml")
@_takes_file
@click.pass_obj
def diff(session: Session, path: Path) -> None:
    """Say what 'fila apply' would create and change."""
    _show(session, _changes(session, read(path)), "would change")


@click.command(
    cls=Command,
    examples="""
    fila export > queues.toml
    fila export orders mails
    fila export --keys orders
    """,
)
@click.argument("queues", nargs=-1)
@click.option(
    "--keys", is_flag=True, help="With what was set for single fairness keys: weight, cap, rate, pause"
)
@click.pass_obj
def export(session: Session, queues: tuple[str, ...], *, keys: bool) -> None:
    """Print the queues there are, or those that are named, as a file for 'fila apply'; dead-letter queues apart."""
    from fila.v1 import admin_pb2

    listed = session.admin.ListQueues(admin_pb2.ListQueuesRequest(), timeout=session.timeout_s).queues
    names = queues or [each.name for each in listed if not each.name.endswith(".dlq")]
    entries = session.admin.ListConfig(admin_pb2.ListConfigRequest(), timeout=session.timeout_s).entries
    values = {} if queues else {entry.key: entry.value for entry in without_doubles(entries, "")}
    limits = [] if queues else [state.limit for state in limits_there(session)]
    for limit in limits:
        values.pop(f"throttle.{limit.name}", None)  # its short form says less
    print(as_toml({}, values, limits), end="\n" if (values or limits) and names else "")
    for name in names:
        got = session.admin.GetQueue(admin_pb2.GetQueueRequest(queue=name), timeout=session.timeout_s)
        config = got.config
        del config.channels[:]
        channels = _channels(session, name)
        config.channels.extend(channels)
        schedules = listed_schedules(session, name)
        paused = _paused_channels(config, channels)
        table = as_toml({name: config}, {}, why=got.pause.comment, paused_channels=paused)
        print(table, end="\n" if name != names[-1] or keys or schedules else "")
        for each in schedules:
            print(f"[queues.{quoted(name)}.schedules.{quoted(each.schedule)}]")
            told = schedule_lines(each.settings, quoted, each.pause.comment)
            print(*(f"{word} = {value}" for word, value in told), "", sep="\n")
        for policy in policies(session.admin, name, session.timeout_s) if keys else ():
            if lines := lines_of(policy, config.key_defaults, quoted):
                heading = f"[queues.{quoted(name)}.keys.{quoted(policy.fairness_key)}]"
                print(heading, *lines, "", sep="\n")


def _channels(session: Session, queue: str) -> dict[str, str]:
    """By name, and why each is paused, where it is and somebody said so."""
    from fila.v1 import admin_pb2

    request = admin_pb2.ListChannelsRequest(queue=queue)
    listed = session.admin.ListChannels(request, timeout=session.timeout_s).channels
    return {each.name: each.pause.comment for each in listed}


def _paused_channels(config: QueueConfig, channels: dict[str, str]) -> dict[str, str]:
    return {name: channels.get(name, "") for name in config.paused_channels}


def _changes(session: Session, declared: Declared) -> list[Change]:
    import grpc

    from fila.v1 import admin_pb2

    changes = []
    entries = session.admin.ListConfig(admin_pb2.ListConfigRequest(), timeout=session.timeout_s).entries
    there = {entry.key: entry.value for entry in entries}
    changes += [
        Change("config", key, [], [Difference("", quoted(there[key]) if key in there else "", quoted(value))])
        for key, value in declared.config.items()
        if there.get(key) != value
    ]
    known = {state.limit.name: state.limit for state in limits_there(session)} if declared.limits else {}
    for name, limit in declared.limits.items():
        if differs := limit_differences(limit, known.get(name)):
            changes.append(Change("limit", name, [], differs))
    for queue, config in declared.queues.items():
        try:
            got = session.admin.GetQueue(admin_pb2.GetQueueRequest(queue=queue), timeout=session.timeout_s)
        except grpc.RpcError as error:
            if reason_of(error) != "QUEUE_NOT_FOUND":
                raise
            changes.append(Change("create", queue, [], []))
            changes += _pauses_differing(declared, queue, {}, {})
            changes += _keys_differing(declared, queue, {}, None)
            continue
        why = _why(declared, queue)
        fields = _differing(config, got.config, says_paused=queue in declared.paused)
        if why and why != got.pause.comment and "paused" not in fields:
            fields.append("paused")
        if fields:
            differ = differences(config, got.config, fields, why=why, why_there=got.pause.comment)
            changes.append(Change("update", queue, fields, differ))
        channels = _channels(session, queue)
        missing = [name for name in config.channels if name not in channels]
        changes += [Change("channel", f"{queue}/{name}", [], []) for name in missing]
        changes += _pauses_differing(declared, queue, _paused_channels(got.config, channels), channels)
        if named := declared.keys.get(queue):
            each = policies(session.admin, queue, session.timeout_s)
            set_now = {policy.fairness_key: policy for policy in each if policy.fairness_key in named}
            changes += _keys_differing(declared, queue, set_now, got.config.key_defaults)
    return changes + _schedule_changes(
        session, declared, {each.name for each in changes if each.what == "create"}
    )


def _schedule_changes(session: Session, declared: Declared, new: set[str]) -> list[Change]:
    """Of the schedules that the file names; all of a queue that is new are."""
    changes = []
    there = {
        (queue, each.schedule): each
        for queue in dict.fromkeys(queue for queue, _ in declared.schedules)
        if queue not in new
        for each in listed_schedules(session, queue)
    }
    for key, (wanted, why) in declared.schedules.items():
        name = "/".join(key)
        if key not in there:
            changes.append(Change("schedule", name, [], []))
            continue
        if why is None:
            wanted.paused = there[key].settings.paused
        reason = there[key].pause.comment
        old = dict(schedule_lines(there[key].settings, quoted, reason))
        wished = dict(schedule_lines(wanted, quoted, why or reason))
        differ = [
            Difference(word, old.get(word, ""), wished.get(word, ""))
            for word in WORDS
            if old.get(word) != wished.get(word)
        ]
        if differ:
            changes.append(Change("reschedule", name, [], differ))
    return changes


def _pauses_differing(
    declared: Declared, queue: str, there: dict[str, str], channels: Container[str]
) -> list[Change]:
    """Of channels; a reason stays where the file gives none. One of a name without a channel is not known."""
    wanted = declared.paused_channels.get(queue)
    if wanted is None:
        return []
    reasons_differ = any(_is_another(why, name, there) for name, why in wanted.items() if name in channels)
    if wanted.keys() == there.keys() and not reasons_differ:
        return []
    old, new = (paused_channels_text(each) if each else "" for each in (there, wanted))
    return [Change("pauses", queue, [], [Difference("paused-channels", old, new)])]


def _is_another(why: str, channel: str, there: dict[str, str]) -> bool:
    """Whether a file's reason is another than the one for which the channel is paused."""
    return bool(why) and why != there.get(channel)


def _keys_differing(
    declared: Declared, queue: str, set_now: dict[str, KeyPolicy], there: KeyDefaults | None
) -> list[Change]:
    """`there` are the defaults of the queue's keys, before the file's."""
    asked = declared.queues[queue].key_defaults
    changes = []
    for key, settings in declared.keys.get(queue, {}).items():
        policy = set_now.get(key)
        found = [
            Difference(name, text_of(value_of(policy, name, there), quoted), text_of(value, quoted))
            for name, value in settings.items()
            if differs(policy, name, value, there=there, asked=asked)
        ]
        if found:
            changes.append(Change("key", f"{queue}/{key}", [], found))
    return changes


def _why(declared: Declared, queue: str) -> str:
    """The reason for which the file pauses a queue; empty where it does not, or does not say."""
    said = declared.paused.get(queue)
    return said if isinstance(said, str) else ""


def _differing(wanted: QueueConfig, there: QueueConfig, *, says_paused: bool) -> list[str]:
    fields = differing(wanted, there)
    if not wanted.durability:
        fields = [
            name for name in fields if name != "durability"
        ]  # left to the broker, which says what it does
    # A pause is an operator's hand: a file that does not speak of it leaves it.
    return fields if says_paused else [name for name in fields if name != "paused"]


def _carry_out(session: Session, declared: Declared, change: Change) -> None:
    from fila.v1 import admin_pb2, limit_pb2, schedule_pb2

    request: Any
    if change.what == "config":
        request = admin_pb2.SetConfigRequest(key=change.name, value=declared.config[change.name])
        session.admin.SetConfig(request, timeout=session.timeout_s)
    elif change.what == "limit":
        request = limit_pb2.SetLimitRequest(limit=declared.limits[change.name])
        session.admin.SetLimit(request, timeout=session.timeout_s)
    elif change.what == "create":
        request = admin_pb2.CreateQueueRequest(name=change.name, config=declared.queues[change.name])
        session.admin.CreateQueue(request, timeout=session.timeout_s)
        if why := _why(declared, change.name):  # it is made paused, and without a reason
            _update(session, declared.queues[change.name], change.name, ["paused"], why)
    elif change.what == "update":
        why = _why(declared, change.name) if "paused" in change.fields else ""
        _update(session, declared.queues[change.name], change.name, change.fields, why)
    elif change.what == "key":
        queue, _, key = change.name.partition("/")
        names = [each.name for each in change.settings]
        request = request_of(queue, key, declared.keys[queue][key], names)
        session.admin.SetKeyPolicy(request, timeout=session.timeout_s)
    elif change.what in ("schedule", "reschedule"):
        queue, _, schedule = change.name.partition("/")
        settings, why_rests = declared.schedules[queue, schedule]
        request = schedule_pb2.UpdateScheduleRequest(queue=queue, schedule=schedule, settings=settings)
        if change.what == "schedule":
            request = schedule_pb2.CreateScheduleRequest(queue=queue, schedule=schedule, settings=settings)
            session.admin.CreateSchedule(request, timeout=session.timeout_s)
        else:
            session.admin.UpdateSchedule(request, timeout=session.timeout_s)
        if why_rests:
            request = schedule_pb2.PauseScheduleRequest(
                queue=queue, schedule=schedule, paused=True, comment=why_rests
            )
            session.admin.PauseSchedule(request, timeout=session.timeout_s)
    elif change.what == "pauses":
        _pause_channels(session, change.name, declared.paused_channels[change.name])
    else:
        queue, _, channel = change.name.partition("/")
        request = admin_pb2.CreateChannelRequest(queue=queue, channel=channel, head=True)
        session.admin.CreateChannel(request, timeout=session.timeout_s)


def _pause_channels(session: Session, queue: str, wanted: dict[str, str]) -> None:
    """One after the other, for each has a reason of its own."""
    from fila.v1 import admin_pb2

    got = session.admin.GetQueue(admin_pb2.GetQueueRequest(queue=queue), timeout=session.timeout_s)
    there = _paused_channels(got.config, _channels(session, queue))
    for channel in there:
        if channel not in wanted:
            set_channel_paused(session, queue, channel, paused=False)
    for channel, why in wanted.items():
        if channel not in there or _is_another(why, channel, there):
            with _told_by_name(queue, channel):
                set_channel_paused(session, queue, channel, why, paused=True)


@contextlib.contextmanager
def _told_by_name(queue: str, channel: str) -> Iterator[None]:
    """Speak of a paused channel's name that the broker refuses as the file does, which knows no places in a list."""
    import grpc

    try:
        yield
    except grpc.RpcError as error:
        call: Any = error
        refused = re.fullmatch(r"config\.paused_channels(\[\d+\])? (.*)", call.details() or "", re.DOTALL)
        if refused is None:
            raise
        place = f"queues.{quoted(queue)}.paused-channels" + (f".{quoted(channel)}" if refused[1] else "")
        raise BrokerError(f"{place}: {'the name ' if refused[1] else ''}{refused[2]}") from error


def _update(session: Session, config: QueueConfig, queue: str, fields: list[str], why: str) -> None:
    from fila.v1 import admin_pb2

    request = admin_pb2.UpdateQueueRequest(queue=queue, config=config, comment=why)
    request.update_mask.paths.extend(fields)
    session.admin.UpdateQueue(request, timeout=session.timeout_s)


def _show(session: Session, changes: list[Change], verb: str) -> None:
    value = {
        "changes": [
            {**change._asdict(), "settings": [each._asdict() for each in change.settings]}
            for change in changes
        ]
    }
    signs = {"create": "+", "channel": "+", "update": "~", "key": "~", "config": "~", "limit": "~"}
    signs |= {"schedule": "+", "reschedule": "~", "pauses": "~"}
    lines = [
        f"{paint(signs[change.what], Meaning.GOOD)} {change.what} {printable(change.name)} {_told(change)}".rstrip()
        for change in changes
    ]
    lines.append(f"{counted(len(changes), 'thing')} {verb}" if changes else "nothing differs")
    show(session.format, value, "\n".join(lines))


def _told(change: Change) -> str:
    """`max-attempts 3 -> 5, max-depth unset -> 100`."""
    return printable(
        ", ".join(
            f"{each.name} {each.old or 'unset'} -> {each.new or 'unset'}".lstrip() for each in change.settings
        )
    )
