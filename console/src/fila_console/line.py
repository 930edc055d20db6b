"""A connection to one broker with one key: opened when something is asked, and a failure comes back in words."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import grpc

from fila import FilaClient, FilaError
from fila_console.settings import Broker
from fila_console.trouble import Trouble, trouble_of
from fila_console.wording import shown

CONNECT_S_MAX = 2.0
CALL_S_MAX = 8.0

ResultT = TypeVar("ResultT")


class Line:
    """The connection."""

    def __init__(self, broker: Broker, key: str, ca_file: str = "") -> None:
        self.broker = broker
        self.key = key
        self._credentials = credentials_of(broker, ca_file)
        self._client: FilaClient | None = None
        self._connecting = asyncio.Lock()

    async def close(self) -> None:
        """Hang up."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _connected(self) -> FilaClient:
        if self._client is None:
            async with self._connecting:
                if self._client is None:
                    self._client = await FilaClient.connect(
                        self.broker.address,
                        credentials=self._credentials,
                        api_key=self.key,
                        connect_timeout_s=CONNECT_S_MAX,
                        call_timeout_s=CALL_S_MAX,
                        retry_for_s=CONNECT_S_MAX,
                        name="fila console",
                    )
        return self._client

    async def told(self, call: Coroutine[Any, Any, ResultT]) -> ResultT:
        """What a call answers. Raises Trouble."""
        try:
            return await call
        except FilaError as error:
            raise trouble_of(error, self.broker.address) from error
        except (ValueError, TypeError) as error:
            # The SDK looks at what it is given before it asks.
            raise Trouble(400, "That cannot be asked", shown(str(error))) from error

    async def connect(self) -> FilaClient:
        """The client, connected."""
        return await self.told(self._connected())


def credentials_of(broker: Broker, ca_file: str) -> grpc.ChannelCredentials | None:
    """Whom to trust; None: nobody by a file."""
    if not (ca_file and broker.address.startswith("https://")):
        return None
    return grpc.ssl_channel_credentials(Path(ca_file).read_bytes())
