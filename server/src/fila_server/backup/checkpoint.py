"""A store at one moment, as a directory beside it: links to its tables, and the newest log. And what of it is kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from fila_server import errors
from fila_server.backup.sums import STORED
from fila_server.opening import STORE


def make_checkpoint(data_dir: Path, name: str, make: Callable[[str], None], spare_bytes: int) -> Path:
    """Have `make` make it in `data_dir`, in place of one that was left there; it blocks on the disk.

    `spare_bytes` stay free. Raises StartError.
    """
    place = data_dir / name
    remove_checkpoint(place)
    logs = sum(file.stat().st_size for file in (data_dir / STORE).glob("*.log"))
    free = shutil.disk_usage(data_dir).free
    if free < logs + spare_bytes:
        raise errors.StartError(
            f"a checkpoint takes up to {(logs >> 20) + 1} MiB beside the data, and {free >> 20} MiB are free, of "
            f"which {spare_bytes >> 20} are kept for messages; make room on the disk of the data directory"
        )
    make(str(place))
    return place


def remove_checkpoint(place: Path) -> None:
    """Remove it, and what is left of one that was not finished."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.rmtree(place.with_name(place.name + ".tmp"), ignore_errors=True)


def files_of(source: Path, data_dir: Path) -> dict[str, Path]:
    """What a copy of the data directory has, by its name there: the files of the store in `source`, and its format."""
    files = {f"{STORE}/{file.name}": file for file in source.iterdir() if STORED.fullmatch(file.name)}
    return dict(sorted(files.items())) | {"format": data_dir / "format"}
