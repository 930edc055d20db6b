"""The same small load through the SDKs of Python, JavaScript and Java (`bench/sdks/`), each in a process of its own.

A program there takes `ADDRESS QUEUE MODE CALLERS WARM_UP_S SECONDS MESSAGES` and prints one line of JSON:

    awaited   CALLERS loops enqueue, as many consume and ack, each call awaited; for SECONDS, or until MESSAGES
              are acked, the first tenth of them as the warm-up
    one       one caller enqueues, one call after the other: the median of what a call takes
    stub      the same by the generated stub, without the SDK
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_PROGRAMS = _ROOT / "bench" / "sdks"
_JAVA = _ROOT / "sdks" / "java" / "target"


class SdkLoadFailed(Exception):
    """A program could not be run; what it said is in the text."""


def _python() -> list[str]:
    return [sys.executable, str(_PROGRAMS / "load.py")]


def _javascript() -> list[str]:
    if not (_ROOT / "sdks" / "js" / "dist").exists():
        raise SdkLoadFailed("the JavaScript SDK is not built: make build-js")
    return [_found("node"), "--expose-gc", str(_PROGRAMS / "load.mjs")]


def _java() -> list[str]:
    dependencies = _JAVA / "driver.classpath"
    if not dependencies.exists():
        raise SdkLoadFailed("the Java SDK is not built: make build-java")
    classpath = f"{_JAVA / 'classes'}:{dependencies.read_text().strip()}"
    return [_found("java"), "-cp", classpath, str(_PROGRAMS / "Load.java")]


def _found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise SdkLoadFailed(f"{program} is missing: make setup installs it or says how")
    return path


COMMAND_BY_LANGUAGE: dict[str, Callable[[], list[str]]] = {
    "Python": _python,
    "JavaScript": _javascript,
    "Java": _java,
}


def run(
    language: str,
    address: str,
    queue: str,
    mode: str,
    *,
    callers: int = 200,
    warm_up_s: float = 0,
    seconds: float = 0,
    messages: int = 0,
) -> dict[str, Any]:
    """Run one load and return what it measured."""
    command = COMMAND_BY_LANGUAGE[language]()
    numbers = [str(number) for number in (callers, warm_up_s, seconds, messages)]
    ran = subprocess.run(
        [*command, address, queue, mode, *numbers], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise SdkLoadFailed(f"{language}: {ran.stderr.strip()[-2000:]}")
    report: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return report
