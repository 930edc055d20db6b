"""`fila key`: an operator's hand on one fairness key; effective at once, kept over a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fila_cli.arguments import channel_option, key_argument, queue_argument, reason_option, yes_option
from fila_cli.colors import Meaning, Meant
from fila_cli.explanation import paused_text, state_briefly, when
from fila_cli.output import Cell, counted, facts, printable, table
from fila_cli.session import Group, Session, confirm
from fila_cli.values import DEFAULT, Count, OrDefault, age_text

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import PreviewKeyPolicyResponse, SetKeyPolicyResponse
    from fila.v1.events_pb2 import KeyPolicy


@click.group(
    cls=Group,
    examples="""
    fila key weight orders acme 5
    fila key pause orders noisy
    fila key cap orders noisy 10
    fila key rate orders noisy 5
    fila key preview orders acme --weight 5
    fila key find orders ac
    fila key list orders
    """,
)
def key() -> None:
    """Weigh, pause, cap, slow or purge one fairness key, see first what that would do; find keys, list what was set."""


@key.command(
    name="list",
    examples="""
    fila key list orders
    fila key list orders -o json
    """,
)
@queue_argument
@click.pass_obj
def list_(session: Session, queue: str) -> None:
    """List the fairness keys for which something was set: weight, pause, cap, rate, committed rate."""
    from fila.v1 import events_pb2

    request = events_pb2.ListKeyPoliciesRequest(queue=queue)
    answer = session.admin.ListKeyPolicies(request, timeout=session.timeout_s)
    rows = [
        (
            policy.fairness_key,
            policy.weight or "-",
            policy.effective_weight,
            _cap(policy) or "-",
            _rate(policy) or "-",
            f"{policy.committed_per_second:g}/s" if policy.committed_per_second else "-",
            Meant("yes", Meaning.HELD) if policy.paused else "no",
            policy.pending,
            policy.in_flight,
        )
        for policy in answer.policies
    ]
    headings = ("KEY", "SET WEIGHT", "WEIGHT", "CAP", "RATE", "COMMITTED", "PAUSED", "PENDING", "IN FLIGHT")
    nothing_set = f"nothing was set for a key of {queue}; 'fila key find {queue}' lists the keys there are"
    shown = table(headings, rows, ("IN FLIGHT", "SET WEIGHT", "PENDING"), ("KEY",)) if rows else ""
    session.show(answer, shown, empty=nothing_set)


@key.command(examples="fila key show orders acme")
@queue_argument
@key_argument
@click.pass_obj
def show(session: Session, queue: str, key: str) -> None:
    """Show what was set for one fairness key, and what it has."""
    from fila.v1 import events_pb2

    request = events_pb2.ListKeyPoliciesRequest(queue=queue, fairness_key=key)
    answer = session.admin.ListKeyPolicies(request, timeout=session.timeout_s)
    (policy,) = answer.policies
    shown = facts(
        [
            ("key", key),
            ("weight", _weight(policy)),
            ("paused", Meant(f"yes, {paused_text(policy.pause)}", Meaning.HELD) if policy.paused else "no"),
            ("in flight at most", _cap(policy) or "no cap"),
            ("rate", _rate(policy) or "no bound"),
            ("committed", _committed(policy) or "nothing"),
            ("pending", policy.pending),
            ("in flight", policy.in_flight),
        ]
    )
    session.show(policy, shown)


def _cap(policy: KeyPolicy | SetKeyPolicyResponse) -> str:
    whose = " by default" if policy.cap_by_default else ""
    return f"{policy.max_in_flight}{whose}" if policy.max_in_flight else ""


def _rate(policy: KeyPolicy | SetKeyPolicyResponse) -> str:
    whose = " by default" if policy.rate_by_default else ""
    return f"{policy.rate_per_second:g}/s, burst {policy.burst:g}{whose}" if policy.rate_per_second else ""


def _committed(policy: KeyPolicy | SetKeyPolicyResponse) -> str:
    whose = " by default" if policy.committed_by_default else ""
    return f"{policy.committed_per_second:g}/s go first{whose}" if policy.committed_per_second else ""


def _weight(policy: KeyPolicy) -> str:
    if policy.weight:
        return f"{policy.weight}, set by an operator"
    return f"{policy.effective_weight or 1}, by the queue's policy"


@key.command(
    examples="""
    fila key weight orders acme 5
    fila key weight orders acme 0
    """
)
@queue_argument
@key_argument
@click.argument("weight", type=Count(0, 1000))
@click.pass_obj
def weight(session: Session, queue: str, key: str, weight: int) -> None:
    """Set a key's weight, 1 to 1000; it wins over every other. 0 takes it away again."""
    _set(session, queue, key, weight=weight)


@key.command(
    examples="""
    fila key pause orders noisy
    fila key pause orders noisy --reason "their webhook answers 500"
    """
)
@queue_argument
@key_argument
@reason_option
@click.pass_obj
def pause(session: Session, queue: str, key: str, reason: str) -> None:
    """Deliver nothing of a key until it is resumed."""
    _set(session, queue, key, paused=True, comment=reason)


@key.command(examples="fila key resume orders noisy")
@queue_argument
@key_argument
@click.pass_obj
def resume(session: Session, queue: str, key: str) -> None:
    """Deliver a paused key's messages again."""
    _set(session, queue, key, paused=False)


@key.command(
    examples="""
    fila key cap orders noisy 10
    fila key cap orders noisy 0
    fila key cap orders noisy default
    """
)
@queue_argument
@key_argument
@click.argument("max_in_flight", metavar="N", type=OrDefault(Count(0, 2**32 - 1)))
@click.pass_obj
def cap(session: Session, queue: str, key: str, max_in_flight: int | str) -> None:
    """Lease at most N of a key's messages at once in a channel; 0 for no cap, 'default' for the queue's."""
    _set(session, queue, key, **_or_default("cap_by_default", max_in_flight=max_in_flight))


@key.command(
    examples="""
    fila key rate orders noisy 5
    fila key rate orders noisy 0.5 --burst 10
    fila key rate orders noisy 0
    fila key rate orders noisy default
    """
)
@queue_argument
@key_argument
@click.argument("rate_per_second", metavar="RATE", type=OrDefault(click.FloatRange(0, 1e9)))
@click.option(
    "--burst",
    type=click.FloatRange(1, 1e9),
    help="How many at once after a pause [default: one second's worth]",
)
@click.pass_obj
def rate(session: Session, queue: str, key: str, rate_per_second: float | str, burst: float | None) -> None:
    """Deliver at most RATE of a key's messages a second, over all channels; 0 for none, 'default' for the queue's."""
    _check_burst(rate_per_second, burst)
    _set(session, queue, key, burst=burst, **_or_default("rate_by_default", rate_per_second=rate_per_second))


@key.command(
    examples="""
    fila key committed orders acme 50
    fila key committed orders acme 0
    fila key committed orders acme default
    """
)
@queue_argument
@key_argument
@click.argument("committed_per_second", metavar="RATE", type=OrDefault(click.FloatRange(0, 1e9)))
@click.pass_obj
def committed(session: Session, queue: str, key: str, committed_per_second: float | str) -> None:
    """Let RATE of a key's messages a second go before those of keys that are not within theirs.

    Beyond it the key shares with all others by weight. 0 for none, 'default' for the queue's.
    """
    _set(
        session, queue, key, **_or_default("committed_by_default", committed_per_second=committed_per_second)
    )


@key.command(
    examples="""
    fila key preview orders acme --weight 5
    fila key preview orders noisy --rate 5 --burst 20
    fila key preview orders noisy --resume -o json
    """
)
@queue_argument
@key_argument
@channel_option
@click.option("--weight", type=Count(0, 1000), help="As 'fila key weight'; 0 takes the operator's away")
@click.option(
    "--cap", "max_in_flight", metavar="N", type=OrDefault(Count(0, 2**32 - 1)), help="As 'fila key cap'"
)
@click.option(
    "--rate",
    "rate_per_second",
    metavar="RATE",
    type=OrDefault(click.FloatRange(0, 1e9)),
    help="As 'fila key rate'",
)
@click.option("--burst", type=click.FloatRange(1, 1e9), help="How many at once after a pause")
@click.option(
    "--committed",
    "committed_per_second",
    metavar="RATE",
    type=OrDefault(click.FloatRange(0, 1e9)),
    help="As 'fila key committed'",
)
@click.option("--pause/--resume", "paused", default=None, help="As 'fila key pause' and 'fila key resume'")
@click.pass_obj
def preview(session: Session, /, queue: str, key: str, channel: str, **change: Any) -> None:
    """Say what a change would do to a key, and who would wait longer; change nothing.

    The times hold nine times in ten, if nothing else is changed meanwhile.
    """
    from fila.v1 import admin_pb2

    _check_burst(change["rate_per_second"], change["burst"])
    if all(value is None for value in change.values()):
        raise click.UsageError("name a change: --weight, --cap, --rate, --committed, --pause or --resume")
    for name, by_default in (
        ("max_in_flight", "cap_by_default"),
        ("rate_per_second", "rate_by_default"),
        ("committed_per_second", "committed_by_default"),
    ):
        change |= _or_default(by_default, **{name: change[name]})
    policy = admin_pb2.SetKeyPolicyRequest(fairness_key=key, **change)
    request = admin_pb2.PreviewKeyPolicyRequest(queue=queue, channel=channel, policy=policy)
    answer = session.admin.PreviewKeyPolicy(request, timeout=session.timeout_s)
    session.show(answer, _previewed(key, answer))


def _previewed(key: str, answer: PreviewKeyPolicyResponse) -> str:
    pairs: list[tuple[str, Cell]] = [("key", key), ("ready", answer.pending)]
    if answer.weight_after != answer.weight_before:
        pairs.append(("weight", f"{answer.weight_before} now, {answer.weight_after} then"))
    for name, change in (("next one goes", answer.head), ("last one goes", answer.tail)):
        pairs += [(f"{name}, now", when(change.before)), (f"{name}, then", when(change.after))]
    if not answer.losing:
        return facts(pairs)
    rows = [
        (
            loss.fairness_key,
            loss.pending,
            age_text(loss.tail.before.likely_ms),
            age_text(loss.tail.after.likely_ms),
            f"{age_text(loss.tail.after.earliest_ms)} to {age_text(loss.tail.after.latest_ms)}",
        )
        for loss in answer.losing
    ]
    headings = ("WAITS LONGER", "READY", "LAST GOES IN", "THEN IN", "NINE TIMES IN TEN")
    return f"{facts(pairs)}\n\n{table(headings, rows, cut=('WAITS LONGER',))}"


@key.command(
    examples="""
    fila key find orders ac
    fila key find orders --channel audit --count 50
    """
)
@queue_argument
@click.argument("prefix", default="")
@channel_option
@click.option("-n", "--count", type=Count(1, 256), default=20, show_default=True, help="Most keys to list")
@click.pass_obj
def find(session: Session, queue: str, prefix: str, channel: str, count: int) -> None:
    """Find the fairness keys that begin with PREFIX, most pending first."""
    from fila.v1 import watch_pb2

    request = watch_pb2.FindKeysRequest(queue=queue, prefix=prefix, channel=channel, limit=count)
    answer = session.admin.FindKeys(request, timeout=session.timeout_s)
    rows = [
        (
            each.fairness_key,
            each.ready + each.delayed,
            each.in_flight,
            age_text(each.waiting_ms) if each.ready else "-",
            each.weight,
            state_briefly(each),
        )
        for each in answer.keys
    ]
    headings = ("KEY", "PENDING", "IN FLIGHT", "WAITING", "WEIGHT", "STATE")
    shown = table(headings, rows, ("WEIGHT", "IN FLIGHT"), ("KEY", "STATE")) if rows else ""
    more = answer.matched - len(rows)
    none = f"{queue} has no key that begins so" if prefix else f"{queue} has no keys just now"
    session.show(answer, f"{shown}\n\n{more} more begin so" if more > 0 else shown, empty=none)


@key.command(
    examples="""
    fila key purge orders noisy
    fila key purge orders noisy --yes
    """
)
@queue_argument
@key_argument
@yes_option
@click.pass_obj
def purge(session: Session, queue: str, key: str, *, yes: bool) -> None:
    """Drop a key's pending messages in every channel."""
    from fila.v1 import admin_pb2

    confirm(f"Drop the pending messages of {key} in {queue}?", yes=yes)
    request = admin_pb2.PurgeQueueRequest(queue=queue, fairness_key=key)
    answer = session.admin.PurgeQueue(request, timeout=session.timeout_s)
    session.show(answer, f"{counted(answer.purged, 'message')} dropped")


@key.command(
    examples="""
    fila key skip orders acme
    fila key skip orders acme --message 0193a1b2-7c1f-7000-8000-000000000000 --yes
    """
)
@queue_argument
@key_argument
@channel_option
@click.option("--message", metavar="ID", default="", help="Only if this is the key's first message")
@yes_option
@click.pass_obj
def skip(session: Session, queue: str, key: str, channel: str, message: str, *, yes: bool) -> None:
    """Make a key's first message a dead letter, so that those behind it go on.

    For queues whose key-order is strict. 'fila explain QUEUE KEY' says which message it is, and why it is stuck.
    """
    from fila.v1 import admin_pb2

    confirm(f"Make the first message of {key} in {queue} a dead letter?", yes=yes)
    request = admin_pb2.SkipMessageRequest(queue=queue, fairness_key=key, channel=channel, message_id=message)
    answer = session.admin.SkipMessage(request, timeout=session.timeout_s)
    session.show(
        answer, f"{answer.message_id} (offset {answer.offset}) is a dead letter of {printable(queue)} now"
    )


def _check_burst(rate: float | str | None, burst: float | None) -> None:
    if rate == DEFAULT and burst is not None:
        raise click.UsageError(
            "--burst goes with a rate of the key's own: the queue's default has a burst, too"
        )


def _or_default(by_default: str, **number: float | str | None) -> dict[str, Any]:
    """A number as it was given; where the word 'default' was given, the field that says so."""
    ((name, value),) = number.items()
    return {name: None, by_default: True} if value == DEFAULT else {name: value}


def _set(session: Session, queue: str, key: str, **change: Any) -> None:
    from fila.v1 import admin_pb2

    request = admin_pb2.SetKeyPolicyRequest(queue=queue, fairness_key=key, **change)
    answer = session.admin.SetKeyPolicy(request, timeout=session.timeout_s)
    shown = facts(
        [
            ("key", key),
            ("weight", str(answer.weight) if answer.weight else "by the queue's policy"),
            ("paused", "yes" if answer.paused else "no"),
            ("in flight at most", _cap(answer) or "no cap"),
            ("rate", _rate(answer) or "no bound"),
            ("committed", _committed(answer) or "nothing"),
        ]
    )
    if not answer.pending:
        hint = f"Nothing of {key} waits in {queue} just now; 'fila key find {queue}' lists the keys there are"
        shown += f"\n\n{printable(hint)}"
    session.show(answer, shown)
