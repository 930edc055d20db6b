"""What the owner of a group recorded is followed as a broker's is: each pass there waits for its record of the log."""

from __future__ import annotations

import pyarrow as pa
import pytest

from fila_server.history_files import columns, replaying
from tests.core.driven_group import Group, Serving, lands, stand
from tests.recording.recorded import Tables, kept


@pytest.fixture
def group():
    made = Group()
    yield made
    for node in made.nodes:
        node.remove()


def work(owner: Serving) -> None:
    """Messages that come, fail, come back and are done; and a log that stands for a while."""
    for number in range(30):
        owner.enqueue("q", b"%d" % number)
        if number % 3 == 0:
            leased = owner.lease("q", most=4)
            owner.ack("q", leased[:2])
            owner.nack("q", leased[2:3], delay_ms=50)
        if number == 15:
            stand(owner, 1_200)
            lands(owner)
        owner.sleep(40)


def recorded(owner: Serving) -> Tables:
    recording = owner.core.recording
    assert recording is not None
    tables: Tables = {}
    recording.cut()
    owner.run_pass()
    kept(recording, tables)
    return tables


def same(tables: Tables) -> int:
    found = replaying.verify(
        *(tables.get(name, []) for name in (columns.INPUTS, columns.DECISIONS, columns.CHANGES))
    )
    assert found.difference is None, found.difference
    return found.decisions


def test_the_first_term_of_a_group_is_followed(group):
    owner = group.owner(history_enabled=True)
    work(owner)
    assert same(recorded(owner)) > 60


def test_a_later_term_is_followed_from_what_the_log_made_of_the_ones_before(group):
    work(group.owner())
    owner = group.node(history_enabled=True).take_over(2)
    owner.settle_down()
    work(owner)
    assert same(recorded(owner)) > 60


def test_what_is_recorded_in_another_way_than_it_was_decided_is_found(group):
    owner = group.owner(history_enabled=True)
    work(owner)
    tables = recorded(owner)
    decisions = pa.concat_tables(tables[columns.DECISIONS])
    at = decisions.column_names.index("weight")
    weights = [each + (number == 20) for number, each in enumerate(decisions.column("weight").to_pylist())]
    changed = decisions.set_column(at, decisions.field(at), pa.array(weights, decisions.field(at).type))
    found = replaying.verify(tables[columns.INPUTS], [changed], tables.get(columns.CHANGES, []))
    assert found.difference is not None
