"""What is said where a node takes a copy from another one. Each side knows by then who the other is (peers.py).

    giving node     an Offer, or why there is none
                    then of each file: a File, its bytes, and its Sum

All are lines of JSON, but for the bytes. Files come in any order, each once.
"""

from __future__ import annotations

import msgspec

COPY = "copy"
"""What the taking node asks for (peers.Greeting)."""
PIECE_BYTES = 256 * 1024


class Offer(msgspec.Struct, omit_defaults=True):
    """What is to come; `refused` says why nothing does."""

    refused: str = ""
    cluster: str = ""
    """Of the log that it is a copy of, in hexadecimal."""
    format: int = 0
    """Of the data directory."""
    position: int = -1
    """The copy has at least what the log has up to here."""
    log_format: int = 1
    """What the copy holds is of no newer format of the log (written.py)."""
    files: int = 0
    bytes: int = 0
    """Of all files."""


class File(msgspec.Struct):
    """The next file, by its name in the data directory."""

    name: str
    size: int


class Sum(msgspec.Struct):
    """SHA-256 of the file that was sent."""

    sha256: str
