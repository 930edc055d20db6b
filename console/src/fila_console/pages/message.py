"""One message's life: what happened to it, where it is now, what it waits for, and taking it back."""

from __future__ import annotations

from starlette.responses import Response

from fila.whereabouts import MessagePast, MessageStatus
from fila_console.trouble import Trouble
from fila_console.visit import Visit
from fila_console.wording import age, brief, cause, count, counted, forecast_said, moment, named

_CAN_BE_CANCELLED = ("waiting", "delayed", "leased", "deciding")
_DONE = {
    "cancelled": "it waited, and is gone",
    "revoked": "a consumer had it, is told so, and its ack is refused",
}


async def page(visit: Visit) -> Response:
    """The message's page; without one named, the form alone."""
    queue, channel = visit.path("queue"), visit.query("channel")
    message_id, dedup_key = visit.query("id"), visit.query("dedup")
    told = None
    if message_id or dedup_key:
        told = await visit.upstream.message(queue, message_id, dedup_key, channel)
    return visit.page(
        "message.html",
        locked=await visit.locked("cancel", queue),
        here="log",
        queue=queue,
        channel=channel,
        asked_id=message_id,
        asked_dedup=dedup_key,
        message_id=told.message_id if told else "",
        key=told.fairness_key if told else "",
        facts=_facts(told, visit.upstream.clock.now_s()) if told else [],
        past=_past(told.past) if told and told.past else [],
        past_said=_past_said(told.past) if told and told.past else "",
        can_cancel=told is not None and told.state in _CAN_BE_CANCELLED,
    )


def _facts(told: MessageStatus, now_s: float) -> list[tuple[str, str]]:
    listed = [("It is", _doing(told))]
    if told.place:
        about = "about " if told.place_is_estimated else ""
        listed.append(("Place", f"{about}{count(told.place)} of its key's waiting messages"))
    if told.forecast is not None:
        listed.append(("Goes", forecast_said(told.forecast, now_s)))
    if told.fairness_key:
        listed.append(("Key", named(told.fairness_key)))
    if told.priority != 1:
        listed.append(("Priority", f"{told.priority} of 3, within its key"))
    if told.message_id:
        listed.append(("Id", told.message_id))
    if told.enqueued_at is not None:
        listed.append(("Enqueued", moment(told.enqueued_at)))
    if told.attempts:
        said = f", the last time with: {brief(told.last_error, 256)}" if told.last_error else ""
        listed.append(("Failed", counted(told.attempts, "time") + said))
    return listed


_WORDS = {"dead_lettered": "given up, a dead letter", "returned": "came back, not begun"}


def _past(past: MessagePast) -> list[tuple[str, str, str, str]]:
    """When, what, after how long, and by whom or why."""
    rows = []
    for event in past.events:
        who = f"consumer {event.consumer_id}" if event.consumer_id else ""
        ms = event.waited_ms if event.kind == "delivered" else event.held_ms
        why = ", ".join(each for each in (who, event.bucket, event.reason) if each)
        rows.append(
            (
                moment(event.at) if event.at else "",
                _WORDS.get(event.kind, event.kind),
                age(ms) if ms else "",
                brief(why, 256),
            )
        )
    return rows


def _past_said(past: MessagePast) -> str:
    if past.missing:
        return f"What happened before: {past.missing}."
    until = f"Recorded up to {moment(past.until)}" if past.until else "Recorded"
    return f"{until}; there is more behind that." if past.more else f"{until}."


def _doing(told: MessageStatus) -> str:
    if told.state == "waiting":
        until = f" until {moment(told.until)}" if told.until is not None else ""
        held = (told.cause, told.blocking_bucket, told.blocking_part, told.blocking_rate)
        return f"waiting: {cause(*held, nobody_consumes=told.nobody_consumes)}{until}"
    if told.state == "delayed" and told.waits_for:
        return f"replaces {told.waits_for}, and goes once the lease of that one has ended"
    if told.state == "delayed":
        return f"delayed until {moment(told.until)}"
    if told.state == "leased":
        who = told.consumer_name or (f"consumer {told.consumer_id}" if told.consumer_id else "a pull")
        begun = "" if told.begun else ", not begun"
        return f"leased by {brief(who, 128)} since {moment(told.leased_at)}{begun}"
    if told.state == "dead" and told.dead_letter is not None:
        return f"dead since {moment(told.dead_letter.at)}: {told.dead_letter.reason}"
    if told.state == "deciding":
        return "failed; what becomes of it is being decided"
    return "not known: it is done, taken back, replaced, or was never in this channel"


async def cancel(visit: Visit) -> Response:
    """Take it back."""
    if visit.field("sure") != "yes":
        raise Trouble(400, "Nothing was taken back", "Tick the box beside the button.")
    (outcome,) = await visit.upstream.cancel(visit.path("queue"), [visit.field("id")], visit.field("channel"))
    if outcome not in _DONE:
        raise Trouble(409, "It was not found", "It is done or dead by now, or was taken back before.")
    return visit.done(f"Taken back at {visit.upstream.clock.now()}: {_DONE[outcome]}.", tone="done")
