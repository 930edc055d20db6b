"""What is refused of a limit before the core is asked."""

from typing import Any, cast

import pytest

from fila.v1 import limit_pb2 as pb
from fila_server.config.schema import Limits
from fila_server.errors import Invalid
from fila_server.operations.limits import LimitCalls


@pytest.mark.parametrize(
    ("key", "why"),
    [("", "must not be empty"), ("tenant:*", "each has a budget of its own: name one of them")],
)
def test_a_reset_names_one_throttle_key(key: str, why: str):
    calls = LimitCalls(cast("Any", None), Limits(), cast("Any", None))

    with pytest.raises(Invalid, match=why):
        calls.reset(pb.ResetLimitRequest(throttle_key=key))
    calls.reset(pb.ResetLimitRequest(throttle_key="tenant:acme"))
