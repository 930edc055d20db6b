"""What a hook call costs: a realistic script in the full sandbox, alone, in batches, and through the stage.

    python bench/hooks.py [--calls 50000] [--busy]

The script reads three headers and returns a key, a weight and two throttle keys. `call` is one message a
crossing; `crossing` a full one; `stage` frames of 100 messages, as the core parsed them, through
HookStage.route, which is all that an enqueue pays for its hook. Times are per message. `--busy` burns a second thread
without the GIL beside it, as the broker's scheduler thread does.
"""

import argparse
import asyncio
import hashlib
import struct
import tempfile
import threading
import time
from collections.abc import Callable

from fila.v1.service_pb2 import EnqueueBatchRequest, EnqueueMessage
from fila_server.core.protocol import commands
from fila_server.core.requests.parsed_frame import ParsedFrame
from fila_server.core.runtime.engine import CoreEngine
from fila_server.hooks.on_enqueue import CROSSING_BYTES_MAX, MESSAGES_A_CROSSING_MAX, OnEnqueue
from fila_server.hooks.on_failure import FailedMessage, OnFailure
from fila_server.hooks.sandbox import HookLimits, new_runtime_config
from fila_server.hooks.stage import HookStage

SCRIPT = """
function on_enqueue(msg)
  local h = msg.headers
  local tenant = h.tenant or "anonymous"
  local weight = 1
  if h.tier == "gold" then weight = 4 end
  return {
    fairness_key = tenant,
    weight = weight,
    throttle_keys = { "provider:" .. (h.provider or "none"), "tenant:" .. tenant },
  }
end"""

FROM_CONFIG = """
function on_enqueue(msg)
  local h = msg.headers
  local tenant = h.tenant or "anonymous"
  return {
    fairness_key = tenant,
    weight = tonumber(fila.get("weight:" .. tenant)) or 1,
    throttle_keys = fila.helpers.rate_limit_keys(msg, { "provider:{provider}", "tenant:{tenant}" }),
  }
end"""

ON_FAILURE = """
function on_failure(msg)
  if fila.helpers.max_retries(msg.attempts, 5) then return { action = "dlq" } end
  return { action = "retry", delay_ms = fila.helpers.exponential_backoff(msg.attempts, 1000, 60000) }
end"""

FRAME_MESSAGES = 100


def headers(i: int) -> dict[str, str]:
    return {"tenant": f"tenant-{i % 50}", "tier": "gold", "provider": f"provider-{i % 7}"}


class Frames:
    """Real frames, parsed by a core in a directory of its own."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="fila-bench-")
        self._engine = CoreEngine(self._directory.name, {}, mono_ns=0, wall_ns=time.time_ns(), seed=1)
        self._frame = EnqueueBatchRequest(
            messages=[
                EnqueueMessage(queue="orders", headers=headers(i), payload=b"x" * 1024)
                for i in range(FRAME_MESSAGES)
            ]
        ).SerializeToString()

    def parsed(self) -> ParsedFrame:
        return self._engine.parse(commands.ENQUEUE_BATCH, self._frame)

    def close(self) -> None:
        self._engine.close()
        self._directory.cleanup()


def report(name: str, times_ns: list[int], messages: int) -> None:
    times = sorted(elapsed / messages / 1000 for elapsed in times_ns)
    mean = sum(times) / len(times)
    p50, p99, p999 = (times[min(len(times) - 1, int(len(times) * q))] for q in (0.5, 0.99, 0.999))
    print(f"{name:28} {mean:7.2f} {p50:7.2f} {p99:7.2f} {p999:8.2f}   us a message")


def measure(count: int, work: Callable[[int], object]) -> list[int]:
    times = []
    for i in range(count):
        began = time.perf_counter_ns()
        work(i)
        times.append(time.perf_counter_ns() - began)
    return times[count // 20 :]


def hook(script: str) -> OnEnqueue:
    config = new_runtime_config()
    config.replace({b"weight:tenant-%d" % i: b"3" for i in range(50)})
    return OnEnqueue(script.encode(), limits=HookLimits(), config=config, now_ns=time.monotonic_ns, seed=1)


def bench_calls(name: str, script: str, calls: int, frames: Frames) -> None:
    on_enqueue = hook(script)
    parsed = frames.parsed()
    singles = [parsed.pack([i], 0, 1, CROSSING_BYTES_MAX)[1] for i in range(FRAME_MESSAGES)]
    report(
        f"{name}: call",
        measure(calls, lambda i: on_enqueue.route(b"orders", 1, singles[i % FRAME_MESSAGES])),
        1,
    )
    count, messages = parsed.pack(range(FRAME_MESSAGES), 0, MESSAGES_A_CROSSING_MAX, CROSSING_BYTES_MAX)

    def crossing(_i: int) -> None:
        # Fewer answers mean that 2 ms went by, so somebody else had the processor.
        assert on_enqueue.route(b"orders", count, messages).failure is None

    report(f"{name}: crossing of {count}", measure(calls // count, crossing), count)


async def bench_stage(name: str, script: str, calls: int, frames: Frames) -> None:
    stage = HookStage(now_ns=time.monotonic_ns, seed=1)
    stage.set_queue("orders", script)
    times = []
    for _ in range(calls // FRAME_MESSAGES):
        parsed = frames.parsed()
        began = time.perf_counter_ns()
        await stage.route(parsed)
        times.append(time.perf_counter_ns() - began)
    (status,) = stage.status("orders")
    assert status.counters.runs == calls // FRAME_MESSAGES * FRAME_MESSAGES
    assert not status.counters.errors
    report(f"{name}: stage", times[len(times) // 20 :], FRAME_MESSAGES)


def bench_on_failure(calls: int) -> None:
    on_failure = OnFailure(
        ON_FAILURE.encode(),
        limits=HookLimits(),
        config=new_runtime_config(),
        now_ns=time.monotonic_ns,
        seed=1,
    )
    sent = [(name.encode(), value.encode()) for name, value in headers(1).items()]
    failed = FailedMessage(b"orders", b"default", sent, b"0193-id", 2, b"timeout", b"tenant-1")
    report("on_failure: call", measure(calls, lambda _i: on_failure.decide(failed)), 1)


def bench_compile() -> None:
    times = measure(40, lambda _i: hook(SCRIPT))
    report("compile a script", times, 1)


def bench_cut_offs() -> None:
    print("\nhostile scripts: longest of five calls")
    for name, body in (
        ("endless loop", "while true do end"),
        ("endless loop in pcall", "while true do pcall(error) end"),
        ("a*a*a*b on 1 KiB", "local _ = ('a'):rep(1024):match('a*a*a*b')"),
        ("string bomb", "local s = 'x' while true do s = s .. s end"),
        ("table bomb", "local t = {} while true do t[#t + 1] = {} end"),
        (
            "hashing long strings",
            "local t, s = {}, ('a'):rep(250000) while true do local _ = t[s .. 'x'] end",
        ),
        (
            "comparing NULs, made by ..",
            "local s = msg.headers.nul for i = 1, 6 do s = s .. s end while true do local _ = s < s end",
        ),
    ):
        on_enqueue = hook(f"function on_enqueue(msg) {body} end")
        message = struct.pack(">QI", 0, 1) + struct.pack(">I3sI", 3, b"nul", 4096) + bytes(4096)
        longest, kind = 0.0, ""
        for _ in range(5):
            began = time.perf_counter()
            failure = on_enqueue.route(b"orders", 1, message).failure
            longest = max(longest, time.perf_counter() - began)
            assert failure is not None
            kind = failure.kind
        print(f"{name:28} {longest * 1000:7.2f} ms   {kind}")


def burn(stop: threading.Event) -> None:
    block = b"x" * (16 << 20)
    while not stop.is_set():
        hashlib.sha256(block)  # gives the GIL back while it works


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=50_000)
    parser.add_argument("--busy", action="store_true", help="burn a second thread without the GIL")
    options = parser.parse_args()
    stop = threading.Event()
    if options.busy:
        threading.Thread(target=burn, args=(stop,), daemon=True).start()
    print(f"{'':28} {'mean':>7} {'p50':>7} {'p99':>7} {'p99.9':>8}")
    frames = Frames()
    for name, script in (("realistic", SCRIPT), ("config + helpers", FROM_CONFIG)):
        bench_calls(name, script, options.calls, frames)
        asyncio.run(bench_stage(name, script, options.calls, frames))
    frames.close()
    bench_on_failure(options.calls)
    bench_compile()
    bench_cut_offs()
    stop.set()


if __name__ == "__main__":
    main()
