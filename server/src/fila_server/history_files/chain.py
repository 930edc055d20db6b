"""The list as a chain: each entry has the hash of its file and of the entry before it, from one run to the next.

So a file or an entry that was changed, moved, or taken out of the middle is found. What is cut off the end of the
chain is found by somebody who kept its head, the hash of its last entry.

    number, before   which entry of its run it is, from 1 on, and the hash of the entry before it; the first has that of
                     the last entry of the run before
    sha256           of the file
    end              the run ended well; a gap KILLED ends one that did not
    checkpoint       beside the chain: a file that was made of the run up to the entry `of`, and its hash
    removed          retention removes everything up to the entry with this hash; it is listed before that happens
    history          which history it is of, once entries are signed (signing.py)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LIST = "_list"
PIECE = 1 << 20

Entry = Mapping[str, Any]


def entry_hash(entry: Entry) -> str:
    """Return what the next entry holds of this one: of all its fields, in the order of their names."""
    said = {name: value for name, value in entry.items() if not name.startswith("_")}
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def file_hash(path: Path) -> str:
    """Return the hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def chained(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries that are in the chain, in its order: names of runs begin with when they began."""
    return sorted(
        (entry for entry in entries if "number" in entry and "run" in entry),
        key=lambda entry: (entry["run"], entry["number"]),
    )


def next_link(entries: Iterable[Entry], run: str) -> dict[str, Any]:
    """Return the fields that tie the next entry of a run to the one before it."""
    before = [entry for entry in chained(entries) if entry["run"] <= run]
    if not before:
        return {"number": 1, "before": ""}
    link = link_behind(before[-1])
    return link if before[-1]["run"] == run else link | {"number": 1}


def link_behind(entry: Entry) -> dict[str, Any]:
    """Return the fields that tie an entry to this one, which is of the same run."""
    link = {"number": entry["number"] + 1, "before": entry_hash(entry)}
    return link | {"history": entry["history"]} if "history" in entry else link


@dataclass
class Found:
    """What came of a look at a chain."""

    links: Sequence[Entry] = ()
    """The entries that are in the chain, in its order."""
    beside: int = 0
    """Those that are not: of merged files, checkpoints, and of before there was a chain."""
    files: int = 0
    head: str = ""
    """The hash of the last entry."""
    wrong: list[str] = field(default_factory=list)
    """What was changed, cut, swapped or added, a sentence each."""
    noted: list[str] = field(default_factory=list)
    """How far the rest goes."""


def check(directory: Path, head: str = "", sums: Mapping[str, str] | None = None) -> Found:
    """Look at every entry and every file of a history.

    head: of an entry that must be there, as somebody kept it. sums: the hashes of the files that are there, by their
    names in the list, where `directory` has the list alone.
    """
    found = Found()
    entries = _read(directory, found)
    in_chain = chained(entries)
    found.links = in_chain
    found.beside = len(entries) - len(in_chain)
    hashes = [entry_hash(entry) for entry in in_chain]
    found.head = hashes[-1] if hashes else ""
    _links(in_chain, hashes, found)
    _ends(directory, in_chain, found)
    _others(entries, in_chain, set(hashes), found)
    replaced = {file for entry in entries for file in entry.get("replaces") or ()}
    for entry in entries:
        _file(directory, entry, replaced, sums, found)
    if not entries and sums is None:
        _unlisted(directory, found)
    if head and head not in hashes:
        found.wrong.append(
            f"no entry has the head {head[:16]}...: what led up to it was cut off or replaced since somebody kept it"
        )
    return found


def _read(directory: Path, found: Found) -> list[Entry]:
    entries: list[Entry] = []
    for path in sorted((directory / LIST).glob("[!_]*.json")):
        try:
            entry = json.loads(path.read_text())
            if not isinstance(entry, dict) or "version" not in entry:
                raise ValueError("it is no entry")
        except (OSError, ValueError) as error:
            found.wrong.append(f"{LIST}/{path.name} cannot be read: {error}")
            continue
        entries.append(entry | {"_name": path.name})
    return entries


def _unlisted(directory: Path, found: Found) -> None:
    """Of a broker that has closed no file yet there is none, but what was open when it was killed."""
    files = [path for path in directory.glob("*/date=*/hour=*/*.parquet") if not path.name.startswith("_")]
    if files and not any((directory / LIST).glob("_*.open")):
        found.wrong.append(f"{len(files):,} files lie there and no entry lists them: {LIST} was emptied")


def _links(entries: Sequence[Entry], hashes: Sequence[str], found: Found) -> None:
    known = set(hashes)
    removed = next((entry["removed"] for entry in reversed(entries) if "removed" in entry), None)
    before: Entry | None = None
    for at, entry in enumerate(entries):
        what = f"entry {entry['number']} of {entry['run']}"
        is_first_of_run = before is None or before["run"] != entry["run"]
        if not is_first_of_run and before is not None:
            if entry["number"] == before["number"]:
                found.wrong.append(f"there are two of {what}")
            elif entry["number"] > before["number"] + 1:
                found.wrong.append(_missing(before["number"] + 1, entry["number"] - 1, entry["run"]))
            elif entry["before"] != hashes[at - 1]:
                found.wrong.append(f"{what} does not follow the one before it: one of the two was changed")
        elif at == 0 and entry["before"] and entry["before"] == removed:
            found.noted.append(f"what came before {what} was removed by retention, which the broker listed")
        elif entry["number"] > 1:
            found.wrong.append(_missing(1, entry["number"] - 1, entry["run"]))
        elif entry["before"] and entry["before"] not in known:
            found.wrong.append(
                f"{what} follows an entry that is not there: the end of a run before it was cut off or changed"
            )
        before = entry


def _missing(first: int, last: int, run: str) -> str:
    if first == last:
        return f"entry {first} of {run} is missing"
    return f"entries {first} to {last} of {run} are missing"


def _ends(directory: Path, entries: Sequence[Entry], found: Found) -> None:
    """Each run but the newest has its end; of the newest nobody knows."""
    last = {entry["run"]: entry for entry in entries}
    for place, (run, entry) in enumerate(reversed(last.items())):
        if entry.get("end") or entry.get("gap"):
            continue
        is_open = (directory / LIST / f"_{run}.open").exists()
        if place == 0 or is_open:
            found.noted.append(
                f"{run} has no end yet: whether files were cut off its end, --head HASH tells alone "
                "(fila history status prints it)"
            )
        else:
            found.wrong.append(f"the end of {run} is missing: its last entries were cut off")


def _others(entries: Sequence[Entry], in_chain: Sequence[Entry], hashes: set[str], found: Found) -> None:
    """Entries that are not links: of before there was a chain, of compactions, of checkpoints."""
    first_run = in_chain[0]["run"] if in_chain else None
    before = merged = 0
    for entry in entries:
        if "number" in entry and "run" in entry:
            continue
        if entry.get("checkpoint"):
            made_of = (entry["run"], entry["of_number"])
            is_gone = bool(in_chain) and made_of < (in_chain[0]["run"], in_chain[0]["number"])
            if entry["of"] not in hashes and not is_gone:
                found.wrong.append(
                    f"{entry['checkpoint']} was made of an entry that is not there, or was changed"
                )
        elif entry.get("replaces"):
            merged += 1
        elif first_run is not None and str(entry.get("run") or "~") >= first_run:
            found.wrong.append(
                f"{LIST}/{entry['_name']} is not in the chain: somebody added it, or took its number away"
            )
        else:
            before += 1
    if before:
        found.noted.append(
            f"{before:,} entries are of before there was a chain: cut or swapped files are not found among them"
        )
    if merged:
        found.noted.append(
            f"{merged:,} files were merged by compact: reports read them, and the chain has what they replace"
        )


def _file(
    directory: Path, entry: Entry, replaced: set[str], sums: Mapping[str, str] | None, found: Found
) -> None:
    file = entry.get("file") or entry.get("checkpoint")
    if not file:
        return
    found.files += 1
    path = directory / file
    if not path.resolve().is_relative_to(directory.resolve()):
        found.wrong.append(f"{LIST}/{entry['_name']} names {file}, which is outside of the history")
    elif not (path.is_file() if sums is None else file in sums):
        if file in replaced:
            found.noted.append(f"{file} was merged by compact and removed: it can no longer be verified")
        else:
            found.wrong.append(f"{file} is listed, and missing")
    elif "sha256" in entry and (file_hash(path) if sums is None else sums[file]) != entry["sha256"]:
        found.wrong.append(f"{file} was changed: its hash is not the one that was listed")
