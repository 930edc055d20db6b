"""What was registered with `@app.worker`: a queue, a handler, and how it is run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fila.options import check_prefetch
from fila.prefetch import Prefetch
from fila.values import duration_ms
from fila.worker.outcome import Verdicts
from fila.worker.payload import BadHandler, Decode, decoder, payload_type, wants_message

RunIn = Literal["task", "thread", "process"]
RetryBy = Mapping[type[BaseException], str | int | None]

CONCURRENCY_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """One registered handler; see `App.worker` for what each means."""

    handler: Callable[..., Any]
    name: str
    queue: str
    channel: str | None
    concurrency: int
    run_in: RunIn
    timeout_s: float | None
    batch: int | None
    decode: Decode
    wants_message: bool
    verdicts: Verdicts
    prefetch: Prefetch | None
    max_lease_renewal_ms: int | None
    trace_parent: bool = False


def make_plan(
    handler: Callable[..., Any],
    *,
    queue: str,
    channel: str | None,
    concurrency: int,
    run_in: RunIn | None,
    timeout: str | int | None,
    batch: int | None,
    decode: Decode | None,
    retry: RetryBy | None,
    reject: tuple[type[BaseException], ...],
    release: tuple[type[BaseException], ...],
    prefetch: Prefetch | None,
    max_lease_renewal_ms: int | None,
    trace_parent: bool = False,
) -> WorkerPlan:
    """Return a plan, or say at once what is wrong with it: a worker that starts must not fail at its first message."""
    is_async = inspect.iscoroutinefunction(handler)
    where = run_in or ("task" if is_async else "thread")
    if where not in ("task", "thread", "process"):
        raise BadHandler(f'run_in must be "task", "thread" or "process", got {run_in!r}')
    if is_async != (where == "task"):
        raise BadHandler(
            f"{handler.__name__} is {'async' if is_async else 'a plain def'} and can't run in a {where}: "
            f"{'async handlers run as tasks' if is_async else 'plain ones in threads or processes'}"
        )
    if where == "process" and "<" in handler.__qualname__:
        raise BadHandler(f"{handler.__qualname__} runs in a process: define it at the top of a module")
    if not 1 <= concurrency <= CONCURRENCY_MAX:
        raise BadHandler(f"concurrency must be from 1 to {CONCURRENCY_MAX}, got {concurrency}")
    if batch is not None and not 1 <= batch <= 10_000:
        raise BadHandler(f"batch must be from 1 to 10,000, got {batch}")
    if prefetch is not None:
        check_prefetch(prefetch)
    delays = {
        kind: None if delay is None else duration_ms(f"retry[{kind.__name__}]", delay)
        for kind, delay in (retry or {}).items()
    }
    return WorkerPlan(
        handler=handler,
        name=handler.__name__,
        queue=queue,
        channel=channel,
        concurrency=concurrency,
        run_in=where,
        timeout_s=None if timeout is None else duration_ms("timeout", timeout) / 1000,
        batch=batch,
        decode=decode or decoder(payload_type(handler, batch=batch is not None), handler.__name__),
        wants_message=wants_message(handler),
        verdicts=Verdicts(delays, tuple(reject), tuple(release)),
        prefetch=prefetch,
        max_lease_renewal_ms=max_lease_renewal_ms,
        trace_parent=trace_parent,
    )
