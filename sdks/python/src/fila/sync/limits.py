"""Limits, without `await`; told in `fila.limits`."""

from __future__ import annotations

from typing import Unpack

from fila.limits import Limit, LimitOptions, LimitPage, LimitState
from fila.sync.schedules import ScheduleCalls


class LimitCalls(ScheduleCalls):
    """The calls of FilaAdmin about limits. All need the right `admin`."""

    def set_limit(self, name: str, **parts: Unpack[LimitOptions]) -> Limit:
        """Set the limit of a throttle key as a whole; where its name ends in a `*`, that of each throttle key which
        begins so. Raises Invalid, LimitExceeded."""
        return self._run(self._client.set_limit(name, **parts))

    def get_limit(self, throttle_key: str) -> LimitState | None:
        """Return the limit that messages with this throttle key meet, its own or that of a pattern, and what of it is
        used; None where nothing limits it."""
        return self._run(self._client.get_limit(throttle_key))

    def list_limits(self, prefix: str = "", *, after: str = "", max_limits: int = 0) -> LimitPage:
        """Return the limits whose names begin with `prefix`: 100, or up to 1,000, and with `after` those behind that
        name."""
        return self._run(self._client.list_limits(prefix, after=after, max_limits=max_limits))

    def delete_limit(self, name: str) -> None:
        """Delete a limit by the name it was set with; what waits for it goes. Raises NotFound."""
        self._run(self._client.delete_limit(name))

    def reset_limit(self, throttle_key: str, *, spent: float = 0.0) -> LimitState:
        """Say how much of its budget a throttle key has spent in this period, and return how its limit is then. Raises
        NotFound, Invalid."""
        return self._run(self._client.reset_limit(throttle_key, spent=spent))
