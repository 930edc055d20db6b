"""Inline commands split into words, slowly: the judge of words.pyx.

set "my queue"  ->  [b"set", b"my queue"]        "\\x00\\n" and \\" inside double quotes,
                                                only \\' inside single ones, as in Redis
"""

from __future__ import annotations

import re

_WORD = re.compile(rb"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"']+))(?=\s|\Z)""", re.DOTALL)
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_CONTROL = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


class UnbalancedQuotes(ValueError):
    """A quote was opened and not closed, or something touches a closing quote."""


def split_line(line: bytes) -> list[bytes]:
    """Return the words of an inline command; none for an empty line."""
    words = []
    at, end = 0, len(line.rstrip())
    while at < end:
        match = _WORD.match(line, at, end)
        if match is None:
            raise UnbalancedQuotes
        double, single, bare = match.groups()
        if bare is not None:
            words.append(bare)
        elif double is not None:
            words.append(_ESCAPE.sub(_unescape, double))
        else:
            words.append(single.replace(b"\\'", b"'"))
        at = match.end()
    return words


def _unescape(match: re.Match[bytes]) -> bytes:
    code, char = match.groups()
    return bytes((int(code, 16),)) if code is not None else _CONTROL.get(char, char)
