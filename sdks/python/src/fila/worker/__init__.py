"""Handlers for queues: `@app.worker("orders", concurrency=20)`. Start reading at `app.py`.

A message goes through `slots.py` (take, settle), `pipeline.py` (decode, middleware, outcome) and `executors.py` or
`processes.py` (where the handler runs); `service.py` starts and stops it all.
"""

from fila.worker.app import App
from fila.worker.outcome import Limited, Outcome, Reject, Release, Retry
from fila.worker.payload import BadHandler
from fila.worker.pipeline import CallNext, Middleware
from fila.worker.work import WorkMessage

__all__ = [
    "App",
    "BadHandler",
    "CallNext",
    "Limited",
    "Middleware",
    "Outcome",
    "Reject",
    "Release",
    "Retry",
    "WorkMessage",
]
