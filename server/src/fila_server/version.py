"""Which Fila this is: the release's number, the commit it was made of, and the sources of its compiled core.

A wheel brings its commit along (setup.py writes `commit.txt` beside this module); a checkout asks git. A build leaves
the fingerprint of what it compiled in `core/fingerprint.txt`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_GIT_S_MAX = 2.0


@cache
def version() -> str:
    """The release's number; also of a checkout that is imported without being installed. Else "unknown"."""
    from importlib import metadata

    try:
        return metadata.version("fila-server")
    except metadata.PackageNotFoundError:
        return _of_checkout()


def _of_checkout() -> str:
    import tomllib

    try:
        reported = tomllib.loads((_HERE.parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
        return str(reported["project"]["version"])
    except (OSError, ValueError, KeyError):
        return "unknown"


@cache
def commit() -> str:
    """The commit, twelve digits of it; "unknown" where nobody can say."""
    try:
        return (_HERE / "commit.txt").read_text(encoding="ascii").strip()
    except OSError:
        return _ask_git()


@cache
def core_fingerprint() -> str:
    """A hash of the sources that the core was built of; "unknown" where no build left one."""
    try:
        return (_HERE / "core/fingerprint.txt").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"


def _ask_git() -> str:
    import subprocess

    asked = ["git", "-C", str(_HERE), "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=_GIT_S_MAX, check=True)  # noqa: S603 - of our own words
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()
