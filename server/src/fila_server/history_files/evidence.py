"""Whether a history is what its broker listed, and who says so: its chain and, with keys, its signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fila_server.history_files import chain, signing


@dataclass(frozen=True)
class Evidence:
    """What came of a look at a history's list and files."""

    found: chain.Found
    signed: signing.Checked | None = None
    """None: no key was given, so nobody looked."""

    @property
    def wrong(self) -> list[str]:
        """What was changed, cut, swapped or added, or is not signed as it should be, a sentence each."""
        return [*self.found.wrong, *(self.signed.wrong if self.signed is not None else ())]

    @property
    def noted(self) -> list[str]:
        """How far the rest goes."""
        return [*self.found.noted, *self._unsigned()]

    def _unsigned(self) -> list[str]:
        if self.signed is None:
            by = sorted({str(entry["signed_by"]) for entry in self.found.links if "signed_by" in entry})
            return (
                [f"entries name {', '.join(by)} as who signed them: --public-key FILE checks that"]
                if by
                else []
            )
        notes = []
        if self.signed.unsigned_before and not self.signed.wrong:
            notes.append(
                f"the first {self.signed.unsigned_before:,} entries are not signed: they are as they were when the "
                "first signature was made, and nobody says who made them"
            )
        if self.found.beside:
            notes.append(
                f"{self.found.beside:,} entries beside the chain are not signed: merged files, checkpoints, what is "
                "older than it"
            )
        return notes

    def answer(self, rest: str) -> str:
        """Return the answer in a sentence or two; rest: what else there is to say of a history that is in order."""
        rest = rest[:1].lower() + rest[1:]
        if self.found.wrong:
            return f"This history was changed: {_first(self.wrong)}."
        if self.signed is not None and self.signed.wrong:
            return f"This history is not authentic: {_first(self.signed.wrong)}."
        links = (
            f"{len(self.found.links):,} entries are one chain, and their {self.found.files:,} files are as they were "
            "listed"
            if self.found.links
            else "its files form no chain"
        )
        head = f" Its head is {self.found.head}." if self.found.head else ""
        if self.signed is None:
            return (
                f"Consistent: {links}; {rest}. Only a head that was kept, or a signature, shows that nobody made all "
                f"of it anew.{head}"
            )
        by = f"{self.signed.signed:,} of them are signed by {' and then '.join(self.signed.by)}"
        return f"Authentic: {links}; {by}, for the history {self.signed.history}; {rest}.{head}"


def look(
    directory: Path,
    head: str = "",
    keys: Sequence[signing.PublicKey] = (),
    sums: Mapping[str, str] | None = None,
) -> Evidence:
    """Look at the chain of a history, and with keys at its signatures; head, sums: as chain.check has them."""
    found = chain.check(directory, head, sums)
    return Evidence(found, signing.check(found.links, keys) if keys else None)


def _first(wrong: Sequence[str]) -> str:
    more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    return f"{wrong[0]}{more}"
