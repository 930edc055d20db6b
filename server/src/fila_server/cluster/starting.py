"""What a node of a group needs beside its settings, judged before anything is opened: packages, files, librdkafka.

A start and `config check` both come here by start_checks.py. No broker is asked, and no other node.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from fila_server import errors
from fila_server.cluster import kafka_settings
from fila_server.config.cluster import Cluster

SECRET_BYTES_MAX = 4096
"""More of the first line of a secret is not looked at."""
SECRET_CHARACTERS_MIN = 16
OTHERS = 0o007


def check(cluster: Cluster) -> None:
    """Raises ConfigInvalid, or StartError where librdkafka is not there. Only a node of a group needs any of it."""
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
    kafka_settings.judged(cluster.log.brokers, cluster.log.topic, cluster.kafka)


def read_secret(path: str) -> bytes:
    """The word that all nodes on one machine share. Raises ConfigInvalid."""
    if Path(path).exists() and not Path(path).is_file():
        raise _no_secret(f"{path} is no regular file")
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            word = file.readline(SECRET_BYTES_MAX).strip()
    except OSError as error:
        raise _no_secret(f"{path} cannot be read: {error.strerror}") from error
    if mode & OTHERS:
        raise errors.ConfigInvalid(
            f"cluster.secret_file: others may read or write {path}, its mode is {mode & 0o777:04o}, and who knows the "
            f"secret is a node. Run `chmod 600 {path}`; where others use this machine, give all nodes a new secret",
            key="cluster.secret_file",
        )
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
