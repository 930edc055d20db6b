"""How far a long command has come: a line on stderr that is written over, where stderr is a terminal.

with Progress("dead letter", total=400) as progress:
    progress.add(25)        # 25 of 400 dead letters, 50/s, 7s left
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from fila_cli.output import counted, printable
from fila_cli.values import age_text

_SHOWN_EVERY_S = 0.2
_BEGIN_OF_LINE = "\r\x1b[K"


class Progress:
    """Counts, and shows the count with its rate and, where the total is known, the time that is left."""

    def __init__(
        self,
        noun: str,
        total: int | None = None,
        *,
        plural: str = "",
        told_as: str = "",
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`told_as`, such as "moved back", is what happened to those that are done. Where an error of the broker ends
        it, that is told before the error."""
        self.done = 0
        self._told_as = told_as
        self.total = total
        self._noun = noun
        self._plural = plural
        self._now_s = now_s
        self._began_s = self._shown_s = now_s()
        self._is_shown = sys.stderr.isatty()

    def add(self, count: int) -> None:
        """So many more are done."""
        self.done += count
        if self._is_shown and self._now_s() - self._shown_s >= _SHOWN_EVERY_S:
            self._shown_s = self._now_s()
            print(_BEGIN_OF_LINE + self.line(), end="", file=sys.stderr, flush=True)

    def line(self) -> str:
        """The line as it would be shown now."""
        elapsed_s = max(self._now_s() - self._began_s, 1e-6)
        rate = self.done / elapsed_s
        text = self.summary() + f", {rate:,.0f}/s" if rate >= 10 else self.summary() + f", {rate:.2g}/s"
        if self.total and self.done and self.done < self.total:
            text += f", {age_text(int((self.total - self.done) / rate * 1000))} left"
        return text

    def summary(self) -> str:
        """`25 of 400 dead letters`."""
        if self.total is None:
            return counted(self.done, self._noun, self._plural)
        return f"{self.done} of {counted(self.total, self._noun, self._plural)}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_shown:
            print(_BEGIN_OF_LINE, end="", file=sys.stderr, flush=True)
        if self._told_as and self.done and kind is not None and _is_a_brokers(kind):
            print(printable(f"{self.summary()} {self._told_as}, then:"), file=sys.stderr)


def _is_a_brokers(kind: type[BaseException]) -> bool:
    import grpc

    return issubclass(kind, grpc.RpcError)
