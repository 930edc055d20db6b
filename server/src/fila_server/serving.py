"""From an open store to the end: bind, answer, drain.

    serve()       every port bound before any of them answers; then until a signal
    _drain()      nothing new, finish what is in hand, sync

main.py opens the store and, meanwhile, imports this module: all that answers hangs on it, and what it imports takes
as long as reading the index of some hundred thousand messages.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import time
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import structlog

from fila_server import errors
from fila_server.access.admission import NOT_LOCAL, Admission
from fila_server.access.failures import is_loopback
from fila_server.access.quotas import Quotas
from fila_server.access.table import RPCS
from fila_server.access.tls import Tls
from fila_server.backup.control import Control
from fila_server.backup.last import backup_age_s
from fila_server.broker.calls import Broker
from fila_server.broker.interfaces import Engine
from fila_server.config.kinds import Address
from fila_server.config.schema import Config
from fila_server.core.protocol import commands
from fila_server.descriptors import Descriptors
from fila_server.edge.redis.port import RedisPort
from fila_server.edge.server import EdgeServer, OfGroup
from fila_server.events import emit
from fila_server.hooks.stage import HookStage
from fila_server.operations.observing import observe
from fila_server.operations.scripts import start_with_hooks
from fila_server.operations.start_access import new_admission, start_access
from fila_server.operations.trouble_facts import Circuit
from fila_server.operations.trouble_survey import TroubleSurvey
from fila_server.telemetry.series import HookReading
from fila_server.telemetry.service import Telemetry
from fila_server.version import commit, version

if TYPE_CHECKING:
    from fila_server.core.runtime.scheduler_thread import Engine as CompiledEngine
    from fila_server.telemetry.group import Handover
    from fila_server.telemetry.probes import LoadingPage

log = structlog.get_logger("fila_server.serving")

CALLS_FINISH_S = 5.0
HANDS_OVER_S = 0.25
"""As CALLS_FINISH_S, of an owner that hands over: while it waits nobody serves."""

_ANY_HOST = ("0.0.0.0", "::")  # noqa: S104 - the addresses to warn about, not to bind


async def serve(
    engine: Engine,
    settings: Config,
    on_signal: Callable[[], object] = lambda: None,
    descriptors: Descriptors | None = None,
    loading: LoadingPage | None = None,
    group: OfGroup | None = None,
) -> None:
    """Bind every port, answer on all of them, and drain when told to stop; `on_signal` is called first then.
    `loading` holds the metrics port and answers probes there until then. A node tells of its `group`."""
    descriptors = descriptors or Descriptors(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    stopping, signals = _listen_for_signals(group)
    broker = Broker(
        engine,
        outstanding_calls_max=settings.scheduler.outstanding_calls_max,
        unwritten_bytes_max=settings.limits.unwritten_bytes_max,
    )
    tls = Tls(settings.tls)
    admission = new_admission(broker, engine.rights, settings)
    quotas = Quotas(broker.call, engine.rights, admission.directory, time.monotonic)
    edge = EdgeServer(
        cast("CompiledEngine", engine), broker, settings, admission, tls, descriptors.first_kept, group
    )
    hooks = await start_with_hooks(broker, settings)
    try:
        await start_access(admission, settings)
        await quotas.look()
        await edge.schedules.start()
    except errors.FilaServerError:
        await broker.stop()
        raise
    telemetry = _telemetry(broker, hooks, quotas, edge, Path(settings.server.data_dir), group)
    redis, metrics_port = await _listen(edge, telemetry, broker, settings, descriptors, admission, loading)
    if settings.auth.enabled:  # without keys nobody has rights that could end, nor quotas
        admission.start()
        quotas.start()
    _start_telling(telemetry, engine, settings)
    watching = asyncio.ensure_future(tls.watch())
    control = _control(engine, settings)
    await control.start()
    _report_start(settings, edge, redis, metrics_port)
    telemetry.say_ready()
    survey = TroubleSurvey(broker, edge.troubles, lambda: starmap(Circuit, sorted(hooks.open_circuits)))
    observing = asyncio.create_task(
        observe(_asking(broker), lambda: broker.stirs, time.monotonic, broker.speeds, survey.look)
    )
    _calm_the_collector()
    await stopping.wait()
    descriptors.stop()  # it holds the ports, too
    if group and group.node.handover and not signals:
        await _hand_over(broker, edge, redis, group.node.handover)
        return
    on_signal()
    telemetry.say_draining()
    for each in (observing, watching):
        each.cancel()
    for ending in (admission, quotas):
        ending.stop()
    await control.stop()
    await _drain(broker, edge, redis, telemetry)


async def _listen(
    edge: EdgeServer,
    telemetry: Telemetry,
    broker: Broker,
    settings: Config,
    descriptors: Descriptors,
    admission: Admission,
    loading: LoadingPage | None,
) -> tuple[RedisPort | None, int]:
    """Bind every port, then answer on all of them. Returns the Redis port, if there is one, and the metrics page's
    number. Raises errors.PortTaken, with the broker stopped."""
    redis: RedisPort | None = None
    try:
        edge.bind()
        metrics_port = await telemetry.start_page(
            settings.metrics.listen_addr,
            _scraper(admission, settings),
            loading,
            settings.metrics.allowed_hosts.each,
        )
        if settings.redis.enabled:
            redis = edge.listen_redis(settings.server.data_dir, descriptors.may_be_kept, admission)
    except errors.PortTaken:
        await broker.stop()
        raise
    await edge.serve()
    descriptors.guard({edge.port, metrics_port, redis.address[1] if redis is not None else 0} - {0})
    descriptors.start()
    return redis, metrics_port


def _start_telling(telemetry: Telemetry, engine: Engine, settings: Config) -> None:
    reported = settings.telemetry
    telemetry.start_export(
        endpoint=reported.otlp_endpoint,
        service_name=reported.service_name,
        interval_ms=reported.metrics_interval_ms,
    )
    telemetry.start_spans(
        getattr(engine, "spans", None), endpoint=reported.otlp_endpoint, service_name=reported.service_name
    )


def _control(engine: Engine, settings: Config) -> Control:
    def make(path: str) -> None:
        cast("CompiledEngine", engine).checkpoint(path)

    return Control(Path(settings.server.data_dir), make, settings.storage.min_free_bytes)


def _scraper(admission: Admission, settings: Config) -> Callable[[str, bytes | None], None]:
    """Who may read the metrics, which name every queue: an admin's key, or, on a port that this machine alone reaches,
    any caller. Where others reach it a proxy may make each of them look like a program of this machine."""
    page = settings.metrics.listen_addr
    is_own = bool(page) and _is_local(Address(page))

    def check(address: str, key: bytes | None) -> None:
        if not (admission.is_on and is_own and key is None):
            admission.check(admission.enter(key, address, encrypted=False), RPCS["FilaAdmin/GetConfig"])

    return check


def _asking(broker: Broker) -> Callable[[], Awaitable[bytes]]:
    return lambda: broker.call(commands.METRICS, b"")


def _telemetry(
    broker: Broker,
    hooks: HookStage,
    quotas: Quotas,
    edge: EdgeServer,
    data_dir: Path,
    group: OfGroup | None,
) -> Telemetry:
    def readings() -> list[HookReading]:
        return [HookReading(queue, status) for queue in hooks.queues() for status in hooks.status(queue)]

    def backup() -> float | None:
        return backup_age_s(data_dir, time.time_ns() // 1_000_000)

    schedules = edge.schedules.firing.readings
    troubles = edge.troubles.readings
    return Telemetry(
        _asking(broker),
        readings,
        quotas.readings,
        troubles,
        backup,
        schedules,
        edge.reading,
        group.status if group else None,
    )


def _calm_the_collector() -> None:
    """Spend less time looking for cycles: a call makes dozens of objects and hardly a cycle.

    Measured on 50 concurrent unary calls: 164 us of CPU a call before, 149 us after.
    """
    gc.freeze()  # what exists by now lives as long as the server
    gc.set_threshold(20_000, 20, 100)


def _report_start(settings: Config, edge: EdgeServer, redis: RedisPort | None, metrics_port: int) -> None:
    addresses: dict[str, Any] = {"grpc": f"{settings.server.listen_addr.rpartition(':')[0]}:{edge.port}"}
    places = {"server.listen_addr": settings.server.listen_addr}
    if redis is not None:
        addresses["redis"] = f"{redis.address[0]}:{redis.address[1]}"
        places["redis.listen_addr"] = settings.redis.listen_addr
    if not settings.auth.enabled:
        warn = _warn_if_open if settings.server.allow_anonymous else _say_if_local
        for setting, address in places.items():
            warn(setting, address)
    if metrics_port:
        addresses["metrics"] = f"{settings.metrics.listen_addr.rpartition(':')[0]}:{metrics_port}"
    emit("server.started", pid=os.getpid(), version=version(), commit=commit(), **addresses)


async def _hand_over(broker: Broker, edge: EdgeServer, redis: RedisPort | None, handover: Handover) -> None:
    """Take nothing new, finish what is in hand, and let the other node take over. Who comes is sent there, and waits
    there until it serves. What the core does from then on is of a term that is over."""
    await asyncio.get_running_loop().run_in_executor(None, handover.prepare)
    started_s = time.monotonic()
    refusal = partial(errors.NotOwner, handover.client_addr)
    closing = [asyncio.ensure_future(edge.stop(HANDS_OVER_S, refusal()))]
    if redis is not None:
        closing.append(asyncio.ensure_future(redis.close()))
    await broker.drain(HANDS_OVER_S, refusal)
    await asyncio.gather(*closing, return_exceptions=True)
    handover.tell()
    log.info("cluster.handed_over", to=handover.node, took_ms=int((time.monotonic() - started_s) * 1000))


async def _drain(broker: Broker, edge: EdgeServer, redis: RedisPort | None, telemetry: Telemetry) -> None:
    """Take nothing new, finish what is in hand, sync."""
    started_s = time.monotonic()
    emit("server.draining")
    await edge.say_not_serving()
    await telemetry.stop_exports()  # while the core still answers them
    closing = [asyncio.ensure_future(edge.stop(CALLS_FINISH_S + 1))]
    if redis is not None:
        closing.append(asyncio.ensure_future(redis.close()))
    await broker.drain(CALLS_FINISH_S)
    await asyncio.gather(*closing, return_exceptions=True)
    await broker.stop()
    telemetry.stop_page()
    emit("server.stopped", took_ms=int((time.monotonic() - started_s) * 1000))


def _listen_for_signals(group: OfGroup | None) -> tuple[asyncio.Event, list[int]]:
    """What is set when the server is to stop, and the signals that came."""
    stopping = asyncio.Event()
    if group:
        group.node.at_handover(stopping.set)
    # Told twice is told once: shells and supervisors pass signals on to whole groups, and the
    # drain is bounded anyway. Not the loop's own handlers: it gives those back to the system before
    # others can be set, and a signal between the two would end the process.
    loop = asyncio.get_running_loop()
    came: list[int] = []

    def stop(number: int, _: object) -> None:
        came.append(number)
        loop.call_soon_threadsafe(stopping.set)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return stopping, came


def _is_local(address: Address) -> bool:
    return is_loopback(address.host) or address.host == "localhost"


def _say_if_local(setting: str, address: Address) -> None:
    if not _is_local(address):
        log.info("server.serves_itself", setting=setting, address=address, detail=NOT_LOCAL)


def _warn_if_open(setting: str, address: Address) -> None:
    if address.host in _ANY_HOST:
        log.warning(
            "server.unprotected",
            setting=setting,
            address=address,
            detail="anyone who can reach this address can read and delete messages: server.allow_anonymous is set. "
            "Switch auth.enabled on, listen on 127.0.0.1, or keep the port behind a firewall",
        )
