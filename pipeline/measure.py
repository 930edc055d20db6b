"""Measures the pipeline on Spark: `fairness` over a large history, streams from and to a broker. In its environment:

    make pipeline-env pipeline-core
    pipeline/.venv/bin/python pipeline/measure.py fairness --events 10000000
    pipeline/.venv/bin/python pipeline/measure.py read --messages 1000000
    pipeline/.venv/bin/python pipeline/measure.py write --messages 1000000
    pipeline/.venv/bin/python pipeline/measure.py read --messages 1000000 --secure   # with keys and TLS
    pipeline/.venv/bin/python pipeline/measure.py backtest --messages 1000000

One JSON object on the last line. A history of so many events is an hour of a made-up one, again and again. What is
backtested is the life of so many messages of 1 KB under 100 keys (recorded with the pyarrow of .venv: `make
.venv/.history`), or with `--history DIR` any recording.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from fila_bench.admin import Admin

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))
os.environ.setdefault("FILA_BENCH_SERVER", str(ROOT / ".venv/bin/fila-server"))
PAYLOAD_BYTES = 1_000


def main() -> int:
    given = _options()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="fila-bench-pipeline-") as folder:
        found = MEASURES[given.what](given, Path(folder))
    load = round(load_before, 1)
    print(
        json.dumps(
            {"what": given.what, **found, "load_before": load, "load_after": round(os.getloadavg()[0], 1)}
        )
    )
    return 0


# --- jobs --------------------------------------------------------------------------------------


def fairness(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The whole command, Spark's start included."""
    from fila_pipeline.main import main as command

    events = grow(folder / "history", given.events)
    arguments = ["fairness", "--history", str(folder / "history"), "--out", str(folder / "out")]
    began = time.monotonic()
    code = command([*arguments, "--conf", "spark.driver.memory=4g"])
    took_s = time.monotonic() - began
    assert code == 0, code
    return {"events": events, "took_s": round(took_s, 1), **_spent()}


def grow(history: Path, events: int) -> int:
    """Write a history of so many events; returns how many there are."""
    from fila_pipeline import schema
    from fila_pipeline.recording import HistoryWriter
    from fila_pipeline.synthetic import decisions, noisy_neighbours

    hour = pa.Table.from_pylist(decisions(noisy_neighbours(3_600)), schema=schema.DECISION_COLUMNS)
    each = pc.sum(pc.list_value_length(hour.column("offsets"))).as_py()
    writer = HistoryWriter(history, "grown")
    count = -(-events // each)
    for number in range(count):
        moved = pc.add(hour.column("at"), pa.scalar(timedelta(hours=number), pa.duration("us")))
        part = hour.set_column(0, "at", pc.cast(moved, hour.schema.field("at").type))
        first, last = (pc.min_max(part.column("at"))[name].as_py() for name in ("min", "max"))
        name = f"decisions/date={first:%Y-%m-%d}/hour={first:%H}/grown-{number:06d}.parquet"
        path = history / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, path, compression="zstd", write_page_checksum=True)
        entry = {"table": schema.DECISIONS, "file": name, "rows": len(part), "messages": each}
        writer._files += 1
        writer._list(entry, first, last)
    return int(count * each)


# --- streams -----------------------------------------------------------------------------------


def read(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """A stream of the whole log to nowhere."""
    with _broker(given, folder) as (admin, options):
        admin.create("q", fairness_key_header="tenant", retention={"soft_period_ms": 3_600_000})
        admin.enqueue_many("q", _messages(given.messages))
        spark = _spark(folder)
        rows = spark.readStream.format("fila").options(**options)
        stream = rows.option("maxMessagesPerTrigger", 250_000).load("q")
        writer = stream.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
        told = _streamed(writer)
        spark.stop()
    return told


def write(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """A stream of Parquet files into a queue, published once a batch."""
    with _broker(given, folder) as (admin, options):
        admin.create("q", fairness_key_header="tenant")
        spark = _spark(folder)
        made = spark.range(given.messages).selectExpr(
            f"cast(repeat('x', {PAYLOAD_BYTES}) as binary) as payload",
            "map('tenant', concat('t', id % 10)) as headers",
        )
        made.repartition(8).write.parquet(str(folder / "in"))
        rows = (
            spark.readStream.schema(made.schema).option("maxFilesPerTrigger", 2).parquet(str(folder / "in"))
        )
        writer = rows.writeStream.format("fila").options(**options).option("batchSize", 2_000)
        told = _streamed(writer.option("checkpointLocation", str(folder / "checkpoint")), "q")
        assert admin.stats("q").depth == given.messages, "the queue has not all of it"
        spark.stop()
    return told


@contextlib.contextmanager
def _broker(given: argparse.Namespace, folder: Path) -> Iterator[tuple[Admin, dict[str, str]]]:
    """A broker, somebody who may do everything there, and the options that Spark finds it with."""
    from fila_bench.admin import Admin
    from fila_bench.server import Server

    if not given.secure:
        with Server() as server, Admin(server.address) as admin:
            yield admin, {"address": server.address}
        return
    certificate, key_file = folder / "broker.pem", folder / "broker.key"
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key_file)
    names = ("-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run(
        ["openssl", "req", "-x509", *new_key, *names, "-days", "2", "-out", certificate],
        check=True,
        capture_output=True,
    )
    secured = {"tls__cert_file": str(certificate), "tls__key_file": str(key_file), "auth__enabled": "true"}
    with Server(**secured) as server:
        token = (server.data_dir / "bootstrap-key").read_text().strip()
        credentials = grpc.composite_channel_credentials(
            grpc.ssl_channel_credentials(certificate.read_bytes()), grpc.access_token_call_credentials(token)
        )
        with Admin(server.address, credentials) as admin:
            yield admin, {"address": server.address, "token": token, "caFile": str(certificate)}


def _messages(count: int) -> Iterator[tuple[dict[str, str], bytes]]:
    payload = b"x" * PAYLOAD_BYTES
    for number in range(count):
        yield {"tenant": f"t{number % 10}"}, payload


def _streamed(writer: Any, *where: str) -> dict[str, Any]:
    """Run it to the end of what there is; rates without the first batch, which starts the helpers."""
    began = time.monotonic()
    query = writer.trigger(availableNow=True).start(*where)
    query.awaitTermination()
    took_s = time.monotonic() - began
    batches = [
        (progress["numInputRows"], progress["durationMs"]["triggerExecution"])
        for progress in (json.loads(each.json) for each in query.recentProgress)
        if progress["numInputRows"]
    ]
    later = batches[1:] or batches
    rate = sum(rows for rows, _ in later) / sum(ms for _, ms in later) * 1_000
    return {
        "rows": sum(rows for rows, _ in batches),
        "took_s": round(took_s, 1),
        "rows_a_second": round(rate),
        "batches_ms": [ms for _, ms in batches],
    }


def _spark(folder: Path) -> Any:
    from fila_pipeline.main import session

    return session("local[*]", [f"spark.sql.warehouse.dir={folder}/warehouse"])


# --- the backtest ------------------------------------------------------------------------------


def backtest(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The whole command on a recording, Spark's start included."""
    from fila_pipeline.main import main as command

    history = given.history or folder / "history"
    if given.history is None:
        recorder = [ROOT / ".venv/bin/python", ROOT / "bench/record.py", "--history", history]
        subprocess.run([*recorder, "--messages", str(given.messages)], check=True)
    began = time.monotonic()
    code = command(["backtest", "--history", str(history), "--out", str(folder / "out")])
    took_s = time.monotonic() - began
    deliveries = pq.read_table(folder / "out/verdicts.parquet").column("deliveries").to_pylist()
    return {"code": code, "deliveries": sum(deliveries), "took_s": round(took_s, 1), **_spent()}


def _spent() -> dict[str, float]:
    """What this process and all below it have used so far, Spark's Java among them: it lives until we end."""
    below: dict[int, list[int]] = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            below[int(stat.read_text().rsplit(")", 1)[1].split()[1])].append(int(stat.parent.name))
    cpu_s, peak, processes = 0.0, 0, [os.getpid()]
    for process in processes:
        processes += below[process]
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
            cpu_s += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            status = Path(f"/proc/{process}/status").read_text()
            if "VmHWM:" in status:  # one that has ended and is still listed has no memory
                peak = max(peak, int(status.partition("VmHWM:")[2].split()[0]) * 1024)
    return {"cpu_s": round(cpu_s, 1), "largest_process_bytes": peak}


MEASURES = {"fairness": fairness, "read": read, "write": write, "backtest": backtest}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=MEASURES)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--secure", action="store_true", help="read and write with keys and TLS")
    parser.add_argument(
        "--history", type=Path, help="for backtest: a recording [one of --messages, made for it]"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
