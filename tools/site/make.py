"""Makes the documentation a site: `make site`, into dist/site.

It reads what git has of this tree. A link that leads nowhere, an anchor that is not there, or anything else that the
generator warns of, ends it with a sentence and leaves dist/site as it was.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tools.release.commands import DIST
from tools.release.versions import TREE
from tools.site.pages import Pages

ASIDE = TREE / "build/site"
SITE = DIST / "site"
LEFT_OUT = ("tests/",)


def tracked() -> list[str]:
    """Every file that git knows and that is there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=TREE, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return [path for path in listed if path and (TREE / path).is_file()]


def write_sources(folder: Path) -> int:
    """Put the site's sources into a folder; return how many pages there are."""
    paths = tracked()
    texts = {
        path: (TREE / path).read_text()
        for path in paths
        if path.endswith(".md") and not path.startswith(LEFT_OUT)
    }
    pages = Pages(texts, frozenset(path for path in paths if path not in texts))
    prepared = pages.prepared()
    for path, text in prepared.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    for path in pages.taken:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(TREE / path, folder / path)
    return len(prepared)


def main() -> int:
    shutil.rmtree(ASIDE, ignore_errors=True)
    source, made = ASIDE / "source", ASIDE / "html"
    try:
        count = write_sources(source)
    except ValueError as error:
        print(f"site: {error}", file=sys.stderr)
        return 1
    conf = str(TREE / "tools/site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-c", conf]
    if subprocess.run([*command, str(source), str(made)], check=False).returncode:
        return 1
    # Sphinx names the first page as its source is named; a web server looks for index.html.
    shutil.copyfile(made / "README.html", made / "index.html")
    shutil.rmtree(made / ".doctrees", ignore_errors=True)
    shutil.rmtree(SITE, ignore_errors=True)
    SITE.parent.mkdir(exist_ok=True)
    shutil.copytree(made, SITE)
    print(f"{SITE.relative_to(TREE)}: {count} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
