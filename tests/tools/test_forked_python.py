"""A forked Python is, to who starts it, what sys.executable would be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked_python
from tests.waiting import until

pytestmark = pytest.mark.needs("cc")

ALIKE = {
    "arguments": ["-c", "import sys; print(sys.argv, __name__, sys.path[0])", "a", "", "--c"],
    "standard input": ["-c", "import sys; print(sys.stdin.read().upper(), len(sys.stdin.encoding))"],
    "an exit code": ["-c", "raise SystemExit(3)"],
    "a last word": ["-c", "import sys; print('out'); sys.exit('no')"],
    "a signal": ["-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"],
    "what runs at exit": ["-c", "import atexit; atexit.register(print, 'left')"],
    "a thread": ["-c", "import threading, time; threading.Timer(0.01, print, ['done']).start()"],
    "its environment": ["-c", "import os; print(sorted(os.environ.items()), os.getcwd())"],
    "a module": ["-m", "json.tool", "--compact"],
    "a file": ["program.py", "x"],
}


@pytest.fixture
def python() -> str:
    if os.environ.get("FILA_SOAK"):
        pytest.fail("the long runs fork nothing: leave this file out")
    return forked_python.program()


@pytest.mark.parametrize("kind", ALIKE)
def test_it_does_what_a_process_of_its_own_does(python: str, tmp_path: Path, kind: str):
    (tmp_path / "program.py").write_text("import sys\nprint(sys.argv, __name__, __file__)\nimport beside\n")
    (tmp_path / "beside.py").write_text("print('beside')\n")

    done = [
        subprocess.run(
            [program, *ALIKE[kind]],
            input='{"a": "é"}',
            env={"LANG": "C.UTF-8", "FILA_ADDR": "here", "EMPTY": ""},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        for program in (sys.executable, python)
    ]

    assert (done[0].returncode, done[0].stdout, done[0].stderr) == (
        done[1].returncode,
        done[1].stdout,
        done[1].stderr,
    )


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1])
def test_a_signal_for_it_ends_the_fork(python: str, how: signal.Signals):
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    with subprocess.Popen([python, "-c", program], stdout=subprocess.PIPE) as process:
        fork = Path(f"/proc/{int(process.stdout.readline())}")
        assert fork.exists()

        process.send_signal(how)

        assert process.wait(20) == -how
        until(lambda: not fork.exists())


def test_an_interrupt_is_the_programs(python: str):
    program = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it was ignored, as in a shell's background
try:
    print(1, flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    raise SystemExit(7)
"""
    with subprocess.Popen([python, "-c", program], stdout=subprocess.PIPE) as process:
        process.stdout.readline()

        process.send_signal(signal.SIGINT)

        assert process.wait(20) == 7


def test_it_has_loaded_what_takes_most_of_a_start(python: str):
    program = (
        "import sys; print({'grpc', 'fila_cli.commands.queue', 'uvicorn', 'pyarrow'} - set(sys.modules))"
    )

    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"
