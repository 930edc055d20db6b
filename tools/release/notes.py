"""The note of a release, cut from CHANGELOG.md and the SDKs' own changelogs."""

from __future__ import annotations

import re
from pathlib import Path

CHANGELOGS = {
    "CHANGELOG.md": "",
    "sdks/python/CHANGELOG.md": "Python SDK",
    "sdks/go/CHANGELOG.md": "Go SDK",
    "sdks/js/CHANGELOG.md": "JavaScript SDK",
    "sdks/java/CHANGELOG.md": "Java SDK",
}
OF_THE_FIRST = re.compile(r"^Nothing has been released yet\.[^\n]*\n\n", re.MULTILINE)
# A link to another page of the repository: where it is all that stands in parentheses, its page is named instead.
ASIDE = re.compile(r"\(\[[^\]]+\]\((?!https?://)([^)]*)\)\)")
RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((?!https?://)[^)]*\)")


def note(tree: Path, version: str) -> str:
    """Return the note, in Markdown that reads the same outside the repository."""
    parts = [f"# Fila {version}"]
    for path, title in CHANGELOGS.items():
        parts += [f"## {title}"] if title else []
        parts.append(section((tree / path).read_text(encoding="utf-8"), version, path))
    return "\n\n".join(parts) + "\n"


def section(changelog: str, version: str, path: str) -> str:
    """Return what a changelog says of a version: its own section, or else what is not released yet."""
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    for wanted in (version, "Unreleased"):
        for each in sections:
            title, _, body = each.partition("\n")
            if title.split(":")[0].split(" ")[0] == wanted:
                return RELATIVE_LINK.sub(r"\1", ASIDE.sub(r"(\1)", OF_THE_FIRST.sub("", body))).strip()
    raise SystemExit(
        f"{path} says nothing of {version}: it needs a section `## {version}` or `## Unreleased`"
    )
