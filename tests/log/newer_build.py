"""A server of a build that reads a format of the log more than this one: `python tests/log/newer_build.py`."""

import sys

from fila_server.cluster import written
from fila_server.main import main

if __name__ == "__main__":
    written.READS += 1
    del sys.argv[1:]
    main()
