"""A driver: one process a language that speaks the line protocol (PROTOCOL.md)."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

LINE_BYTES_MAX = 64 << 20
EXIT_S_MAX = 20.0


@dataclass(frozen=True)
class Program:
    """How a program of docs/patterns is run in a language."""

    fence: str
    file: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Language:
    """How a language's driver is built and started; paths are relative to the repository."""

    name: str
    build: tuple[str, ...]
    command: tuple[str, ...]
    lacks: frozenset[str] = frozenset()
    """What the language's way of calling does not have, such as a blocking call that can be cancelled."""
    program: Program | None = None


def languages(file: Path) -> list[Language]:
    """Return what drivers.yaml lists."""
    return [
        Language(
            name=item["name"],
            build=tuple(item.get("build", ())),
            command=tuple(item["command"]),
            lacks=frozenset(item.get("lacks", ())),
            program=None
            if "program" not in item
            else Program(
                item["program"]["fence"], item["program"]["file"], tuple(item["program"]["command"])
            ),
        )
        for item in yaml.load(file.read_text(), yaml.CSafeLoader)
    ]


class DriverGone(Exception):
    """The driver ended, or said something that is not of the protocol."""


class Driver:
    """One running driver. `call` may be used by many scenarios at once."""

    def __init__(self, process: asyncio.subprocess.Process, language: str) -> None:
        self._process = process
        self._language = language
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, language: Language, repository: Path, errors: Path) -> Driver:
        """Start it and wait until it says that it is ready."""
        with errors.open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                *language.command,
                cwd=repository,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                limit=LINE_BYTES_MAX,
                env={name: value for name, value in os.environ.items() if not name.startswith("FILA_")},
            )
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), 60)
        try:
            ready = json.loads(line)["ready"]
        except (ValueError, KeyError, TypeError):
            ready = False
        if not ready:
            raise DriverGone(
                f"the {language.name} driver's first line is {line[:200]!r}, not that it is ready"
            )
        return cls(process, language.name)

    def begin(self, operation: str, arguments: dict[str, Any]) -> tuple[int, asyncio.Future[dict[str, Any]]]:
        """Write a request; return its number and the future of its answer."""
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        if self._reading.done():
            answer.set_exception(DriverGone(f"the {self._language} driver has ended"))
            return number, answer
        self._waiting[number] = answer
        assert self._process.stdin is not None
        line = json.dumps({"id": number, "op": operation, **arguments}, ensure_ascii=False)
        self._process.stdin.write(line.encode() + b"\n")
        return number, answer

    async def _read(self) -> None:
        assert self._process.stdout is not None
        gone: Exception = DriverGone(f"the {self._language} driver closed its output")
        try:
            while line := await self._process.stdout.readline():
                answer = json.loads(line)
                waiting = self._waiting.pop(answer["id"], None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)
        except (ValueError, KeyError, TypeError) as wrong:
            gone = DriverGone(f"the {self._language} driver wrote what is no answer: {wrong}")
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(gone)
        self._waiting.clear()

    async def stop(self) -> int | None:
        """End its input and return its exit code; None when it had to be killed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            return await asyncio.wait_for(self._process.wait(), EXIT_S_MAX)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            return None
        finally:
            self._reading.cancel()
