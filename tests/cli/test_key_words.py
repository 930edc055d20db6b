"""What `fila key` says: of a stranger's key, and of flags that do not go together."""

from __future__ import annotations

import pytest

from fila.v1 import admin_pb2
from tests.cli.fake_broker import FakeBroker


def test_a_key_with_a_line_of_its_own_forges_none_where_it_is_told_that_none_of_it_waits(
    fila, broker: FakeBroker
):
    broker.answers["SetKeyPolicy"] = admin_pb2.SetKeyPolicyResponse()

    told = fila("key", "cap", "orders", "a\npaused no\x1b[2J\u202e", "5").out

    assert [line for line in told.splitlines() if line.startswith("paused")] == ["paused             no"]
    assert r"Nothing of a\x0apaused no\x1b[2J\u202e waits in orders just now" in told


@pytest.mark.parametrize(
    "line",
    [
        ("rate", "orders", "acme", "default", "--burst", "5"),
        ("preview", "orders", "acme", "--rate", "default", "--burst", "5"),
    ],
)
def test_a_burst_beside_the_queues_own_rate_is_refused_in_the_words_that_were_typed(
    fila, broker: FakeBroker, line
):
    ran = fila("key", *line)

    assert (ran.code, broker.asked) == (2, [])
    assert "--burst goes with a rate of the key's own" in ran.err
