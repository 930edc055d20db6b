"""A process that looks at a history and ends, without what a server is made of.

    python -m fila_server.history_files verify DIRECTORY...    `fila history verify`, and `fila-server history verify`
    python -m fila_server.history_files segment JSON           one start of a broker (verifying.py)

Half of what it took to verify a million decisions was to load modules. So pyarrow is told that there is neither numpy
nor a store of objects: it would load them, and nothing here asks it for them. And rubbish is looked for less often than
modules make objects.
"""

from __future__ import annotations

import gc
import os
import sys

for _name in ("numpy", "pyarrow._azurefs", "pyarrow._gcsfs", "pyarrow._hdfs", "pyarrow._s3fs"):
    sys.modules.setdefault(_name, None)  # type: ignore[arg-type]
gc.set_threshold(100_000)


def main() -> None:
    """Do what the first word says."""
    if sys.argv[1:2] == ["segment"]:
        from fila_server.history_files import verifying

        verifying.follow_alone(sys.argv[2])
        return
    from fila_server.history_files.command_line import group
    from fila_server.one_line import OneLine

    OneLine(commands=[group]).main(["history", *sys.argv[1:]], prog_name="fila-server")


if __name__ == "__main__":
    code = 0
    try:
        main()
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            raise
        code = end.code or 0
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Python would take its modules apart first
