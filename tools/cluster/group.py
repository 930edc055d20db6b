"""A group on this machine, to look at and to break: `make cluster`.

    python -m tools.cluster.group JARS FOLDER

starts three Kafka brokers and three nodes with their files in FOLDER, and says who serves. A process that ends is
started again a few seconds later, as a supervisor would, so kill and stop them as you like. Ctrl-C ends all of them;
the next start goes on with what is in FOLDER.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tools.cluster import brokers

NODES = (1, 2, 3)
AGAIN_S = 5.0
LOOK_S = 0.3
STOP_S_MAX = 20.0

SETTINGS = """[server]
listen_addr = "127.0.0.1:555{number}"
data_dir = "{folder}"

[redis]
listen_addr = "127.0.0.1:638{number}"

[metrics]
listen_addr = "127.0.0.1:919{number}"

[cluster]
name = "demo"
node = "fila-{number}"
log = "kafka://{brokers}/{topic}"
peers = "{peers}"
peer_addr = "127.0.0.1:565{number}"
secret_file = "{secret}"
"""


@dataclass
class Member:
    """A process that is started again where it ends."""

    name: str
    where: str
    start: Callable[[], subprocess.Popen[bytes]]
    process: subprocess.Popen[bytes] | None = None
    again_s: float = 0.0

    def run(self) -> None:
        self.process = self.start()
        print(f"{self.name}: process {self.process.pid}, {self.where}", flush=True)

    def look(self, now_s: float) -> None:
        """Start it again where its time has come."""
        if self.process is None:
            if now_s >= self.again_s:
                self.run()
        elif (code := self.process.poll()) is not None:
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            print(f"{self.name}: ended {how}. It starts again in {AGAIN_S:.0f} s", flush=True)
            self.process, self.again_s = None, now_s + AGAIN_S

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()

    def gone(self) -> None:
        """Wait for its end, and kill it where that takes too long."""
        if self.process is None:
            return
        try:
            self.process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def settings_of(number: int, folder: Path) -> Path:
    """The file of one node, written anew."""
    secret = folder / "secret"
    if not secret.exists():
        secret.touch(0o600)
        secret.write_text(secrets.token_hex(16) + "\n")
    file = folder / f"fila-{number}.toml"
    file.write_text(
        SETTINGS.format(
            number=number,
            folder=folder / f"fila-{number}",
            brokers=brokers.addresses(),
            topic=brokers.TOPIC,
            peers=", ".join(f"127.0.0.1:565{each}" for each in NODES),
            secret=secret,
        )
    )
    return file


def node(number: int, folder: Path) -> Callable[[], subprocess.Popen[bytes]]:
    def start() -> subprocess.Popen[bytes]:
        file = settings_of(number, folder)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
        with (folder / f"fila-{number}.log").open("ab") as said:
            return subprocess.Popen(
                [Path(sys.executable).with_name("fila-server"), "--config", file],
                env=environ,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    return start


def broker(number: int, jars: Path, folder: Path) -> Callable[[], subprocess.Popen[bytes]]:
    return lambda: brokers.start(number, jars, folder / f"kafka-{number}")


def owner() -> str:
    """Which node serves; empty while none does."""
    for number in NODES:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:919{number}/ownerz", timeout=1) as answer:
                if answer.status == 200:
                    return f"fila-{number}"
        except (urllib.error.URLError, OSError):
            continue
    return ""


def watch(members: list[Member]) -> NoReturn:
    """Tell who serves, until somebody ends it."""
    served = "nobody yet"
    since_s = time.monotonic()
    while True:
        now_s = time.monotonic()
        for member in members:
            member.look(now_s)
        serves = owner()
        if serves != served and (serves or served != "nobody yet"):
            after = f", after {now_s - since_s:.1f} s without" if serves and not served else ""
            print(f"{serves or 'nobody'} serves{after}", flush=True)
            served, since_s = serves, now_s
        time.sleep(LOOK_S)


def main() -> None:
    jars, folder = (Path(each).resolve() for each in sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)

    def ends(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, ends)
    logs = [
        Member(f"kafka-{number}", f"127.0.0.1:1909{number}", broker(number, jars, folder))
        for number in brokers.NUMBERS
    ]
    nodes = [
        Member(
            f"fila-{number}", f"gRPC 127.0.0.1:555{number}, Redis 127.0.0.1:638{number}", node(number, folder)
        )
        for number in NODES
    ]
    try:
        for member in logs:
            member.run()
        brokers.make_topic()
        for member in nodes:
            member.run()
        everybody = ",".join(f"127.0.0.1:555{number}" for number in NODES)
        print(
            f"\nFILA_ADDR={everybody} fila cluster status\nCtrl-C ends all of them; what they say is in {folder}\n"
        )
        watch(logs + nodes)
    except KeyboardInterrupt:
        print("all of them end", flush=True)
    finally:
        for members in (nodes, logs):
            for member in members:
                member.stop()
            for member in members:
                member.gone()


if __name__ == "__main__":
    main()
