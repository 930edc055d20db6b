"""FilaAuth: keys, rights, quotas, audit, links. What may be asked is in operations/: keyring.py,
forgetting.py, links.py."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from fila.v1 import auth_pb2 as pb
from fila_server.access.admission import Caller
from fila_server.access.table import RPCS
from fila_server.broker.calls import Broker
from fila_server.config.schema import Config
from fila_server.operations.forgetting import Forgetting
from fila_server.operations.keyring import Keyring
from fila_server.operations.links import TenantLinks
from fila_server.services.admin import Call, answering_handler, authorize, parse
from fila_server.services.identity import Identity
from fila_server.services.request_bounds import RequestBounds

SERVICE = "fila.v1.FilaAuth"


def handlers(
    broker: Broker, config: Config, identity: Identity, keyring: Keyring, forgetting: Forgetting
) -> grpc.GenericRpcHandler:
    """Every method of the service, registered on raw bytes."""
    links = TenantLinks(broker, identity.admission, config.limits, keyring)
    bounds = RequestBounds(config.limits)
    methods: dict[str, tuple[type[Any], Callable[[Any, Caller], Awaitable[bytes]]]] = {
        "CreateKey": (pb.CreateKeyRequest, keyring.create_key),
        "ListPrincipals": (pb.ListPrincipalsRequest, keyring.list_principals),
        "GetPrincipal": (pb.GetPrincipalRequest, keyring.get_principal),
        "RotateKey": (pb.RotateKeyRequest, keyring.rotate_key),
        "RevokeKey": (pb.RevokeKeyRequest, keyring.revoke_key),
        "Grant": (pb.GrantRequest, keyring.grant),
        "RevokeGrant": (pb.RevokeGrantRequest, keyring.revoke_grant),
        "SetQuotas": (pb.SetQuotasRequest, keyring.set_quotas),
        "ForgetPrincipal": (pb.ForgetPrincipalRequest, forgetting.forget),
        "CreateTenantLink": (pb.CreateTenantLinkRequest, links.create),
        "ListTenantLinks": (pb.ListTenantLinksRequest, links.listed),
        "RevokeTenantLink": (pb.RevokeTenantLinkRequest, links.revoke),
        "ListAudit": (pb.ListAuditRequest, keyring.list_audit),
        "WhoAmI": (pb.WhoAmIRequest, keyring.who_am_i),
    }

    def call_of(
        method: str, request_type: type[Any], answer: Callable[[Any, Caller], Awaitable[bytes]]
    ) -> Call:
        need = RPCS[f"FilaAuth/{method}"]

        async def call(frame: bytes, caller: Caller) -> bytes:
            request = parse(request_type, frame)
            authorize(identity.admission, caller, need, request)
            return await answer(request, caller)

        return call

    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            name: grpc.unary_unary_rpc_method_handler(
                answering_handler(
                    name, bounds, broker.unwritten, identity, call_of(name, request_type, answer)
                )
            )
            for name, (request_type, answer) in methods.items()
        },
    )
