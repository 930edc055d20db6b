"""The last hour over a restart: the series as they stand, in one file beside the data, written at most once a minute
and at the stop.

    recent-hour     a line that names the form; until when nothing happened, in 8 bytes; then zlib of MessagePack: when
                    the newest points ended, and the series

The file is a convenience for people. It is written aside and renamed, without a sync. One that cannot be read or is
older than an hour is passed over; the broker never needs it. While nothing happens only the 8 bytes are written.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from pathlib import Path

import msgspec
import structlog

from fila_server.operations.hour_of_one import SavedSeries
from fila_server.operations.series import RecentSeries

NAME = "recent-hour"
SAVE_EVERY_S = 60.0
NUMBERS_BYTES_MAX = 32 * 1024 * 1024
"""Before they are packed, which takes most of it away. Channels come before keys."""
_FORM = b"fila-hour-1\n"
_HEAD_BYTES = len(_FORM) + 8

log = structlog.get_logger("fila_server.operations.series")


class _Saved(msgspec.Struct, array_like=True):
    at_ms: int
    """When the newest points end."""
    series: list[SavedSeries]


_decoder = msgspec.msgpack.Decoder(_Saved)


class HourFile:
    """Reads and writes the file. Belongs to the loop's thread, and packs on another."""

    def __init__(self, recent: RecentSeries, data_dir: str) -> None:
        self._recent = recent
        self._path = Path(data_dir) / NAME
        self._saved_s = 0.0
        self._saved_step = -1
        self._writing = asyncio.Lock()

    async def load(self, now_s: float, wall_ms: int) -> None:
        """Take over what the broker before wrote, if it is of the last hour."""
        self._saved_s = now_s
        try:
            still_ms, saved = await asyncio.to_thread(_read, self._path)
        except FileNotFoundError:
            return
        except (OSError, ValueError, zlib.error, msgspec.DecodeError) as error:
            log.warning("series.not_read", file=str(self._path), error=str(error))
            return
        self._recent.restore(saved.series, saved.at_ms, max(still_ms, saved.at_ms), now_s, wall_ms)

    async def keep(self, now_s: float, has_news: bool) -> None:
        """Write it, unless that was done within the minute."""
        if now_s - self._saved_s < SAVE_EVERY_S:
            return
        self._saved_s = now_s
        if has_news or self._saved_step < 0:
            await self.save()
            return
        async with self._writing:
            try:
                await asyncio.to_thread(_say_still, self._path, self._recent.at_ms)
            except OSError as error:
                log.warning("series.not_kept", file=str(self._path), error=str(error))

    async def save(self) -> None:
        """Write it, unless there is nothing new."""
        async with self._writing:
            step = self._recent.step
            if step == self._saved_step:
                return
            series = await self._recent.saved(NUMBERS_BYTES_MAX)
            try:
                await asyncio.to_thread(_write, self._path, _Saved(self._recent.at_ms, series))
            except OSError as error:
                log.warning("series.not_kept", file=str(self._path), error=str(error))
            else:
                self._saved_step = step


def _read(path: Path) -> tuple[int, _Saved]:
    with path.open("rb") as file:
        packed = file.read(NUMBERS_BYTES_MAX + 1)
    if not packed.startswith(_FORM) or len(packed) > NUMBERS_BYTES_MAX:
        raise ValueError("it has another form, or is too long")
    unpacking = zlib.decompressobj()
    numbers = unpacking.decompress(packed[_HEAD_BYTES:], 2 * NUMBERS_BYTES_MAX)
    if not unpacking.eof:
        raise ValueError("it is cut off, or too long")
    return int.from_bytes(packed[len(_FORM) : _HEAD_BYTES]), _decoder.decode(numbers)


def _write(path: Path, saved: _Saved) -> None:
    aside = path.with_name(f"{NAME}.new")
    packed = zlib.compress(msgspec.msgpack.encode(saved), 1)
    try:
        aside.write_bytes(_FORM + saved.at_ms.to_bytes(8) + packed)
        aside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


def _say_still(path: Path, until_ms: int) -> None:
    with path.open("r+b") as file:
        file.seek(len(_FORM))
        file.write(until_ms.to_bytes(8))
