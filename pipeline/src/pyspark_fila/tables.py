"""Tables of Spark's catalog: `CREATE TABLE orders USING fila OPTIONS (...)`.

Spark 4.3 tells a Python source a table's options when the table is made, and not when it is read; only the columns
come back then. So the options are kept as metadata of the columns. A token is refused before: a catalog shows what it
keeps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql.types import StructField, StructType

OPTIONS_KEY = "fila.options"
_PREFIX = "option."
_OWN = frozenset(("owner", "provider", "location", "external", "comment", "collation", "is_managed_location"))


def is_of_table(name: str) -> bool:
    """Whether Spark's catalog gave the option, in lower case: it repeats each one behind a prefix and adds its own."""
    return name.startswith(_PREFIX) or name in _OWN


def is_table(given: Mapping[str, str]) -> bool:
    """Whether the options are those of a table that is made."""
    return any(is_of_table(name.lower()) for name in given)


def table_schema(columns: StructType, given: Mapping[str, str]) -> StructType:
    """Return the columns of a table with these options."""
    kept = {OPTIONS_KEY: json.dumps({name: given[name] for name in given if not is_of_table(name.lower())})}
    return StructType([StructField(each.name, each.dataType, each.nullable, kept) for each in columns.fields])


def table_options(schema: StructType) -> dict[str, str]:
    """Return the options that a table's columns keep; none for columns of something else."""
    for each in schema.fields:
        if OPTIONS_KEY in each.metadata:
            return dict(json.loads(each.metadata[OPTIONS_KEY]))
    return {}
