"""Opens a history in Spark: what is listed, without what a later file replaced, and without what cannot be read.

Everything goes through Spark's own readers, so a directory on a disk and one in an object store differ in the URL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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


def check_is_there(directory: str) -> None:
    """Raise HistoryMissing for a directory of this machine without a list: that takes no Spark to see."""
    if not Path(directory, schema.LIST).is_dir():
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
    directory: str
    decisions: DataFrame
    changes: DataFrame
    files: Sequence[Row]
    """The list entries of the files that are read."""
    has_inputs: bool = False
    """Whether it says what the broker took in, too; only a broker's own does."""
    gaps: Sequence[Row] = ()
    """The list entries that say what is not known."""
    skipped: Sequence[Skipped] = field(default_factory=list)

    @property
    def messages(self) -> int:
        """How many decisions about messages the files hold, as listed."""
        return sum(entry.messages or 0 for entry in self.files if entry.table == schema.DECISIONS)


def open_history(spark: SparkSession, directory: str) -> History:
    """Read the list, check each listed file, and return what can be read.

    Raises HistoryMissing when there is no list. A file that is missing, truncated, damaged or of a later version is
    skipped and reported, never half read.
    """
    directory = directory.rstrip("/")
    entries = live_entries(spark, directory)
    wanted = [entry for entry in entries if entry.file is not None]
    skipped = [
        Skipped(entry.file, f"is of version {entry.version}, and this reader knows {schema.VERSION}")
        for entry in wanted
        if entry.version > schema.VERSION
    ]
    wanted = [entry for entry in wanted if entry.version <= schema.VERSION]
    tables = {}
    whole: list[Row] = []
    for table in schema.ARROW:
        listed = [entry for entry in wanted if entry.table == table]
        found = _whole_rows(spark, directory, table, listed)
        good = [entry for entry in listed if found.get(entry.file, -1) == entry.rows]
        skipped += [_damaged(entry, found) for entry in listed if entry not in good]
        whole += good
        tables[table] = read_files(spark, directory, table, [entry.file for entry in good])
    return History(
        spark,
        directory,
        decisions=tables[schema.DECISIONS],
        changes=tables[schema.CHANGES],
        files=whole,
        has_inputs=any(entry.table == schema.INPUTS for entry in entries),
        gaps=[entry for entry in entries if entry.gap is not None],
        skipped=skipped,
    )


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
    gone = set() if replaced else {file for entry in entries for file in entry.replaces or ()}
    # An entry that is itself half written has no version: it lists nothing.
    live = [entry for entry in entries if entry.version is not None and entry.file not in gone]
    return sorted(live, key=lambda entry: (entry.first_at or "", entry.file or ""))


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


def _damaged(entry: Row, found: dict[str, int]) -> Skipped:
    if entry.file not in found:
        return Skipped(entry.file, "is missing, or cannot be opened")
    return Skipped(entry.file, f"is damaged: {found[entry.file]} of {entry.rows} rows can be read")
