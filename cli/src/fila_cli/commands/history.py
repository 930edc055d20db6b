"""`fila history`: look at what a broker recorded, from the files, on the machine that has them."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from fila_cli.arguments import check_key, complete_queue
from fila_cli.output import Cell, counted, facts, show, table
from fila_cli.session import Command, Group, Session
from fila_cli.values import MOMENT

_ELSEWHERE = (
    "verify replays through the broker's core, which comes with fila-server: run it where that is installed"
)

LIST = "_list"
KINDS = ("decisions", "changes")
OF_GROUP = ("node", "term")
"""What an entry of a group's run says beside the rest (docs/history.md)."""
_OF_EACH = {
    *("costs", "attempts", "held_ms", "wait_no_consumer_ms", "wait_share_ms"),
    *("wait_throttle_ms", "wait_delay_ms", "wait_held_ms"),
}

TAIL_DEFAULT = 20

directories_option = click.option(
    "--dir",
    "directories",
    type=click.Path(path_type=Path, file_okay=False),
    multiple=True,
    default=(Path("history"),),
    show_default="history",
    help="The directory that the broker records to (history.dir); repeat it for the nodes of a group",
)


@click.group(
    cls=Group,
    examples="""
    fila history status
    fila history tail --key acme
    """,
)
def history() -> None:
    """What a broker recorded: read from its files, so run it where they are."""


@history.command(
    "status",
    cls=Command,
    examples="""
    fila history status --dir /var/lib/fila/history
    fila history status --dir fila-1/history --dir fila-2/history
    """,
)
@directories_option
@click.pass_obj
def status(session: Session, directories: tuple[Path, ...]) -> None:
    """Say how much is recorded, since when, and what is missing; of a group with the terms that its nodes recorded."""
    found = [_status(directory) for directory in _recorded(directories)]
    if len(found) == 1:
        show(session.format, found[0], facts(_told(found[0])))
        return
    text = "\n\n".join(f"{each['directory']}\n{facts(_told(each))}" for each in found)
    show(session.format, found, text)


def _status(directory: Path) -> dict[str, Any]:
    listed = _listed(directory)
    files = [entry for entry in listed if entry.get("file")]
    gaps = [entry for entry in listed if entry.get("gap")]
    recording = sorted(path.name[1 : -len(".open")] for path in (directory / LIST).glob("_*.open"))
    return {
        "directory": str(directory),
        "terms": _terms(listed),
        "files": len(files),
        "bytes": sum(entry.get("bytes") or 0 for entry in files),
        "messages_decided": sum(entry.get("messages") or 0 for entry in files),
        "first_at": files[0]["first_at"] if files else None,
        "last_at": max(entry["last_at"] for entry in files) if files else None,
        "starts_recorded": len({entry.get("run") for entry in files}),
        "recording": recording,
        "head": _head(listed),
        "signed_by": sorted({str(entry["signed_by"]) for entry in listed if "signed_by" in entry}),
        "gaps": [{name: gap[name] for name in ("first_at", "last_at", "gap")} for gap in gaps],
    }


def _terms(listed: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the node recorded of each term of its group, oldest first."""
    found: dict[int, dict[str, Any]] = {}
    for entry in listed:
        if "term" in entry and entry.get("file"):
            first_at, last_at = entry["first_at"], entry["last_at"]
            term = found.setdefault(
                entry["term"],
                {"term": entry["term"], "node": entry["node"], "first_at": first_at, "last_at": last_at},
            )
            term["first_at"], term["last_at"] = min(term["first_at"], first_at), max(term["last_at"], last_at)
    return sorted(found.values(), key=lambda term: int(term["term"]))


def _told(found: dict[str, Any]) -> list[tuple[str, Cell]]:
    return [
        ("Files", found["files"]),
        ("Bytes", found["bytes"]),
        ("Decisions about messages", found["messages_decided"]),
        ("From", found["first_at"] or "-"),
        ("To", found["last_at"] or "-"),
        ("Starts of the broker", found["starts_recorded"]),
        ("Being recorded", ", ".join(found["recording"]) or "nothing"),
        ("Head", found["head"] or "-"),
        ("Signed by", ", ".join(found["signed_by"]) or "nobody"),
        *(
            (f"Term {each['term']}", f"{each['node']}, {each['first_at']} to {each['last_at']}")
            for each in found["terms"]
        ),
        *(("Gap", f"{gap['first_at']} to {gap['last_at']}: {gap['gap']}") for gap in found["gaps"]),
    ]


@history.command(
    "ls",
    cls=Command,
    examples="""
    fila history ls --dir history -o json
    fila history ls --dir fila-1/history --dir fila-2/history
    """,
)
@directories_option
@click.pass_obj
def ls(session: Session, directories: tuple[Path, ...]) -> None:
    """List the files and gaps, oldest first; of a group with the node that recorded each, and its term."""
    listed = _list(_recorded(directories))
    named = _named(listed)
    rows = [
        (
            entry["first_at"],
            entry["last_at"],
            *_cells(entry, named),
            entry.get("table") or _what(entry),
            entry.get("rows") or 0,
            entry.get("bytes") or 0,
            entry.get("file") or entry.get("gap") or "-",
        )
        for entry in listed
    ]
    headings = ("FROM", "TO", *map(str.upper, named), "TABLE", "ROWS", "BYTES", "FILE")
    show(session.format, listed, table(headings, rows))


@history.command(
    "verify",
    cls=Command,
    examples="""
    fila history verify /var/lib/fila/history
    fila history verify /var/lib/fila/history --head 5f1c...
    fila history verify /var/lib/fila/history --against reference
    fila history verify /var/lib/fila/history --public-key broker.pub
    fila history verify fila-1/history fila-2/history
    """,
)
@click.argument(
    "directories",
    metavar="DIRECTORY...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
)
@click.option(
    "--head", default="", metavar="HASH", help="An entry that must be there: what status printed earlier"
)
@click.option(
    "--against",
    type=click.Choice(["core", "reference"]),
    default="core",
    show_default=True,
    help="core: replay every decision through the broker's own. reference: judge each delivery by what is promised",
)
@click.option(
    "--public-key",
    "public_keys",
    multiple=True,
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Check that this key signed every entry; repeat it for keys that followed one another",
)
def verify(directories: tuple[Path, ...], head: str, against: str, public_keys: tuple[str, ...]) -> int:
    """Check that no file was changed, cut or swapped, and that every decision follows; exit code 3 if not.

    Of a group give the directory of each node: what they recorded doubly, and what none of them did, is said.
    """
    if not any((directory / LIST).is_dir() for directory in directories):
        _recorded(directories[:1])
    command = [sys.executable, "-m", "fila_server.history_files", "verify", *map(str, directories)]
    command += [*(["--head", head] if head else []), "--against", against]
    command += [word for file in public_keys for word in ("--public-key", file)]
    import subprocess

    done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)  # noqa: S603 - our own program
    if "No module named" in done.stderr and "fila_server" in done.stderr:
        raise click.ClickException(_ELSEWHERE)
    sys.stderr.write(done.stderr)
    return done.returncode


@history.command(
    "tail",
    cls=Command,
    examples="""
    fila history tail
    fila history tail --queue orders --key acme --count 50
    fila history tail --dir fila-1/history --dir fila-2/history
    """,
)
@directories_option
@click.option("--queue", default="", metavar="NAME", shell_complete=complete_queue, help="Only this queue's")
@click.option("--key", default=None, metavar="KEY", callback=check_key, help="Only this fairness key's")
@click.option("--count", type=click.IntRange(1, 100_000), default=TAIL_DEFAULT, show_default=True)
@click.pass_obj
def tail(session: Session, directories: tuple[Path, ...], queue: str, key: str | None, count: int) -> None:
    """Print the newest decisions that are in closed files, oldest first; a row may be about many messages."""
    found: list[dict[str, Any]] = []
    for rows in _rows(_recorded(directories), "decisions", queue, key, newest_first=True):
        found = rows[-(count - len(found)) :] + found
        if len(found) >= count:
            break
    named = _named(found)
    lines = [
        (
            row["at"].isoformat(timespec="milliseconds"),
            *_cells(row, named),
            row["kind"],
            f"{row['queue']}/{row['channel']}",
            row["fairness_key"] or "-",
            row["messages"] or len(row["offsets"]),
            row["offsets"][0],
            row["reason"] or row["bucket"] or "-",
        )
        for row in found
    ]
    headings = ("AT", *map(str.upper, named), "DECISION", "QUEUE", "KEY", "MESSAGES", "FIRST OFFSET", "WHY")
    show(session.format, [_plain(row) for row in found], table(headings, lines))


@history.command(
    "export",
    cls=Command,
    examples="""
    fila history export --out decisions.jsonl
    fila history export --out orders.csv --queue orders --from 2026-03-02T14:00 --to 2026-03-02T15:00
    fila history export --out all.parquet --dir fila-1/history --dir fila-2/history
    """,
)
@directories_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="FILE.jsonl, FILE.csv or FILE.parquet; - prints lines of JSON",
)
@click.option("--table", "name", type=click.Choice(KINDS), default="decisions", show_default=True)
@click.option("--queue", default="", metavar="NAME", shell_complete=complete_queue, help="Only this queue's")
@click.option("--key", default=None, metavar="KEY", callback=check_key, help="Only this fairness key's")
@click.option(
    "--from",
    "since",
    type=MOMENT,
    metavar="TIME",
    help="Only from this moment on",
)
@click.option(
    "--to",
    "until",
    type=MOMENT,
    metavar="TIME",
    help="Only before this moment",
)
def export(
    directories: tuple[Path, ...],
    out: Path,
    name: str,
    queue: str,
    key: str | None,
    since: datetime | None,
    until: datetime | None,
) -> None:
    """Write closed files' rows as one file, one row a run of messages; of a group with their node and term."""
    if out.name != "-" and out.suffix not in (".jsonl", ".csv", ".parquet"):
        raise click.BadParameter("must end in .jsonl, .csv or .parquet, or be -", param_hint="--out")
    rows = _between(_rows(_recorded(directories), name, queue, key), since, until)
    count = _write(out, name, rows)
    print(counted(count, "row"), file=sys.stderr)


def _named(rows: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """What is told of rows of which a group's nodes recorded some."""
    return OF_GROUP if any(row.get("term") is not None for row in rows) else ()


def _cells(row: dict[str, Any], names: Sequence[str]) -> list[Cell]:
    return ["-" if row.get(name) is None else row[name] for name in names]


# --- reading -----------------------------------------------------------------------------------


def _recorded(directories: Sequence[Path]) -> list[Path]:
    """Those that hold a history: a node that has never served has none, and is told beside another one's."""
    found = [directory for directory in directories if (directory / LIST).is_dir()]
    for directory in directories:
        if not found or not directory.is_dir():
            raise click.ClickException(
                f"{directory} holds no history: give the broker's history.dir with --dir, and set history.enabled there"
            )
        if directory not in found:
            print(f"fila: {directory}: nothing was recorded here", file=sys.stderr)
    return found


def _list(directories: Sequence[Path]) -> list[dict[str, Any]]:
    """The entries of all, oldest first, each with its directory. One that several have counts once."""
    found: dict[str, dict[str, Any]] = {}
    for directory in directories:
        for entry in _listed(directory):
            found.setdefault(json.dumps(entry, sort_keys=True), entry | {"directory": str(directory)})
    return sorted(found.values(), key=_place)


def _place(entry: dict[str, Any]) -> tuple[str, str]:
    return entry.get("first_at") or "", entry.get("file") or ""


def _listed(directory: Path) -> list[dict[str, Any]]:
    """The list's entries, oldest first; what is not listed is not there."""
    found = []
    for path in (directory / LIST).glob("[!_]*.json"):
        try:
            entry = json.loads(path.read_text())
        except (OSError, ValueError):
            continue  # half written: it lists nothing
        if isinstance(entry, dict) and "version" in entry:
            found.append(entry)
    replaced = {file for entry in found for file in entry.get("replaces") or ()}
    live = [entry for entry in found if entry.get("file") not in replaced]
    return sorted(live, key=_place)


def _head(listed: Sequence[dict[str, Any]]) -> str:
    """The hash of the newest entry of the chain (docs/history.md)."""
    links = [entry for entry in listed if "number" in entry]
    if not links:
        return ""
    import hashlib

    last = max(links, key=lambda entry: (entry["run"], entry["number"]))
    return hashlib.sha256(json.dumps(last, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _what(entry: dict[str, Any]) -> str:
    return next((name for name in ("gap", "end", "removed") if name in entry), "-")


def _rows(
    directories: Sequence[Path], name: str, queue: str, key: str | None, *, newest_first: bool = False
) -> Iterator[list[dict[str, Any]]]:
    """Rows of one table, a row group at a time; of a group with the node that recorded them, and its term."""
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise click.ClickException("reading a history's files needs pyarrow: pip install pyarrow") from None
    entries = [entry for entry in _list(directories) if entry.get("table") == name]
    named = _named(entries)
    for entry in reversed(entries) if newest_first else entries:
        of_group = {each: entry.get(each) for each in named}
        try:
            opened = pq.ParquetFile(Path(entry["directory"]) / entry["file"])
        except (OSError, ValueError) as error:
            print(f"fila: {entry['file']} was skipped: {' '.join(str(error).split())}", file=sys.stderr)
            continue
        groups = range(opened.num_row_groups)
        for number in reversed(groups) if newest_first else groups:
            rows = opened.read_row_group(number).to_pylist()
            yield [
                _spread(row) | of_group
                for row in rows
                if (not queue or row["queue"] == queue) and (key is None or row.get("fairness_key") == key)
            ]


def _spread(row: dict[str, Any]) -> dict[str, Any]:
    """With one element a message in each list: where all are alike, files have it once (docs/history.md)."""
    count = len(row.get("offsets") or ())
    if count < 2:
        return row
    return {
        name: value * count if name in _OF_EACH and value is not None and len(value) == 1 else value
        for name, value in row.items()
    }


def _between(
    parts: Iterator[list[dict[str, Any]]], since: datetime | None, until: datetime | None
) -> Iterator[dict[str, Any]]:
    for rows in parts:
        for row in rows:
            if (since is None or row["at"] >= since) and (until is None or row["at"] < until):
                yield row


# --- writing -----------------------------------------------------------------------------------


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in (row | {"at": row["at"].isoformat()}).items() if value is not None}


def _write(out: Path, name: str, rows: Iterator[dict[str, Any]]) -> int:
    count = 0
    if out.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        listed = list(rows)
        pq.write_table(pa.Table.from_pylist(listed) if listed else pa.table({}), out, compression="zstd")
        return len(listed)
    stream = sys.stdout if out.name == "-" else out.open("w", newline="")
    try:
        writer: Any = None
        for row in rows:
            count += 1
            if out.suffix != ".csv":
                stream.write(json.dumps(_plain(row), ensure_ascii=False) + "\n")
                continue
            if writer is None:
                writer = csv.DictWriter(stream, list(row))
                writer.writeheader()
            writer.writerow({each: _cell(value) for each, value in row.items()})
    finally:
        if stream is not sys.stdout:
            stream.close()
    return count


def _cell(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(str(each) for each in value)
    return value
