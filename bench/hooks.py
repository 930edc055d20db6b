"""What a hook call costs: a realistic script in the full sandbox, alone, in batches, and through the stage.

    python bench/hooks.py [--calls 50000] [--busy]

The script reads three headers and returns a key, a weight and two throttle keys. `call` is one message a
crossing; `batch` a full crossing; `stage` frames of 100 messages through HookStage.route, which is what
an enqueue pays, time of the frame itself apart. Times are per message. `--busy` burns a second thread
without the GIL beside it, as the broker's scheduler thread does.
"""

import argparse
import asyncio
import hashlib
import threading
import time
from collections.abc import Callable

from fila_server.hooks.on_enqueue import MESSAGES_A_CROSSING_MAX, Batch, OnEnqueue
from fila_server.hooks.on_failure import FailedMessage, OnFailure
from fila_server.hooks.sandbox import HookFailure, HookLimits, new_runtime_config
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


def headers(i: int) -> list[tuple[bytes, bytes]]:
    return [(b"tenant", b"tenant-%d" % (i % 50)), (b"tier", b"gold"), (b"provider", b"provider-%d" % (i % 7))]


class Frame:
    """As the core's ParsedFrame, as cheap as Python allows."""

    def __init__(self) -> None:
        self.all_headers = [headers(i) for i in range(FRAME_MESSAGES)]
        self.routed = 0

    def queues(self) -> set[bytes]:
        return {b"orders"}

    def unrefused(self) -> range:
        return range(FRAME_MESSAGES)

    def queue(self, _i: int) -> bytes:
        return b"orders"

    def headers(self, i: int) -> list[tuple[bytes, bytes]]:
        return self.all_headers[i]

    def payload_size(self, _i: int) -> int:
        return 1024

    def route(self, _i: int, *_routing: object) -> None:
        self.routed += 1


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


def bench_calls(name: str, script: str, calls: int) -> None:
    on_enqueue = hook(script)
    messages = [headers(i) for i in range(350)]
    report(f"{name}: call", measure(calls, lambda i: on_enqueue.route(messages[i % 350], 1024, b"orders")), 1)

    def batch(_i: int) -> None:
        full = Batch()
        for i in range(MESSAGES_A_CROSSING_MAX):
            full.add(messages[i], 1024)
        # Fewer answers mean that 2 ms went by, so somebody else had the processor.
        assert on_enqueue.route_batch(full, b"orders").failure is None

    report(f"{name}: batch", measure(calls // MESSAGES_A_CROSSING_MAX, batch), MESSAGES_A_CROSSING_MAX)


async def bench_stage(name: str, script: str, calls: int) -> None:
    stage = HookStage(now_ns=time.monotonic_ns, seed=1)
    stage.set_queue("orders", script)
    frame = Frame()
    times = []
    for _ in range(calls // FRAME_MESSAGES):
        began = time.perf_counter_ns()
        await stage.route(frame)
        times.append(time.perf_counter_ns() - began)
    (status,) = stage.status("orders")
    assert frame.routed == status.counters.runs
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
    failed = FailedMessage(b"orders", b"default", headers(1), b"0193-id", 2, b"timeout", b"tenant-1")
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
        longest, kind = 0.0, ""
        for _ in range(5):
            began = time.perf_counter()
            answer = on_enqueue.route([(b"nul", b"\0" * 4096)], 0, b"orders")
            longest = max(longest, time.perf_counter() - began)
            assert isinstance(answer, HookFailure)
            kind = answer.kind
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
    for name, script in (("realistic", SCRIPT), ("config + helpers", FROM_CONFIG)):
        bench_calls(name, script, options.calls)
        asyncio.run(bench_stage(name, script, options.calls))
    bench_on_failure(options.calls)
    bench_compile()
    bench_cut_offs()
    stop.set()


if __name__ == "__main__":
    main()
