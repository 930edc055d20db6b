"""Fila's log as a Spark source: `spark.read.format("fila")` and `spark.readStream.format("fila")`.

Spark looks for modules whose name starts with `pyspark_` and registers their `DefaultSource`, so nothing has to be
registered. The options are in docs/pipeline.md.
"""

from pyspark_fila.errors import BrokerFailed, DataLoss, FilaSourceError, OptionInvalid, QueueNotFound
from pyspark_fila.source import DefaultSource

__all__ = ["BrokerFailed", "DataLoss", "DefaultSource", "FilaSourceError", "OptionInvalid", "QueueNotFound"]

__version__ = "0.1.0"
