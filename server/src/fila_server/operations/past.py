"""What happened to one message, from the broker's history: only where that is on, and never an empty list that would
read as "never delivered"."""

from __future__ import annotations

import asyncio
import importlib.util
from datetime import UTC, datetime
from pathlib import Path

from fila.v1 import admin_pb2 as pb
from fila_server.broker.gate import Gate
from fila_server.broker.mirror import DEFAULT_CHANNEL
from fila_server.config.schema import History

IS_OFF = "not recorded: history is off"
NOTHING = "nothing of it is recorded"
NOT_NAMED = "the broker does not know its dedup key any more; name it by its id"
_VERSION_PLACE, _VERSION = 14, "7"
_HEX_OF_MS = 12


class Past:
    """Reads the history's files aside, one message at a time."""

    def __init__(self, settings: History) -> None:
        self._settings = settings
        self._one = Gate("GetMessage calls that read the history", at_once=1)

    async def of(
        self, request: pb.GetMessageRequest, now: pb.GetMessageResponse, tenant: str, *, quotes: bool
    ) -> pb.MessagePast:
        """What is recorded of the message that `now` tells of. A tenant is told of its own messages, and of nobody
        else's consumers or limits; without `quotes` nothing that a consumer said."""
        if not self._settings.enabled or importlib.util.find_spec("pyarrow") is None:
            return pb.MessagePast(missing=IS_OFF)
        async with self._one:
            try:
                past = await asyncio.to_thread(self._read, request, now)
            except (OSError, ValueError) as error:  # a damaged file, too
                return pb.MessagePast(missing=f"not read: {error}")
        if tenant and (past.missing or any(event.fairness_key != tenant for event in past.events)):
            return pb.MessagePast(missing=NOTHING)
        past.offset = 0 if tenant else past.offset
        for event in past.events:
            if tenant:
                event.consumer_id, event.bucket = 0, ""
            if not quotes and event.kind == "nacked":
                event.reason = ""
        return past

    def _read(self, request: pb.GetMessageRequest, now: pb.GetMessageResponse) -> pb.MessagePast:
        from fila_server.history_files.lives import (
            arrivals,
            life_of,
        )  # pyarrow is not there where history is off

        directory = Path(self._settings.dir)
        channel = request.channel or DEFAULT_CHANNEL
        is_here = now.state not in (pb.GetMessageResponse.STATE_NOT_KNOWN, pb.GetMessageResponse.STATE_DEAD)
        message_id = now.message_id or request.message_id
        if not message_id:
            return pb.MessagePast(missing=NOT_NAMED)
        since = _moment_of(message_id)
        if since is None:
            return pb.MessagePast(missing="its id does not tell when it came, so nobody can look it up")
        offset, until = now.offset, None
        if not is_here:
            found, until = arrivals(directory, request.queue, since)
            if request.offset:
                found &= {request.offset}
            if len(found) > 1:
                return pb.MessagePast(
                    missing=f"{len(found):,} messages came at about the time of its id, and a history has no ids: "
                    f"name its offset, one from {min(found)} to {max(found)}"
                )
            offset = next(iter(found), 0)
        if not offset:
            return _nothing(until, self._settings.sample)
        life = life_of(directory, request.queue, channel, offset, since, to_its_end=not is_here)
        if not life.events:
            return _nothing(life.until, self._settings.sample)
        past = pb.MessagePast(offset=offset, more=life.is_cut)
        if life.until is not None:
            past.until.FromDatetime(life.until)
        for event in life.events:
            row = past.events.add(
                kind=event.kind,
                fairness_key=event.fairness_key,
                consumer_id=event.consumer,
                bucket=event.bucket,
                reason=event.reason,
                attempts=event.attempts,
                held_ms=event.held_ms,
                waited_ms=event.waited_ms,
            )
            row.at.FromDatetime(event.at)
        return past


def _nothing(until: datetime | None, sample: int) -> pb.MessagePast:
    words = NOTHING
    if until is not None:
        words += f" up to {until.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}, where the closed files end"
    else:
        words += ", as no closed file is of its time"
    if sample > 1:
        words += f"; one message in {sample:,} is"
    return pb.MessagePast(missing=words)


def _moment_of(message_id: str) -> datetime | None:
    """When the broker made the id, to the millisecond: RFC 9562, version 7."""
    if message_id[_VERSION_PLACE : _VERSION_PLACE + 1] != _VERSION:
        return None
    return datetime.fromtimestamp(int(message_id.replace("-", "")[:_HEX_OF_MS], 16) / 1000, UTC)
