"""A release is made whole or not at all, of one version, and its note is cut from the changelogs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.release import make, notes, versions
from tools.release.versions import REPEATED, SAID

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path):
    """A repository of those files that say which version this is, and of the changelogs."""
    for name in {place.path for place in (SAID, *REPEATED)} | set(notes.CHANGELOGS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(tree: Path, *words: str) -> None:
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *author, *words], cwd=tree, check=True, capture_output=True)


def commit(tree: Path) -> None:
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message", "all")


def test_every_place_of_this_tree_says_the_version_that_pyproject_says():
    assert versions.others() == []


def test_every_place_that_was_forgotten_is_named(tree):
    for place in REPEATED:
        path = tree / place.path
        before = path.read_text()
        found = re.search(place.around, before)
        path.write_text(before[: found.start(1)] + "9.9.9" + before[found.end(1) :])
        assert [said.split(" ")[0] for said in versions.others(tree)] == [place.path]
        path.write_text(before)


def test_a_new_version_is_written_everywhere_and_what_is_none_nowhere(tree):
    versions.write("3.20.1", tree)
    assert (versions.version(tree), versions.others(tree)) == ("3.20.1", [])
    with pytest.raises(SystemExit, match=r"'4\.0' is no version"):
        versions.write("4.0", tree)
    assert versions.version(tree) == "3.20.1"


def test_a_release_is_refused_where_it_would_not_be_what_it_says(tree):
    said = versions.version(tree)
    assert make.why_not(said, tree) == ""
    assert make.why_not("", tree) == f"say which version: make release VERSION={said}"
    assert make.why_not("7.0.0", tree).startswith(f"the tree says {said}: run make version VERSION=7.0.0")
    (tree / "CHANGELOG.md").write_text("changed")
    assert "not committed" in make.why_not(said, tree)


def test_a_release_that_is_there_already_is_not_replaced(tree):
    (tree / "dist").mkdir()
    (tree / "dist" / make.SUMS).touch()
    assert make.why_not(versions.version(tree), tree) == "dist/ holds a release already: move it away first"


def test_the_sums_are_those_that_sha256sum_checks(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below/one").write_text("1")
    (tmp_path / "two").write_text("2")
    (tmp_path / "site").mkdir()
    (tmp_path / "site/index.html").write_text("made later")
    (tmp_path / make.SUMS).write_text(make.sums(tmp_path))
    checked = ["sha256sum", "--check", "--strict", make.SUMS]
    done = subprocess.run(checked, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.splitlines()) == ["below/one: OK", "two: OK"]


def test_a_note_is_the_versions_own_section_or_what_is_not_released_yet():
    changelog = "# Changelog\n\n## Unreleased: next\n\nnew\n\n## 0.2.0 (2027-01-01)\n\nolder\n"
    assert notes.section(changelog, "0.2.0", "CHANGELOG.md") == "older"
    assert notes.section(changelog, "0.3.0", "CHANGELOG.md") == "new"
    with pytest.raises(SystemExit, match=r"says nothing of 0\.3\.0"):
        notes.section("# Changelog\n", "0.3.0", "CHANGELOG.md")


def test_a_note_reads_the_same_outside_the_repository():
    changelog = (
        "## 0.2.0\n\n- Links ([page](docs/a.md#b)), to [pages](b.md) and [others](https://example.org).\n"
    )
    said = notes.section(changelog, "0.2.0", "CHANGELOG.md")
    assert said == "- Links (docs/a.md#b), to pages and [others](https://example.org)."
    whole = notes.note(ROOT, versions.version())
    assert whole.startswith(f"# Fila {versions.version()}\n")
    assert "## Java SDK" in whole
    assert "](docs/" not in whole
