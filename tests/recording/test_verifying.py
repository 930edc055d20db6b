"""A recording of another build of the core is named as that, whether it follows here or not."""

import json
from pathlib import Path

import pytest

from fila_server.history_files import segments, upkeep, verifying
from tests.recording.test_chain import cell, of, record, rewritten


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("fila_server.history_files.files.core_fingerprint", lambda: "a" * 64)
    record(tmp_path / "history", "20260302T140000-aaaaaa", 3)
    return tmp_path / "history"


def verdict(directory: Path) -> verifying.Verdict:
    (segment,) = segments.segments(upkeep.entries(directory), str(directory))
    return verifying.verify(segment)


def test_what_another_build_recorded_and_follows_here_is_told_as_both(history: Path, monkeypatch):
    monkeypatch.setattr("fila_server.history_files.verifying.core_fingerprint", lambda: "b" * 64)
    found = verdict(history)
    assert (found.outcome, found.decisions > 100) == (verifying.SAME, True)
    assert found.said == "another build recorded it (its core is aaaaaaaaaaaa, and here it is bbbbbbbbbbbb)"


@pytest.mark.parametrize(("here", "outcome"), [("a", verifying.DIFFERENT), ("b", verifying.OTHER_BUILD)])
def test_what_does_not_follow_is_another_builds_only_where_it_is_another_build(
    history: Path, monkeypatch, here: str, outcome: str
):
    monkeypatch.setattr("fila_server.history_files.verifying.core_fingerprint", lambda: here * 64)
    rewritten(of(history, "decisions"), history, cell("costs", [7.0]))
    found = verdict(history)
    assert found.outcome == outcome
    assert "cost recorded 7.0, replayed 1.0" in found.said
    assert ("another build recorded it" in found.said) == (outcome == verifying.OTHER_BUILD)
    assert outcome in verifying.WRONG


def test_a_build_leaves_the_fingerprint_of_the_sources_that_it_compiled():
    from fila_server.version import core_fingerprint

    assert len(core_fingerprint()) == 64


def test_the_words_of_a_verdict_are_those_that_the_pipeline_knows():
    pipeline = Path(__file__).resolve().parents[2] / "pipeline/src/fila_pipeline/segments.py"
    known = pipeline.read_text()
    for word in (
        verifying.SAME,
        verifying.OTHER_BUILD,
        verifying.OLDER_RULES,
        verifying.NO_BASE,
        verifying.SUFFIX,
    ):
        assert json.dumps(word) in known
