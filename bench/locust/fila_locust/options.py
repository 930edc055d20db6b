"""What the load tests add to locust's command line and to the form of its web page."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from locust.env import Environment

from . import listening

QUEUE_PREFIX = "locust-"


class BadOption(ValueError):
    """An option cannot be used; the text names it, its bounds, and what to give instead."""


@listening.at_command_line
def add_options(parser: Any) -> None:
    """Called by locust before it reads its command line."""

    def add(name: str, default: Any, text: str, **more: Any) -> None:
        parser.add_argument(name, default=default, help=text, type=type(default), **more)

    add("--queue", "locust-load", f"queue of this run, begins with {QUEUE_PREFIX}; made anew at each start")
    add("--tenants", 10, "fairness keys the messages fall on, 1 to 1,000,000")
    add(
        "--user-rate", 5.0, "messages a second of each producing user; 0: the next when the last was answered"
    )
    add("--payload", 1024, "bytes of payload, 32 to 1,000,000")
    add(
        "--batch",
        100,
        "messages in a call of users that batch, and most a consumer leases at once; 1 to 10,000",
    )
    add("--work-ms", 2.0, "how long a consumer works on each message")
    add("--provider-rate", 100.0, "throttled: messages a second that the slow provider takes")
    add("--redis", "", "host:port of the Redis protocol; default: port 9797 of the host", metavar="ADDRESS")
    parser.add_argument(
        "--fifo", action="store_true", help="make the queue without fairness keys, to compare"
    )
    add("--fail-p99-ms", 0.0, "exit 1 when the p99 of a judged row is above it; 0: no threshold")
    add(
        "--fail-p99-rows",
        "",
        "regular expression of the judged rows; default: the scenario's",
        metavar="REGEX",
    )
    add(
        "--fail-share-error",
        0.0,
        "exit 1 when a tenant lost more than this part (0 to 1) of its due; 0: none",
    )
    add("--fail-rate-error", 0.0, "throttled: exit 1 when the rate is off by more than this part; 0: none")


def check(options: argparse.Namespace) -> None:
    """Raise BadOption on the first option out of its bounds."""
    if not options.queue.startswith(QUEUE_PREFIX):
        raise BadOption(
            f"--queue must begin with {QUEUE_PREFIX}, got {options.queue!r}: each run deletes its queue and makes it "
            "anew, so it must be one that nobody else uses"
        )
    for name, least, most in (
        ("tenants", 1, 1_000_000),
        ("user_rate", 0, 1_000_000),
        ("payload", 32, 1_000_000),
        ("batch", 1, 10_000),
        ("work_ms", 0, 60_000),
        ("provider_rate", 0.001, 1_000_000),
        ("fail_p99_ms", 0, 3_600_000),
        ("fail_share_error", 0, 1),
        ("fail_rate_error", 0, 1),
    ):
        value = getattr(options, name)
        if not least <= value <= most:
            raise BadOption(f"--{name.replace('_', '-')} must be {least:g} to {most:g}, got {value:g}")
    try:
        re.compile(options.fail_p99_rows)
    except re.error as error:
        raise BadOption(f"--fail-p99-rows is no regular expression: {error}") from None


@listening.at_init
def refuse_bad_options(environment: Environment, **_: object) -> None:
    """Called by locust once its command line was read, and before anything is sent."""
    try:
        check(options_of(environment))
    except BadOption as error:
        print(f"locust: {error}", file=sys.stderr)
        sys.exit(2)


def options_of(environment: Environment) -> Any:
    """The parsed command line; untyped, as argparse leaves it."""
    assert environment.parsed_options is not None, "the command line is read before users start"
    return environment.parsed_options
