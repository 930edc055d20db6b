"""What keeps a standby's disk small, on a thread of its own, until the node owns: an owner's engine has one itself."""

from __future__ import annotations

import threading

from fila_server.core.runtime.store_copy import StoreCopy

ROUND_S = 1.0


class Upkeep:
    """Of one copy, from now until `end`."""

    def __init__(self, copy: StoreCopy) -> None:
        self._copy, self._ended = copy, threading.Event()
        self._thread = threading.Thread(target=self._run, name="fila-upkeep", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(ROUND_S):
            self._copy.upkeep()

    def end(self) -> None:
        """A round that is under way is cut short. Nothing of it runs any more once this returns."""
        self._ended.set()
        self._copy.break_off(True)
        self._thread.join()
        self._copy.break_off(False)
