"""`fila watch` and `fila series`: queues and their keys in numbers, as they change, and over the last hour."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from fila_cli.arguments import (
    all_queues_option,
    channel_option,
    complete_queue,
    is_listed,
    queue_argument,
)
from fila_cli.explanation import state_briefly
from fila_cli.outage import AGAIN_AFTER_S, Outage
from fila_cli.output import Cell, Format, table
from fila_cli.session import Command, Session
from fila_cli.values import Count, age_text
from fila_cli.watching import show_anew

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fila.v1.watch_pb2 import (
        GetSeriesResponse,
        KeyState,
        QueueSums,
        SeriesPoint,
        WatchStatsRequest,
        WatchStatsResponse,
    )

_ORDERS = ("backlog", "late", "arriving", "served", "off-share")
_QUEUE_HEADINGS = (
    "QUEUE", "CHANNEL", "READY", "DELAYED", "IN FLIGHT", "IN/S", "SERVED/S", "FAILED/S", "RETURNED/S", "OLDEST",
    "CONSUMERS", "KEYS",
)  # fmt: skip
_READY = _QUEUE_HEADINGS.index("READY")
_KEY_HEADINGS = ("KEY", "PENDING", "IN FLIGHT", "WAITING", "IN/S", "COST/S", "DUE/S", "WEIGHT", "STATE")
_SPARE = ("RETURNED/S", "DELAYED", "KEYS", "OLDEST", "IN FLIGHT", "CONSUMERS")
_SPARE_OF_KEYS = ("WEIGHT", "IN FLIGHT", "DUE/S", "IN/S")


@click.command(
    cls=Command,
    examples="""
    fila watch
    fila watch orders --order late
    fila watch orders --key acme --count 5 --once -o json
    """,
)
@click.argument("queues", nargs=-1, shell_complete=complete_queue)
@channel_option
@click.option("--order", type=click.Choice(_ORDERS), default="backlog", show_default=True, help="Who leads")
@click.option(
    "-n",
    "--count",
    type=Count(0, 2_000),
    help="Most keys that lead, 20 if not said; of all queues, most queues",
)
@click.option("--key", "keys", multiple=True, help="A key to tell besides; may be repeated")
@click.option("--once", is_flag=True, help="Tell it once, and end")
@all_queues_option
@click.pass_obj
def watch(
    session: Session,
    queues: Sequence[str],
    channel: str,
    order: str,
    count: int | None,
    keys: Sequence[str],
    *,
    once: bool,
    is_all: bool,
) -> None:
    """Tell QUEUES and the keys that lead in them in numbers, anew each second; without QUEUES, all of them.

    Of dead-letter queues those are told that hold a letter; with --all, those that ever held one.
    """
    from fila.v1 import watch_pb2

    request = watch_pb2.WatchStatsRequest(
        queues=queues,
        channel=channel,
        order=f"ORDER_{order.upper().replace('-', '_')}",
        top=count,
        keys=keys,
    )
    screen = Screen(keys, is_all=is_all or bool(queues))
    if once:
        stream = session.admin.WatchStats(request, timeout=session.timeout_s)
        screen.take(told := next(stream))
        stream.cancel()
        session.show(told, screen.shown() if session.format is Format.TABLE else "")
        return
    try:
        _follow(session, request, screen)
    except KeyboardInterrupt:
        return


def _follow(session: Session, request: WatchStatsRequest, screen: Screen) -> None:
    """Until somebody ends it, and over restarts of the broker."""
    import grpc

    began = False
    outage = Outage(session.address)
    while True:
        try:
            for told in session.admin.WatchStats(request):
                began = True
                outage.over()
                screen.take(told)
                show_anew(session, told, screen.shown() if session.format is Format.TABLE else "")
        except grpc.RpcError as error:
            if not began:
                raise
            outage.meet(error)
        time.sleep(AGAIN_AFTER_S)


class Screen:
    """What was told so far and still holds, put together."""

    def __init__(self, named: Sequence[str] = (), *, is_all: bool = True) -> None:
        self._named = named
        self._is_all = is_all
        self._forget()

    def _forget(self) -> None:
        self._states: dict[tuple[str, str], list[Cell]] = {}
        self._keys: dict[tuple[str, str], dict[str, KeyState]] = {}
        self._leading: dict[tuple[str, str], list[str]] = {}
        self._sums: QueueSums | None = None
        self._own: set[str] = set()
        """Keys that were told though they neither led nor were named: a tenant's key is told of its own so."""

    def take(self, told: WatchStatsResponse) -> None:
        """Take in what changed. Of a key that neither leads nor was named nothing is told any more: it goes."""
        if told.full:
            self._forget()
        for each in told.channels:
            place = (each.state.queue, each.state.channel)
            state = each.state
            if not is_listed(state.queue, state.ready + state.delayed + state.in_flight, is_all=self._is_all):
                self._drop(place)
                continue
            self._states[place] = [
                *place,
                state.ready,
                state.delayed,
                state.in_flight,
                f"{state.arriving_per_second:.1f}",
                f"{state.acked_per_second:.1f}",
                f"{state.failed_per_second:.1f}",
                f"{state.returned_per_second:.1f}",
                age_text(state.oldest_age_ms) if state.oldest_age_ms else "-",
                state.consumers,
                state.active_keys,
            ]
            changed = {key.fairness_key: key for key in each.keys}
            self._own |= changed.keys() - {*each.leading}
            kept = {*each.leading, *self._named} | self._own
            known = self._keys.get(place, {}) | changed
            self._keys[place] = {name: key for name, key in known.items() if name in kept}
            self._leading[place] = list(each.leading)
        for gone in told.gone:
            self._drop((gone.queue, gone.channel))
        if told.HasField("sums"):
            self._sums = told.sums

    def _drop(self, place: tuple[str, str]) -> None:
        for table_of in (self._states, self._keys, self._leading):
            table_of.pop(place, None)

    def shown(self) -> str:
        """The tables: the channels, then the keys of each."""
        rows: list[tuple[Cell, ...]] = [tuple(row) for _, row in sorted(self._states.items())]
        parts = [table(_QUEUE_HEADINGS, rows, _SPARE, ("QUEUE",))]
        if self._sums is not None:
            parts.append(_sum_line(self._sums))
        for place in sorted(self._states):
            known, leading = self._keys.get(place, {}), self._leading.get(place, [])
            named = [name for name in known if name not in leading]
            is_own = not self._states[place][_READY]  # a tenant is told nothing of the whole channel
            if rows := [_key_row(known[name], is_own=is_own) for name in (*leading, *named) if name in known]:
                parts.append(table(_KEY_HEADINGS, rows, _SPARE_OF_KEYS, ("KEY", "STATE")))
        return "\n\n".join(parts)


def _sum_line(sums: QueueSums) -> str:
    """All queues together, those too that are not told one by one."""
    which = "busy queues" if sums.partial else "queues in all"
    return (
        f"{sums.queues:,} {which}: {sums.waiting:,} waiting, {sums.in_flight:,} in flight,"
        f" {sums.arriving_per_second:,.1f}/s in, {sums.acked_per_second:,.1f}/s served,"
        f" {sums.dead_letters:,} dead letters"
    )


def _key_row(key: KeyState, *, is_own: bool) -> tuple[Cell, ...]:
    return (
        key.fairness_key,
        key.ready + key.delayed,
        key.in_flight,
        age_text(key.waiting_ms) if key.ready else "-",
        f"{key.arriving_per_second:.1f}",
        f"{key.served_per_second:.1f}",
        f"{key.due_per_second:.1f}",
        key.weight,
        state_briefly(key, is_own=is_own),
    )


@click.command(
    cls=Command,
    examples="""
    fila series orders
    fila series orders --key acme
    fila series orders -o json
    """,
)
@queue_argument
@channel_option
@click.option("--key", "keys", multiple=True, help="A key whose series to tell; may be repeated")
@click.pass_obj
def series(session: Session, queue: str, channel: str, keys: Sequence[str]) -> None:
    """Look back at the last hour of a channel, minute by minute. Minutes that were not recorded are left out.

    A key that is named is recorded for an hour from now on, whether it is among the busiest or not.
    """
    from fila.v1 import watch_pb2

    request = watch_pb2.GetSeriesRequest(queue=queue, channel=channel, keys=keys)
    answer = session.admin.GetSeries(request, timeout=session.timeout_s)
    session.show(answer, _by_minute(answer))


def _by_minute(answer: GetSeriesResponse) -> str:
    first = answer.first_at.ToDatetime(UTC)
    names = [key.fairness_key for key in answer.keys]
    rows: list[tuple[Cell, ...]] = []
    for at in range(0, len(answer.points), 6):
        minute = [point for point in answer.points[at : at + 6] if point.recorded]
        if not minute:
            continue
        ends = first + timedelta(milliseconds=answer.step_ms * min(at + 5, len(answer.points) - 1))
        served = [sum(point.served for point in key.points[at : at + 6]) for key in answer.keys]
        rows.append((*_minute(ends, minute), *(f"{cost:g}" for cost in served)))
    headings = (
        "UNTIL",
        "IN",
        "OUT",
        "DONE",
        "DEPTH",
        "IN FLIGHT",
        "OLDEST",
        *(f"{name} SERVED" for name in names),
    )
    return table(headings, rows) if rows else ""


def _minute(ends: datetime, points: Sequence[SeriesPoint]) -> tuple[Cell, ...]:
    last = points[-1]
    return (
        ends.strftime("%H:%M:%SZ"),
        sum(point.arrived for point in points),
        sum(point.delivered for point in points),
        sum(point.acked for point in points),
        last.depth,
        last.in_flight,
        age_text(last.oldest_age_ms) if last.oldest_age_ms else "-",
    )
