"""Locust's events, which are published without types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from locust import events
from locust.env import Environment
from locust.runners import WorkerRunner

Listener = Callable[..., None]


def at_command_line(listener: Listener) -> Listener:
    """Called with the parser before the command line is read."""
    return _listen(events.init_command_line_parser, listener)


def at_init(listener: Listener) -> Listener:
    """Called with the environment once the command line was read, before anything is sent."""
    return _listen(events.init, listener)


def at_start(listener: Listener) -> Listener:
    """Called with the environment each time a test starts, in every process, before any user is there."""
    return _listen(events.test_start, listener)


def at_end(listener: Listener) -> Listener:
    """Called with the environment once, before the process decides its exit code."""
    return _listen(events.quitting, listener)


def between_processes(
    report: Callable[[dict[str, Any]], None], receive: Callable[[dict[str, Any]], None]
) -> None:
    """`report` puts into its argument what a worker process tells the leading one every few seconds and at the end;
    `receive` takes it out there."""

    def reporting(client_id: str, data: dict[str, Any]) -> None:
        del client_id
        report(data)

    def receiving(client_id: str, data: dict[str, Any]) -> None:
        del client_id
        receive(data)

    _listen(events.report_to_master, reporting)
    _listen(events.worker_report, receiving)


def leads(environment: Environment) -> bool:
    """Whether this process is the only one or the one that the others report to."""
    return not isinstance(environment.runner, WorkerRunner)


def _listen(hook: Any, listener: Listener) -> Listener:
    hook.add_listener(listener)
    return listener
