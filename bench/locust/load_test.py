"""One load test: a broker of its own unless told of another, locust's reports in build/locust, an exit code.

    bench/locust/load_test.py                               the names
    bench/locust/load_test.py noisy-neighbour               a minute, without a web page; exit 1 when requests failed
    bench/locust/load_test.py noisy-neighbour -t 5m --processes 2 --fail-p99-ms 100 --fail-share-error 0.1
    bench/locust/load_test.py flood --web                   locust's web page, on port 8089
    bench/locust/load_test.py mixed -H broker:5555          against a running broker

All other options go to locust; `load_test.py NAME --help` shows them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
# `fila_bench` lies beside this folder, as for everything in bench/.
sys.path.insert(0, str(_HERE.parent))

from fila_bench.server import Server, ServerFailed  # noqa: E402


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a run is like unless the command line says otherwise."""

    about: str
    options: str = ""
    users: int = 20
    run_time: str = "1m"
    redis: bool = False

    def defaults(self) -> list[str]:
        return ["-u", str(self.users), "-r", str(self.users), "-t", self.run_time, *self.options.split()]


SCENARIO_BY_NAME = {
    "produce": Scenario("producers alone, at a fixed rate each", "--user-rate 20"),
    "consume": Scenario("consumers that never wait for messages", "--work-ms 0 --user-rate 0", users=5),
    "mixed": Scenario("producers and consumers in balance, one tenant with three times the weight"),
    "noisy-neighbour": Scenario(
        "1,000 quiet tenants beside one that floods", "--tenants 1000 --work-ms 1 --user-rate 10", users=23
    ),
    "throttled-provider": Scenario("two providers behind a queue, one with a rate limit", users=13),
    "redis-clients": Scenario(
        "producers and consumers over the Redis protocol", "--user-rate 500", redis=True
    ),
    "batches": Scenario("frames of messages, as fast as they are answered", "--user-rate 0", users=8),
    "ramp": Scenario("producers step by step", "--work-ms 1 --user-rate 20", users=100),
    "spike": Scenario(
        "five times the producers for a sixth of the run", "--work-ms 1 --user-rate 20", users=100
    ),
    "soak": Scenario("the same load for an hour", run_time="1h"),
    "flood": Scenario("one tenant floods for a while and leaves", "--work-ms 1 --user-rate 10", users=23),
    "churn": Scenario("tenants that come and go", "--work-ms 1 --user-rate 10", users=60),
    "blackout": Scenario("all consumers leave and come back", "--work-ms 1 --user-rate 20", users=24),
}


def main(arguments: list[str]) -> int:
    """Run what the command line asks for; locust's exit code, or 2 when it could not run."""
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(__doc__.strip() + "\n")
        for name, scenario in SCENARIO_BY_NAME.items():
            print(f"    {name:20} {scenario.about}")
        return 0
    name, *given = arguments
    if name not in SCENARIO_BY_NAME:
        print(f"no load test is called {name!r}; they are {', '.join(SCENARIO_BY_NAME)}", file=sys.stderr)
        return 2
    try:
        with _broker(SCENARIO_BY_NAME[name], given) as where:
            return _locust(name, [*where, *given])
    except ServerFailed as error:
        print(error, file=sys.stderr)
        return 2


@contextlib.contextmanager
def _broker(scenario: Scenario, given: list[str]) -> Iterator[list[str]]:
    """The options that say where the broker is; one of its own while the block lasts, unless given."""
    elsewhere = any(word in {"-H", "--help"} or word.startswith("--host") for word in given)
    if elsewhere:
        yield []
        return
    with Server(redis=scenario.redis) as server:
        where = ["-H", server.address]
        if scenario.redis:
            where += ["--redis", f"127.0.0.1:{server.redis_port}"]
        yield where


def _locust(name: str, options: list[str]) -> int:
    results = _ROOT / "build" / "locust" / name
    results.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "locust",
        "-f",
        str(_HERE / "scenarios" / f"{name.replace('-', '_')}.py"),
    ]
    command += ["--stop-timeout", "10", "--queue", f"locust-{name}", *SCENARIO_BY_NAME[name].defaults()]
    if "--web" in options:
        options.remove("--web")
    else:
        command += ["--headless", "--only-summary"]
        command += [
            "--csv",
            str(results / "run"),
            "--csv-full-history",
            "--html",
            str(results / "report.html"),
        ]
    path = os.pathsep.join([str(_HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen(command + options, env={**os.environ, "PYTHONPATH": path}) as running:
        # Locust ends by itself on a Ctrl-C, which both get, and is told of a SIGTERM, which only this process gets; it
        # stays to stop the broker once locust has written its reports.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: running.terminate())
        return running.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
