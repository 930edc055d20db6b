"""SHA256SUMS: the files of a backup and their sums, in the form of `sha256sum`, written when all else is on the disk.

A directory without it is no backup: somebody was stopped while taking it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from fila_server import errors
from fila_server.backup.copying import sync_directory, write_file

FILE_NAME = "SHA256SUMS"
# Of RocksDB's files those that hold something; its own log, its lock, and what a start makes anew stay behind.
STORED = re.compile(r"\d+\.(sst|blob|log)|CURRENT|IDENTITY|MANIFEST-\d+|OPTIONS-\d+")
_LINE = re.compile(r"([0-9a-f]{64}) [ *](\S+)")
_BESIDE = ("format", "access-marker", "backup.json")


def write_sums(backup: Path, sums: Mapping[str, str]) -> None:
    """Say what the backup holds; it is one from here on."""
    lines = "".join(f"{reported}  {name}\n" for name, reported in sorted(sums.items()))
    unnamed = backup / f"{FILE_NAME}.new"
    write_file(unnamed, lines)
    unnamed.rename(backup / FILE_NAME)
    sync_directory(backup)


def read_sums(backup: Path) -> dict[str, str]:
    """Return sums by file. Raises StartError when there are none, or they name what no backup has."""
    listed = backup / FILE_NAME
    try:
        lines = listed.read_text("utf-8").splitlines()
    except FileNotFoundError:
        raise errors.StartError(
            f"{backup} is no whole backup: it has no {FILE_NAME}, which is written last. Take another one"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise errors.StartError(f"{listed} cannot be read: {error}. Take another backup") from None
    sums = {}
    for number, line in enumerate(lines, 1):
        read = _LINE.fullmatch(line)
        if read is None or not is_kept(read[2]):
            raise errors.StartError(f"{listed}:{number}: not a line that `fila-server backup` writes")
        sums[read[2]] = read[1]
    if "rocksdb/CURRENT" not in sums or "format" not in sums:
        raise errors.StartError(f"{listed} names no store. Take another backup")
    return sums


def is_kept(name: str) -> bool:
    """Whether a backup may have a file of that name."""
    folder, _, file = name.rpartition("/")
    return name in _BESIDE if not folder else folder == "rocksdb" and STORED.fullmatch(file) is not None


def files_of(source: Path, data_dir: Path) -> dict[str, Path]:
    """What a copy of the data directory has, by its name there: the files of the store in `source`, and its format."""
    files = {f"rocksdb/{file.name}": file for file in source.iterdir() if STORED.fullmatch(file.name)}
    return dict(sorted(files.items())) | {"format": data_dir / "format"}
