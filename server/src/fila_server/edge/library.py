"""Which nghttp2 is it? A distribution mends floods in it without a new number of its own, so its packages are asked.

from a wheel        checked when it was packed (tools/wheel/build)
from Debian         its package must be FLOOR or newer, else a line in the log says what to do
from elsewhere      nobody here knows what was mended in it
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

log = structlog.get_logger("fila_server.native")

PACKAGE = "libnghttp2-14"
FLOOR = "1.52.0-1+deb12u3"
"""Debian 12's package in which floods of resets and of header frames are mended."""
_MAPS = Path("/proc/self/maps")
_ASK_S_MAX = 2.0


def check_library(maps: str | None = None, ask: Callable[[Sequence[str]], str | None] | None = None) -> bool:
    """Warn where the loaded nghttp2 is Debian's and older than FLOOR; whether it did."""
    ask = ask or _ask
    loaded = {line.split()[-1] for line in (maps or _MAPS.read_text()).splitlines() if "libnghttp2" in line}
    if not loaded or any("fila_server.libs" in path for path in loaded):
        return False
    found = ask(["dpkg-query", "-W", "-f", "${Version}", PACKAGE])
    if not found or ask(["dpkg", "--compare-versions", found, "ge", FLOOR]) is not None:
        return False
    log.warning(
        "edge.library_outdated",
        package=PACKAGE,
        found=found,
        wanted=FLOOR,
        detail="clients may flood this server with frames that cost it dearly: run apt-get upgrade",
    )
    return True


def _ask(command: Sequence[str]) -> str | None:
    """Return what it printed, None when it failed or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_S_MAX, check=True)  # noqa: S603 - of our own words
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
