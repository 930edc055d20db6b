"""What the keys of `fila top` do: which screen is open, what is chosen, sorted, filtered and about to be changed.

No terminal and no broker here: `press` and `take` change what `render` shows, and what is to be asked or done is
handed out as a `Call`. So every key can be tried without either.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from fila_cli.cockpit.looks import DLQ_SUFFIX, KeyLooks, KeyRow, QueueLooks, QueueRow
from fila_cli.cockpit.views import KEY_COLUMNS, QUEUE_COLUMNS, Column

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import ExplainKeyResponse
    from fila.v1.events_pb2 import GetStatusResponse

PAGE_ROWS = 10
WEIGHT_MAX = 1_000


class Screen(Enum):
    """What is open."""

    QUEUES = "queues"
    KEYS = "keys"
    EXPLAIN = "explain"


class Mode(Enum):
    """What the keys mean now."""

    MOVING = "moving"
    FILTERING = "filtering"
    WEIGHING = "weighing"
    REASONING = "reasoning"
    CONFIRMING = "confirming"
    HELP = "help"


@dataclass(frozen=True)
class Call:
    """Something to ask the broker: `look` at a tick, anything else once somebody has confirmed it."""

    what: str
    """`queues`, `keys`, `explain`, `pause_queue`, `pause_key` or `weigh`."""
    queue: str = ""
    channel: str = ""
    key: str = ""
    paused: bool = False
    weight: int = 0
    reason: str = ""


@dataclass
class _Sorting:
    column: str
    is_up: bool = False


@dataclass
class Cockpit:
    """The state of the screen."""

    queue: str = ""
    """Begin with this queue's keys; empty begins with all queues."""
    screen: Screen = Screen.QUEUES
    mode: Mode = Mode.MOVING
    channel: str = ""
    """Only this channel's keys; empty adds all channels up."""
    channels: tuple[str, ...] = ()
    """Of the queue whose keys are open, where it has several."""
    key: str = ""
    filter: str = ""
    typed: str = ""
    message: str = ""
    """What came of the last change."""
    is_error: bool = False
    silent_since_s: float | None = None
    """The broker has not answered since."""
    shows_dlqs: bool = False
    is_over: bool = False
    only_queue: bool = False
    queues: QueueLooks = field(default_factory=QueueLooks)
    keys: KeyLooks = field(default_factory=KeyLooks)
    explanation: ExplainKeyResponse | None = None
    status: GetStatusResponse | None = None
    """With what is wrong, of what is open."""
    pending: Call | None = None
    """Waits to be confirmed."""
    _chosen: dict[Screen, str] = field(default_factory=dict)
    _sorting: dict[Screen, _Sorting] = field(
        default_factory=lambda: {Screen.QUEUES: _Sorting("DEPTH"), Screen.KEYS: _Sorting("PENDING")}
    )

    def __post_init__(self) -> None:
        if self.queue:
            self.screen, self.only_queue = Screen.KEYS, True

    # --- what is seen -------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[Column, ...]:
        return QUEUE_COLUMNS if self.screen is Screen.QUEUES else KEY_COLUMNS

    @property
    def sorted_by(self) -> str:
        return self._sorting[self._list_screen].column

    @property
    def _list_screen(self) -> Screen:
        return Screen.QUEUES if self.screen is Screen.QUEUES else Screen.KEYS

    @property
    def rows(self) -> list[Any]:
        """The rows of the list that is open, filtered and sorted."""
        found: list[Any] = list(self.queues.rows if self.screen is Screen.QUEUES else self.keys.rows)
        if self.screen is Screen.QUEUES and not self.shows_dlqs:
            found = [row for row in found if not row.name.endswith(DLQ_SUFFIX)]
        if self.filter:
            found = [row for row in found if self.filter.lower() in row.name.lower()]
        sorting = self._sorting[self._list_screen]
        column = next(column for column in self.columns if column.name == sorting.column)
        found.sort(key=lambda row: row.name)
        # Names go up and figures down, unless it was turned round.
        assert column.rank is not None
        found.sort(key=column.rank, reverse=(sorting.column not in ("QUEUE", "KEY")) is not sorting.is_up)
        return found

    @property
    def chosen(self) -> int:
        """The row that is marked: it stays with its queue or key wherever that goes."""
        names = [row.name for row in self.rows]
        name = self._chosen.get(self._list_screen, "")
        return names.index(name) if name in names else 0

    @property
    def chosen_row(self) -> QueueRow | KeyRow | None:
        rows = self.rows
        return rows[self.chosen] if rows else None

    # --- what is asked ------------------------------------------------------------------------

    @property
    def look(self) -> Call:
        """The one call of a tick."""
        return Call(self.screen.value, queue=self.queue, channel=self.channel, key=self.key)

    def take(self, call: Call, answer: Any, at_s: float) -> None:
        """An answer to a look; one to a screen that was left meanwhile is dropped."""
        self.silent_since_s = None
        if call != self.look:
            return
        if self.screen is Screen.QUEUES:
            self.queues.take(answer, at_s)
        elif self.screen is Screen.KEYS:
            self.keys.take(answer, at_s, of_one_channel=bool(self.channel))
            if not self.channel:
                names = tuple(each.name for each in answer.channels)
                self.channels = names if len(names) > 1 else ()
        else:
            self.explanation = answer

    def miss(self, at_s: float) -> None:
        """The broker did not answer: what was seen last stays."""
        if self.silent_since_s is None:
            self.silent_since_s = at_s

    def tell(self, message: str, *, is_error: bool = False) -> None:
        """Say something in the last line until the next key."""
        self.message, self.is_error = message, is_error

    # --- keys ---------------------------------------------------------------------------------

    def press(self, key: str) -> Call | None:
        """Take one key; returns a change to make, once it was confirmed."""
        if key == "ctrl-c":
            self.is_over = True
            return None
        if self.mode is Mode.CONFIRMING:
            return self._confirm(key)
        if self.mode in (Mode.FILTERING, Mode.WEIGHING, Mode.REASONING):
            self._type(key)
        elif self.mode is Mode.HELP:
            self.mode = Mode.MOVING
        else:
            self.message = ""
            self._move(key)
        return None

    def _move(self, key: str) -> None:
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page-up": -PAGE_ROWS, "page-down": PAGE_ROWS}
        ends = {"home": -len(self.rows), "end": len(self.rows)}
        if (step := steps.get(key, ends.get(key))) is not None:
            self._choose(self.chosen + step)
        elif key in ("enter", "right", "l"):
            self._open()
        elif key in ("escape", "left", "h", "backspace"):
            self._back()
        elif key == "q":
            self.is_over = True
        elif key in ("?", "/"):
            self.mode, self.typed = (Mode.HELP, "") if key == "?" else (Mode.FILTERING, self.filter)
        elif key in ("s", "S") and self.screen is not Screen.EXPLAIN:
            self._sort(turn=key == "S")
        elif key == "d" and self.screen is Screen.QUEUES:
            self.shows_dlqs = not self.shows_dlqs
        elif key == "c" and self.screen is Screen.KEYS and self.channels:
            around = ("", *self.channels)
            self.channel = around[(around.index(self.channel) + 1) % len(around)]
            self.keys = KeyLooks()
        elif key == "p":
            self._ask_to_pause()
        elif key == "w" and self._key_at_hand():
            self.mode, self.typed = Mode.WEIGHING, ""

    def _choose(self, at: int) -> None:
        rows = self.rows
        if rows and self.screen is not Screen.EXPLAIN:
            self._chosen[self._list_screen] = rows[min(max(at, 0), len(rows) - 1)].name

    def _open(self) -> None:
        row = self.chosen_row
        if row is None or self.screen is Screen.EXPLAIN:
            return
        self._choose(self.chosen)
        if self.screen is Screen.QUEUES:
            self.queue, self.screen, self.keys = row.name, Screen.KEYS, KeyLooks()
            self._chosen.pop(Screen.KEYS, None)
            self.channel, self.channels = "", ()
        else:
            self.key, self.screen, self.explanation = row.name, Screen.EXPLAIN, None
        self.filter = ""

    def _back(self) -> None:
        if self.filter and self.screen is not Screen.EXPLAIN:
            self.filter = ""
        elif self.screen is Screen.EXPLAIN:
            self.screen, self.key = Screen.KEYS, ""
        elif self.screen is Screen.KEYS and not self.only_queue:
            self.screen, self.queue, self.channel = Screen.QUEUES, "", ""

    def _sort(self, *, turn: bool) -> None:
        sorting = self._sorting[self._list_screen]
        if turn:
            sorting.is_up = not sorting.is_up
            return
        names = [column.name for column in self.columns if column.rank is not None]
        sorting.column, sorting.is_up = names[(names.index(sorting.column) + 1) % len(names)], False

    def _type(self, key: str) -> None:
        if key == "escape":
            self.filter = "" if self.mode is Mode.FILTERING else self.filter
            self.mode, self.pending = Mode.MOVING, None
        elif key == "enter":
            if self.mode is Mode.WEIGHING:
                self._ask_to_weigh()
            elif self.mode is Mode.REASONING and self.pending is not None:
                self._ask(replace(self.pending, reason=self.typed.strip()))
            else:
                self.mode = Mode.MOVING
        elif key == "backspace":
            self.typed = self.typed[:-1]
        elif len(key) == 1:
            self.typed += key
        if self.mode is Mode.FILTERING:
            self.filter = self.typed

    # --- changes ------------------------------------------------------------------------------

    def _key_at_hand(self) -> str:
        if self.screen is Screen.EXPLAIN:
            return self.key
        row = self.chosen_row
        return row.name if self.screen is Screen.KEYS and row is not None else ""

    def _ask_to_pause(self) -> None:
        if self.screen is Screen.QUEUES:
            row = self.chosen_row
            if isinstance(row, QueueRow):
                self._ask_why(Call("pause_queue", queue=row.name, paused=not row.paused))
        elif key := self._key_at_hand():
            paused = next((row.paused for row in self.keys.rows if row.name == key), False)
            self._ask_why(Call("pause_key", queue=self.queue, key=key, paused=not paused))

    def _ask_why(self, call: Call) -> None:
        """Of a pause its reason, which may be left empty, then whether it is meant."""
        if not call.paused:
            self._ask(call)
            return
        self.pending, self.mode, self.typed = call, Mode.REASONING, ""

    def _ask_to_weigh(self) -> None:
        self.mode = Mode.MOVING
        if not self.typed.isdigit() or int(self.typed) > WEIGHT_MAX:
            self.tell(f"a weight is a number from 1 to {WEIGHT_MAX}, or 0 for none of its own", is_error=True)
            return
        self._ask(Call("weigh", queue=self.queue, key=self._key_at_hand(), weight=int(self.typed)))

    def _ask(self, call: Call) -> None:
        self.pending, self.mode = call, Mode.CONFIRMING

    def _confirm(self, key: str) -> Call | None:
        call, self.pending, self.mode = self.pending, None, Mode.MOVING
        if key in ("y", "Y"):
            return call
        self.tell("nothing was changed")
        return None


def in_words(call: Call) -> str:
    """A change as a question's half: `pause acme of orders`."""
    why = f' ("{call.reason}")' if call.reason else ""
    if call.what == "pause_queue":
        return f"{'pause' if call.paused else 'resume'} queue {call.queue}{why}"
    if call.what == "pause_key":
        return f"{'pause' if call.paused else 'resume'} {call.key} of {call.queue}{why}"
    if call.weight:
        return f"give {call.key} of {call.queue} the weight {call.weight}"
    return f"take the weight of {call.key} of {call.queue} away"
