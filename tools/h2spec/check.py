"""Asks h2spec how strictly the edge keeps HTTP/2: all of its cases, and none but those named here may fail.

`make h2spec` takes half a minute, and builds h2spec the first time.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

from tools.one_server import serving

HERE = Path(__file__).resolve().parent
HEADER_BYTES = 16_000
"""Of one of its large header fields. It makes a HEADERS frame of five that is to be larger than SETTINGS_MAX_FRAME_SIZE
without asking how large that is: 64 KiB here, also when they are Huffman-coded."""

EXPECTED = {
    "Sends stream identifier that is numerically smaller than previous": "nghttp2 passes over it, in its own server",
}
"""Cases that fail, and why."""


def main() -> None:
    """Run it, or say what failed."""
    with tempfile.TemporaryDirectory() as folder, serving("tools.h2spec.strict_server") as port:
        failed, count = _ask(port, Path(folder) / "report.xml")
    unexpected = [f"{where} {case}" for where, case in failed if case not in EXPECTED]
    print(f"h2spec: {count - len(failed)} of {count} cases passed")
    if unexpected:
        sys.exit("\n".join(["these failed:", *unexpected]))
    if passed := sorted(set(EXPECTED) - {case for _, case in failed}):
        sys.exit(f"these were expected to fail and passed, so {__file__} should not name them: {passed}")


def _ask(port: int, report: Path) -> tuple[list[tuple[str, str]], int]:
    """Return the cases that failed, each as its section and its words, and how many there are."""
    asking = ["go", "-C", str(HERE), "tool", "h2spec", "--port", str(port), "--junit-report", str(report)]
    asking += ["--max-header-length", str(HEADER_BYTES), "--timeout", "5"]
    subprocess.run(asking, check=False, stdout=subprocess.DEVNULL)
    cases = list(ET.parse(report).getroot().iter("testcase"))
    failed = [
        (case.get("package", ""), case.get("classname", ""))
        for case in cases
        if any(case.find(kind) is not None for kind in ("failure", "error", "skipped"))
    ]
    return failed, len(cases)


if __name__ == "__main__":
    main()
