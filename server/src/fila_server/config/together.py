"""Settings that are right one by one and not together: judged once all are known, before anything is opened."""

from __future__ import annotations

import msgspec

from fila_server.config.sections import Tls
from fila_server.errors import ConfigInvalid


def check_tls(tls: Tls) -> None:
    """Refuse what would do nothing: whoever wrote it believes in guarded connections. Raises ConfigInvalid."""
    defaults = msgspec.structs.asdict(Tls())
    given = [name for name, value in msgspec.structs.asdict(tls).items() if value != defaults[name]]
    if not given:
        return
    missing = [name for name in ("cert_file", "key_file") if name not in given]
    lost = ["connections would not be encrypted"] if missing else []
    if tls.require_client_cert and not tls.client_ca_file:
        missing.append("client_ca_file")
        lost.append("no certificate would be asked for")
    if not missing:
        return
    useless = given if "cert_file" in missing or "key_file" in missing else ["require_client_cert"]
    names = _listed(useless)
    raise ConfigInvalid(
        f"{names} {'is' if len(useless) == 1 else 'are'} given without {_listed(missing)}: {', and '.join(lost)}. "
        f"Give what is missing, or take {names} away",
        key=f"tls.{useless[0]}",
    )


def _listed(names: list[str]) -> str:
    *others, last = [f"tls.{name}" for name in names]
    return f"{', '.join(others)} and {last}" if others else last
