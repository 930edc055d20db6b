"""A real server that asks for keys, its admin, and callers the admin lets in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from fila.v1 import admin_pb2, admin_pb2_grpc, auth_pb2, auth_pb2_grpc, service_pb2_grpc, sink_pb2_grpc
from tests.e2e.conftest import RunningServer

RIGHTS = {
    "produce": auth_pb2.RIGHT_PRODUCE,
    "consume": auth_pb2.RIGHT_CONSUME,
    "manage": auth_pb2.RIGHT_MANAGE,
    "view": auth_pb2.RIGHT_VIEW,
    "cancel": auth_pb2.RIGHT_CANCEL,
    "admin": auth_pb2.RIGHT_ADMIN,
}


class _Bearer(
    grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor, grpc.StreamStreamClientInterceptor
):
    def __init__(self, key: str) -> None:
        self._metadata = (("authorization", f"Bearer {key}"),)

    def _with_key(self, details: Any) -> Any:
        return details._replace(metadata=(*(details.metadata or ()), *self._metadata))

    def intercept_unary_unary(self, continuation, client_call_details, request):
        return continuation(self._with_key(client_call_details), request)

    def intercept_unary_stream(self, continuation, client_call_details, request):
        return continuation(self._with_key(client_call_details), request)

    def intercept_stream_stream(self, continuation, client_call_details, request_iterator):
        return continuation(self._with_key(client_call_details), request_iterator)


def with_key(channel: grpc.Channel, key: str) -> grpc.Channel:
    return grpc.intercept_channel(channel, _Bearer(key)) if key else channel


@dataclass
class Client:
    """Stubs of one key's holder, or of nobody (key "")."""

    channel: grpc.Channel
    key: str

    def method(self, name: str) -> Any:
        """The call of this name, as the table of rights writes it: "FilaAdmin/GetStats"."""
        service, method = name.split("/")
        stubs = {
            "FilaService": self.service,
            "FilaAdmin": self.admin,
            "FilaAuth": self.auth,
            "FilaSink": self.sink,
        }
        return getattr(stubs[service], method)

    @property
    def service(self) -> Any:
        return service_pb2_grpc.FilaServiceStub(self.channel)

    @property
    def admin(self) -> Any:
        return admin_pb2_grpc.FilaAdminStub(self.channel)

    @property
    def sink(self) -> Any:
        return sink_pb2_grpc.FilaSinkStub(self.channel)

    @property
    def auth(self) -> Any:
        return auth_pb2_grpc.FilaAuthStub(self.channel)


@dataclass
class Guarded:
    """A server with keys on."""

    running: RunningServer

    def client(self, key: str) -> Client:
        return Client(with_key(self.running.channel(), key), key)

    @property
    def admin_key(self) -> str:
        return (self.running.data_dir / "bootstrap-key").read_text().strip()

    @property
    def admin(self) -> Client:
        return self.client(self.admin_key)

    def make_key(self, name: str, *grants: str, as_tenant: str = "", expires_ms: int = 0) -> Client:
        """A principal with grants such as "produce orders.*" and "consume orders.*:billing"."""
        admin = self.admin
        made = admin.auth.CreateKey(
            auth_pb2.CreateKeyRequest(name=name, as_tenant=as_tenant, expires_after_ms=expires_ms)
        )
        if grants:
            admin.auth.Grant(auth_pb2.GrantRequest(name=name, permissions=map(permission, grants)))
        return self.client(made.key)


def permission(grant: str) -> auth_pb2.Permission:
    right, _, pattern = grant.partition(" ")
    queue, _, channel = pattern.partition(":")
    return auth_pb2.Permission(right=RIGHTS[right], queue=queue, channel=channel)


def key_id(client: Client) -> str:
    return client.key.split("_")[1]


def make_queue(guarded: Guarded, name: str, **config: Any) -> str:
    guarded.admin.admin.CreateQueue(
        admin_pb2.CreateQueueRequest(name=name, config=admin_pb2.QueueConfig(**config))
    )
    return name


def details_of(error: Any) -> bytes:
    """The status with its details, as it travelled."""
    trailers: dict[str, Any] = {key: value for key, value in error.trailing_metadata() or ()}  # noqa: C416
    return bytes(trailers.get("grpc-status-details-bin", b""))


def _carry_out(call: Any) -> None:
    answer = call()
    if hasattr(answer, "__iter__") and not hasattr(answer, "DESCRIPTOR"):
        list(answer)


def refusal(call: Any) -> tuple[str, str, bytes]:
    """(code, sentence, details) of a call that must be refused."""
    with pytest.raises(grpc.RpcError) as caught:
        _carry_out(call)
    error = caught.value
    return error.code().name, error.details(), details_of(error)
