"""Lists of numbers that all messages of a row have in common are read as often as there are messages."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fila_server.history_files.runs import Messages, spread

INTS = pa.list_(pa.int32())
ROWS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), max_size=12)


def table(rows, once):
    """Rows with a list of numbers, where those that are alike stand once if `once` says so."""
    lists = [row[:1] if once and len(set(row)) == 1 else row for row in rows]
    offsets = pa.array([list(range(len(row))) for row in rows], INTS)
    return pa.table({"offsets": offsets, "lists": pa.array(lists, INTS)})


@given(ROWS, st.booleans())
def test_each_message_has_its_number_however_it_was_written(rows, once):
    numbers = [number for row in rows for number in row]
    written = table(rows, once)
    assert Messages(written).each("lists").to_pylist() == numbers
    pairs = zip(written.column("lists").to_pylist(), rows, strict=True)
    assert [number for numbers, row in pairs for number in spread(numbers, len(row))] == numbers


@given(ROWS)
def test_rows_of_a_part_of_a_table_are_read_as_its_own(rows):
    assert Messages(table(rows, True).slice(1)).each("lists").to_pylist() == [
        n for row in rows[1:] for n in row
    ]
