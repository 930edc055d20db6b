"""One channel before the judge: its messages, and which of them takes the place of which."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from fila_server.history_files.channel_twin import (
    DELAYED,
    HELD,
    LEASED,
    NOWHERE,
    READY,
    UNKNOWN,
    ChannelTwin,
    Message,
)
from fila_server.history_files.lines import Line


@dataclass(eq=False)
class Channel:
    """One channel and what is known of it."""

    queue: str
    name: str
    turns: ChannelTwin
    is_whole: bool
    """It was made in this recording, so nothing is in it that nobody saw come."""
    is_blurred: bool = False
    messages: dict[int, Message] = field(default_factory=dict)
    delays: list[tuple[int, int, Message]] = field(default_factory=list)
    arriving: list[tuple[int, Message]] = field(default_factory=list)
    """With their passes: those that replace one that is gone. They become ready behind what comes beside them, in that
    pass or the next, and no row says when."""
    lines: dict[str, Line] = field(default_factory=dict)
    """The keys that wait for a limit, by its name."""
    last_consumer: int = 0
    last_count: int = 0

    # --- one message takes the place of another ------------------------------------------------

    def replaces(self, message: Message, offset: int, in_pass: int) -> None:
        """It came for one that may be there: what becomes of it is told by the end of that one, or by no row at all."""
        before = self.messages.get(offset)
        if before is None:
            self.arriving.append((in_pass, message))
            return
        message.behind, before.successor = before, message
        self.turns.is_known(message, HELD)

    def arrived(self, came_until: int, delayed: Collection[int]) -> list[Message]:
        """Return those that came for one that is gone, in passes up to this one: they are ready.

        delayed: offsets of messages that get a delay in this pass.
        """
        came, self.arriving = self.arriving, []
        ready = []
        for came_in, message in came:
            if message.state != UNKNOWN:
                continue
            if came_in > came_until or message.offset in delayed:
                self.arriving.append((came_in, message))
            else:
                ready.append(message)
        return ready

    def gave_way(self, before: Message, delayed: Collection[int], *, replaced: bool) -> Message | None:
        """One ended, and the one that replaces it is returned, if that is ready now.

        replaced: it gave way, and did not end otherwise; delayed: as for `arrived`.
        """
        message, before.successor = before.successor, None
        assert message is not None, "it has a successor"
        message.behind = None
        if replaced and before.behind is not None:  # behind the lease behind which that one waited
            message.behind, before.behind.successor = before.behind, message
            return None
        return message if message.state == HELD and message.offset not in delayed else None

    def stands(self, message: Message, before: Message, was: str, in_pass: int, *, is_strict: bool) -> None:
        """It is ready, in the place of the one before it or at the back. was: the state of that one until then;
        is_strict: the keys of its queue come in order."""
        stood = was in (READY, LEASED) or (is_strict and was in (DELAYED, UNKNOWN))
        if was == UNKNOWN and before.ended_in >= 0:  # it was tried again, nobody knows since when
            before.place, stood = NOWHERE, True
        if stood and message.takes_place:
            self.turns.succeeds(message, before, in_pass, at_once=was == READY)
        elif was == LEASED:
            self.turns.delay_ends(message, in_pass)
        else:
            self.turns.becomes_ready(message, in_pass)
