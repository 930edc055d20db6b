"""Named brokers: `fila context use prod`, and every command goes there until another is chosen.

    address: --addr, --context, FILA_ADDR, FILA_CONTEXT, the context in use, http://localhost:5555

They are kept in `fila/contexts.json` below XDG_CONFIG_HOME (~/.config), readable by their owner alone.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click


class Contexts:
    """The file, read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> dict[str, Any]:
        """Return `{"current": name, "contexts": {name: {"address": ...}}}`."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            assert isinstance(found["contexts"], dict)
            assert all(isinstance(each["address"], str) for each in found["contexts"].values())
        except FileNotFoundError:
            return {"current": "", "contexts": {}}
        except (OSError, ValueError, KeyError, TypeError, AssertionError) as error:
            raise click.ClickException(
                f"cannot read the contexts in {self._path} ({error}); mend or remove it"
            ) from error
        return {"current": str(found.get("current", "")), "contexts": found["contexts"]}

    def save(self, state: dict[str, Any]) -> None:
        """Write it beside and move it over, so that nobody reads half a file."""
        import tempfile

        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, beside = tempfile.mkstemp(dir=self._path.parent, prefix=".contexts-")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(state, file, indent=2, ensure_ascii=False)
                file.write("\n")
            Path(beside).replace(self._path)
        except OSError as error:
            raise click.ClickException(f"cannot write {self._path}: {error.strerror}") from error

    def address_of(self, name: str) -> str | None:
        """The address of context `name`, or of the one in use for an empty name; None when there is none in use."""
        state = self.load()
        chosen = name or state["current"]
        if not chosen:
            return None
        if chosen not in state["contexts"]:
            raise click.BadParameter(
                f"there is no context {chosen!r}; 'fila context list' shows those there are",
                param_hint="'--context'",
            )
        return str(state["contexts"][chosen]["address"])


def contexts() -> Contexts:
    """The file of the user who runs this."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Contexts(Path(base) / "fila" / "contexts.json")
