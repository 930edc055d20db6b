"""Between JSON and the broker's bytes, as work that needs nothing but what it is given; and a process that does it.

A process and no thread: a thread would share the interpreter's lock with the loop, and hold it for the whole of one
call into a parser. The process reads work from its input and writes what came of it to its output, one after the other,
and ends with its input, so none outlives the gateway.

    work       kind, length of the arguments, length of the body; the arguments as JSON; the body
    outcome    kind, length; the bytes
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import sys
import traceback
from typing import Any, BinaryIO

import orjson
from starlette.datastructures import Headers, QueryParams

from fila_http import proto_json
from fila_http.binding import bind
from fila_http.events import events_of
from fila_http.problems import Code, Problem
from fila_http.route import Route
from fila_http.v1.routes import ROUTES

NICENESS = 5
"""Where the machine's cores are all busy, small requests go first."""

WORK = struct.Struct("<BII")
OUTCOME = struct.Struct("<BI")
READ, WRITE, TELL = range(3)
DONE, REFUSED, FAILED = range(3)

ROUTE_BY_NAME = {route.name: route for route in ROUTES}

Arguments = dict[str, Any]


def arguments_of(path: dict[str, str], query: QueryParams, headers: Headers, items_max: int) -> Arguments:
    """What a request says beside its body, so that JSON can carry it."""
    return {"path": path, "query": str(query), "headers": headers.items(), "items_max": items_max}


def _read(route: Route, said: Arguments, body: bytes) -> bytes:
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in said["headers"]]
    message = bind(route, said["path"], QueryParams(said["query"]), Headers(raw=raw), body, said["items_max"])
    return message.SerializeToString()


def write(route: Route, answer: bytes) -> bytes:
    """The answer as JSON."""
    return proto_json.dumps(route.response.FromString(answer))


def tell(route: Route, response: bytes) -> bytes:
    """The events of one response of a stream."""
    assert route.events is not None
    return b"".join(events_of(route.events, route.response.FromString(response)))


def _do(kind: int, said: Arguments, body: bytes) -> bytes:
    route = ROUTE_BY_NAME[said["route"]]
    if kind == READ:
        return _read(route, said, body)
    return write(route, body) if kind == WRITE else tell(route, body)


def refusal(problem: Problem) -> bytes:
    """A problem as the outcome has it."""
    return orjson.dumps([problem.status, problem.reason, problem.detail, problem.code.name, problem.headers])


def refused(outcome: bytes) -> Problem:
    """The problem again."""
    status, reason, detail, code, headers = orjson.loads(outcome)
    return Problem(status, reason, detail, getattr(Code, code), headers)


def serve(work: BinaryIO, outcomes: BinaryIO) -> None:
    """Do what is asked until nothing is any more."""
    while head := work.read(WORK.size):
        kind, said_bytes, body_bytes = WORK.unpack(head)
        said = orjson.loads(work.read(said_bytes))
        body = work.read(body_bytes)
        try:
            done = _do(kind, said, body)
            outcome = DONE
        except Problem as problem:
            done, outcome = refusal(problem), REFUSED
        except Exception:  # noqa: BLE001 - told to the gateway, which logs it; the next work is done
            done, outcome = traceback.format_exc().encode(), FAILED
        outcomes.write(OUTCOME.pack(outcome, len(done)))
        outcomes.write(done)
        outcomes.flush()


if __name__ == "__main__":
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the gateway's, which ends this by its input
    serve(sys.stdin.buffer, sys.stdout.buffer)
