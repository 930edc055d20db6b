"""The stage where spans are wanted: each frame is told how long its scripts had it."""

from __future__ import annotations

from fila_server.core.requests.parsed_frame import ParsedFrame as CoreFrame
from fila_server.hooks.stage import HookStage, ParsedFrame


class TimedHooks(HookStage):
    """A stage as any other; a class of its own, so that without spans no frame costs a look at the clock."""

    async def route(self, parsed: ParsedFrame) -> None:
        shown_ns = self._now_ns()
        await super().route(parsed)
        if isinstance(parsed, CoreFrame):  # a page of dead letters that go back has no spans
            parsed.was_shown(shown_ns, self._now_ns())
