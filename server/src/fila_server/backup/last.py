"""DATA_DIR/last-backup: when the last backup that was written whole began, so that an alert tells when none was."""

from __future__ import annotations

from pathlib import Path

from fila_server.backup.copying import sync_directory, write_file

FILE_NAME = "last-backup"
"""Unix milliseconds, as text. Not part of a backup: a restored broker has none of its own."""


def note_backup(data_dir: Path, began_ms: int) -> None:
    """Raises OSError."""
    beside = data_dir / f"{FILE_NAME}.new"
    beside.unlink(missing_ok=True)
    write_file(beside, f"{began_ms}\n")
    beside.chmod(0o644)  # for the server's user, also where somebody else took the backup
    beside.rename(data_dir / FILE_NAME)
    sync_directory(data_dir)


def backup_age_s(data_dir: Path, now_ms: int) -> float | None:
    """None where no backup is known of: none was taken, or the file is damaged. Never below 0."""
    try:
        began_ms = int((data_dir / FILE_NAME).read_text("ascii"))
    except (OSError, ValueError):
        return None
    return max(0, now_ms - began_ms) / 1000
