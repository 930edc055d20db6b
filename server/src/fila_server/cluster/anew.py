"""A term that is over ends the process: what it knew of that term is gone with its memory."""

from __future__ import annotations

import os
import sys
import time
from typing import NoReturn

import structlog

log = structlog.get_logger("fila_server.cluster.node")

ANEW_S = 1.0
"""Before a process begins anew for a fault, which may be there still."""


def begin_anew(why: str) -> NoReturn:
    """Become the process that was started. Connections end without a word: what they asked may be in the log."""
    log.warning("cluster.term_over", detail=why or "another node has taken over")
    time.sleep(ANEW_S if why else 0)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - the very program that runs
