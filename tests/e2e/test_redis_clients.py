"""Redis clients that nobody here wrote, unchanged, on a real server and either edge."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import redis

from tests.e2e.conftest import RunningServer, StartServer
from tests.redis import test_clients
from tests.redis.test_clients import _EXAMPLES, _life

pytestmark = [pytest.mark.e2e, pytest.mark.both_edges]

GO_REDIS = Path(test_clients.__file__).parent / "go_redis"


@pytest.fixture
def server(start_server: StartServer) -> RunningServer:
    return start_server(FILA_STORAGE__DURABILITY="os")


@pytest.fixture
def port(server: RunningServer) -> str:
    return server.addresses["redis"].rpartition(":")[2]


def run(*args: str, stdin: str = "") -> str:
    done = subprocess.run(args, input=stdin, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py_works_unchanged(port: str, protocol: int):
    with redis.Redis(port=int(port), protocol=protocol) as client:
        _life(client)


@pytest.mark.needs("redis-cli")
def test_redis_cli_works_unchanged(port: str):
    script = (
        'set orders mail\nrpush orders "first message" second\nhmget orders mail 1\nlpush orders x\nquit\n'
    )
    said = run("redis-cli", "-p", port, stdin=script)

    assert said.startswith(("OK\n\n2\n\n1\n", "OK\n2\n1\n")), said
    assert "first message" in said
    assert "UCOM ERR unknown command 'lpush'" in said
    assert run("redis-cli", "-3", "-p", port, "SREM", "orders", "*").strip() == "1"


@pytest.mark.needs("redis-benchmark")
@pytest.mark.parametrize("pipeline", ["1", "50"])
def test_redis_benchmark_pushes_and_all_of_it_is_there(port: str, pipeline: str):
    with redis.Redis(port=int(port)) as client:
        client.setnx("orders", "mail")
        command = ("RPUSH", "orders", "m")
        run("redis-benchmark", "-p", port, "-n", "5000", "-P", pipeline, "-c", "20", "-q", *command)

        assert len(client.hmget("orders", ["mail", 10_000])) == 5000


@pytest.mark.slow
@pytest.mark.timeout(300)  # the first build fetches modules
@pytest.mark.needs("go")
def test_go_redis_works_unchanged(port: str, tmp_path: Path):
    program = tmp_path / "goredis"
    run("go", "-C", str(GO_REDIS), "build", "-o", str(program), ".")

    assert run(str(program), f"127.0.0.1:{port}") == "ok\n"


@pytest.mark.parametrize(("program", "printed"), _EXAMPLES)
def test_the_examples_of_the_docs_print_what_they_say(port: str, program: str, printed: str):
    assert run(sys.executable, "-c", program.replace("port=9797", f"port={port}")) == printed
