"""grpc-go's interoperability client against the native edge: each of its cases that a server without accounts can serve.

    make interop        a minute; builds the client the first time

Left out: custom_metadata, since Fila's answers carry no metadata of a handler's; orca_*, which are load reports; and
those that ask for accounts of one provider.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLIENT = HERE.parents[1] / "build" / "grpc-interop-client"
START_S_MAX = 30.0
CASE_S_MAX = 60.0
CASES = (
    "empty_unary",
    "large_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "timeout_on_sleeping_server",
    "cancel_after_begin",
    "cancel_after_first_response",
    "status_code_and_message",
    "special_status_message",
    "unimplemented_method",
    "unimplemented_service",
    "pick_first_unary",
    "rpc_soak",
    "channel_soak",
)


def main() -> None:
    """Run it, or say what failed."""
    go = ["go", "-C", str(HERE)]
    CLIENT.parent.mkdir(exist_ok=True)
    subprocess.run([*go, "build", "-o", str(CLIENT), "google.golang.org/grpc/interop/client"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        descriptors = Path(folder) / "grpc.testing.binpb"
        descriptors.write_bytes(subprocess.run([*go, "run", "."], check=True, stdout=subprocess.PIPE).stdout)
        server, port = _start(Path(folder), descriptors)
        try:
            failed = {case: said for case in CASES if (said := _ask(port, case))}
        finally:
            server.terminate()
            server.wait(30)
    print(f"grpc-go interop: {len(CASES) - len(failed)} of {len(CASES)} cases passed")
    if failed:
        sys.exit("\n".join(f"{case}: {said}" for case, said in failed.items()))


def _start(folder: Path, descriptors: Path) -> tuple[subprocess.Popen[bytes], int]:
    log = folder / "server.log"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    environ |= {
        "FILA_SERVER__LISTEN_ADDR": "127.0.0.1:0",
        "FILA_SERVER__EDGE": "native",
        "FILA_REDIS__ENABLED": "false",
        "FILA_METRICS__LISTEN_ADDR": "",
        "FILA_DATA_DIR": str(folder / "data"),
    }
    with log.open("wb") as stderr:
        server = subprocess.Popen(
            [sys.executable, "-m", "tools.interop.door", str(descriptors)], env=environ, stderr=stderr
        )
    ends = time.monotonic() + START_S_MAX
    while time.monotonic() < ends and server.poll() is None:
        for line in log.read_text().splitlines():
            if line.startswith("{") and (said := json.loads(line))["event"] == "server.started":
                return server, int(said["grpc"].rpartition(":")[2])
        time.sleep(0.05)
    server.kill()
    sys.exit(f"the server did not start:\n{log.read_text()}")


def _ask(port: int, case: str) -> str:
    """Return what the client says of a case that fails, and nothing of one that passes."""
    asking = [str(CLIENT), "--server_host=127.0.0.1", f"--server_port={port}", f"--test_case={case}"]
    try:
        ran = subprocess.run(asking, capture_output=True, text=True, check=False, timeout=CASE_S_MAX)
    except subprocess.TimeoutExpired:
        return f"did not end within {CASE_S_MAX:g} s"
    return f"exit code {ran.returncode}: {ran.stderr[-1000:]}" if ran.returncode else ""


if __name__ == "__main__":
    main()
