"""Access at the start: read the keys, make the first one, and begin to admit."""

from __future__ import annotations

import asyncio
import getpass
import time

import structlog

from fila_server.access import bootstrap
from fila_server.access.admission import Admission
from fila_server.access.directory import Directory
from fila_server.access.failures import Failures
from fila_server.broker.calls import Broker
from fila_server.broker.interfaces import Engine
from fila_server.config.schema import Config
from fila_server.core.requests.rights_table import Rights
from fila_server.operations.audit import Record, encode
from fila_server.operations.denials import Denials

log = structlog.get_logger("fila_server.operations")


def new_admission(broker: Broker, table: Rights, config: Config) -> Admission:
    """Return the admission; where keys are asked for it admits nobody until `start_access` has read them."""
    data_dir = config.server.data_dir
    directory = Directory(broker.call, table, data_dir, wall_ms=_wall_ms, mono_ns=time.monotonic_ns)
    denials = Denials(asyncio.get_running_loop().call_later, time.monotonic)
    if config.auth.enabled:
        table.switch_on()
    return Admission(
        table,
        directory,
        Failures(time.monotonic),
        is_on=config.auth.enabled,
        allow_anonymous=config.server.allow_anonymous,
        allow_plaintext=config.server.allow_plaintext,
        wall_ms=_wall_ms,
        denied=denials.add,
    )


async def start_access(admission: Admission, config: Config) -> None:
    """Read the keys, and make the first one. Raises AccessDamaged, StartError.

    They are read even while they are off: damage is not to be found on the day they are switched on.
    """
    directory, data_dir = admission.directory, config.server.data_dir
    await directory.load()
    if config.auth.enabled:
        if not directory.was_ever_written:
            await _first_key(directory, config)
        if bootstrap.is_left(data_dir, directory.keys):
            log.warning(
                "auth.bootstrap_key_left",
                file=str(bootstrap.file_in(data_dir)),
                detail="it holds a valid admin key: make keys for people and programs, revoke it, remove the file",
            )


async def recover_access(engine: Engine, data_dir: str) -> str:
    """Drop every key and right, and make a new admin's; return the file that holds its key. The server does not run."""
    broker = Broker(engine)
    await broker.start()
    try:
        directory = Directory(
            broker.call, engine.rights, data_dir, wall_ms=_wall_ms, mono_ns=time.monotonic_ns
        )
        file = bootstrap.file_in(data_dir)
        file.unlink(missing_ok=True)
        key = bootstrap.new_key(data_dir)
        reported = Record(act="Recover", principal=getpass.getuser(), peer="", key_id=key.id)
        await directory.begin_anew(bootstrap.records_of(key, _wall_ms()), encode(reported))
    finally:
        await broker.stop()
    return str(file)


async def _first_key(directory: Directory, config: Config) -> None:
    given = config.auth.bootstrap_key_file
    key = bootstrap.key_from_file(given) if given else bootstrap.new_key(config.server.data_dir)
    reported = Record(act="Bootstrap", principal=bootstrap.PRINCIPAL, peer="", key_id=key.id)
    await directory.change(bootstrap.records_of(key, _wall_ms()), [], encode(reported))
    place = given or str(bootstrap.file_in(config.server.data_dir))
    log.info(
        "auth.first_key",
        file=place,
        key_id=key.id,
        detail=f"the key of the principal admin is in this file. Read it: cat {place} (in a container: "
        f"docker exec CONTAINER cat {place})",
    )


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
