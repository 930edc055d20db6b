"""`make bench-scaling`: what a message costs against eight sizes, each alone, as charts.

    bench/scaling/scaling.py                          every size, some twenty minutes
    bench/scaling/scaling.py --quick --only keys,queues
    bench/scaling/scaling.py --chart docs/images/scaling.png

At each point a broker of its own gets the same full life of 64-byte messages in frames of 100, and is then asked 300
times a second how long one message takes while nothing else happens. Everything goes to build/bench/scaling.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_ROOT / "bench"))

from fila_bench.admin import Admin  # noqa: E402
from fila_bench.callers import Callers, Listener, call, in_process, listen, percentile  # noqa: E402
from fila_bench.load import Load, LoadFailed  # noqa: E402
from fila_bench.plan import ConsumerPlan, Counter, ProducerPlan, key_text  # noqa: E402
from fila_bench.report import this_machine  # noqa: E402
from fila_bench.server import Server  # noqa: E402

_QUEUE = "scaling"
_ENOUGH = "1000000000,1000000000"  # tokens a second and burst of a bucket that never holds anything up
_FILL_TIMEOUT_S = 600
# What opens an HTTP/2 connection: the preface and an empty SETTINGS frame.
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


@dataclass(frozen=True, slots=True)
class Setup:
    """What is there before the load, and what the load is."""

    config: dict[str, Any] = field(default_factory=dict)
    buckets: int = 0
    other_queues: int = 0
    idle_connections: int = 0
    backlog: int = 0
    producer: dict[str, Any] = field(default_factory=dict)
    consumer: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dimension:
    about: str
    points: tuple[int, ...]
    setup: Callable[[int], Setup]


def _throttled(count: int) -> Setup:
    header = {"throttle_key_headers": ["tenant"]} if count else {}
    return Setup(config=header, buckets=count, producer={"keys": max(10, count)})


def _channels(count: int) -> Setup:
    return Setup(
        config={"channels": [f"channel-{number}" for number in range(count)]},
        consumer={"channel": "channel-0"},
    )


DIMENSION_BY_NAME = {
    "keys": Dimension(
        "fairness keys", (10, 1_000, 100_000, 1_000_000), lambda n: Setup(producer={"keys": n})
    ),
    "throttle-keys": Dimension("token buckets, each message in one", (0, 10, 1_000, 10_000), _throttled),
    "channels": Dimension("channels, one of them consumed", (1, 2, 4, 8), _channels),
    "queues": Dimension(
        "queues beside the one in use", (0, 100, 1_000, 10_000), lambda n: Setup(other_queues=n)
    ),
    "consumers": Dimension(
        "sessions of consumers", (1, 10, 100, 1_000), lambda n: Setup(consumer={"sessions": n})
    ),
    "connections": Dimension(
        "idle connections beside those in use", (0, 100, 1_000, 5_000), lambda n: Setup(idle_connections=n)
    ),
    "backlog": Dimension("messages waiting", (0, 100_000, 1_000_000, 10_000_000), lambda n: Setup(backlog=n)),
    "payload": Dimension(
        "bytes of payload, frames of 10",
        (64, 1_024, 16_384, 65_536),
        lambda n: Setup(producer={"payload_bytes": n, "batch": 10}),
    ),
}


@dataclass(frozen=True, slots=True)
class Point:
    dimension: str
    size: int
    messages_per_s: float
    server_us: float
    p50_ms: float
    p99_ms: float


def measure(name: str, size: int, seconds: float) -> Point:
    """One point on a broker of its own."""
    setup = DIMENSION_BY_NAME[name].setup(size)
    with Server() as server, contextlib.ExitStack() as held:
        with Admin(server.address) as admin:
            _prepare(admin, server.address, setup)
        for _ in range(setup.idle_connections):
            held.enter_context(_idle_connection(server.port))
        producer = ProducerPlan(
            address=server.address, queue=_QUEUE, **{"payload_bytes": 64, "keys": 10, **setup.producer}
        )
        consumer = ConsumerPlan(address=server.address, queue=_QUEUE, **setup.consumer)
        with Load([producer], [consumer]) as load:
            load.measure(warm_up_s=seconds / 4, seconds=0.01)
            cpu_s = server.cpu_s()
            steady = load.measure(warm_up_s=0, seconds=seconds)
            cpu_s = server.cpu_s() - cpu_s
        delays = _delays(server.address, setup, seconds / 2)
    messages = max(1.0, steady.acked_per_s * steady.seconds)
    p50, p99 = (percentile(delays, part) / 1e6 for part in (0.5, 0.99))
    return Point(name, size, steady.acked_per_s, cpu_s * 1e6 / messages, p50, p99)


def _prepare(admin: Admin, address: str, setup: Setup) -> None:
    for bucket in range(setup.buckets):
        admin.set_config(f"throttle.{key_text(bucket)}", _ENOUGH)
    admin.create(_QUEUE, fairness_key_header="tenant", **setup.config)
    for number in range(setup.other_queues):
        admin.create(f"other-{number:05}")
    if setup.backlog:
        filler = ProducerPlan(
            address=address, queue=_QUEUE, payload_bytes=64, keys=10, message_count=setup.backlog
        )
        with Load([filler]) as filling:
            filling.wait_for(Counter.PRODUCED, setup.backlog, timeout_s=_FILL_TIMEOUT_S)


@contextlib.contextmanager
def _idle_connection(port: int) -> Iterator[None]:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(_HELLO)
        # The server's own SETTINGS: it has taken the connection.
        connection.recv(9)
        yield


def _delays(address: str, setup: Setup, seconds: float) -> list[int]:
    """Nanoseconds from a call to its delivery, sorted; of a key that nobody else has, behind no backlog of its own."""
    queue = _QUEUE
    if setup.backlog or setup.config.get("channels"):
        queue = "scaling-beside"
        with Admin(address) as admin:
            admin.create(queue, fairness_key_header="tenant")
    heard = in_process(listen, Listener(address=address, queue=queue, seconds=seconds))
    in_process(
        call,
        Callers(address=address, queue=queue, rate_per_s=300, seconds=seconds, headers={"tenant": "asks"}),
    )()
    delays = sorted(heard())
    if not delays:
        raise LoadFailed(f"no message came within {seconds:g} s: give a longer --seconds")
    return delays


def draw(points: Sequence[Point], path: Path) -> None:
    """One panel a dimension: the broker's processor time a message, and how long one message takes."""
    from matplotlib import pyplot as plt  # here: it costs a second, which few who import this need to spend

    plt.switch_backend("Agg")
    names = list(dict.fromkeys(point.dimension for point in points))
    rows = (len(names) + 3) // 4
    figure, panels = plt.subplots(
        rows, min(4, len(names)), figsize=(13, 3.1 * rows), layout="constrained", squeeze=False
    )
    for panel, name in zip(panels.flat, names, strict=False):
        of_it = [point for point in points if point.dimension == name]
        places = range(len(of_it))
        panel.plot(
            places,
            [point.server_us for point in of_it],
            "o-",
            color="#0b6e4f",
            label="broker CPU, us a message",
        )
        panel.plot(
            places, [point.p50_ms for point in of_it], "s--", color="#c8553d", label="p50 to delivery, ms"
        )
        panel.set_xticks(list(places), [_short(point.size) for point in of_it])
        panel.set_ylim(bottom=0)
        panel.set_title(DIMENSION_BY_NAME[name].about, fontsize=9)
        panel.tick_params(labelsize=8)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in panels.flat[len(names) :]:
        panel.axis("off")
    panels.flat[0].legend(fontsize=7, loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _short(size: int) -> str:
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if size >= unit:
            return f"{size / unit:g}{name}" if size % unit == 0 else f"{size / unit:.0f}{name}"
    return str(size)


def table(points: Sequence[Point]) -> str:
    """A row a point, and what the largest costs beside the smallest."""
    lines = ["| | size | messages/s | broker CPU us | p50 ms | p99 ms | cost beside the first |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for point in points:
        first = next(each for each in points if each.dimension == point.dimension)
        lines.append(
            f"| {DIMENSION_BY_NAME[point.dimension].about} | {point.size:,} | {point.messages_per_s:,.0f} | "
            f"{point.server_us:.2f} | {point.p50_ms:.2f} | {point.p99_ms:.2f} | "
            f"{point.server_us / max(1e-9, first.server_us):.2f} |"
        )
    return "\n".join(lines)


def main() -> int:
    options = _options()
    names = options.only.split(",") if options.only else list(DIMENSION_BY_NAME)
    if unknown := [name for name in names if name not in DIMENSION_BY_NAME]:
        print(
            f"no size is called {', '.join(unknown)}; they are {', '.join(DIMENSION_BY_NAME)}",
            file=sys.stderr,
        )
        return 2
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    points, failed = [], False
    for name in names:
        sizes = DIMENSION_BY_NAME[name].points
        for size in sizes[:-1] if options.quick else sizes:
            print(f"{name} {size:,} ...", file=sys.stderr, flush=True)
            try:
                points.append(measure(name, size, options.seconds or (2.0 if options.quick else 6.0)))
            except Exception as error:  # noqa: BLE001 - one point that fails is told, the others go on
                failed = True
                print(f"{name} {size:,} failed: {type(error).__name__}: {error}", file=sys.stderr)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    found = {"machine": asdict(this_machine()), "points": [asdict(point) for point in points]}
    options.json.write_text(json.dumps(found, indent=2) + "\n")
    if points:
        draw(points, options.chart)
    print(table(points))
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    given = os.environ
    parser.add_argument(
        "--only", default=given.get("ONLY", ""), metavar="NAMES", help="comma-separated; default: all"
    )
    parser.add_argument(
        "--quick", action="store_true", default="QUICK" in given, help="shorter, without the largest"
    )
    parser.add_argument("--seconds", type=float, help="length of each measured stretch")
    parser.add_argument("--json", type=Path, default=_ROOT / "build/bench/scaling.json", metavar="FILE")
    parser.add_argument("--chart", type=Path, default=_ROOT / "build/bench/scaling.png", metavar="FILE")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
