"""install.sh installs what a release's sums say, or does nothing: asked of a release of made-up files.

What stands for Python makes an environment whose programs do what a test says; `make release-check` has a real one.
"""

from __future__ import annotations

import hashlib
import http.server
import os
import subprocess
import threading
from functools import partial
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools/release/install.sh"
MACHINE = os.uname().machine
PYTHON = """#!/bin/sh
if [ "$1" = -c ]; then echo "${TAG:-cp311}"; exit; fi
mkdir -p "$3/bin"
printf '#!/bin/sh\\nexit %s\\n' "${PIP:-0}" > "$3/bin/pip"
printf '#!/bin/sh\\necho "fila-server %s"\\n[ "$1" = --version ] || exit %s\\n' \\
    "${3##*/}" "${SERVER:-0}" > "$3/bin/fila-server"
chmod +x "$3/bin/pip" "$3/bin/fila-server"
"""


def release(folder: Path, version: str = "0.1.0") -> Path:
    folder.mkdir()
    server = f"fila_server-{version}-cp311-cp311-manylinux_2_35_{MACHINE}.manylinux_2_36_{MACHINE}.whl"
    names = (
        "server.txt",
        server,
        f"fila_mq-{version}-py3-none-any.whl",
        f"fila_cli-{version}-py3-none-any.whl",
    )
    for name in names:
        (folder / name).write_text(name)
    sums = [f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in names]
    (folder / "SHA256SUMS").write_text("".join(sums))
    return folder


class Machine:
    """Where the script runs: its prefix, and what stands for Python and for the C library."""

    def __init__(self, folder: Path) -> None:
        self.prefix = folder / "fila"
        self.programs = folder / "programs"
        self.programs.mkdir()
        self.program("python-of-the-test", PYTHON)
        self.program("getconf", "#!/bin/sh\necho glibc ${LIBC:-2.36}\n")

    def program(self, name: str, text: str) -> None:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def run(
        self, *words: str, script: str | Path = SCRIPT, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        around = {"PATH": path, "PYTHON": "python-of-the-test"} | environ
        command = ["sh", str(script), *words, "--prefix", str(self.prefix)]
        return subprocess.run(command, env=around, capture_output=True, text=True, check=False)

    def refusal(self, *words: str, **environ: str) -> str:
        """Run it, and return the one line by which it fails; it left nothing."""
        done = self.run(*words, **environ)
        assert done.returncode == 1
        assert not self.prefix.exists()
        [line] = done.stderr.splitlines()
        return line.removeprefix("install.sh: ")

    def installed(self) -> list[str]:
        return sorted(path.name for path in (self.prefix / "versions").iterdir())


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_it_installs_upgrades_keeps_the_version_before_and_removes(machine, tmp_path):
    for version in ("0.1.0", "0.2.0", "0.3.0"):
        done = machine.run("--from", str(release(tmp_path / version, version)))
        assert done.stdout.startswith(f"fila-server {version} is in {machine.prefix}/bin"), done.stderr
        assert (machine.prefix / "bin").resolve() == machine.prefix / f"versions/{version}/bin"
    assert machine.installed() == ["0.2.0", "0.3.0"]
    again = machine.run("--from", str(tmp_path / "0.3.0"))
    assert "Fila 0.3.0 is in" in again.stderr
    assert machine.installed() == ["0.2.0", "0.3.0"]
    (machine.prefix / "data").touch()
    assert machine.run("--remove").returncode == 0
    assert [path.name for path in machine.prefix.iterdir()] == ["data"]


def test_what_a_run_that_was_killed_left_is_no_version(machine, tmp_path):
    (machine.prefix / "versions/0.1.0/bin").mkdir(parents=True)
    assert machine.run("--from", str(release(tmp_path / "release"))).returncode == 0
    assert (machine.prefix / "bin/fila-server").exists()


def test_a_file_that_is_not_what_its_sum_says_is_not_installed(machine, tmp_path):
    made = release(tmp_path / "release")
    (made / "fila_cli-0.1.0-py3-none-any.whl").write_text("another")
    said = machine.refusal("--from", str(made))
    told = "fila_cli-0.1.0-py3-none-any.whl: FAILED"
    assert said.startswith(f"a file is not what SHA256SUMS says; nothing was installed: {told}")


def test_a_file_that_has_no_sum_is_not_installed(machine, tmp_path):
    made = release(tmp_path / "release")
    sums = (made / "SHA256SUMS").read_text().splitlines(keepends=True)
    (made / "SHA256SUMS").write_text("".join(line for line in sums if "server.txt" not in line))
    assert machine.refusal("--from", str(made)) == "server.txt is not in SHA256SUMS; nothing was installed"


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"TAG": "cp399"}, "this release has no wheel for cp399 on"),
        (
            {"LIBC": "2.31"},
            "this release needs glibc 2.35 or newer, and this system has 2.31: build from source",
        ),
        ({"PYTHON": "no-such-python"}, "there is no no-such-python: install Python 3.11 or newer"),
        ({"PIP": "1"}, "pip could not install the libraries; nothing was installed"),
        ({"SERVER": "1"}, "the server does not run here; nothing was installed"),
    ],
)
def test_a_machine_that_cannot_have_it_is_told_why_in_a_line_and_gets_nothing(
    machine, tmp_path, environ, said
):
    assert machine.refusal("--from", str(release(tmp_path / "release")), **environ).startswith(said)


def test_a_system_without_glibc_is_told_so(machine, tmp_path):
    machine.program("getconf", "#!/bin/sh\nexit 1\n")
    assert machine.refusal("--from", str(release(tmp_path / "release"))).startswith(
        "this system has no glibc"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say where the release is"),
        (("--form", "dist"), "there is no --form"),
        (("--from", "/no/such/folder"), "/no/such/folder/SHA256SUMS is not there; nothing was installed"),
        (("--from", "http://files.example/fila"), "http://files.example/fila is not encrypted"),
        (("--remove",), "nothing in"),
    ],
)
def test_words_that_it_cannot_follow_are_answered_in_a_line(machine, words, said):
    assert machine.refusal(*words).startswith(said)


def test_it_never_takes_the_place_of_an_environment_that_somebody_else_made(machine, tmp_path):
    (machine.prefix / "bin").mkdir(parents=True)
    done = machine.run("--from", str(release(tmp_path / "release")))
    assert "was not made by this script" in done.stderr
    assert [path.name for path in machine.prefix.rglob("*")] == ["bin"]


def test_a_script_that_was_cut_off_does_nothing(machine, tmp_path):
    made = str(release(tmp_path / "release"))
    whole = SCRIPT.read_text()
    cut = tmp_path / "cut.sh"
    for length in [*range(200, len(whole) - 2, 173), len(whole) - 2]:
        cut.write_text(whole[:length])
        machine.run("--from", made, script=cut)
        assert not machine.prefix.exists(), whole[:length][-60:]


def test_a_release_is_fetched_over_http_from_this_machine(machine, tmp_path):
    made = release(tmp_path / "release")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_words: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(made))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        done = machine.run("--from", address)
        missing = machine.run("--from", f"{address}/elsewhere")
        server.shutdown()
    assert done.returncode == 0, done.stderr
    assert "cannot be fetched; nothing was installed" in missing.stderr
