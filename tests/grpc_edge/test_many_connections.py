"""How many connections a thread of the edge holds: a further one is closed, and who leaves makes room."""

from __future__ import annotations

import socket

from tests.grpc_edge.told_edge import WAIT_S, ToldEdge


def connected(edge: ToldEdge) -> socket.socket:
    host, port = edge.grpc_address.split(":")
    return socket.create_connection((host, int(port)), timeout=WAIT_S)


def test_a_thread_closes_the_connection_beyond_its_bound_and_takes_another_when_one_has_left():
    edge = ToldEdge(connections_max=2)
    first, second, third = connected(edge), connected(edge), connected(edge)

    assert third.recv(1) == b"", "the third is closed, without a word"
    edge.until_connected(2)
    first.close()
    edge.until_connected(1)
    with second, third, connected(edge) as fourth:
        edge.until_connected(2)
        assert fourth.recv(9)[3] == 4, "a SETTINGS frame greets it"
    edge.close()
