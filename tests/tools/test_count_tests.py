"""CI's last line counts the tests of every language."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "tools" / "count-tests"

LOG = """\
tests/core/test_heap.py ....
======================== 12 passed, 2 failed, 1 error in 3.05s =========================
ok  \tgithub.com/fila-mq/fila/sdks/go\t1.204s
ok  \tgithub.com/fila-mq/fila/sdks/go/internal\t(cached)
FAIL\tgithub.com/fila-mq/fila/bench/load\t0.10s
?   \tgithub.com/fila-mq/fila/sdks/go/v1\t[no test files]
# tests 5
# pass 4
# fail 1
[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in dev.fila.ATest
[ERROR] Tests run: 9, Failures: 1, Errors: 1, Skipped: 0
good plain-0051, 41 s, 39 of the CPU: 50 seeds, 0 bad
BAD  kills-02-os, 60 s, 31 of the CPU: 1 failed
"""


def count(log: str, status: int) -> str:
    command = [sys.executable, str(SCRIPT), str(status)]
    done = subprocess.run(command, input=log, capture_output=True, text=True, check=True)
    return str(done.stdout.strip())


def test_the_runners_of_all_languages_are_summed():
    assert count(LOG, 2) == f"{12 + 2 + 4 + 7 + 1} passed, {3 + 1 + 1 + 2 + 1} failed"


def test_quiet_and_coloured_lines_of_pytest_count_too():
    assert count("\x1b[32m7 passed\x1b[0m\x1b[32m in 1.20s\x1b[0m\n", 0) == "7 passed, 0 failed"


def test_a_build_that_failed_is_a_failure_although_no_test_ran():
    assert count("make: *** [build] Error 1\n", 2) == "0 passed, 1 failed"
