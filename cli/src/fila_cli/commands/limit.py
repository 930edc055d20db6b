"""`fila limit`: what messages may use of the throttle keys that they name, over all queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fila_cli.arguments import complete_limit, limits_there
from fila_cli.limits import BUDGET_TERM, LEARN_TERM, RATE_TERM, RATES_MAX, SLOTS_MAX, limit_of, terms
from fila_cli.output import Cell, facts, printable, table
from fila_cli.session import Group, Session
from fila_cli.values import MOMENT, Count

if TYPE_CHECKING:
    from fila.v1.limit_pb2 import Limit, LimitState


@click.group(
    cls=Group,
    examples="""
    fila limit set 'tenant:*' --rate 60/m --rate 1000cost/m --slots 4 --budget 5000cost/day
    fila limit show tenant:acme
    fila limit list
    fila limit reset tenant:acme
    """,
)
def limit() -> None:
    """Rates, slots and budgets of throttle keys: set, show, list, delete, reset."""


@limit.command(
    name="set",
    examples="""
    fila limit set 'tenant:*' --rate 60/m --rate 1000cost/m --slots 4 --budget 5000cost/day
    fila limit set openai --rate 100/s --learn 1..1000
    fila limit set 'customer:*' --slots 2 --shadow
    """,
)
@click.argument("name", shell_complete=complete_limit)
@click.option(
    "--rate",
    "rates",
    type=RATE_TERM,
    multiple=True,
    metavar="N[cost]/UNIT[,BURST]",
    help="A rate a second, minute, hour or day (s, m, h, d), in messages or in cost; up to four",
)
@click.option(
    "--slots",
    type=Count(0, SLOTS_MAX),
    default=0,
    help="Most messages in flight, over all queues; up to 1,000,000,000, 0 for any number",
)
@click.option(
    "--budget", type=BUDGET_TERM, metavar="N[cost]/PERIOD", help="What may be used in each period, as 500/day"
)
@click.option(
    "--budget-from", type=MOMENT, metavar="MOMENT", help="When a period begins [default: 1970 in UTC]"
)
@click.option(
    "--learn",
    type=LEARN_TERM,
    metavar="MIN..MAX",
    help="Follow the provider from the first rate on, between so many messages a second",
)
@click.option("--shadow", is_flag=True, help="Judge and count, and hold nothing")
@click.pass_obj
def set_(session: Session, /, name: str, rates: tuple[Any, ...], **parts: Any) -> None:
    """Set the limit NAME as a whole: what is left out, it has not.

    NAME is a throttle key, or ends in a *: then each throttle key that begins so has a limit of its own.
    """
    from fila.v1 import limit_pb2

    if len(rates) > RATES_MAX:
        raise click.UsageError(f"a limit has up to {RATES_MAX} rates, got {len(rates)}")
    wanted = limit_of(name, rates=rates, **parts)
    if not (wanted.rates or wanted.max_in_flight or wanted.HasField("budget")):
        raise click.UsageError(
            "give a part: --rate, --slots or --budget; 'fila limit delete NAME' takes a limit away"
        )
    answer = session.admin.SetLimit(limit_pb2.SetLimitRequest(limit=wanted), timeout=session.timeout_s)
    session.show(answer, facts([("limit", answer.limit.name or name), *_terms(answer.limit)]))


@limit.command(
    examples="""
    fila limit show tenant:acme
    fila limit show 'tenant:*'
    """
)
@click.argument("name", shell_complete=complete_limit)
@click.pass_obj
def show(session: Session, name: str) -> None:
    """Show the limit NAME, or the one that messages with throttle key NAME meet, and what of it is used."""
    from fila.v1 import limit_pb2

    by_pattern = name.endswith("*")
    asked: dict[str, Any] = {"prefix": name, "max_limits": 1} if by_pattern else {"throttle_key": name}
    answer = session.admin.ListLimits(limit_pb2.ListLimitsRequest(**asked), timeout=session.timeout_s)
    found = [each for each in answer.limits if not by_pattern or each.limit.name == name]
    if not found:
        raise click.ClickException(f"nothing limits {name}; 'fila limit list' lists the limits there are")
    session.show(found[0], facts(_state(found[0])))


@limit.command(
    name="list",
    examples="""
    fila limit list
    fila limit list --prefix tenant: -o json
    """,
)
@click.option("--prefix", default="", help="Only limits whose names start with this")
@click.pass_obj
def list_(session: Session, prefix: str) -> None:
    """List the limits there are, sorted by name; with a tenant's key those that its own messages meet."""
    from fila.v1 import limit_pb2

    shown = limit_pb2.ListLimitsResponse(limits=limits_there(session, prefix))
    rows = [
        (
            each.limit.name,
            ", ".join(
                f"{name} {' '.join(text) if isinstance(text, list) else text}"
                for name, text in terms(each.limit).items()
            ),
            each.in_flight,
            "-" if each.of_tenant else each.waiting,
            _held(each),
        )
        for each in shown.limits
    ]
    headings = ("NAME", "LIMIT", "IN FLIGHT", "WAITING", "HELD")
    session.show(
        shown,
        table(headings, rows, ("HELD", "IN FLIGHT"), ("NAME", "LIMIT")) if rows else "",
        empty="no limit is set",
    )


@limit.command(examples="fila limit delete 'tenant:*'")
@click.argument("name", shell_complete=complete_limit)
@click.pass_obj
def delete(session: Session, name: str) -> None:
    """Delete the limit NAME; what waits for it goes on."""
    from fila.v1 import limit_pb2

    answer = session.admin.DeleteLimit(
        limit_pb2.DeleteLimitRequest(limit_name=name), timeout=session.timeout_s
    )
    session.show(answer, f"limit {printable(name)} deleted")


@limit.command(
    examples="""
    fila limit reset tenant:acme
    fila limit reset tenant:acme --spent 1200
    """
)
@click.argument("key", shell_complete=complete_limit)
@click.option(
    "--spent", type=click.FloatRange(0, 1e12), default=0.0, help="What counts as spent [default: 0]"
)
@click.pass_obj
def reset(session: Session, key: str, spent: float) -> None:
    """Say what of its budget throttle key KEY has spent in this period: after a payment, or a restored backup."""
    from fila.v1 import limit_pb2

    if key.endswith("*"):
        raise click.UsageError(
            f"{key} limits each throttle key that begins so, and each has a budget of its own: name one of them, "
            f"as {key.removesuffix('*')}acme"
        )
    request = limit_pb2.ResetLimitRequest(throttle_key=key, spent=spent)
    answer = session.admin.ResetLimit(request, timeout=session.timeout_s)
    session.show(answer, facts(_state(answer.limit)))


def _held(state: LimitState) -> Cell:
    if state.of_tenant:
        return "-"
    return state.would_hold_total if state.limit.shadow else state.held_total


def _terms(limit: Limit) -> list[tuple[str, Cell]]:
    return [
        (name, ", ".join(text) if isinstance(text, list) else text) for name, text in terms(limit).items()
    ]


def _state(state: LimitState) -> list[tuple[str, Cell]]:
    pairs: list[tuple[str, Cell]] = [("limit", state.limit.name)]
    if state.throttle_key:
        pairs.append(("throttle key", state.throttle_key))
    pairs += _terms(state.limit)
    if state.throttle_key:
        if state.tokens:
            pairs.append(("tokens now", ", ".join(f"{tokens:.4g}" for tokens in state.tokens)))
        if state.limit.HasField("learn"):
            pairs.append(("learned", f"{state.learned_per_second:.4g}/s"))
        if state.HasField("closed_until"):
            pairs.append(("closed until", state.closed_until.ToJsonString()))
        if state.HasField("refused_at"):
            pairs.append(("refused", state.refused_at.ToJsonString()))
        pairs.append(("in flight", state.in_flight))
        if state.limit.HasField("budget"):
            pairs.append(("spent", f"{state.spent:.10g} of {state.limit.budget.amount:.10g}"))
            pairs.append(("period ends", state.period_ends_at.ToJsonString()))
    if not state.of_tenant:
        pairs += [
            ("waiting", state.waiting),
            ("let go", state.passed_total),
            ("held", state.held_total),
        ]
    if state.limit.shadow and not state.of_tenant:
        pairs.append(("would have held", state.would_hold_total))
    return pairs
