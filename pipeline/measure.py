"""Measures the pipeline on Spark: `fairness` over a large history, streams from and to a broker. In its environment:

    make pipeline-env pipeline-core
    pipeline/.venv/bin/python pipeline/measure.py fairness --events 10000000
    pipeline/.venv/bin/python pipeline/measure.py copies --events 100000000   # on a cluster of two workers
    pipeline/.venv/bin/python pipeline/measure.py read --messages 1000000
    pipeline/.venv/bin/python pipeline/measure.py write --messages 1000000
    pipeline/.venv/bin/python pipeline/measure.py read --messages 1000000 --secure   # with keys and TLS
    pipeline/.venv/bin/python pipeline/measure.py read --secure-pairs 5   # with and without, by turns: the ratio
    pipeline/.venv/bin/python pipeline/measure.py backtest --messages 1000000

One JSON object on the last line. A history of so many events is an hour of a made-up one, again and again; for `copies`
it is a recording, whose figures have to be those of one times the copies. What is
backtested is the life of so many messages of 1 KB under 100 keys (recorded with the pyarrow of .venv: `make
.venv/.history`), or with `--history DIR` any recording.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

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
    if given.secure_pairs:
        print(
            json.dumps({"what": given.what, **secured_by_plain(given), "load_before": round(load_before, 1)})
        )
        return 0
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


def copies(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """`fairness` of a recording's copies on Spark's own cluster, beside that of the recording."""
    sys.path.insert(0, str(ROOT / "pipeline/tests"))
    from spark_cluster import Cluster

    from fila_pipeline.main import main as command

    one = given.history or folder / "one"
    if given.history is None:
        subprocess.run([ROOT / ".venv/bin/python", ROOT / "bench/record.py", "--history", one], check=True)
    decided = pa.concat_tables(pq.read_table(path) for path in sorted(one.glob("decisions/*/*/*.parquet")))
    decided = decided.drop_columns([name for name in ("date", "hour") if name in decided.column_names])
    count = multiplied(decided, folder / "history", given.events)
    assert command(["fairness", "--history", str(one), "--out", str(folder / "alone")]) == 0
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    (folder / "cluster").mkdir()
    cluster = Cluster(folder / "cluster", memory="2g")
    try:
        asked = ["fairness", "--history", str(folder / "history"), "--out", str(folder / "out")]
        told = ["spark.executor.memory=1500m", "spark.driver.host=127.0.0.1", "spark.driver.memory=1g"]
        words = [word for each in told for word in ("--conf", each)]
        command_line = [
            sys.executable,
            "-m",
            "fila_pipeline.main",
            *asked,
            "--master",
            cluster.master,
            *words,
        ]
        began = time.monotonic()
        with _Watched() as watched:
            code = subprocess.run(command_line, check=False).returncode
        took_s = time.monotonic() - began
    finally:
        cluster.stop()
    assert code == 0, code
    both = [_served(folder / name) for name in ("alone", "out")]
    assert both[0].keys() == both[1].keys()
    pairs = [
        (figure * count, both[1][key][name])
        for key, of_key in both[0].items()
        for name, figure in of_key.items()
    ]
    off = max(abs(came - wanted) / max(wanted, 1.0) for wanted, came in pairs)
    each = pc.sum(pc.list_value_length(decided.column("offsets"))).as_py()
    return {
        "events": each * count,
        "copies": count,
        "keys": len(both[0]),
        "largest difference": off,
        "took_s": round(took_s, 1),
        "largest_process_bytes": watched.largest,
        "all_processes_bytes": watched.together,
    }


def _served(out: Path) -> dict[tuple[str, ...], dict[str, float]]:
    """What the job says of each key: sums, which grow with the copies."""
    rows = pq.read_table(out / "keys.parquet").to_pylist()
    return {
        (row["queue"], row["channel"], row["fairness_key"]): {name: row[name] for name in ("served", "due")}
        for row in rows
    }


class _Watched:
    """The memory of this process and all below it, looked at twice a second."""

    def __enter__(self) -> Self:
        self.largest = self.together = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            resident = [_resident(process) for process in _processes()]
            self.largest = max(self.largest, *resident)
            self.together = max(self.together, sum(resident))


def grow(history: Path, events: int) -> int:
    """Write a history of so many events; returns how many there are."""
    from fila_pipeline import schema
    from fila_pipeline.synthetic import decisions, noisy_neighbours

    hour = pa.Table.from_pylist(decisions(noisy_neighbours(3_600)), schema=schema.DECISION_COLUMNS)
    each = pc.sum(pc.list_value_length(hour.column("offsets"))).as_py()
    return int(each * multiplied(hour, history, events))


def multiplied(decided: pa.Table, history: Path, events: int) -> int:
    """Write decisions of at most an hour again and again, an hour apart; returns how often."""
    from fila_pipeline import schema
    from fila_pipeline.recording import HistoryWriter

    each = pc.sum(pc.list_value_length(decided.column("offsets"))).as_py()
    place = decided.column_names.index("at")
    writer = HistoryWriter(history, "grown")
    count = -(-events // each)
    for number in range(count):
        moved = pc.add(decided.column("at"), pa.scalar(timedelta(hours=number), pa.duration("us")))
        part = decided.set_column(place, "at", pc.cast(moved, decided.schema.field("at").type))
        first, last = (pc.min_max(part.column("at"))[name].as_py() for name in ("min", "max"))
        name = f"decisions/date={first:%Y-%m-%d}/hour={first:%H}/grown-{number:06d}.parquet"
        path = history / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, path, compression="zstd", write_page_checksum=True)
        entry = {"table": schema.DECISIONS, "file": name, "rows": len(part), "messages": each}
        writer._files += 1
        writer._list(entry, first, last)
    return int(count)


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


def secured_by_plain(given: argparse.Namespace) -> dict[str, Any]:
    """Rows a second with keys and TLS, by those without; each run is a process, and their order goes back and forth."""
    rates: dict[bool, list[int]] = {True: [], False: []}
    for number in range(given.secure_pairs):
        for secure in (True, False) if number % 2 else (False, True):
            command = [sys.executable, __file__, given.what, "--messages", str(given.messages)]
            ran = subprocess.run(
                [*command, *(["--secure"] if secure else [])], stdout=subprocess.PIPE, text=True, check=True
            )
            rates[secure].append(json.loads(ran.stdout.splitlines()[-1])["rows_a_second"])
            print(
                f"{'secure' if secure else 'plain'}: {rates[secure][-1]:,} rows/s",
                file=sys.stderr,
                flush=True,
            )
    ratios = [one / other for one, other in zip(rates[True], rates[False], strict=True)]
    return {
        "secured_by_plain": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "secured": rates[True],
        "plain": rates[False],
    }


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
    cpu_s, peak = 0.0, 0
    for process in _processes():
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
            cpu_s += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        peak = max(peak, _resident(process, "VmHWM:"))
    return {"cpu_s": round(cpu_s, 1), "largest_process_bytes": peak}


def _processes() -> list[int]:
    """This one and all below it."""
    below: dict[int, list[int]] = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            below[int(stat.read_text().rsplit(")", 1)[1].split()[1])].append(int(stat.parent.name))
    processes = [os.getpid()]
    for process in processes:
        processes += below[process]
    return processes


def _resident(process: int, name: str = "VmRSS:") -> int:
    """A process's memory in bytes; of one that has ended, and may still be listed, 0."""
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{process}/status").read_text()
        if name in status:
            return int(status.partition(name)[2].split()[0]) * 1024
    return 0


MEASURES = {"fairness": fairness, "copies": copies, "read": read, "write": write, "backtest": backtest}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=MEASURES)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--secure", action="store_true", help="read and write with keys and TLS")
    parser.add_argument(
        "--secure-pairs", type=int, default=0, help="read and write: with and without, by turns"
    )
    parser.add_argument(
        "--history", type=Path, help="for backtest and copies: a recording [one that is made for it]"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
