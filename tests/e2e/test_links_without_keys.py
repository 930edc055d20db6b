"""While a broker asks for no keys, a link would keep nobody out: none is made."""

from __future__ import annotations

import grpc
import pytest

from fila.v1 import auth_pb2, auth_pb2_grpc

pytestmark = pytest.mark.e2e


def test_a_broker_that_asks_for_no_keys_makes_no_links(server, queue):
    auth = auth_pb2_grpc.FilaAuthStub(server.channel())

    with pytest.raises(grpc.RpcError) as refused:
        auth.CreateTenantLink(auth_pb2.CreateTenantLinkRequest(queue=queue, fairness_key="acme"))

    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert "auth.enabled" in refused.value.details()
    assert not auth.ListTenantLinks(auth_pb2.ListTenantLinksRequest()).links
