"""`fila` as a person types it, against a running server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any

from tests import forked_python

COMMAND_S_MAX = 30.0
_ENTRY = "from fila_cli.main import main; main()"


@dataclass(frozen=True, slots=True)
class Ran:
    """What the shell would have seen."""

    code: int
    out: str
    err: str

    def rows(self, heading: str) -> dict[str, list[str]]:
        """The lines of the table whose header starts with `heading`, by their first cell."""
        lines = self.out.splitlines()
        first = next(i for i, line in enumerate(lines) if line.startswith(heading))
        cells = [line.split() for line in lines[first + 1 :]]
        ends = next((i for i, row in enumerate(cells) if not row), len(cells))
        return {row[0]: row[1:] for row in cells[:ends]}

    def fact(self, name: str) -> str:
        """The value printed beside `name`."""
        return next(
            line.strip().removeprefix(name).strip()
            for line in self.out.splitlines()
            if line.strip().startswith(name)
        )

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Runs `fila` against one server."""

    address: str

    async def __call__(self, *arguments: str, expect: int = 0) -> Ran:
        """Run one command off the loop; `expect` is the exit code it must have."""
        ran = await asyncio.to_thread(self.run, *arguments)
        assert ran.code == expect, f"fila {' '.join(arguments)}: {ran.code}\n{ran.out}{ran.err}"
        return ran

    def run(self, *arguments: str, stdin: str = "") -> Ran:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
        done = subprocess.run(
            [forked_python.program(), "-c", _ENTRY, "--addr", self.address, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=COMMAND_S_MAX,
            check=False,
            env=environ,
        )
        return Ran(done.returncode, done.stdout, done.stderr)
