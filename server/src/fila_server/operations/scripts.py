"""Puts the hooks stage between the edges and the core, and keeps it told of what admins set.

    mirror ──scripts, fallback, runtime config──► HookStage ◄──frames── broker
                                                     ▲
    core ──EVENT──► broker ──► FailureJudge ──────────┘ ──DECIDE──► core

The stage itself knows neither the wire nor the core, so that it can be tested, and replaced,
alone. What it must be told in time is decided here: scripts before any port answers, a config
value before SetConfig is answered, the end before the server drains.
"""

from __future__ import annotations

import asyncio
import os
import time

from fila.v1 import admin_pb2
from fila_server.broker.calls import Broker
from fila_server.config.schema import Config
from fila_server.core.protocol import commands
from fila_server.hooks.failures import FailureJudge
from fila_server.hooks.sandbox import HookLimits
from fila_server.hooks.stage import FALLBACK_HOLD, FALLBACK_POLICY, BreakerSettings, HookStage
from fila_server.hooks.timed import TimedHooks


async def start_with_hooks(broker: Broker, config: Config) -> HookStage:
    """Start the broker with a hooks stage in it; return the stage."""
    settings = config.lua
    stage = (TimedHooks if config.telemetry.makes_spans else HookStage)(
        now_ns=time.monotonic_ns,
        seed=int.from_bytes(os.urandom(8)) >> 1,
        limits=HookLimits(
            timeout_ms=settings.default_timeout_ms,
            memory_bytes=settings.default_memory_limit_bytes,
            script_bytes=config.limits.script_bytes_max,
        ),
        breaker=BreakerSettings(
            threshold=settings.circuit_breaker_threshold, cooldown_ms=settings.circuit_breaker_cooldown_ms
        ),
    )
    failures = FailureJudge(
        stage,
        lambda number, decision: broker.post(commands.DECIDE, number, decision),
        now_ns=time.monotonic_ns,
        call_soon=asyncio.get_running_loop().call_soon,
    )

    def report_stage(queue: str, config: admin_pb2.QueueConfig | None) -> None:
        if config is None:
            stage.remove_queue(queue)
            return
        holds = config.hook_fallback == admin_pb2.HOOK_FALLBACK_HOLD
        fallback = FALLBACK_HOLD if holds else FALLBACK_POLICY
        stage.set_queue(
            queue, config.on_enqueue_script, config.on_failure_script, fallback, config.fairness_key_header
        )

    broker.use_hooks(stage, failures.take)
    broker.at_drain(stage.close)
    broker.mirror.listen(report_stage)
    broker.mirror.listen_config(stage.set_config)
    await broker.start()
    # Leases that ended while the server was down have failed by now; their scripts are known only now.
    failures.start()
    return stage
