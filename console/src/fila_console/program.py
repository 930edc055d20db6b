"""The process: who may reach it is decided before a port is opened, and what it costs the machine is kept low."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket

import uvicorn

from fila_console.protocol import HEAD_BYTES_MAX, BoundedProtocol
from fila_console.routes import application, console_of
from fila_console.settings import BadSetting, Settings
from fila_console.trouble import Trouble
from fila_console.upstream import asks_for_no_key

NICENESS = 10
"""The broker's threads go first."""
CONNECTIONS_MAX = 2_000


def run(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises BadSetting, NotInstalled, OSError (the port is taken)."""
    # Before anything is served: the operator still looks at the terminal, and sees what is wrong.
    console = console_of(settings)
    if not settings.is_loopback:
        asyncio.run(_refuse_open_brokers(settings))
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    # uvicorn warns of every request that is no HTTP: a client with many of those must not fill the log.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.create_server((settings.host, settings.port), family=family, backlog=256) as listening:
        console.port = listening.getsockname()[1]
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        scheme = "https" if settings.by_tls else "http"
        print(f"The console is at {scheme}://{host}:{console.port}/", flush=True)
        config = uvicorn.Config(
            application(console),
            http=BoundedProtocol,
            ws="none",
            access_log=False,
            log_config=None,
            server_header=False,
            # To us, a proxy is the peer: what it says of others is not believed.
            proxy_headers=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=1,
            limit_concurrency=CONNECTIONS_MAX,
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
            ssl_certfile=settings.cert_file or None,
            ssl_keyfile=settings.key_file or None,
        )
        uvicorn.Server(config).run(sockets=[listening])


async def _refuse_open_brokers(settings: Settings) -> None:
    for broker in settings.brokers:
        # A broker that is away now is asked again when somebody comes, and refused in the same words.
        with contextlib.suppress(Trouble):
            if await asks_for_no_key(broker, settings.ca_file):
                raise BadSetting(
                    f"{broker.address} asks for no key and trusts this machine, and {settings.listen} would lend that "
                    "trust to other machines. Switch keys on there (auth.enabled), or listen on 127.0.0.1"
                )
