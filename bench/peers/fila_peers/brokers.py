"""One broker at a time: on loopback, on ports nobody uses, in a directory that is gone afterwards.

A peer says what it was started with: two brokers are compared only with the durability of both beside the numbers.
`SYNCED` is every message on the disk before its answer, `WRITTEN` in the operating system's hands.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fila_bench.report import this_machine

from . import install
from .errors import PeerFailed
from .processes import Started, free_port, stop_all

SYNCED, WRITTEN = "synced", "written"


@dataclass(slots=True)
class Running:
    """A broker that listens."""

    address: str
    started: Started
    settings: str
    beside: list[Started] = field(default_factory=list)
    """What it needs beside itself; stopped after it, not measured."""

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.started.stop(how)
        for process in self.beside:
            process.stop()


Start = Callable[[Path, str], Running]


@dataclass(frozen=True, slots=True)
class Peer:
    """A broker as one adapter of the load generator speaks to it."""

    name: str
    broker: str
    """Whose program it is; two peers may be two faces of one."""

    start: Start
    durabilities: tuple[str, ...]
    version: Callable[[], str]
    tenants: str = "one queue"
    """How its tenants are told apart where one of them floods: in one queue, by a queue each, or not at all."""

    limits_tenants: bool = True
    """Whether the load of rates a tenant can be put on it."""


@contextlib.contextmanager
def running(peer: Peer, durability: str) -> Iterator[tuple[Running, Callable[[], Running]]]:
    """The peer, and a function that kills and starts it again on what it kept; all gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f"fila-peers-{peer.name}-"))
    now: Running | None = None

    def crash_and_restart() -> Running:
        nonlocal now
        assert now is not None, "asked for by who was given a running broker"
        now.stop(signal.SIGKILL)
        now = peer.start(folder, durability)
        return now

    try:
        now = peer.start(folder, durability)
        yield now, crash_and_restart
    finally:
        if now is not None:
            now.stop()
        # And what was started of a broker that never came to listen, or was interrupted meanwhile.
        stop_all()
        shutil.rmtree(folder, ignore_errors=True)


def _fila(folder: Path, durability: str) -> Running:
    return _start_fila(folder, durability, redis=False)


def _fila_redis(folder: Path, durability: str) -> Running:
    return _start_fila(folder, durability, redis=True)


def _start_fila(folder: Path, durability: str, *, redis: bool) -> Running:
    level = "fsync" if durability == SYNCED else "os"
    port, redis_port = free_port(), free_port()
    environment = {
        "FILA_SERVER__LISTEN_ADDR": f"127.0.0.1:{port}",
        "FILA_SERVER__DATA_DIR": str(folder / "data"),
        "FILA_STORAGE__DURABILITY": level,
        "FILA_REDIS__ENABLED": "true" if redis else "false",
        "FILA_REDIS__BIND_ADDRESS": f"127.0.0.1:{redis_port}",
        "FILA_METRICS__LISTEN_ADDR": "",
    }
    server = Path(install.ROOT / ".venv/bin/fila-server")
    started = Started([str(server)], log=folder / "log", env=environment, cwd=folder)
    ports = [port, redis_port] if redis else [port]
    started.wait_until_open(ports, timeout_s=60)
    address = f"127.0.0.1:{redis_port if redis else port}"
    return Running(address, started, f"storage.durability = {level!r}, all else as it comes")


def _redis(folder: Path, durability: str) -> Running:
    root, port = install.debian("redis-server"), free_port()
    policy = "always" if durability == SYNCED else "everysec"
    # Debian has one program for all of Redis, in the package of its tools, which may be installed already.
    program = _program(root, "usr/bin/redis-check-rdb", "redis-server", folder)
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    options += ["--appendonly", "yes", "--appendfsync", policy, "--daemonize", "no"]
    started = Started([program, *options], log=folder / "log", env=install.libraries(root), cwd=folder)
    started.wait_until_open([port], timeout_s=120)
    # It listens while it still reads its file, and refuses every command until it has.
    _wait_until_loaded(port, timeout_s=120)
    return Running(f"127.0.0.1:{port}", started, f"appendonly yes, appendfsync {policy}, no snapshots")


def _wait_until_loaded(port: int, timeout_s: float) -> None:
    began, answer = time.monotonic(), b""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
        while not answer.startswith(b"+PONG"):
            if time.monotonic() - began > timeout_s:
                raise PeerFailed(f"redis-server does not serve after {timeout_s:g} s: {answer!r}")
            time.sleep(0.01)
            connection.sendall(b"PING\r\n")
            answer = connection.recv(1024)


def _program(root: Path, path: str, name: str, folder: Path) -> str:
    """A program that looks at the name it is called by, under that name."""
    link = folder / name
    if not link.exists():
        unpacked = root / path
        link.symlink_to(unpacked if unpacked.exists() else Path("/") / path)
    return str(link)


def _nats(folder: Path, durability: str) -> Running:
    port, every = free_port(), "always" if durability == SYNCED else "2m"
    config = folder / "nats.conf"
    store = folder / "jetstream"
    config.write_text(
        f'listen: "127.0.0.1:{port}"\n'
        f'jetstream {{ store_dir: "{store}", max_file_store: 20GB, sync_interval: "{every}" }}\n'
        "max_payload: 8MB\n"
    )
    started = Started([str(install.nats()), "-c", str(config)], log=folder / "log", env={}, cwd=folder)
    started.wait_until_open([port], timeout_s=60)
    return Running(f"127.0.0.1:{port}", started, f"file storage, work queue, sync_interval {every}")


def _rabbitmq(folder: Path, durability: str) -> Running:
    del durability  # it confirms what is on the disk, and offers nothing less for durable queues
    root = install.debian("rabbitmq-server")
    (scripts,) = root.glob("usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin")
    erlang = _erlang(root, folder)
    port, epmd_port = free_port(), free_port()
    environment = {
        **install.libraries(root),
        "PATH": f"{erlang}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(epmd_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": "fila-peers@localhost",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "rabbitmq-env.conf"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
    }
    # RabbitMQ would start this name server by itself and leave it running; this one ends with the cell.
    epmd = Started(
        [str(erlang / "epmd"), "-port", str(epmd_port), "-address", "127.0.0.1"],
        log=folder / "epmd.log",
        env=environment,
        cwd=folder,
    )
    try:
        epmd.wait_until_open([epmd_port], timeout_s=20)
        started = Started(
            ["/bin/sh", str(scripts / "rabbitmq-server")], log=folder / "log", env=environment, cwd=folder
        )
        started.wait_until_open([port], timeout_s=120)
    except PeerFailed:
        epmd.stop()
        raise
    settings = (
        "durable queues, persistent messages, publisher confirms; classic and quorum sync before they confirm"
    )
    return Running(f"127.0.0.1:{port}", started, settings, beside=[epmd])


def _erlang(root: Path, folder: Path) -> Path:
    """A folder with Erlang's commands. They know where they were meant to be installed, and are told where they are."""
    home = root / "usr/lib/erlang"
    commands = folder / "erlang"
    if not commands.exists():
        commands.mkdir()
        for script in ("erl", "start_erl", "erlc", "escript"):
            source = home / "bin" / script
            if not source.exists():
                continue
            if script == "erl":
                text = source.read_text(errors="replace").replace("/usr/lib/erlang", str(home))
                (commands / script).write_text(text)
                (commands / script).chmod(0o755)
            else:
                (commands / script).symlink_to(source)
        (epmd,) = home.glob("erts-*/bin/epmd")
        (commands / "epmd").symlink_to(epmd)
    return commands


_KAFKA_HEAP = "1g"


def _kafka(folder: Path, durability: str) -> Running:
    jars, port, controller = install.kafka(), free_port(), free_port()
    synced = durability == SYNCED
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(folder / "kafka"),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "message.max.bytes": "10000000",
        **({"log.flush.interval.messages": "1"} if synced else {}),
    }
    config = folder / "server.properties"
    # Ports of an earlier start are in the log's own metadata: a restart after a crash takes them again.
    if config.exists():
        kept = dict(line.split("=", 1) for line in config.read_text().splitlines())
        port = int(kept["advertised.listeners"].rpartition(":")[2])
    else:
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        _kafka_java(jars, folder, "kafka.tools.StorageTool", "format", "-t", _kafka_id(), "-c", str(config))
    java = [
        "java",
        f"-Xms{_KAFKA_HEAP}",
        f"-Xmx{_KAFKA_HEAP}",
        "-cp",
        f"{jars}/*",
        "kafka.Kafka",
        str(config),
    ]
    started = Started(java, log=folder / "log", env={}, cwd=folder)
    started.wait_until_open([port], timeout_s=120)
    flush = "flush.messages = 1, for offsets too" if synced else "flushed by the operating system"
    return Running(f"127.0.0.1:{port}", started, f"KRaft, one node, heap {_KAFKA_HEAP}, acks = all, {flush}")


def _kafka_java(jars: Path, folder: Path, *words: str) -> None:
    started = Started(["java", "-cp", f"{jars}/*", *words], log=folder / "format.log", env={}, cwd=folder)
    if code := started.wait(timeout_s=60):
        raise PeerFailed(f"Kafka's {words[0]} exited with {code}: {started.log_tail()}")


def _kafka_id() -> str:
    """22 characters of base64, which may not begin with a dash."""
    return "f" + secrets.token_urlsafe(15) + "A"


def _beanstalkd(folder: Path, durability: str) -> Running:
    root, port = install.debian("beanstalkd"), free_port()
    sync = ["-f", "0"] if durability == SYNCED else ["-F"]
    program = str(root / "usr/bin/beanstalkd")
    options = ["-l", "127.0.0.1", "-p", str(port), "-b", str(folder), "-z", "1048576", *sync]
    started = Started([program, *options], log=folder / "log", env=install.libraries(root), cwd=folder)
    started.wait_until_open([port], timeout_s=60)
    return Running(f"127.0.0.1:{port}", started, f"binlog, {' '.join(sync)}, jobs up to 1 MiB")


def _debian_version(package: str) -> Callable[[], str]:
    return lambda: f"{install.debian_version(package)} of Debian"


def _fila_version() -> str:
    return f"commit {this_machine().commit}"


def _kafka_version() -> str:
    (jar,) = install.kafka().glob("kafka_2.13-*.jar")
    return jar.stem.removeprefix("kafka_2.13-")


BOTH = (SYNCED, WRITTEN)
PEERS: Mapping[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("fila-grpc", "Fila", _fila, BOTH, _fila_version),
        Peer("fila-redis", "Fila", _fila_redis, BOTH, _fila_version, tenants="", limits_tenants=False),
        Peer("redis-stream", "Redis", _redis, BOTH, _debian_version("redis-server"), tenants="a queue each"),
        Peer("redis-list", "Redis", _redis, BOTH, _debian_version("redis-server"), tenants=""),
        Peer("nats", "NATS", _nats, BOTH, lambda: install.NATS_VERSION, tenants="a queue each"),
        Peer(
            "rabbitmq-quorum",
            "RabbitMQ",
            _rabbitmq,
            (SYNCED,),
            _debian_version("rabbitmq-server"),
            tenants="a queue each",
        ),
        Peer(
            "rabbitmq",
            "RabbitMQ",
            _rabbitmq,
            (SYNCED,),
            _debian_version("rabbitmq-server"),
            tenants="a queue each",
        ),
        Peer("kafka", "Kafka", _kafka, BOTH, _kafka_version, tenants="a queue each"),
        Peer(
            "beanstalkd",
            "beanstalkd",
            _beanstalkd,
            BOTH,
            _debian_version("beanstalkd"),
            tenants="a queue each",
        ),
    )
}
"""In the order in which they are measured and shown."""
