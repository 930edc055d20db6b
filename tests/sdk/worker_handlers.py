"""Handlers that tests run in other processes, which import them by name."""

from __future__ import annotations

import os
import signal
import time


class Unpicklable(Exception):
    def __reduce__(self):
        raise TypeError("not to be pickled")


def obey(order: dict[str, str]) -> None:
    """Do what the order says."""
    match order["do"]:
        case "exit":
            os._exit(7)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise ValueError("told so")
        case "strange":
            raise Unpicklable("strange")
        case "sleep":
            time.sleep(60)


def block_then(order: dict[str, float]) -> None:
    """Sleep for as long as the order says."""
    time.sleep(order["s"])
