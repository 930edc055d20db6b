"""The data source that Spark finds under the name `fila`."""

from __future__ import annotations

from collections.abc import MutableMapping

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from pyspark_fila.batch import FilteringLogReader, LogReader
from pyspark_fila.broker_sink import BrokerQueues
from pyspark_fila.columns import SCHEMA, check_schema
from pyspark_fila.errors import OptionInvalid
from pyspark_fila.filters import are_offered
from pyspark_fila.options import WriteOptions, parse_options, parse_write_options, refuse_for
from pyspark_fila.rows import check_write_schema
from pyspark_fila.stream import LogStreamReader
from pyspark_fila.writing import QueueStreamWriter, QueueWriter


class DefaultSource(DataSource):
    """A queue's retained log as rows, one a message, in the columns of `columns.SCHEMA`.

    Options are checked here, in the driver, before anything is planned; the broker is asked when the query is.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = dict(options.items())

    @classmethod
    def name(cls) -> str:
        """Return the word for `format(...)`."""
        return "fila"

    def schema(self) -> StructType:
        """Return every column; a query may ask for fewer with `.schema(...)`."""
        parse_options(self._given)
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the batch reader."""
        refuse_for("batch", self._given)
        check_schema(schema)
        options = parse_options(self._given)
        return FilteringLogReader(options, schema) if are_offered() else LogReader(options, schema)

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802 - Spark's name
        """Return the streaming reader."""
        refuse_for("streaming", self._given)
        check_schema(schema)
        return LogStreamReader(parse_options(self._given), schema)

    def writer(self, schema: StructType, overwrite: bool) -> QueueWriter:
        """Return the batch writer."""
        options = parse_write_options("batch", self._given)
        _check_write(options, schema, overwrite=overwrite)
        return QueueWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> QueueStreamWriter:  # noqa: N802 - Spark's name
        """Return the streaming writer."""
        options = parse_write_options("streaming", self._given)
        _check_write(options, schema, overwrite=overwrite)
        return QueueStreamWriter(options)


def _check_write(options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
    """Refuse what cannot work before the first task."""
    if overwrite:
        raise OptionInvalid("mode", "must be append: a queue is not overwritten")
    check_write_schema(schema, options.queue)
    BrokerQueues(options.address, options.queue, options.timeout_ms).check()
