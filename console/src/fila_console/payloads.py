"""A message's bytes as people read them: JSON where they are JSON, else text, else a hex dump; bounded each way."""

from __future__ import annotations

import json

from fila_console.wording import shown

TEXT_BYTES_MAX = 64 << 10
"""More is told by its length, and can be saved."""
HEX_BYTES_MAX = 4 << 10
JSON_DEPTH_MAX = 200


def as_json(payload: bytes) -> str | None:
    """The payload set out as JSON; None when it is none, is too long, or nests too deep."""
    if len(payload) > TEXT_BYTES_MAX or payload.lstrip()[:1] not in (b"{", b"["):
        return None
    # The parser calls itself for each bracket: a payload of nothing but brackets must not end the process.
    if _depth(payload) > JSON_DEPTH_MAX:
        return None
    try:
        return json.dumps(json.loads(payload), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _depth(payload: bytes) -> int:
    """An upper bound of the nesting: brackets within strings count, too."""
    depth = deepest = 0
    for octet in payload:
        if octet in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif octet in b"]}":
            depth -= 1
    return deepest


def as_text(payload: bytes) -> str:
    """The payload as text, what is none replaced; cut where it is long."""
    text = shown(payload[:TEXT_BYTES_MAX].decode("utf-8", "replace"))
    left = len(payload) - TEXT_BYTES_MAX
    return text if left <= 0 else f"{text}\n… {left:,} bytes more: save it to see all"


def as_typed(payload: bytes) -> str | None:
    """The payload as a text field can hold it and give it back unchanged; None where it cannot."""
    if len(payload) > TEXT_BYTES_MAX or b"\r" in payload or b"\0" in payload:
        return None
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return None


def as_hex(payload: bytes) -> str:
    """Offset, sixteen bytes, and their letters, line by line; cut where it is long."""
    lines = []
    for start in range(0, min(len(payload), HEX_BYTES_MAX), 16):
        octets = payload[start : start + 16]
        letters = "".join(chr(each) if 32 <= each < 127 else "." for each in octets)
        lines.append(f"{start:08x}  {octets.hex(' '):<47}  {letters}")
    left = len(payload) - HEX_BYTES_MAX
    return "\n".join(lines) + (f"\n… {left:,} bytes more: save it to see all" if left > 0 else "")


def cell_of_csv(text: str) -> str:
    """One field of a CSV file that no spreadsheet takes for a formula."""
    risky = text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n")
    quoted = ("'" + text if risky else text).replace('"', '""')
    return f'"{quoted}"'
