"""Where each microsecond of a message goes: the broker's processor time by layer, sampled by Linux' `perf`.

The core and the edge are one compiled file a module, so the file that a sample fell into names its layer; the
rest is the kernel, the libraries, and Python. Of what Python itself spends `py-spy` tells more.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from fila_bench.admin import Admin
from fila_bench.callers import Callers, call, in_process
from fila_bench.load import Load
from fila_bench.plan import ConsumerPlan
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.full_life import QUEUE, Life, producer_plan
from fila_bench.server import Server

_SAMPLES_PER_S = 997
# A layer, and what its files are called; the first that fits counts.
LAYERS: tuple[tuple[str, str], ...] = (
    ("kernel: sockets, files, threads", r"^\[kernel|^\[vdso"),
    ("RocksDB", r"librocksdb|libsnappy|liblz4|libzstd|libbz2"),
    ("HTTP/2 (nghttp2)", r"libnghttp2"),
    ("the edge", r"/fila_server/edge/"),
    ("core: requests and frames", r"/core/(protocol|requests|threads)/"),
    (
        "core: scheduling, leases, settling",
        r"/core/(consumers|index|lifecycle|runtime|scheduling|search|sinks|state|structures)/",
    ),
    ("core: records and store", r"/core/(formats|log|maintenance|recovery|storage)/"),
    ("core: the rest", r"/fila_server/"),
    ("memory and copies (libc)", r"libc[.-]|libc\.so|libstdc|jemalloc|libgcc|libpthread"),
    ("Python and its extensions", r"python|\.so"),
)


@benchmark("profile", "where the broker's time goes in a full life, by layer (needs perf)")
def profile(budget: Budget) -> Iterator[Finding]:
    for life in (Life(), Life(payload_bytes=64), Life(batch=1, window_frames=64)):
        with Server(durability=life.durability) as server:
            with Admin(server.address) as admin:
                admin.create(QUEUE, fairness_key_header="tenant")
            consumer = ConsumerPlan(address=server.address, queue=QUEUE)
            with Load([producer_plan(life, server.address)], [consumer]) as load:
                load.measure(warm_up_s=0, seconds=budget.warm_up_s)
                cpu_s = server.cpu_s()
                with _Recording(server.pid) as recording:
                    steady = load.measure(warm_up_s=0, seconds=budget.seconds)
                cpu_s = server.cpu_s() - cpu_s
        yield from _findings(
            life.case, recording, cpu_s * 1e6 / max(1.0, steady.acked_per_s * steady.seconds)
        )

    with Server() as server:
        with Admin(server.address) as admin:
            admin.create(QUEUE, fairness_key_header="tenant")
        plan = Callers(address=server.address, queue=QUEUE, callers=50, seconds=budget.seconds)
        cpu_s = server.cpu_s()
        with _Recording(server.pid) as recording:
            calls = in_process(call, plan)()
        cpu_s = server.cpu_s() - cpu_s
    per_call_us = cpu_s * 1e6 / (len(calls) * (1 + plan.warm_up_s / plan.seconds))
    yield from _findings("unary Enqueue, 1 KB, fsync, 50 callers", recording, per_call_us)


def _findings(case: str, recording: _Recording, us: float) -> Iterator[Finding]:
    samples = sum(recording.by_layer.values())
    yield Finding(
        benchmark="profile", case=f"{case}: in all", value=us, unit="us", details={"samples": samples}
    )
    for layer, _ in LAYERS:
        if count := recording.by_layer[layer]:
            yield Finding(
                benchmark="profile",
                case=f"{case}: {layer}",
                value=us * count / samples,
                unit="us",
                details={"most of it": ", ".join(recording.hottest(layer))},
            )


class _Recording:
    """The samples of one process while the block runs."""

    def __init__(self, pid: int) -> None:
        self._file = tempfile.NamedTemporaryFile(prefix="fila-perf-")  # noqa: SIM115 - closed at the end of the block
        self._perf = subprocess.Popen(
            ["perf", "record", "--quiet", "-F", str(_SAMPLES_PER_S), "-p", str(pid), "-o", self._file.name],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.by_layer: Counter[str] = Counter()
        self._by_function: Counter[tuple[str, str]] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._perf.terminate()
        self._perf.wait()
        with self._file:
            told = subprocess.run(
                ["perf", "script", "-i", self._file.name, "-F", "ip,sym,dso"],
                capture_output=True,
                text=True,
                check=True,
            )
        for line in told.stdout.splitlines():
            # `7f2a name+0x1f (/path/of/the/file.so)`; the name may have blanks in it, and be [unknown].
            if found := re.match(r"\s*[0-9a-f]+ (.*) \(([^()]*(?:\([^()]*\))?)\)$", line):
                layer = _layer_of(found[2])
                self.by_layer[layer] += 1
                self._by_function[layer, _readable(found[1], found[2])] += 1

    def hottest(self, layer: str, most: int = 4) -> list[str]:
        """The functions of the layer that were met most often, with their part of it."""
        ours = Counter({name: count for (of, name), count in self._by_function.items() if of == layer})
        return [f"{name} {count * 100 // self.by_layer[layer]} %" for name, count in ours.most_common(most)]


def _layer_of(file: str) -> str:
    for layer, pattern in LAYERS:
        if re.search(pattern, file):
            return layer
    return LAYERS[-1][0]


def _readable(name: str, file: str) -> str:
    """A function's name without what Cython and C++ put around it."""
    name = re.sub(r"\+0x[0-9a-f]+$", "", name)
    if found := re.match(r"__pyx_\w*?_(?:\d+\w+?_)*?(\w+)$", name):
        module = Path(file).name.split(".")[0]
        return f"{module}.{found[1].rpartition(module + '_')[2] or found[1]}"
    return re.sub(r"\(.*", "", name)
