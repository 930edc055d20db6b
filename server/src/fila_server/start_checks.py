"""What would stop a start later, told before anything is opened: it costs no recovery, and `config check` tells it too.

A check reads files that settings name, and loads what is compiled. It makes nothing, takes no port, and opens no data
directory.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from pathlib import Path

from fila_server import errors
from fila_server.config.schema import Config

COMPILED = ("fila_server.core.runtime.scheduler_thread", "fila_server.edge.io.edge")
"""What opens the store, and what serves. Between them they need each library that the server needs."""


def check(settings: Config) -> None:
    """Raises ConfigInvalid or NotLoaded."""
    _check_compiled()
    _check_history(settings)
    _check_tls(settings)
    _check_first_key(settings)
    if settings.cluster.is_set:
        from fila_server.cluster import starting

        starting.check(settings.cluster)


def _check_compiled() -> None:
    for module in COMPILED:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise errors.NotLoaded(error) from error


def _check_history(settings: Config) -> None:
    """A history that cannot be written should not be found out in a week."""
    if not settings.history.enabled:
        return
    if importlib.util.find_spec("pyarrow") is None:
        raise errors.ConfigInvalid(
            "history.enabled: recording needs pyarrow, which is not installed. Run "
            "`pip install pyarrow`, or set history.enabled to false",
            key="history.enabled",
        )
    directory = Path(settings.history.dir)
    there = next(place for place in (directory, *directory.absolute().parents) if os.path.lexists(place))
    if not there.is_dir():
        raise _no_history(directory, "cannot be made: Not a directory")
    if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        raise _no_history(
            directory, "cannot be written to" if there == directory else "cannot be made: Permission denied"
        )
    if settings.history.sign_key_file:
        from fila_server.history_files.signing import read_signer

        read_signer(settings.history.sign_key_file)


def make_history(settings: Config) -> None:
    """Make the directory of the history, if there is to be one. Raises ConfigInvalid."""
    if not settings.history.enabled:
        return
    directory = Path(settings.history.dir)
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise _no_history(directory, f"cannot be made: {error.strerror or error}") from error


def _no_history(directory: Path, why: str) -> errors.ConfigInvalid:
    return errors.ConfigInvalid(
        f"history.dir: {directory} {why}. Give a directory that the server may write to, or set history.enabled "
        "to false",
        key="history.dir",
    )


def _check_tls(settings: Config) -> None:
    if settings.tls.cert_file:
        from fila_server.access.tls import Tls

        Tls(settings.tls)


def _check_first_key(settings: Config) -> None:
    """The file is read by the first start alone, and may be gone once a key was made."""
    if not (settings.auth.enabled and settings.auth.bootstrap_key_file):
        return
    from fila_server.access import bootstrap, marker

    # The code that opens a data directory says what cannot be read of it.
    with contextlib.suppress(errors.AccessDamaged):
        if marker.read_changes(Path(settings.server.data_dir)) == 0:
            bootstrap.key_from_file(settings.auth.bootstrap_key_file)
