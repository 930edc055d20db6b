"""What the broker expects of its neighbours: the core below it, and the hooks it asks on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from fila_server import errors
from fila_server.core.requests.rights_table import Rights
from fila_server.hooks.counters import HookStatus
from fila_server.hooks.sandbox import HookLimits
from fila_server.hooks.stage import ParsedFrame


class LogReader(Protocol):
    """One ReadLog call; `read` blocks on the disk."""

    def read(self) -> bytes | None: ...


class StagedFrame(ParsedFrame, Protocol):
    """A parsed frame that may be a Stage request's."""

    def staged(self) -> tuple[str, str]:
        """The names of its queue and its sink."""
        ...


class Engine(Protocol):
    """The compiled core, as the broker sees it (see core/runtime/engine.pyi)."""

    @property
    def rights(self) -> Rights: ...
    @property
    def wake_fd(self) -> int: ...
    def submit(self, kind: int, token: int, frame: bytes) -> None: ...
    def parse(self, kind: int, frame: bytes, caller: int | None = None, now_ns: int = 0) -> ParsedFrame: ...
    def submit_parsed(self, token: int, parsed: Any) -> None: ...  # what its own parse() gave
    def drain(self) -> list[tuple[int, int, int, bytes]]: ...
    def log_reader(self, request: bytes) -> LogReader: ...
    @property
    def stirs(self) -> int: ...
    def open_report(self) -> dict[str, int]: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...


class EnqueueHooks(Protocol):
    """The stage between edge and mailbox for queues that have an `on_enqueue` script."""

    @property
    def scripted(self) -> bool:
        """True while any queue has a script; frames skip the stage otherwise."""
        ...

    @property
    def limits(self) -> HookLimits:
        """What one call of a script may take."""
        ...

    def concerns(self, parsed: ParsedFrame) -> bool:
        """True when a message of the frame goes to a queue with a script; other frames skip the stage too."""
        ...

    async def route(self, parsed: ParsedFrame) -> None:
        """Decide the routing of each message of the frame; may take until a failing script works again.

        Never fails an enqueue for what a script does; raises Overloaded when no more can wait.
        """
        ...

    def check_scripts(self, on_enqueue_script: str, on_failure_script: str) -> None:
        """Compile both (empty = none); raise errors.Invalid naming the field when one is no good."""
        ...

    def status(self, queue: str) -> Sequence[HookStatus]:
        """Return how the queue's scripts are doing, one entry each."""
        ...


class NoHooks:
    """A broker without hooks: every frame goes straight in."""

    scripted = False
    limits = HookLimits()

    def concerns(self, parsed: ParsedFrame) -> bool:  # noqa: ARG002 - the protocol's
        """No frame needs a hook."""
        return False

    async def route(self, parsed: ParsedFrame) -> None:
        """Leave the declarative policy to the core."""

    def check_scripts(self, on_enqueue_script: str, on_failure_script: str) -> None:
        """Refuse: a script that never runs would be worse than none."""
        if on_enqueue_script or on_failure_script:
            raise errors.Unimplemented("this broker runs no hooks; leave the scripts out")

    def status(self, queue: str) -> Sequence[HookStatus]:  # noqa: ARG002 - the protocol's
        """No scripts, nothing to tell."""
        return ()


EventHandler = Callable[[int, bytes], None]
"""Gets (event number, payload) on the loop's thread; answers later with `broker.post(DECIDE, number, frame)`."""
