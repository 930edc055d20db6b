"""A node of a group that stands by, as far as clients see it: the server's own ports of a standby."""

from __future__ import annotations

import msgspec

from fila_server.cluster.standby_ports import StandbyPorts
from fila_server.config.kinds import Address
from fila_server.config.schema import Config
from fila_server.edge.redis.sentinel import Group


class Standby:
    """Names the broker as the owner, until it is stopped."""

    def __init__(self, owner: str) -> None:
        base = Config()
        self._ports = StandbyPorts(
            msgspec.structs.replace(
                base,
                server=msgspec.structs.replace(base.server, listen_addr=Address("127.0.0.1:0")),
                redis=msgspec.structs.replace(base.redis, enabled=False),
            ),
            _nobody,
        )
        self._ports.name_owner(owner)
        self.address = f"127.0.0.1:{self._ports.ports[0]}"

    def stop(self) -> None:
        """Close its port."""
        self._ports.close()


def _nobody() -> Group:
    raise AssertionError("only Redis clients ask for the whole group, and there is no port for them")
