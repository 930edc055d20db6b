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


def plots_drawn(seen: str) -> list[int]:
    """How many lines, bars and points with numbers each plot of a page has."""
    return [plot.partition("</svg>")[0].count("<title>") for plot in seen.split('<svg class="plot"')[1:]]
