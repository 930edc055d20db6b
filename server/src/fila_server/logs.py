"""Logging: JSON a line for machines, colours for a terminal, both on stderr.

Events are `noun.past_verb` with fields, never sentences, so that they can be counted.
Nothing is logged per message at info.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TextIO

import orjson

# Where rich is installed, structlog loads it, to draw exceptions with: a fifth of what a start costs, for tables that
# also show every local variable, and with them keys. It looks as it is imported, so main.py imports this module first.
_rich = sys.modules.get("rich")
sys.modules["rich"] = None  # type: ignore[assignment]
import structlog  # noqa: E402

del sys.modules["rich"]
if _rich is not None:
    sys.modules["rich"] = _rich

# gRPC's C core writes to stderr in a form of its own what we report ourselves. It reads this
# when it is imported, so main.py imports this module before anything that needs gRPC.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def setup(stream: TextIO = sys.stderr, level: str = "info", form: str = "auto") -> None:
    """Configure structlog, and let the libraries' own warnings come out the same way.

    `level` and `form` are the settings log.level and log.format.
    """
    is_for_people = stream.isatty() if form == "auto" else form == "text"
    least = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.types.Processor
    if is_for_people:
        renderer = structlog.dev.ConsoleRenderer(colors=stream.isatty() and not os.environ.get("NO_COLOR"))
    else:
        shared.append(structlog.processors.format_exc_info)
        renderer = structlog.processors.JSONRenderer(serializer=_to_json)
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=structlog.PrintLoggerFactory(file=stream),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processors=[
        structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer,
    ], foreign_pre_chain=shared))  # fmt: skip
    handler.addFilter(_is_about_us)
    logging.basicConfig(handlers=[handler], level=max(least, logging.WARNING), force=True)


_CLIENTS_DOING = frozenset({"ExecuteBatchError", "InternalError", "DecodeError"})
"""What gRPC's server logs as an error of ours, with a traceback: that an answer could not be sent because its client
went away, and that a request to health or reflection is no protobuf."""


def _is_about_us(record: logging.LogRecord) -> bool:
    """Whether an operator should see it: anybody can break off calls, and would fill the log and wake people."""
    if not record.name.startswith("grpc") or not record.exc_info or record.exc_info[0] is None:
        return True
    return record.exc_info[0].__name__ not in _CLIENTS_DOING


def _to_json(event: object, **_: object) -> str:
    return orjson.dumps(event, default=repr).decode()
