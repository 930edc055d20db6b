"""What is listed is read; what is not whole is told and left out; merging changes nothing but the number of files."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fila_pipeline import schema
from fila_pipeline.events import per_message
from fila_pipeline.history import HistoryMissing, open_history
from fila_pipeline.jobs.compact import compact
from fila_pipeline.recording import HistoryWriter
from fila_pipeline.synthetic import START, Scenario, Tenant, record

SCENARIO = Scenario((Tenant("acme", 20), Tenant("globex", 10)), seconds=60, capacity=25, roll_s=10)


@pytest.fixture
def folder(tmp_path) -> Path:
    record(SCENARIO, tmp_path / "h")
    return tmp_path / "h"


def decisions_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("decisions/*/*/*.parquet"))


def content(history) -> list[tuple]:
    columns = [name for name in history.decisions.columns if name != "throttle_keys"]
    return sorted(map(str, history.decisions.select(*columns).collect()))


def test_everything_that_was_recorded_is_read(spark, folder):
    history = open_history(spark, str(folder))
    listed = [json.loads(path.read_text()) for path in (folder / schema.LIST).glob("*.json")]
    assert history.decisions.count() == sum(
        entry["rows"] for entry in listed if entry["table"] == "decisions"
    )
    assert history.messages == per_message(history.decisions, "offset").count()
    assert not history.skipped


def test_a_file_that_is_not_listed_is_not_there(spark, folder):
    """Half a file, or a whole one whose writer was stopped before it was listed."""
    before = open_history(spark, str(folder)).decisions.count()
    whole = decisions_files(folder)[0]
    whole.with_name("other-000001.parquet").write_bytes(whole.read_bytes())
    (folder / schema.LIST / "other-000001.json").write_text('{"version": 1, "table": "deci')
    assert open_history(spark, str(folder)).decisions.count() == before


def test_damaged_truncated_and_missing_files_are_told_and_the_rest_is_read(spark, folder, address_of):
    files = decisions_files(folder)
    truncated, damaged, missing = files[0], files[1], files[2]
    truncated.write_bytes(truncated.read_bytes()[:-100])
    content = bytearray(damaged.read_bytes())
    content[len(content) // 3] ^= 0xFF
    damaged.write_bytes(content)
    missing.unlink()
    history = open_history(spark, address_of(folder))
    said = {skipped.file.rpartition("/")[2]: skipped.why for skipped in history.skipped}
    assert set(said) == {truncated.name, damaged.name, missing.name}
    assert said[missing.name] == "is missing, or cannot be opened"
    rows = {entry.file.rpartition("/")[2]: entry.rows for entry in history.files}
    assert history.decisions.count() == sum(rows[path.name] for path in files[3:])


def test_a_history_without_decisions_is_read_as_none(spark, tmp_path):
    HistoryWriter(tmp_path, "empty").gap(START, START + timedelta(seconds=5), "the disk was full")
    history = open_history(spark, str(tmp_path))
    assert history.decisions.count() == 0
    assert [gap.gap for gap in history.gaps] == ["the disk was full"]


def test_a_folder_that_is_no_history_is_named(spark, tmp_path):
    with pytest.raises(HistoryMissing, match="holds no history: it has no folder _list"):
        open_history(spark, str(tmp_path))


def test_files_tell_their_version_and_table(folder):
    for path in decisions_files(folder):
        metadata = pq.read_schema(path).metadata
        assert metadata[schema.VERSION_KEY] == str(schema.VERSION).encode()
        assert metadata[schema.TABLE_KEY] == b"decisions"


def test_a_column_more_or_less_changes_no_version_and_a_later_version_is_skipped(spark, folder):
    files = decisions_files(folder)
    table = pq.read_table(files[0])
    pq.write_table(table.append_column("novel", pa.nulls(len(table), pa.string())), files[0])
    pq.write_table(pq.read_table(files[1]).drop_columns(["held_ms"]), files[1])
    (entry,) = [p for p in (folder / schema.LIST).glob("*.json") if files[2].name in p.read_text()]
    entry.write_text(entry.read_text().replace('"version": 2', '"version": 3'))
    history = open_history(spark, str(folder))
    assert history.decisions.columns == schema.DECISION_COLUMNS.names
    assert [skipped.why for skipped in history.skipped] == ["is of version 3, and this reader knows 2"]
    assert len(history.files) == len(files) - 1
    assert history.decisions.count() == sum(entry.rows for entry in history.files)


# With a URL `make test` merges in the test of every command.
@pytest.mark.parametrize(
    "address_of", ["directory", pytest.param("elsewhere", marks=pytest.mark.soak)], indirect=True
)
def test_merging_an_hours_files_keeps_every_row_and_can_be_repeated(spark, folder, address_of):
    before = content(open_history(spark, str(folder)))
    (merged,) = compact(open_history(spark, address_of(folder)))
    assert merged.files_before == 6
    after = open_history(spark, address_of(folder))
    assert [entry.file for entry in after.files] == [merged.file]
    assert content(after) == before
    assert compact(after) == []


def test_merging_that_was_stopped_before_its_entry_is_done_again_with_the_same_names(spark, folder):
    before = content(open_history(spark, str(folder)))
    (first,) = compact(open_history(spark, str(folder)))
    (folder / schema.LIST / f"{Path(first.file).stem}.json").unlink()
    (second,) = compact(open_history(spark, str(folder)), remove_replaced=True)
    assert first == second
    assert [path.name for path in decisions_files(folder)] == [Path(first.file).name]
    assert content(open_history(spark, str(folder))) == before


def test_a_directory_and_its_url_are_the_same_history(spark, folder):
    assert content(open_history(spark, folder.as_uri())) == content(open_history(spark, str(folder)))
