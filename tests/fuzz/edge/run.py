"""Fuzzes the edge: `python -m tests.fuzz.edge.run SECONDS`; builds what it needs first, with clang.

Goes on from build/fuzz-edge/corpus. Ends with 0 when nothing was found; else the input is in build/fuzz-edge, and
`python -m tests.fuzz.edge.run 0 build/fuzz-edge/crash-...` plays it again.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.fuzz.edge import build, seeds
from tests.fuzz.edge.build import LIB, OUT, ROOT, runtime

CORPUS = OUT / "corpus"
INPUT_BYTES_MAX = 4096
UNDER_SANITIZERS = "FILA_FUZZING"


def main() -> None:
    """Start again with the sanitizers' libraries in front, and run."""
    seconds, again = int(sys.argv[1]), sys.argv[2:]
    if UNDER_SANITIZERS not in os.environ:
        build.main()
        seeds.write(CORPUS)
        asan = runtime("asan", ".so")
        environ = os.environ | {
            UNDER_SANITIZERS: "1",
            # The fuzzer first: ASan has functions of the same names, to which the counters would go.
            "LD_PRELOAD": f"{OUT / 'libfuzz.so'} {asan}",
            "PYTHONPATH": f"{LIB}:{ROOT / 'sdks/python/src'}:{ROOT}",
            # What Python itself keeps to its end is no leak of ours; _check in edge_fuzz.pyx asks about that.
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:symbolize=1:verify_asan_link_order=0",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "PYTHONMALLOC": "malloc",
        }
        os.chdir(OUT)
        os.execve(sys.executable, [sys.executable, "-m", "tests.fuzz.edge.run", *sys.argv[1:]], environ)
    _fuzz(seconds, again)


def _fuzz(seconds: int, again: list[str]) -> None:
    import edge_fuzz  # type: ignore[import-not-found] # of build/fuzz-edge/lib

    from fila.v1 import admin_pb2
    from fila_server.core.protocol import commands
    from fila_server.core.runtime.engine import CoreEngine

    folder = Path(tempfile.mkdtemp(prefix="fila-fuzz-", dir="/dev/shm"))
    settings: dict[str, int | str] = {"storage.durability": "os", "storage.min_free_bytes": 0}
    engine = CoreEngine(str(folder / "data"), settings, mono_ns=1, wall_ns=1_700_000_000 * 10**9, seed=7)
    config = admin_pb2.QueueConfig(max_depth=100, fairness_key_header="tenant")
    for token, name in enumerate(("q", "empty"), 1):
        request = admin_pb2.CreateQueueRequest(name=name, config=config)
        engine.submit(commands.CREATE_QUEUE, token, request.SerializeToString())
        channel = admin_pb2.CreateChannelRequest(queue=name, channel="c")
        engine.submit(commands.CREATE_CHANNEL, 10 + token, channel.SerializeToString())
    for _ in range(5):
        engine.run_pass(2, 1_700_000_000 * 10**9)
        engine.commit()
    words = ["edge_fuzz", f"-max_len={INPUT_BYTES_MAX}", "-timeout=20", "-print_final_stats=1"]
    words += again or [f"-max_total_time={seconds}", "-rss_limit_mb=4096", str(CORPUS)]
    sys.exit(edge_fuzz.run(engine, [word.encode() for word in words]))


if __name__ == "__main__":
    main()
