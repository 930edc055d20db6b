"""A power cut for one process, so that tests can ask what was really on the disk.

    process = subprocess.Popen(command, env=os.environ | powercut.environment(data_dir))
    ...                         # load
    powercut.cut(process.pid)   # forgets all that was written below data_dir and not synced, then kills
    process.wait()

`kill -9` alone proves less: the operating system keeps what a killed process has written.
How the forgetting works stands in shim.c. Needs a C compiler (`cc`); nothing else.
"""

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

CUT_SIGNAL = signal.SIGRTMIN + 7
_SOURCE = Path(__file__).with_name("shim.c")


def build() -> Path:
    """Compile the shim unless the result is newer than its source; returns the shared object."""
    folder = Path(tempfile.gettempdir()) / f"fila-powercut-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    built = folder / "powercut.so"
    if not built.exists() or built.stat().st_mtime < _SOURCE.stat().st_mtime:
        new = folder / f"powercut.{os.getpid()}.so"
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", str(new), str(_SOURCE), "-ldl", "-lpthread"],
            check=True,
            env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
        )
        new.rename(built)
    return built


def environment(data_dir: str | Path, seed: int = 0) -> dict[str, str]:
    """What a process needs in its environment to be cut off later.

    With `seed` 0 a cut keeps synced bytes only; with another one each file also keeps a part, chosen by the
    seed, of what was not synced. Deleted files wait beside `data_dir` until their deletion is durable.
    """
    data_dir = Path(data_dir).resolve()
    shadow = data_dir.parent / f".{data_dir.name}.powercut"
    shadow.mkdir(parents=True, exist_ok=True)
    return {
        # Behind a sanitizer's, which has to come first.
        "LD_PRELOAD": ":".join(filter(None, (os.environ.get("LD_PRELOAD"), str(build())))),
        "FILA_POWERCUT_DIR": str(data_dir),
        "FILA_POWERCUT_SHADOW": str(shadow),
        "FILA_POWERCUT_SEED": str(seed),
    }


def fail_syncs(data_dir: str | Path) -> None:
    """From now on each sync below `data_dir` is refused with an input/output error."""
    data_dir = Path(data_dir).resolve()
    (data_dir.parent / f".{data_dir.name}.powercut" / "syncs-fail").touch()


def cut(pid: int, timeout_s: float = 10.0) -> None:
    """Cut the power of the process and return when it is dead (the caller still reaps it)."""
    os.kill(pid, CUT_SIGNAL)
    deadline = time.monotonic() + timeout_s
    while _is_alive(pid):
        if time.monotonic() > deadline:
            raise TimeoutError(f"process {pid} survived the cut: was it started with powercut.environment()?")
        time.sleep(0.001)


def _is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")
