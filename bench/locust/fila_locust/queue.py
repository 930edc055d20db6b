"""The queue of a run: made anew at each start, by the process that leads the run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import grpc
from grpc.experimental import gevent as grpc_gevent
from locust.env import Environment

from fila.v1 import admin_pb2, admin_pb2_grpc

from . import listening
from .options import options_of

_LOG = logging.getLogger(__name__)
_TIMEOUT_S = 30
TENANT_HEADER = "tenant"

_patient = False


def connect(address: str) -> grpc.Channel:
    """A channel with a connection of its own."""
    global _patient
    if not _patient:
        # Before a process's first channel, or gevent and gRPC wait for each other for ever; and not on import,
        # because --processes forks after that.
        grpc_gevent.init_gevent()
        _patient = True
    target = address.removeprefix("http://").rstrip("/") or "localhost:5555"
    return grpc.insecure_channel(
        target, options=[("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
    )


def declare(*, runtime_config: Callable[[Any], Mapping[str, str]] | None = None, **config: object) -> None:
    """What this scenario's queue is like: fields of QueueConfig beside the fairness key, which is the tenant, and a
    function from the command line's options to runtime configuration."""

    def make(environment: Environment, **_: object) -> None:
        if not listening.leads(environment):
            return
        options = options_of(environment)
        header = "" if options.fifo else TENANT_HEADER
        wanted = admin_pb2.QueueConfig(fairness_key_header=header, **config)  # type: ignore[arg-type]
        settings = dict(runtime_config(options)) if runtime_config else {}
        try:
            _make_anew(environment.host or "", options.queue, wanted, settings)
        except grpc.RpcError as error:
            _LOG.error(
                "no queue %s at %s: %s. Is fila-server running there? -H names another address",
                options.queue,
                environment.host,
                error.details() or error.code(),
            )
            environment.process_exit_code = 2
            assert environment.runner is not None, "a run that starts has a runner"
            environment.runner.quit()

    listening.at_start(make)


def _make_anew(address: str, queue: str, wanted: admin_pb2.QueueConfig, settings: Mapping[str, str]) -> None:
    with connect(address) as channel:
        admin = admin_pb2_grpc.FilaAdminStub(channel)
        for name in (queue, f"{queue}.dlq"):
            try:
                admin.DeleteQueue(admin_pb2.DeleteQueueRequest(queue=name), timeout=_TIMEOUT_S)
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.NOT_FOUND:
                    raise
        for key, value in settings.items():
            admin.SetConfig(admin_pb2.SetConfigRequest(key=key, value=value), timeout=_TIMEOUT_S)
        admin.CreateQueue(admin_pb2.CreateQueueRequest(name=queue, config=wanted), timeout=_TIMEOUT_S)
