"""What many commands take: a queue, a channel, a key, --yes; and how a shell completes them.

Completion asks the broker, waits a moment at most, and is silent about whatever goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from fila_cli.session import Session

_LIMITS_A_PAGE = 1_000
_WAIT_S = 0.5
_KEYS_MAX = 200
_DLQ_SUFFIX = ".dlq"

all_queues_option = click.option(
    "-a", "--all", "is_all", is_flag=True, help="Dead-letter queues without a letter, too"
)


reason_option = click.option(
    "--reason", metavar="TEXT", default="", help="Why; shown wherever the pause is, at most 1,024 bytes"
)


def is_listed(name: str, holds: int, *, is_all: bool) -> bool:
    """Each queue has a dead-letter queue: most are empty, and would be half of every list."""
    return is_all or holds > 0 or not name.endswith(_DLQ_SUFFIX)


Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _completing(names: Callable[[Session, dict[str, Any]], Iterable[str]]) -> Complete:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        import grpc

        try:
            found = list(names(ctx.ensure_object(Session), _given(ctx)))
        except (grpc.RpcError, click.ClickException):
            return []
        return [name for name in found if name.startswith(incomplete)]

    return complete


def _given(ctx: click.Context) -> dict[str, Any]:
    """What was typed before; `queue` is the queue, whatever the command calls it."""
    given = ctx.params
    # Before an option whose value is not typed yet, arguments are left as words.
    queue = given.get("queue") or given.get("dlq") or next(iter(ctx.args), "")
    return {**given, "queue": queue}


def _queues(session: Session, _given: dict[str, Any]) -> list[str]:
    from fila.v1 import admin_pb2

    answer = session.admin.ListQueues(admin_pb2.ListQueuesRequest(), timeout=_WAIT_S)
    return [queue.name for queue in answer.queues]


def _keys(session: Session, given: dict[str, Any]) -> list[str]:
    from fila.v1 import admin_pb2

    request = admin_pb2.GetStatsRequest(queue=given["queue"], max_keys=_KEYS_MAX)
    return [key.key for key in session.admin.GetStats(request, timeout=_WAIT_S).per_key_stats]


def _channels(session: Session, given: dict[str, Any]) -> list[str]:
    from fila.v1 import admin_pb2

    request = admin_pb2.ListChannelsRequest(queue=given["queue"])
    return [channel.name for channel in session.admin.ListChannels(request, timeout=_WAIT_S).channels]


def _config_keys(session: Session, _given: dict[str, Any]) -> list[str]:
    from fila.v1 import admin_pb2

    answer = session.admin.ListConfig(admin_pb2.ListConfigRequest(), timeout=_WAIT_S)
    return [entry.key for entry in without_doubles(answer.entries, "")]


def _operations(session: Session, given: dict[str, Any]) -> list[str]:
    from fila.v1 import operation_pb2

    request = operation_pb2.ListOperationsRequest(dlq_queue=given["queue"])
    return [each.id for each in session.admin.ListOperations(request, timeout=_WAIT_S).operations]


def _versions(session: Session, given: dict[str, Any]) -> list[str]:
    from fila.v1 import version_pb2

    request = version_pb2.ListQueueVersionsRequest(queue=given["queue"])
    return [str(each.number) for each in session.admin.ListQueueVersions(request, timeout=_WAIT_S).versions]


def without_doubles(entries: Iterable[Any], prefix: str) -> list[Any]:
    """Config entries with each token bucket once, as `throttle.<key>`: its two other forms say the same.

    The prefix `throttle:` gets those.
    """
    return [
        entry for entry in entries if prefix.startswith("throttle:") or not entry.key.startswith("throttle:")
    ]


def limits_there(session: Session, prefix: str = "") -> list[Any]:
    """All limits whose names begin so, page after page."""
    from fila.v1 import limit_pb2

    found: list[Any] = []
    while True:
        request = limit_pb2.ListLimitsRequest(
            prefix=prefix, after=found[-1].limit.name if found else "", max_limits=_LIMITS_A_PAGE
        )
        answer = session.admin.ListLimits(request, timeout=session.timeout_s)
        found += answer.limits
        if not answer.more or not answer.limits:
            return found


def _limits(session: Session, _given: dict[str, Any]) -> list[str]:
    return [each.limit.name for each in limits_there(session)]


complete_queue = _completing(_queues)
complete_dlq = _completing(
    lambda session, given: [name for name in _queues(session, given) if name.endswith(_DLQ_SUFFIX)]
)
complete_key = _completing(_keys)
complete_channel = _completing(_channels)
complete_config_key = _completing(_config_keys)
complete_limit = _completing(_limits)
complete_operation = _completing(_operations)
complete_version = _completing(_versions)


def _check_dlq(ctx: click.Context, _param: click.Parameter, name: str) -> str:
    if name and not name.endswith(_DLQ_SUFFIX) and not ctx.resilient_parsing:
        raise click.ClickException(
            f"{name} is no dead-letter queue: those are called QUEUE{_DLQ_SUFFIX}. What died of its messages is in "
            f"{name}{_DLQ_SUFFIX}; 'fila queue peek {name}' shows its own"
        )
    return name


def check_key(ctx: click.Context, _param: click.Parameter, name: str | None) -> str | None:
    """A fairness key, or None where none is said. An empty one would be taken for none, and mean every key."""
    if name == "" and not ctx.resilient_parsing:
        raise click.BadParameter(
            "a fairness key has one character at least; is a variable of a script empty?"
        )
    return name


def check_named(message_id: str, dedup_key: str) -> None:
    """One message is named, by its ID or by its dedup key."""
    if message_id and dedup_key:
        raise click.UsageError("name the message by ID or by --dedup-key, and not by both")
    if not message_id and not dedup_key:
        raise click.UsageError(
            "ID and --dedup-key are both empty or missing, so no message is named; give the ID that the enqueue "
            "answered, or --dedup-key KEY. 'fila message list QUEUE' shows the IDs of what is pending"
        )


dlq_argument = click.argument("dlq", shell_complete=complete_dlq, callback=_check_dlq)
any_dlq_argument = click.argument("dlq", default="", shell_complete=complete_dlq, callback=_check_dlq)
queue_argument = click.argument("queue", shell_complete=complete_queue)
key_argument = click.argument("key", shell_complete=complete_key, callback=check_key)
channel_argument = click.argument("channel", shell_complete=complete_channel)
channel_option = click.option(
    "--channel",
    default="",
    metavar="NAME",
    shell_complete=complete_channel,
    help="The channel [default: default]",
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask")


def key_option(about: str) -> Callable[[Any], Any]:
    """--key, for commands that may be about one fairness key."""
    return click.option(
        "--key",
        "fairness_key",
        default=None,
        metavar="KEY",
        shell_complete=complete_key,
        callback=check_key,
        help=about,
    )
