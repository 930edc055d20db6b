"""Asks h2spec how strictly the native edge keeps HTTP/2: all of its cases, and none but those named here may fail.

    make h2spec        half a minute; builds h2spec the first time
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree as Xml

HERE = Path(__file__).resolve().parent
START_S_MAX = 30.0
HEADER_BYTES = 16_000
"""Of one of its large header fields. It makes a HEADERS frame of five that is to be larger than SETTINGS_MAX_FRAME_SIZE
without asking how large that is: 64 KiB here, also when they are Huffman-coded."""

EXPECTED = {
    "Sends stream identifier that is numerically smaller than previous": "nghttp2 passes over it, in its own server too",
}
"""Cases that fail, and why."""


def main() -> None:
    """Run it, or say what failed."""
    with tempfile.TemporaryDirectory() as folder:
        server, port = _start(Path(folder))
        try:
            failed, count = _ask(port, Path(folder) / "report.xml")
        finally:
            server.terminate()
            server.wait(30)
    unexpected = [f"{where} {case}" for case, where in failed.items() if case not in EXPECTED]
    print(f"h2spec: {count - len(failed)} of {count} cases passed")
    if unexpected:
        sys.exit("\n".join(["these failed:", *unexpected]))
    if passed := sorted(set(EXPECTED) - set(failed)):
        sys.exit(f"these were expected to fail and passed, so {__file__} should not name them: {passed}")


def _start(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    log = folder / "server.log"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    environ |= {
        "FILA_SERVER__LISTEN_ADDR": "127.0.0.1:0",
        "FILA_REDIS__ENABLED": "false",
        "FILA_METRICS__LISTEN_ADDR": "",
        "FILA_DATA_DIR": str(folder / "data"),
    }
    with log.open("wb") as stderr:
        server = subprocess.Popen(
            [sys.executable, "-m", "tools.h2spec.strict_server"], env=environ, stderr=stderr
        )
    ends = time.monotonic() + START_S_MAX
    while time.monotonic() < ends and server.poll() is None:
        for line in log.read_text().splitlines():
            if line.startswith("{") and (said := json.loads(line))["event"] == "server.started":
                return server, int(said["grpc"].rpartition(":")[2])
        time.sleep(0.05)
    server.kill()
    sys.exit(f"the server did not start:\n{log.read_text()}")


def _ask(port: int, report: Path) -> tuple[dict[str, str], int]:
    """Return the cases that failed, each with its section, and how many there are."""
    asking = ["go", "-C", str(HERE), "tool", "h2spec", "--port", str(port), "--junit-report", str(report)]
    asking += ["--max-header-length", str(HEADER_BYTES), "--timeout", "5"]
    subprocess.run(asking, check=False, stdout=subprocess.DEVNULL)
    cases = list(Xml.parse(report).getroot().iter("testcase"))
    failed = {
        case.get("classname", ""): case.get("package", "")
        for case in cases
        if any(case.find(kind) is not None for kind in ("failure", "error", "skipped"))
    }
    return failed, len(cases)


if __name__ == "__main__":
    main()
