"""Handlers of `fila.worker`: what becomes of a message, run without a broker; and what is refused at registration."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from typing import Any

import msgspec
import pytest

from fila.nack import LimitedBy
from fila.testing import handle, handle_batch, run
from fila.worker import App, Limited, Outcome, Reject, Release, Retry, WorkMessage
from fila.worker.timeouts import Timeouts
from tests.sdk import worker_handlers
from tests.sdk.timeless_loop import TimelessLoop


@pytest.fixture
def app() -> App:
    return App()


# Payloads.


class Struct(msgspec.Struct):
    n: int


@dataclasses.dataclass
class Plain:
    n: int


@pytest.mark.parametrize(
    ("wanted", "seen"),
    [
        (bytes, b'{"n": 1}'),
        (str, '{"n": 1}'),
        (dict, {"n": 1}),
        (dict[str, int], {"n": 1}),
        (Any, {"n": 1}),
        (Struct, Struct(n=1)),
        (Plain, Plain(n=1)),
    ],
)
async def test_a_payload_is_decoded_as_the_annotation_says(app, wanted, seen):
    got = []

    async def handler(payload):
        got.append(payload)

    handler.__annotations__["payload"] = wanted
    app.worker("q")(handler)

    assert (await handle(app, "q", b'{"n": 1}')).kind == "ack"
    assert got == [seen]


@pytest.mark.parametrize("wanted", [dict, Struct, Plain])
async def test_a_payload_that_cannot_be_read_is_rejected(app, wanted):
    async def handler(payload):
        pytest.fail("it must not get here")

    handler.__annotations__["payload"] = wanted
    app.worker("q")(handler)

    outcome = await handle(app, "q", b'{"m": ')

    assert outcome.kind == "reject"
    assert "the payload can't be read" in outcome.error


@pytest.mark.needs("module:pydantic")
async def test_a_pydantic_model_is_decoded_by_pydantic(app):
    from pydantic import BaseModel

    class Model(BaseModel):
        n: int

    got = []

    async def handler(payload):
        got.append(payload)

    handler.__annotations__["payload"] = Model
    app.worker("q")(handler)

    assert (await handle(app, "q", b'{"n": 1}')).kind == "ack"
    assert got == [Model(n=1)]
    assert "validation error" in (await handle(app, "q", b'{"n": "x"}')).error


async def test_a_decoder_of_ones_own_wins(app):
    got = []

    @app.worker("q", decode=lambda payload: payload[::-1])
    async def handler(payload):
        got.append(payload)

    await handle(app, "q", b"abc")

    assert got == [b"cba"]


async def test_a_handler_may_take_the_message_too(app):
    got = []

    @app.worker("q")
    async def handler(payload: bytes, message: WorkMessage):
        got.append((message.headers["tenant"], message.attempt_count, message.queue))

    await handle(app, "q", b"", headers={"tenant": "acme"}, attempt_count=2)

    assert got == [("acme", 2, "q")]


# Verdicts.


class Teapot(ConnectionError):
    pass


@pytest.mark.parametrize(
    ("raised", "outcome"),
    [
        (Retry("later", delay="5s"), Outcome("retry", "later", 5000)),
        (Retry(), Outcome("retry", "", None)),
        (Reject("never"), Outcome("reject", "never")),
        (Release(), Outcome("release")),
        (Limited("429", retry_after=1.5), Outcome("limited", "429", 1500, LimitedBy("", 1500))),
        (Limited(limit="openai"), Outcome("limited", "", None, LimitedBy("openai", 0))),
        (Limited(retry_after=86_400), Outcome("limited", "", 300_000, LimitedBy("", 300_000))),
        (KeyError("id"), Outcome("reject", "KeyError: 'id'")),
        (ConnectionError("down"), Outcome("retry", "ConnectionError: down", 2000)),
        (Teapot("short"), Outcome("retry", "Teapot: short", 2000)),
        (BlockingIOError(), Outcome("release")),
        (RuntimeError("else"), Outcome("retry", "RuntimeError: else", None)),
        (SystemExit(3), Outcome("retry", "SystemExit: 3", None)),
    ],
)
@pytest.mark.parametrize("kind", ["task", "thread"])
async def test_what_is_raised_decides(app, kind, raised, outcome):
    async def in_task(payload: bytes):
        raise raised

    def in_thread(payload: bytes):
        raise raised

    app.worker("q", retry={ConnectionError: "2s"}, reject=(LookupError,), release=(BlockingIOError,))(
        in_task if kind == "task" else in_thread
    )

    assert await handle(app, "q", b"") == outcome


async def test_a_handler_that_takes_too_long_is_cancelled(app):
    cancelled = asyncio.Event()

    @app.worker("q", timeout="20ms")
    async def slow(payload: bytes):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    outcome = await handle(app, "q", b"")

    assert outcome == Outcome("retry", "slow took longer than 0.02 s")
    assert cancelled.is_set()


async def test_a_thread_that_takes_too_long_learns_that_it_is_not_wanted(app):
    stopped = threading.Event()

    @app.worker("q", timeout="20ms")
    def slow(payload: bytes, message: WorkMessage):
        if message.cancellation.wait(60):
            stopped.set()

    assert (await handle(app, "q", b"")).error == "slow took longer than 0.02 s"
    assert stopped.wait(5)


async def test_a_timeout_of_the_handlers_own_is_an_error_like_any_other(app):
    @app.worker("q", timeout="60s")
    async def handler(payload: bytes):
        raise TimeoutError("the database")

    assert (await handle(app, "q", b"")).error == "TimeoutError: the database"


# Batches.


async def test_a_batch_may_fail_in_part(app):
    @app.worker("q", batch=10)
    async def handler(payloads: list[dict[str, int]]):
        return [None if payload["n"] % 2 else Reject("even") for payload in payloads]

    outcomes = await handle_batch(app, "q", [b'{"n": 1}', b"no json", b'{"n": 2}', b'{"n": 3}'])

    assert [outcome.kind for outcome in outcomes] == ["ack", "reject", "reject", "ack"]


async def test_a_batch_that_raises_fails_whole_and_one_that_returns_nothing_is_done(app):
    @app.worker("fails", batch=2)
    async def fails(payloads: list[bytes]):
        raise ValueError("all")

    @app.worker("works", batch=2)
    async def works(payloads: list[bytes]):
        pass

    assert {outcome.error for outcome in await handle_batch(app, "fails", [b"", b""])} == {"ValueError: all"}
    assert [outcome.kind for outcome in await handle_batch(app, "works", [b"", b""])] == ["ack", "ack"]


async def test_a_batch_handler_that_returns_nonsense_is_told(app):
    @app.worker("q", batch=2)
    async def handler(payloads: list[bytes]):
        return [None]

    (outcome, _) = await handle_batch(app, "q", [b"", b""])

    assert "must return None, or a list of 2" in outcome.error


# Middleware.


async def test_middleware_runs_around_the_handler_from_the_outside_in(app):
    said = []

    @app.middleware
    async def outer(messages, call_next):
        said.append(f"outer {len(messages)}")
        try:
            return await call_next()
        except ValueError:
            raise Reject("judged outside") from None

    @app.middleware
    async def inner(messages, call_next):
        said.append("inner")
        await call_next()

    @app.worker("q")
    async def handler(payload: bytes):
        said.append("handler")
        raise ValueError

    assert await handle(app, "q", b"") == Outcome("reject", "judged outside")
    assert said == ["outer 1", "inner", "handler"]


# Processes.


@pytest.mark.parametrize(
    ("do", "error"),
    [
        ("nothing", ""),
        ("exit", "ProcessDied: the worker's process ended with exit code 7"),
        ("die", "ProcessDied: the worker's process died of SIGKILL"),
        ("raise", "ValueError: told so"),
        (
            "strange",
            "RaisedInProcess: Unpicklable('strange') can't cross to the worker's process: not to be pickled",
        ),
    ],
)
async def test_what_becomes_of_a_process_becomes_of_its_message_alone(app, do, error):
    app.worker("q", run_in="process")(worker_handlers.obey)

    assert (await handle(app, "q", b'{"do": "%b"}' % do.encode())).error == error


async def test_a_process_that_takes_too_long_is_killed(app):
    app.worker("q", run_in="process", timeout="1500ms")(worker_handlers.obey)
    began = time.monotonic()

    outcome = await handle(app, "q", b'{"do": "sleep"}')

    assert outcome.error == "obey took longer than 1.5 s"
    assert time.monotonic() - began < 30


# A loop that stands still.


def test_limits_are_moved_by_the_time_the_loop_stood_still():
    timeouts = Timeouts()
    ended = []

    async def innocent(limit_s: float, turns: int):
        async with timeouts.start(limit_s):
            for _ in range(turns):  # which it gets only while nobody blocks the loop
                await asyncio.sleep(0.02)
        ended.append(limit_s)

    async def block() -> None:
        # A limit would be over soon, one within the block, one shortly after.
        waiting = [asyncio.create_task(innocent(*given)) for given in ((0.15, 2), (0.4, 5), (0.6, 10))]
        await asyncio.sleep(0.01)
        loop.now_s += 0.55

        await asyncio.gather(*waiting)
        assert len(ended) == 3
        with pytest.raises(TimeoutError):
            await innocent(0.05, 10)

    loop = TimelessLoop()
    loop.play(block())


# Registration.


def test_what_cannot_work_is_refused_when_it_is_registered(app):
    async def task(payload: bytes): ...

    def plain(payload: bytes): ...

    wrong: list[tuple[dict[str, Any], Any, str]] = [
        ({"run_in": "thread"}, task, "async handlers run as tasks"),
        ({"run_in": "task"}, plain, "plain ones in threads"),
        ({"run_in": "process"}, plain, "at the top of a module"),
        ({"concurrency": 0}, task, "concurrency must be from 1"),
        ({"batch": 0}, task, "batch must be from 1"),
        ({"timeout": "5 minutes"}, task, "timeout: '5 minutes' is no duration"),
        ({"retry": {OSError: "soon"}}, task, r"retry\[OSError\]"),
        ({"prefetch": 0}, task, "prefetch must be at least 1"),
    ]
    for kwargs, handler, said in wrong:
        with pytest.raises((TypeError, ValueError), match=said):
            app.worker("q", **kwargs)(handler)
    assert not app.plans


def test_a_payload_nothing_can_decode_is_refused_when_it_is_registered(app):
    class Strange: ...

    async def handler(payload): ...

    handler.__annotations__["payload"] = Strange
    with pytest.raises(TypeError, match=r"handler can.t be given a payload of type Strange: take bytes"):
        app.worker("q")(handler)


def test_a_handler_is_run_without_a_loop_and_a_missing_one_is_named(app):
    @app.worker("q")
    def handler(payload: bytes): ...

    assert run(app, "q", b"") == Outcome("ack")
    with pytest.raises(LookupError, match="no handler for 'r'; there are q"):
        run(app, "r", b"")
