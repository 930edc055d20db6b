"""Why does nobody answer there? Asks the port itself, when a call found no broker."""

from __future__ import annotations

import socket

_WAIT_S = 1.0
_START = "start one with 'fila-server', or point --addr or FILA_ADDR at it"


def diagnosis(host: str, port: int, *, by_tls: bool, ca_file: str = "") -> str:
    """What is there, and what to do about it."""
    from fila import diagnosis as sdk
    from fila import tls
    from fila.options import ClientOptions

    options = tls.with_environment(ClientOptions(ca_file=ca_file))
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    wrong = sdk.diagnosis(target, options, by_tls=by_tls, judges=True)
    if wrong:
        return wrong
    try:
        socket.create_connection((host, port), timeout=_WAIT_S).close()
    except socket.gaierror:
        return f"there is no machine called {host}; check the name, --addr says where the broker is"
    except TimeoutError:
        return f"{host}:{port} does not answer: a firewall, a wrong address, or a machine that is down; check --addr"
    except OSError as error:
        return f"nobody listens on {host}:{port} ({(error.strerror or str(error)).lower()}); {_START}"
    return f"the broker at {target} accepts connections and does not answer; it may be starting or stopping"
