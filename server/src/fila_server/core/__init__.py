"""The compiled core: everything a message passes through between an edge and the disk."""

import os
import sys

# Before any module that loads RocksDB, and for all to see: so RocksDB finds the fast checksum (checksum.pyx).
_flags = sys.getdlopenflags()
sys.setdlopenflags(_flags | os.RTLD_GLOBAL)
try:
    from fila_server.core.structures import checksum as checksum
finally:
    sys.setdlopenflags(_flags)
