"""Draws the terminal of README's first five minutes: runs its commands on a broker of its own.

    python tools/terminal_picture.py docs/images/five-minutes.png

The commands are read from README.md, so that the picture cannot show others. Needs chromium, as the tests of
reports do.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = 110
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #0c0c0c }}
pre {{ margin: 0; padding: 18px 22px; font: 15px/20px "DejaVu Sans Mono", monospace; color: #d9d9d9 }}
</style><pre>{code}</pre>"""


def commands() -> list[str]:
    """Return what the block under "Five minutes" types after the broker was started."""
    section = (ROOT / "README.md").read_text().split("## Five minutes")[1]
    block = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)[1]
    return [line for line in block.splitlines() if line.startswith(("fila ", "seq "))]


def typed(address: str) -> Text:
    """Run the commands; return what a terminal would have shown, in its colours."""
    environ = os.environ | {"FILA_ADDR": address, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1"}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    shown = Text()
    for command in commands():
        in_colour = re.sub(r"\bfila ", "fila --color always ", command)
        ran = subprocess.run(
            ["bash", "-c", in_colour], env=environ, capture_output=True, text=True, check=True
        )
        shown.append("$ ", style="bold green").append(command, style="bold").append("\n")
        shown.append(Text.from_ansi(ran.stdout.rstrip("\n") + "\n")).append("\n")
    return shown


def draw(shown: Text, picture: Path) -> None:
    """Lay it out as a page of this size, and have the browser take a picture of it."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(shown)
    code = console.export_html(theme=MONOKAI, inline_styles=True, code_format="{code}")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch, "page.html")
        page.write_text(PAGE.format(code=code))
        size = f"--window-size={COLUMNS * 9 + 44},{(len(shown.plain.splitlines()) + 1) * 20 + 36}"
        quiet = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-device-scale-factor=1.5",
        ]
        subprocess.run(
            [browser, *quiet, size, f"--screenshot={picture}", str(page)], check=True, capture_output=True
        )


def main() -> None:
    """Start a broker, type, draw, and stop it."""
    picture = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        environ = os.environ | {"FILA_REDIS__ENABLED": "false", "FILA_METRICS__LISTEN_ADDR": ""}
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "fila_server.main",
                "--listen",
                "127.0.0.1:0",
                "--data-dir",
                f"{scratch}/data",
            ],
            env=environ,
            cwd=scratch,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stderr is not None
            lines = (json.loads(line) for line in server.stderr)
            address = next(line["grpc"] for line in lines if line["event"] == "server.started")
            draw(typed(address), picture)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(15)
    print(f"{picture}: {picture.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()
