"""Sockets that listen, and do not block: the threads accept from them."""

from __future__ import annotations

import contextlib
import socket

from fila_server.config.kinds import Address

BACKLOG = 4096
_ANY_IPV4 = "0.0.0.0"  # noqa: S104 - what an operator wrote, not what we choose


_kept: dict[str, list[socket.socket]] = {}


def keep(setting: str, listeners: list[socket.socket]) -> None:
    """Nobody accepts from these any more. The next server bound by this setting gets them, and those who connect
    meanwhile wait for it."""
    _kept[setting] = listeners


def bound(address: Address, setting: str) -> list[socket.socket]:
    """Sockets that listen on every address the host has, on one port; the setting names it."""
    if setting in _kept:
        return _kept.pop(setting)
    if address.host in (_ANY_IPV4, "::"):
        with contextlib.suppress(OSError):
            return [_listener(socket.AF_INET6, ("::", address.port), both=True)]
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listeners: list[socket.socket] = []
    places = dict.fromkeys((family, place[0]) for family, _, _, _, place in found)
    for family, host in places:
        port = listeners[0].getsockname()[1] if listeners else address.port
        try:
            listeners.append(_listener(family, (str(host), port)))
        except OSError:
            # A host may have an address that this machine does not speak.
            if (family, host) == list(places)[-1] and not listeners:
                raise
    return listeners


def _listener(family: int, place: tuple[str, int], *, both: bool = False) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not both))
        listener.bind(place)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener
