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
from fila_server.config.cluster import Cluster
from fila_server.config.schema import Config

SECRET_BYTES_MAX = 4096
"""More of the first line of a secret is not looked at."""
SECRET_CHARACTERS_MIN = 16

COMPILED = ("fila_server.core.runtime.scheduler_thread", "fila_server.edge.io.edge")
"""What opens the store, and what serves. Between them they need each library that the server needs."""


def check(settings: Config) -> None:
    """Raises ConfigInvalid or NotLoaded."""
    _check_compiled()
    _check_history(settings)
    _check_tls(settings)
    _check_first_key(settings)
    _check_cluster(settings)


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

    # What cannot be read of a data directory is said by whoever opens it.
    with contextlib.suppress(errors.AccessDamaged):
        if marker.read_changes(Path(settings.server.data_dir)) == 0:
            bootstrap.key_from_file(settings.auth.bootstrap_key_file)


def _check_cluster(settings: Config) -> None:
    """What a node of a group needs beside its settings."""
    cluster = settings.cluster
    if not cluster.is_set:
        return
    if importlib.util.find_spec("confluent_kafka") is None:
        raise errors.ConfigInvalid(
            "cluster.name: a node of a group needs the package confluent-kafka, which is not installed. Install it, or "
            "take cluster.name away",
            key="cluster.name",
        )
    if cluster.has_certificates:
        _check_peers_files(cluster)
    else:
        read_secret(cluster.secret_file)


def read_secret(path: str) -> bytes:
    """The word that all nodes on one machine share. Raises ConfigInvalid."""
    if Path(path).exists() and not Path(path).is_file():
        raise _no_secret(f"{path} is no regular file")
    try:
        with Path(path).open("rb") as file:
            word = file.readline(SECRET_BYTES_MAX).strip()
    except OSError as error:
        raise _no_secret(f"{path} cannot be read: {error.strerror}") from error
    if len(word) < SECRET_CHARACTERS_MIN:
        raise _no_secret(f"{path} has {len(word)} characters in its first line")
    return word


def _no_secret(why: str) -> errors.ConfigInvalid:
    return errors.ConfigInvalid(
        f"cluster.secret_file: {why}. Give a file with {SECRET_CHARACTERS_MIN} or more in its first line, the "
        "same to all nodes",
        key="cluster.secret_file",
    )


def _check_peers_files(cluster: Cluster) -> None:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_verify_locations(cluster.ca_file)
    except OSError as error:
        why = (
            "holds no certificate" if isinstance(error, ssl.SSLError) else f"cannot be read: {error.strerror}"
        )
        raise errors.ConfigInvalid(
            f"cluster.ca_file: {cluster.ca_file} {why}. Give the authorities of the nodes' certificates",
            key="cluster.ca_file",
        ) from error
    try:
        context.load_cert_chain(cluster.cert_file, cluster.key_file)
    except OSError as error:
        why = str(error.reason if isinstance(error, ssl.SSLError) else error.strerror)
        raise errors.ConfigInvalid(
            f"cluster.cert_file: {cluster.cert_file} and {cluster.key_file} do not load: {why}. Give a certificate "
            "chain and the key that belongs to it, as PEM",
            key="cluster.cert_file",
        ) from error
