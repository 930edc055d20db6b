"""Clients nobody here wrote, unchanged: redis-py, redis-cli, redis-benchmark; and what docs/redis.md promises."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio

from fila_server.edges.redis import server as redis_server
from tests.redis.conftest import Connect
from tests.redis.model_engine import ModelEngine
from tests.redis.raw_client import until

DOCS = Path(__file__).resolve().parents[2] / "docs/redis.md"

RunProgram = Callable[..., Awaitable[str]]


@pytest.fixture
def run(server: redis_server.Server) -> RunProgram:
    """Run a program against the server; returns what it printed."""

    async def run(*args: str, stdin: str = "") -> str:
        process = await asyncio.create_subprocess_exec(
            *args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate(stdin.encode())
        assert process.returncode == 0, err.decode()
        return out.decode()

    return run


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
async def test_redis_py_works_unchanged(server: redis_server.Server, protocol: int):
    client = redis.Redis(port=server.address[1], protocol=protocol)
    await asyncio.to_thread(_life, client)
    client.close()


@pytest.mark.parametrize("protocol", [2, 3])
async def test_redis_py_asyncio_works_unchanged(
    server: redis_server.Server, engine: ModelEngine, protocol: int
):
    async with redis.asyncio.Redis(port=server.address[1], protocol=protocol) as client:
        await client.setnx("orders", "mail")
        waiting = asyncio.ensure_future(client.hmget("orders", ["mail", 10, 60]))
        await until(lambda: engine.waiters)
        async with client.pipeline(transaction=False) as pipe:
            for number in range(100):
                pipe.rpush("orders", number)
            assert await pipe.execute() == [1] * 100
        first = await waiting
        rest = await client.hmget("orders", ["mail", 200])
        assert len(first) + len(rest) == 100
        assert await client.hdel("orders", "mail", *[row[1] for row in first + rest]) == 100
        late = asyncio.ensure_future(client.hmget("orders", ["mail", 10, 0.5]))
        await until(lambda: engine.waiters)
        engine.advance(500)
        assert await late is None


@pytest.mark.needs("redis-cli")
async def test_redis_cli_works_unchanged(server: redis_server.Server, run: RunProgram):
    script = """
        set orders mail
        rpush orders "first message" second
        hmget orders mail 1
        info server
        lpush orders x
        client list
        command docs rpush
        quit
    """
    said = await run("redis-cli", "-p", str(server.address[1]), stdin=script)
    assert said.startswith(("OK\n\n2\n\n1\n", "OK\n2\n1\n")), said
    assert "first message" in said
    assert '{"client_count":' in said
    assert "UCOM ERR unknown command 'lpush'" in said

    arguments = ("-3", "-p", str(server.address[1]))
    assert await run("redis-cli", *arguments, "HMGET", "orders", "mail", "10") != ""
    assert (await run("redis-cli", *arguments, "SREM", "orders", "*")).strip() == "1"


@pytest.mark.needs("redis-benchmark")
async def test_redis_benchmark_pushes_with_pipelines(
    server: redis_server.Server, connect: Connect, engine: ModelEngine, run: RunProgram
):
    await (await connect())("SET", "orders", "mail")
    port = str(server.address[1])
    await run(
        "redis-benchmark", "-p", port, "-n", "2000", "-P", "50", "-c", "4", "-q", "RPUSH", "orders", "m"
    )

    assert len(engine.queues["orders"].log) == 2000


@pytest.mark.slow
@pytest.mark.timeout(300)  # the first build fetches modules
@pytest.mark.needs("go")
async def test_go_redis_works_unchanged(server: redis_server.Server, run: RunProgram, tmp_path: Path):
    program = tmp_path / "goredis"
    await run("go", "-C", str(Path(__file__).parent / "go_redis"), "build", "-o", str(program), ".")

    assert await run(str(program), f"127.0.0.1:{server.address[1]}") == "ok\n"


_EXAMPLES = re.findall(r"```python\n(.*?)```\n\nIt prints:\n\n```text\n(.*?)```", DOCS.read_text(), re.DOTALL)


@pytest.mark.parametrize(("program", "printed"), _EXAMPLES)
async def test_the_examples_of_the_docs_print_what_they_say(
    server: redis_server.Server, run: RunProgram, program: str, printed: str
):
    assert (
        await run(sys.executable, "-c", program.replace("port=9797", f"port={server.address[1]}")) == printed
    )


def test_the_docs_have_their_examples():
    assert len(_EXAMPLES) == 2
