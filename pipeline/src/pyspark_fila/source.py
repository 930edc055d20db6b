"""The data source that Spark finds under the name `fila`."""

from __future__ import annotations

from collections.abc import MutableMapping

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from pyspark_fila.batch import FilteringLogReader, LogReader
from pyspark_fila.broker_sink import BrokerQueues
from pyspark_fila.columns import PENDING_SCHEMA, QUEUE, SCHEMA, check_schema
from pyspark_fila.errors import OptionInvalid
from pyspark_fila.filters import are_offered
from pyspark_fila.options import (
    PENDING,
    READS,
    ReadOptions,
    Use,
    WriteOptions,
    check_options,
    parse_options,
    parse_write_options,
    refuse_for,
)
from pyspark_fila.pending import PendingReader
from pyspark_fila.rows import check_write_schema
from pyspark_fila.stream import LogStreamReader, RefusedReader
from pyspark_fila.tables import is_table, table_options, table_schema
from pyspark_fila.writing import QueueStreamWriter, QueueWriter


class DefaultSource(DataSource):
    """The retained logs of queues as rows, one a message, in the columns of `columns.SCHEMA`; or what is pending.

    Options are checked here, in the driver, before anything is planned; the broker is asked when the query is.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = dict(options.items())
        # Here, where Spark ends its own words with what is raised.
        check_options(self._given)

    @classmethod
    def name(cls) -> str:
        """Return the word for `format(...)`."""
        return "fila"

    def schema(self) -> StructType:
        """Return every column; a query may ask for fewer with `.schema(...)`."""
        columns = _columns(parse_options(self._given))
        return table_schema(columns, self._given) if is_table(self._given) else columns

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the batch reader."""
        options = parse_options(self._of("batch read", schema))
        check_schema(schema, _known(options))
        if options.view == PENDING:
            return PendingReader(options, schema)
        return FilteringLogReader(options, schema) if are_offered() else LogReader(options, schema)

    def streamReader(self, schema: StructType) -> LogStreamReader | RefusedReader:  # noqa: N802 - Spark's name
        """Return the streaming reader; where nothing can be read, one that says so as soon as Spark asks it."""
        try:
            options = parse_options(self._of("streaming read", schema))
            check_schema(schema, _known(options))
            return LogStreamReader(options, schema)
        except OptionInvalid as problem:
            # PySpark's runner hides what is raised here behind an error of its own.
            return RefusedReader(problem)

    def writer(self, schema: StructType, overwrite: bool) -> QueueWriter:
        """Return the batch writer."""
        options = parse_write_options(self._of("batch write", schema))
        _check_write(options, schema, overwrite=overwrite)
        return QueueWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> QueueStreamWriter:  # noqa: N802 - Spark's name
        """Return the streaming writer."""
        options = parse_write_options(self._of("streaming write", schema))
        _check_write(options, schema, overwrite=overwrite)
        return QueueStreamWriter(options)

    def _of(self, use: Use, schema: StructType) -> dict[str, str]:
        """The options of this use, those of a catalog's table included."""
        refuse_for(use, self._given)
        of_table = table_options(schema)
        if use in READS:
            return of_table | self._given
        if of_table and not self._given:
            # The columns may be those of the table that is written, or of one that the rows were read from.
            raise OptionInvalid(
                "queue",
                "must be given: Spark does not tell a source which table it writes to. INSERT INTO a view: CREATE "
                "TEMPORARY VIEW orders (payload BINARY) USING fila OPTIONS (address '...', queue '...')",
            )
        return self._given


def _columns(options: ReadOptions) -> StructType:
    if options.view == PENDING:
        return PENDING_SCHEMA
    return StructType([QUEUE, *SCHEMA.fields]) if options.queues else SCHEMA


def _known(options: ReadOptions) -> StructType:
    """The columns that a query may ask for by name."""
    return PENDING_SCHEMA if options.view == PENDING else StructType([*SCHEMA.fields, QUEUE])


def _check_write(options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
    """Refuse what cannot work before the first task."""
    if overwrite:
        raise OptionInvalid("mode", "must be append: a queue is not overwritten")
    check_write_schema(schema, options.queue)
    BrokerQueues(options.connection, options.queue).check()
