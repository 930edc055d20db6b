"""Opens a history in Spark: what is listed, without what a later file replaced, and without what cannot be read.

Everything goes through Spark's own readers, so a directory on a disk and one in an object store differ in the URL.
The nodes of a group record the terms in which each of them serves into directories of their own, which are one history.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from itertools import pairwise
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from fila_pipeline import schema
from fila_pipeline.storage import EVERYWHERE, Storage


class HistoryMissing(Exception):
    """There is no list of files where a history should be."""


_MISSING = (
    f"{{}} holds no history: it has no folder {schema.LIST}; give the directory that the broker records to "
    "({})"
)


def check_is_there(directories: Sequence[str]) -> None:
    """Raise HistoryMissing for directories of this machine without a list: that takes no Spark to see.

    Beside another node's, that of one which has never served has none.
    """
    has_any = any(Path(directory, schema.LIST).is_dir() for directory in directories)
    for directory in directories:
        if not has_any or not Path(directory).is_dir():
            raise HistoryMissing(_MISSING.format(directory, "looked at here"))


@dataclass(frozen=True)
class Skipped:
    """A file that is left out, and why."""

    file: str
    why: str


@dataclass(frozen=True)
class History:
    """What the jobs read."""

    spark: SparkSession
    directories: Sequence[str]
    """That hold a list."""
    decisions: DataFrame
    changes: DataFrame
    files: Sequence[Row]
    """The list entries of the files that are read."""
    has_inputs: bool = False
    """Whether it says what the broker took in, too; only a broker's own does."""
    gaps: Sequence[Row] = ()
    """The list entries that say what is not known."""
    skipped: Sequence[Skipped] = field(default_factory=list)
    unrecorded: Sequence[str] = ()
    """Directories that were given, and hold no list."""
    terms: Mapping[str, str] = field(default_factory=dict)
    """Of each run that the owner of a group recorded: which term of which node it was."""
    noted: Sequence[str] = ()
    """How its terms follow one another, where that can be told."""

    @property
    def directory(self) -> str:
        """For people."""
        return ", ".join(self.directories)

    @property
    def messages(self) -> int:
        """How many decisions about messages the files hold, as listed."""
        return sum(entry.messages or 0 for entry in self.files if entry.table == schema.DECISIONS)


def open_history(spark: SparkSession, *directories: str) -> History:
    """Read the lists, check each listed file, and return what can be read; of a group give the directory of each node.

    Raises HistoryMissing when there is no list. A file that is missing, truncated, damaged or of a later version is
    skipped and reported, never half read. What a node recorded of a term after the next one began is left out: it was
    deposed by then.
    """
    lists = lists_of(spark, directories)
    every = [entry for entries in lists.values() for entry in entries]
    until = _ends(every)
    frames: dict[str, list[DataFrame]] = {table: [] for table in schema.ARROW}
    skipped: list[Skipped] = []
    whole: list[Row] = []
    for directory, entries in lists.items():
        before = f"{directory}/" if len(lists) > 1 else ""
        wanted = [entry for entry in _live(entries) if entry.file is not None]
        skipped += [
            Skipped(
                f"{before}{entry.file}",
                f"is of version {entry.version}, and this reader knows {schema.VERSION}",
            )
            for entry in wanted
            if entry.version > schema.VERSION
        ]
        wanted = [entry for entry in wanted if entry.version <= schema.VERSION]
        for table in schema.ARROW:
            listed = [entry for entry in wanted if entry.table == table]
            found = _whole_rows(spark, directory, table, listed)
            good = [entry for entry in listed if found.get(entry.file, -1) == entry.rows]
            skipped += [_damaged(entry, found, before) for entry in listed if entry not in good]
            whole += good
            frames[table] += _frames(spark, directory, table, good, until)
    tables = {
        table: reduce(DataFrame.unionByName, each) if each else read_files(spark, "", table, [])
        for table, each in frames.items()
    }
    return History(
        spark,
        tuple(lists),
        decisions=tables[schema.DECISIONS],
        changes=tables[schema.CHANGES],
        files=whole,
        has_inputs=any(entry.table == schema.INPUTS for entry in every),
        gaps=[entry for entry in every if entry.gap is not None],
        skipped=skipped,
        unrecorded=[each for each in map(_bare, directories) if each not in lists],
        terms={
            entry.run: f"term {entry.term} of {entry.node}"
            for entry in every
            if entry.run is not None and entry.term is not None
        },
        noted=_noted(lists),
    )


def lists_of(spark: SparkSession, directories: Sequence[str]) -> dict[str, list[Row]]:
    """Return the entries of each directory that has a list, replaced ones too. What several list stands with the first.

    Raises HistoryMissing where none has one.
    """
    given = [*map(_bare, directories)]
    if len(given) > 1:
        given = [each for each in given if Storage(spark, each).exists(schema.LIST)] or given[:1]
    found: dict[str, list[Row]] = {}
    known: set[tuple[str | None, ...]] = set()
    for directory in given:
        entries = live_entries(spark, directory, replaced=True)
        places = [(entry.run, entry.file, entry.gap, entry.first_at) for entry in entries]
        found[directory] = [entry for entry, place in zip(entries, places, strict=True) if place not in known]
        known |= {*places}
    return found


def _noted(lists: Mapping[str, Sequence[Row]]) -> list[str]:
    """What nodes of a group recorded doubly, or not at all: as `fila history verify` says it, if it is here."""
    try:
        from fila_server.history_files.terms import notes, terms
    except ModuleNotFoundError:
        return []
    told = {
        directory: [
            {name: value for name, value in entry.asDict().items() if value is not None} for entry in entries
        ]
        for directory, entries in lists.items()
    }
    return [f"{note[0].upper()}{note[1:]}." for note in notes(terms(told))]


def _ends(entries: Iterable[Row]) -> dict[int, datetime]:
    """When each term but the last was over, as far as the next one is recorded."""
    began: dict[int, datetime] = {}
    for entry in entries:
        if entry.term is not None and entry.file is not None:
            at = datetime.fromisoformat(entry.first_at)
            began[entry.term] = min(at, began.get(entry.term, at))
    return {term: began[after] for term, after in pairwise(sorted(began))}


def _frames(
    spark: SparkSession, directory: str, table: str, entries: Sequence[Row], until: Mapping[int, datetime]
) -> list[DataFrame]:
    """The rows of these files, up to the ends of their terms."""
    cut: dict[datetime | None, list[str]] = {}
    for entry in entries:
        end = until.get(entry.term)
        is_over = end is not None and datetime.fromisoformat(entry.last_at) >= end
        cut.setdefault(end if is_over else None, []).append(entry.file)
    return [
        rows if end is None else rows.where(f.col("at") < f.lit(end))
        for end, files in cut.items()
        for rows in [read_files(spark, directory, table, files)]
    ]


def _bare(directory: str) -> str:
    return directory.rstrip("/")


def live_entries(spark: SparkSession, directory: str, *, replaced: bool = False) -> list[Row]:
    """Return the list's entries, without those of files that another entry replaced unless `replaced` asks for them."""
    columns = schema.spark_schema(schema.LIST_COLUMNS)
    try:
        entries = spark.read.schema(columns).json(f"{directory}/{schema.LIST}").collect()
    except AnalysisException as error:
        raise HistoryMissing(_MISSING.format(directory, error.getCondition())) from None
    except Py4JJavaError as error:
        if "FAILED_READ_FILE.FILE_NOT_EXIST" not in str(error):
            raise
        raise HistoryMissing(
            f"{directory} is not the same place everywhere: an executor does not see files of its list; on a "
            f"cluster --history is {EVERYWHERE}"
        ) from None
    # An entry that is itself half written has no version: it lists nothing.
    whole = [entry for entry in entries if entry.version is not None]
    return sorted(
        whole if replaced else _live(whole), key=lambda entry: (entry.first_at or "", entry.file or "")
    )


def _live(entries: Sequence[Row]) -> list[Row]:
    gone = {file for entry in entries for file in entry.replaces or ()}
    return [entry for entry in entries if entry.file not in gone]


def read_files(spark: SparkSession, directory: str, table: str, files: Sequence[str]) -> DataFrame:
    """Return the files' rows in the table's columns: one that a file lacks is null, one more is ignored."""
    columns = schema.spark_schema(schema.ARROW[table])
    if not files:
        return spark.createDataFrame([], columns)
    return spark.read.schema(columns).parquet(*(f"{directory}/{file}" for file in files))


def _whole_rows(spark: SparkSession, directory: str, table: str, listed: Sequence[Row]) -> dict[str, int]:
    """How many rows of each file can be read to the end of every column.

    Reading stops silently at the first damage, so a count below the listed one tells. Each value is looked at,
    since the checksum of a page is only checked when the page is read.
    """
    if not listed:
        return {}
    columns = schema.spark_schema(schema.ARROW[table])
    reader = (
        spark.read.schema(columns)
        .option("ignoreCorruptFiles", "true")
        .option("ignoreMissingFiles", "true")
        .option("parquet.page.verify-checksum.enabled", "true")
    )
    storage = Storage(spark, directory)
    there = storage.present([entry.file for entry in listed])
    present = [f"{directory}/{entry.file}" for entry in listed if entry.file in there]
    if not present:
        return {}
    rows = (
        reader.parquet(*present)
        .groupBy(f.col("_metadata.file_path").alias("path"))
        .agg(f.count("*").alias("rows"), f.bit_xor(f.xxhash64(*columns.names)).alias("looked_at"))
        .collect()
    )
    # The path as Spark writes it is a URL; what lies below the history's directory is enough to know it by.
    return {"/".join(row.path.split("/")[-4:]).replace("%3D", "="): row.rows for row in rows}


def _damaged(entry: Row, found: dict[str, int], before: str) -> Skipped:
    file = f"{before}{entry.file}"
    if entry.file not in found:
        return Skipped(file, "is missing, or cannot be opened")
    return Skipped(file, f"is damaged: {found[entry.file]} of {entry.rows} rows can be read")
