"""Words of a command line that a person pastes into a shell: each reaches the command as it is."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", "'": "\\'"}


def shell_word(text: str) -> str:
    """One word, quoted where it must be.

    Text with characters that do not print, such as line breaks, or that steer a terminal stands as $'p\\nq', which
    bash, zsh and ksh know; all of it prints. No shell can hand on a NUL.
    """
    if text.isprintable():
        return shlex.quote(text)
    return f"$'{''.join(map(_spelled, text))}'"


def shell_line(words: Iterable[str]) -> str:
    """The words with blanks between them."""
    return " ".join(map(shell_word, words))


def command_line(command: str, *named: str, options: Sequence[str] = ()) -> str:
    """A command, what people named, and its options.

    Where a name begins with a dash, which would make it an option, the options come first and `--` ends them. Nothing
    where no shell can hand on a word as it is.
    """
    if any("\0" in word for word in (*named, *options)):
        return ""
    if any(name.startswith("-") for name in named):
        return f"{command} {shell_line([*options, '--', *named])}"
    return " ".join([command, *map(shell_word, (*named, *options))])


def _spelled(character: str) -> str:
    """Three octal digits a byte: of hexadecimal ones, shells do not agree where they end."""
    if character in _NAMED:
        return _NAMED[character]
    return character if character.isprintable() else "".join(f"\\{byte:03o}" for byte in character.encode())
