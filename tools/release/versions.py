"""The version of a release: pyproject.toml says it, and every other place repeats it.

python -m tools.release.versions              prints it, or says which place has another one
python -m tools.release.versions 0.2.0        writes it into all of them   (make version VERSION=0.2.0)
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

TREE = Path(__file__).resolve().parents[2]
VERSION = re.compile(r"\d+\.\d+\.\d+")


class Place(NamedTuple):
    """Where the version stands: a file, and what is around it there. The group is the version."""

    path: str
    around: str


SAID = Place("pyproject.toml", r'(?m)^version = "(.*)"$')
REPEATED = (
    Place("pyproject.toml", r'(?m)^ *"fila-(?:cli|mq)==(.*)",$'),
    Place("sdks/python/pyproject.toml", r'(?m)^version = "(.*)"$'),
    Place("sdks/python/src/fila/__init__.py", r'(?m)^__version__ = "(.*)"$'),
    Place("cli/pyproject.toml", r'(?m)^version = "(.*)"$'),
    Place("cli/pyproject.toml", r'(?m)^ *"fila-mq==(.*)",$'),
    Place("pipeline/pyproject.toml", r'(?m)^version = "(.*)"$'),
    Place("pipeline/src/fila_pipeline/__init__.py", r'(?m)^__version__ = "(.*)"$'),
    Place("pipeline/src/pyspark_fila/__init__.py", r'(?m)^__version__ = "(.*)"$'),
    Place("sdks/js/package.json", r'(?m)^  "version": "(.*)",$'),
    Place("sdks/js/package-lock.json", r'"@fila-mq/client",\n *"version": "(.*)",'),
    Place("sdks/js/src/version.ts", r"(?m)^export const VERSION = '(.*)';$"),
    Place("sdks/go/doc.go", r'(?m)^const Version = "(.*)"$'),
    Place("docs/deploy/helm/fila/Chart.yaml", r"(?m)^version: (.*)$"),
    Place("docs/deploy/helm/fila/Chart.yaml", r'(?m)^appVersion: "(.*)"$'),
    Place("sdks/java/pom.xml", r"<artifactId>fila-client</artifactId>\s*<version>(.*)</version>"),
    Place("sdks/java/README.md", r"<artifactId>fila-client</artifactId>\s*<version>(.*)</version>"),
    Place(
        "sdks/java/src/main/java/dev/fila/client/FilaClient.java",
        r'(?m)^ *static final String VERSION = "(.*)";$',
    ),
)


def version(tree: Path = TREE) -> str:
    """Return what pyproject.toml says."""
    return _said(tree, SAID)[0]


def others(tree: Path = TREE) -> list[str]:
    """Return a sentence for each place that says another version than pyproject.toml, or none at all."""
    wanted = version(tree)
    found = {place: _said(tree, place) for place in REPEATED}
    return [
        f"{place.path} says {', '.join(said) or 'no version'}, pyproject.toml says {wanted}"
        for place, said in found.items()
        if set(said) != {wanted}
    ]


def write(new: str, tree: Path = TREE) -> None:
    """Write the version into every place."""
    if not VERSION.fullmatch(new):
        raise SystemExit(f"{new!r} is no version: write it like 0.2.0")
    for place in (SAID, *REPEATED):
        path = tree / place.path
        text = path.read_text(encoding="utf-8")
        for match in reversed(list(re.finditer(place.around, text))):
            text = text[: match.start(1)] + new + text[match.end(1) :]
        path.write_text(text, encoding="utf-8")


def _said(tree: Path, place: Place) -> list[str]:
    return re.findall(place.around, (tree / place.path).read_text(encoding="utf-8"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write(sys.argv[1])
    if wrong := others():
        sys.exit("\n".join(wrong))
    print(version())
