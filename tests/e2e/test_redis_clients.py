"""Redis clients that nobody here wrote, unchanged; and what docs/redis.md promises."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio

from tests.e2e.conftest import RunningServer, StartServer

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
GO_REDIS = ROOT / "tests/redis/go_redis"
EXAMPLES = re.findall(
    r"```python\n(.*?)```\n\nIt prints:\n\n```text\n(.*?)```",
    (ROOT / "docs/redis.md").read_text(),
    re.DOTALL,
)


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


def _life(client: Any) -> None:
    assert client.ping()
    assert client.set("orders", "mail", nx=True)
    assert client.setnx("orders", "audit")
    with pytest.raises(redis.ResponseError, match="QAE"):
        client.set("orders", "mail")
    assert client.rpush("orders", "a", b"\x00\xff") == 2
    pipe = client.pipeline(transaction=False)
    for number in range(100):
        pipe.rpush("orders", number)
    assert pipe.execute() == [1] * 100
    rows = client.hmget("orders", ["mail", 500])
    assert [row[0] for row in rows] == list(range(1, 103))
    assert rows[1][2] == b"\x00\xff"
    assert client.hdel("orders", "mail", *[row[1] for row in rows]) == 102
    assert client.hmget("orders", ["mail", 500]) == []
    assert len(client.hmget("orders", ["audit", 500])) == 102
    with pytest.raises(redis.ResponseError, match="IPA Invalid Ticket"):
        client.hdel("orders", "mail", "x")
    with pytest.raises(redis.ResponseError, match="unknown command"):
        client.lpush("orders", "x")
    assert client.config_set("queues.orders.message_timeout", "10s")
    assert client.info()["loading"] == 0
    assert client.client_setname("worker-1")
    assert client.client_info()["name"] == "worker-1"
    assert client.srem("orders", "*") == 1
    assert client.delete("orders") == 1


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py_works_unchanged(port: str, protocol: int):
    with redis.Redis(port=int(port), protocol=protocol) as client:
        _life(client)


@pytest.mark.parametrize("protocol", [2, 3])
async def test_redis_py_asyncio_works_unchanged(port: str, protocol: int):
    async with redis.asyncio.Redis(port=int(port), protocol=protocol) as client:
        await client.setnx("orders", "mail")
        waiting = asyncio.ensure_future(client.hmget("orders", ["mail", 10, 60]))
        async with client.pipeline(transaction=False) as pipe:
            for number in range(100):
                pipe.rpush("orders", number)
            assert await pipe.execute() == [1] * 100
        first = await waiting
        rest = await client.hmget("orders", ["mail", 200])
        assert len(first) + len(rest) == 100
        assert await client.hdel("orders", "mail", *[row[1] for row in first + rest]) == 100
        assert await client.hmget("orders", ["mail", 10, 0.1]) is None


@pytest.mark.needs("redis-cli")
def test_redis_cli_works_unchanged(port: str):
    script = (
        'set orders mail\nrpush orders "first message" second\nhmget orders mail 1\nlpush orders x\n'
        "info server\nclient list\ncommand docs rpush\nquit\n"
    )
    said = run("redis-cli", "-p", port, stdin=script)

    assert said.startswith(("OK\n\n2\n\n1\n", "OK\n2\n1\n")), said
    assert "first message" in said
    assert '{"client_count":' in said
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
@pytest.mark.costly("a Go program is compiled, with its modules the first time")
@pytest.mark.needs("go")
def test_go_redis_works_unchanged(port: str, tmp_path: Path):
    program = tmp_path / "goredis"
    run("go", "-C", str(GO_REDIS), "build", "-o", str(program), ".")

    assert run(str(program), f"127.0.0.1:{port}") == "ok\n"


@pytest.mark.parametrize(("program", "printed"), EXAMPLES)
def test_the_examples_of_the_docs_print_what_they_say(port: str, program: str, printed: str):
    assert run(sys.executable, "-c", program.replace("port=9797", f"port={port}")) == printed


def test_the_docs_have_their_examples():
    assert len(EXAMPLES) == 2
