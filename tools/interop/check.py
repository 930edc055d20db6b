"""grpc-go's interoperability client against the edge: each case that a server without accounts can serve.

`make interop` takes a minute, and builds the client the first time.

Left out: custom_metadata, since Fila's answers carry no metadata of a handler's; orca_*, which are load reports; and
those that ask for accounts of one provider.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tools.one_server import serving

HERE = Path(__file__).resolve().parent
CLIENT = HERE.parents[1] / "build" / "grpc-interop-client"
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
        with serving("tools.interop.service", str(descriptors)) as port:
            failed = {case: said for case in CASES if (said := _ask(port, case))}
    print(f"grpc-go interop: {len(CASES) - len(failed)} of {len(CASES)} cases passed")
    if failed:
        sys.exit("\n".join(f"{case}: {said}" for case, said in failed.items()))


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
