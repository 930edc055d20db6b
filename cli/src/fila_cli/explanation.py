"""Why a key waits, and when it will go; where one message is: the broker's answers as sentences."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fila_cli.moments import shown
from fila_cli.output import Cell, counted
from fila_cli.values import age_text

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import ExplainKeyResponse, GetMessageResponse, KeyHead
    from fila.v1.events_pb2 import ChannelConsumers, Forecast, LateKey, Pause, ServedMeanwhile
    from fila.v1.watch_pb2 import KeyState, WaitCauses

NOBODY = "nobody consumes this channel"
ALL_FULL = "its consumers hold as many messages as they may"
NOBODY_WITH_ROOM = "nobody with room consumes this channel"
"""Of a tenant's key, whose consumers are not told."""

_BRIEFLY = {
    "no_consumer": ALL_FULL,
    "not_its_turn": "other keys are served first",
    "throttled": "throttled",
    "paused": "paused",
    "capped": "at its cap",
    "in_order": "behind an earlier message",
    "rate_limited": "at the rate an operator set",
    "beyond_committed": "behind keys with a committed rate",  # and has none itself
}
_BRIEFLY_BY_DEFAULT = {
    "capped": "at the queue's cap for each key",
    "rate_limited": "at the queue's rate for each key",
}

_SENTENCE_BY_STATE = {
    "STATE_NO_CONSUMER": NOBODY_WITH_ROOM,
    "STATE_NOT_ITS_TURN": "ready; other keys are served before its turn",
    "STATE_THROTTLED": "throttled",
    "STATE_DELAYED": "all it has is delayed",
    "STATE_LEASED": "all it has is leased to consumers",
    "STATE_PAUSED": "paused by an operator; 'fila key resume', or the same of its channel or queue, lets it go on",
    "STATE_CAPPED": "as many messages are leased as its cap allows",
    "STATE_RATE_LIMITED": "it has used up the rate an operator set; 'fila key rate' changes it",
    "STATE_IN_ORDER": "an earlier message of it is not done, and they go in order",
    "STATE_BEYOND_COMMITTED": "waits behind keys with a committed rate",  # and has none itself
    "STATE_SUCCEEDS": "it replaces a message that is leased, and goes once that lease has ended",
    "STATE_HIGHER_FIRST": "messages of a higher priority of its key go first",
    "STATE_EMPTY": "it has nothing pending and nothing leased",
}

_SENTENCE_BY_DEFAULT = {
    "STATE_CAPPED": "as many messages are leased as the queue's cap for each key ('key-cap') allows",
    "STATE_RATE_LIMITED": "it has used up the queue's rate for each key ('key-rate'); 'fila key rate' sets its own",
}

BEYOND_ITS_RATE = "beyond its committed rate"

_WORDS_BY_PART = {
    "LIMIT_PART_SLOTS": ", whose slots are all taken",
    "LIMIT_PART_BUDGET": ", whose budget for this period is spent",
}

_UNKNOWN = {
    "UNKNOWN_NOTHING_PENDING": "nothing is pending",
    "UNKNOWN_PAUSED": "not before it is resumed",
    "UNKNOWN_DELAYED": "when its delay is over",
    "UNKNOWN_NO_CONSUMER": "nobody can say: nothing was served of late",
    "UNKNOWN_NO_TOKENS": "when its limit lets it: nobody can say",
    "UNKNOWN_NOT_WATCHED": "not known yet; the broker has not watched this channel for long enough",
}

_COUNTED_TO = 127
_NOW_MS = 1_000


def explained(key: str, answer: ExplainKeyResponse) -> list[tuple[str, Cell]]:
    """What an answer says, as facts."""
    listed: list[tuple[str, Cell]] = [
        ("key", key),
        ("waits because", _sentence(answer)),
        *_forecasts(answer),
        ("pending", answer.pending),
        *_behind_higher(answer),
        ("in flight", answer.in_flight),
        ("weight", answer.weight),
        ("oldest", age_text(answer.oldest_age_ms) if answer.pending else "-"),
    ]
    if answer.HasField("consumers"):  # left out of what a tenant's key is told, as are shares
        listed.append(("share of cost", f"{answer.share:.1%} of the last hour, due {_due(answer)}"))
    if answer.returning_offset:
        times = counted(answer.returning_count, "time")
        if answer.returning_count == _COUNTED_TO:
            times = f"{answer.returning_count}+ times"
        listed.append(("keeps returning", f"offset {answer.returning_offset}, {times}, never begun"))
    if answer.HasField("served_meanwhile"):
        listed.append(("served meanwhile", _served(answer.served_meanwhile)))
    if answer.HasField("consumers"):
        listed.append(("consumers", _consumers(answer.consumers)))
    return listed + _waits(answer.waits)


def _behind_higher(answer: ExplainKeyResponse) -> list[tuple[str, Cell]]:
    if not answer.behind_higher:
        return []
    of_all = f"{answer.behind_higher} of {counted(max(answer.pending, answer.behind_higher), 'message')}"
    verb = "waits" if answer.behind_higher == 1 else "wait"
    return [("behind higher", f"{of_all} {verb} behind a higher priority of this key")]


def _forecasts(answer: ExplainKeyResponse) -> list[tuple[str, Cell]]:
    if not answer.pending or not answer.HasField("head_forecast"):
        return []
    listed: list[tuple[str, Cell]] = [("next one goes", _next_goes(answer))]
    if answer.pending > 1 and not answer.tail_forecast.unknown:
        listed.append(("last one goes", when(answer.tail_forecast)))
    return listed


def _next_goes(answer: ExplainKeyResponse) -> str:
    from fila.v1 import admin_pb2, events_pb2

    if answer.head_forecast.unknown == events_pb2.Forecast.UNKNOWN_NO_TOKENS and answer.HasField("until"):
        return f"not before{_until(answer).removeprefix(' until')}"
    if answer.state != admin_pb2.ExplainKeyResponse.STATE_SUCCEEDS or not answer.HasField("waits_for"):
        return when(answer.head_forecast)
    ends = f"when the lease of {answer.waits_for.message_id} ends"
    if not answer.HasField("until"):
        return ends
    return f"{ends}, or in {_age(answer.until.ToDatetime(UTC), -1)} if that is sooner"


def when(forecast: Forecast) -> str:
    """`in 12s to 19s, most likely 15s`."""
    from fila.v1 import events_pb2

    if forecast.unknown:
        name = events_pb2.Forecast.Unknown.Name(forecast.unknown)
        return _UNKNOWN.get(name, name)
    if forecast.latest_ms < _NOW_MS:
        return "within a second"
    earliest, latest = age_text(forecast.earliest_ms), age_text(forecast.latest_ms)
    if earliest == latest:
        return f"in {latest}"
    between = f"{earliest} to {latest}" if forecast.earliest_ms else f"at most {latest}"
    return f"in {between}, most likely {age_text(forecast.likely_ms)}"


def _served(served: ServedMeanwhile) -> str:
    shown = [f"{each.fairness_key} {each.share:.0%}" for each in served.keys[:5]]
    rest = served.others_share + sum(each.share for each in served.keys[5:])
    if rest >= 0.005:
        shown.append(f"others {rest:.0%}")
    since_s = (datetime.now(UTC) - served.since.ToDatetime(UTC)).total_seconds()
    return f"{', '.join(shown)} (last {age_text(max(0, int(since_s * 1000)))})"


def _consumers(consumers: ChannelConsumers) -> str:
    if not consumers.count:
        pulls = counted(consumers.waiting_pulls, "pull")
        return f"{pulls} waiting" if consumers.waiting_pulls else "none"
    full = f"{consumers.with_room} with room" if consumers.with_room else "all full"
    if consumers.at_quota:
        full += f", {consumers.at_quota} at their name's quota of messages in flight"
    return f"{consumers.count}, {full}: {consumers.held} of {consumers.window} held, {consumers.begun} begun"


def _due(answer: ExplainKeyResponse) -> str:
    from fila.v1 import admin_pb2

    if answer.state == admin_pb2.ExplainKeyResponse.STATE_PAUSED:
        return "nothing while it is paused"
    return f"{answer.due_share:.1%}" if answer.pending else "nothing now"


def _sentence(answer: ExplainKeyResponse) -> str:
    from fila.v1 import admin_pb2

    state = admin_pb2.ExplainKeyResponse.State.Name(answer.state)
    sentence = _SENTENCE_BY_STATE.get(state, state)
    if state == "STATE_BEYOND_COMMITTED":
        return _behind_committed(answer, is_own=not answer.HasField("consumers"))
    if answer.by_default:
        sentence = _SENTENCE_BY_DEFAULT.get(state, sentence)
    if state == "STATE_NO_CONSUMER" and answer.HasField("consumers"):
        sentence = NOBODY if answer.nobody_consumes else ALL_FULL
        if answer.consumers.count and answer.consumers.at_quota == answer.consumers.count:
            sentence = "its consumers' names have as many messages in flight as their quotas allow"
    if answer.HasField("pause"):
        said = "'fila key resume', or the same of its channel or queue, lets it go on"
        return f"paused {paused_text(answer.pause)}; {said}"
    if state == "STATE_IN_ORDER" and answer.HasField("waits_for"):
        return _waits_for(answer.waits_for)
    if state == "STATE_SUCCEEDS":
        return _replaces(answer)
    if answer.blocking_bucket:
        sentence += f"{by_limit(answer)}{_learned(answer)}"
    return sentence + _until(answer)


def _behind_committed(answer: ExplainKeyResponse | GetMessageResponse, *, is_own: bool) -> str:
    """A key that has a committed rate is told when that lets it go; of one that has none, a tenant (`is_own`) is not
    told that others have."""
    if answer.HasField("until"):
        return f"{BEYOND_ITS_RATE}: waits until nobody within theirs waits, or{_until(answer)}"
    return _SENTENCE_BY_STATE["STATE_NOT_ITS_TURN" if is_own else "STATE_BEYOND_COMMITTED"]


def briefly(word: str, told: LateKey | KeyState, *, by_default: bool) -> str:
    """What a key waits for, for a column; `word` as in `no_consumer`."""
    text = _BRIEFLY.get(word, word.replace("_", " "))
    if by_default:
        text = _BRIEFLY_BY_DEFAULT.get(word, text)
    if word == "beyond_committed" and told.HasField("until"):
        text = BEYOND_ITS_RATE
    if told.nobody_consumes:
        text = NOBODY
    return f"{text}{by_limit(told)}" if told.blocking_bucket else text


def state_briefly(key: KeyState, *, is_own: bool = False) -> str:
    """The same of a key in numbers; a tenant is told `is_own`, its own, and not who consumes."""
    from fila.v1 import watch_pb2

    word = watch_pb2.KeyState.State.Name(key.state).removeprefix("STATE_").lower()
    if is_own and word == "no_consumer":
        return NOBODY_WITH_ROOM
    by_default = key.cap_by_default if word == "capped" else key.rate_by_default
    return briefly(word, key, by_default=by_default)


def by_limit(answer: ExplainKeyResponse | GetMessageResponse | LateKey | KeyState) -> str:
    """` by tenant:acme, whose rate 2 is used up`: which limit holds it, and which part of that."""
    from fila.v1 import limit_pb2

    words = _WORDS_BY_PART.get(limit_pb2.LimitPart.Name(answer.blocking_part), "")
    if answer.blocking_rate:
        words = f", whose rate {answer.blocking_rate} is used up"
    return f" by {answer.blocking_bucket}{words}"


def paused_text(pause: Pause) -> str:
    """`by alice since 2026-11-24 14:02:11+00:00: the provider is down`, as far as it is known."""
    since = f" since {shown(pause.since.ToDatetime(UTC))}" if pause.HasField("since") else ""
    why = f": {pause.comment}" if pause.comment else ""
    return f"by {pause.by or 'an operator'}{since}{why}"


def _until(answer: ExplainKeyResponse | GetMessageResponse) -> str:
    if not answer.HasField("until"):
        return ""
    left_s = (answer.until.ToDatetime(UTC) - datetime.now(UTC)).total_seconds()
    return f" until {answer.until.ToJsonString()} (in {age_text(max(0, int(left_s * 1000)))})"


def _learned(answer: ExplainKeyResponse) -> str:
    """`, learned 83/s, refused 4s ago`, where the limit follows its provider."""
    if not answer.learned_per_second:
        return ""
    learned = f", learned {answer.learned_per_second:.3g}/s"
    if answer.HasField("refused_at"):
        learned += f", refused {_age(answer.refused_at.ToDatetime(UTC), 1)} ago"
    return learned


def _replaces(answer: ExplainKeyResponse) -> str:
    """`replaces 0193..., leased by worker-1 for 3s, and goes when that lease ends; others are delayed until ...`."""
    sentence = _SENTENCE_BY_STATE["STATE_SUCCEEDS"]
    if answer.HasField("waits_for"):
        head = answer.waits_for
        sentence = f"replaces {head.message_id}, {_leased(head)}, and goes when that lease ends"
    return sentence + (f"; others are delayed{_until(answer)}" if answer.HasField("until") else "")


def _leased(head: KeyHead) -> str:
    by = f" by {head.consumer_name}" if head.consumer_name else ""
    return f"leased{by} for {_age(head.leased_at.ToDatetime(UTC), 1)}"


def _waits_for(head: KeyHead) -> str:
    """`waits for 0193... of its key, leased by worker-1 for 3s`, or `failed twice and due in 12s`."""
    sentence = f"waits for {head.message_id} of its key, "
    if head.HasField("leased_at"):
        return sentence + _leased(head)
    times = counted(head.attempts, "time")
    return f"{sentence}failed {times} and due in {_age(head.retry_at.ToDatetime(UTC), -1)}"


def _age(moment: datetime, sign: int) -> str:
    return age_text(max(0, int(sign * (datetime.now(UTC) - moment).total_seconds() * 1000)))


def _waits(waits: WaitCauses) -> list[tuple[str, Cell]]:
    by_cause = [
        ("no consumer", waits.no_consumer_ms),
        ("other keys' turns", waits.share_ms),
        ("throttle", waits.throttle_ms),
        ("delay or backoff", waits.delay_ms),
        ("pause, cap, rate or order", waits.held_ms),
    ]
    total_ms = sum(ms for _, ms in by_cause)
    if not total_ms:
        return []
    shown = ", ".join(f"{ms / total_ms:.0%} {cause}" for cause, ms in by_cause if ms)
    return [("last hour's waiting", shown)]


# --- one message -----------------------------------------------------------------------------------


def whereabouts(answer: GetMessageResponse) -> list[tuple[str, Cell]]:
    """What an answer says of one message, as facts."""
    from fila.v1 import admin_pb2

    listed: list[tuple[str, Cell]] = [("message", answer.message_id)] if answer.message_id else []
    listed.append(("is", _doing(answer)))
    if answer.place:
        about = "about " if answer.place_is_estimated else ""
        listed.append(("place", f"{about}{answer.place} of its key's waiting messages"))
    if answer.HasField("forecast"):
        listed.append(("goes", when(answer.forecast)))
    if answer.fairness_key:
        listed.append(("key", answer.fairness_key))
    is_behind = answer.cause == admin_pb2.ExplainKeyResponse.STATE_HIGHER_FIRST
    if answer.HasField("priority") or is_behind:  # the usual one is told where it explains something
        priority = answer.priority if answer.HasField("priority") else 1
        listed.append(("priority", f"{priority} of 3, within its key"))
    if answer.offset:
        listed.append(("offset", answer.offset))
    if answer.HasField("enqueued_at"):
        listed.append(("enqueued", answer.enqueued_at.ToJsonString()))
    if answer.attempts:
        said = f", the last time with: {answer.last_error}" if answer.last_error else ""
        listed.append(("failed", f"{counted(answer.attempts, 'time')}{said}"))
    return listed


def _doing(answer: GetMessageResponse) -> str:
    from fila.v1 import admin_pb2

    state = admin_pb2.GetMessageResponse.State.Name(answer.state)
    if state == "STATE_WAITING":
        cause = admin_pb2.ExplainKeyResponse.State.Name(answer.cause)
        if cause == "STATE_BEYOND_COMMITTED":
            return f"waiting: {_behind_committed(answer, is_own=not answer.offset)}"
        waits = f"waiting: {NOBODY if answer.nobody_consumes else _SENTENCE_BY_STATE.get(cause, cause)}"
        if answer.blocking_bucket:
            waits += by_limit(answer)
        return waits + _until(answer)
    if state == "STATE_DELAYED" and answer.waits_for:
        return f"replaces {answer.waits_for}, and goes once the lease of that one has ended"
    if state == "STATE_DELAYED":
        return f"delayed{_until(answer)}"
    if state == "STATE_LEASED":
        return _held(answer)
    if state == "STATE_DEAD":
        return f"dead since {answer.dead_letter.at.ToJsonString()}: {answer.dead_letter.reason}"
    return {
        "STATE_DECIDING": "failed; what becomes of it is being decided",
        "STATE_NOT_KNOWN": "not known: it is done, taken back, replaced, or was never here",
    }.get(state, state)


def _held(answer: GetMessageResponse) -> str:
    who = answer.consumer_name or (f"consumer {answer.consumer_id}" if answer.consumer_id else "a pull")
    begun = "" if answer.begun else ", not begun"
    since, ends = answer.leased_at.ToJsonString(), answer.lease_expires_at.ToJsonString()
    return f"leased by {who} since {since}{begun}; the lease ends {ends}"
