"""Spark's own cluster on one machine: a master and two workers in processes of their own, each with a disk of its own.

Each finds its Python by its PATH, as `docs/pipeline.md#on-a-cluster` has it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pyspark

ROOT = Path(__file__).resolve().parents[2]
STARTED_S_MAX = 120.0
HERE = ("--host", "127.0.0.1", "--webui-port", "0")


def environ() -> dict[str, str]:
    paths = [str(ROOT / "pipeline/src"), str(ROOT / "sdks/python/src")]
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYSPARK_PYTHON": "python3",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


class Cluster:
    """A master, and workers of one core each, whose files and shuffles lie in a folder of their own."""

    def __init__(self, folder: Path, workers: int = 2, memory: str = "1g") -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        try:
            self.master = self._started("master", "master.Master", r"spark://127\.0\.0\.1:\d+", "--port", "0")
            for number in range(1, workers + 1):
                own = folder / f"worker-{number}"
                room = ("--cores", "1", "--memory", memory, "--work-dir", str(own / "work"))
                name = f"worker-{number}"
                self._started(
                    name, "worker.Worker", "Successfully registered", *room, self.master, own=own / "local"
                )
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
            process.wait(60)

    def _started(self, name: str, kind: str, said: str, *arguments: str, own: Path | None = None) -> str:
        """Start a part; returns what `said` found in its log."""
        log = self.folder / f"{name}.log"
        command = [str(Path(pyspark.__file__).parent / "bin/spark-class"), f"org.apache.spark.deploy.{kind}"]
        local = {} if own is None else {"SPARK_LOCAL_DIRS": str(own)}
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*command, *HERE, *arguments], env=environ() | local, stdout=out, stderr=out, cwd=self.folder
            )
        self.processes.append(process)
        deadline = time.monotonic() + STARTED_S_MAX
        while time.monotonic() < deadline and process.poll() is None:
            found = re.search(said, log.read_text())
            if found:
                return found[0]
            time.sleep(0.1)
        raise AssertionError(f"{name} did not start:\n{log.read_text()}")
