"""Do Prometheus and systemd take the files in docs/deploy? Asks their own checkers.

`systemd-analyze` must be there; `promtool` is taken from Debian's package of Prometheus, unpacked and not installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DEPLOY = Path(__file__).resolve().parents[2] / "docs/deploy"
EXPOSURE_MAX = 20
"""Of 100, as `systemd-analyze security` counts what a service could still do; "safe" begins below 20."""


def main() -> None:
    """Check all of it, or fail with what the checkers say."""
    with tempfile.TemporaryDirectory() as scratch:
        promtool = shutil.which("promtool") or _unpacked_promtool(Path(scratch))
        # Paths in the files are those inside the container.
        _say(promtool, "check", "config", "--syntax-only", str(DEPLOY / "prometheus.yml"))
        _say(promtool, "check", "rules", str(DEPLOY / "alerts.yml"))
        # From the root of the repository: the states in which they must cry, or be silent, are staged by tests.
        _say(sys.executable, "-m", "tests.tools.alert_rules", promtool)
        for unit in sorted(DEPLOY.glob("*.service")):
            _check_unit(unit, Path(scratch))


def _check_unit(source: Path, scratch: Path) -> None:
    unit = scratch / source.name
    # A program that is there: whether it exists is all that the checker wants to know of it.
    unit.write_text(re.sub(r"/opt/fila/bin/fila\S*", "/bin/true", source.read_text()))
    complaints = _say("systemd-analyze", "verify", str(unit))
    about_ours = [line for line in complaints.splitlines() if unit.name in line]
    assert not about_ours, about_ours
    told = _say("systemd-analyze", "security", "--offline=yes", f"--threshold={EXPOSURE_MAX}", str(unit))
    exposure = re.search(rf"Overall exposure level for {re.escape(unit.name)}: ([\d.]+ \w+)", told)
    assert exposure is not None, told
    print(f"exposure of {unit.name}: {exposure[1]}")


def _unpacked_promtool(scratch: Path) -> str:
    subprocess.run(["apt-get", "download", "-q", "prometheus"], cwd=scratch, check=True)
    [package] = scratch.glob("prometheus_*.deb")
    subprocess.run(["dpkg-deb", "-x", package.name, "prometheus"], cwd=scratch, check=True)
    return str(scratch / "prometheus/usr/bin/promtool")


def _say(*command: str) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{ran.stdout}{ran.stderr}")
    return ran.stdout + ran.stderr


if __name__ == "__main__":
    main()
