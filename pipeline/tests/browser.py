"""Opens a page in headless Chromium."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def browsed(page: Path, profile: Path) -> str:
    """The page as a browser has made it."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        missing = "no chromium here to open the page in: install it"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)  # in CI the line above fails
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    )
    more = f"--disable-component-update --disable-sync --user-data-dir={profile} --virtual-time-budget=10000"
    command = [chromium, *flags.split(), *more.split(), "--dump-dom", page.as_uri()]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=100).stdout


def plots_drawn(seen: str) -> list[bool]:
    """For each plot of a page whether it is there: one that failed leaves its container empty, and a container that
    did not has several drawings, so that counting them all tells nothing.
    """
    return ['class="main-svg"' in container for container in seen.split('<div id="')[1:]]
