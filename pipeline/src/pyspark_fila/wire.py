"""The messages of the wire contract and the SDK's TLS, from wherever this environment has them.

Where the client `fila` is installed its copy is used: two copies of different versions in one process would
describe the same protobuf files twice, which protobuf refuses. Where it is not, as in a plain Spark environment,
the build of this distribution has put a copy beside this module (see setup.py).
"""

try:
    from fila import diagnosis, tls
    from fila.v1 import admin_pb2, events_pb2, service_pb2, sink_pb2
except ModuleNotFoundError as missing:
    if missing.name not in ("fila", "fila.v1", "fila.v1.admin_pb2", "fila.v1.sink_pb2"):
        raise
    from pyspark_fila.wire_v1 import (  # type: ignore[attr-defined, import-not-found, no-redef, unused-ignore]
        admin_pb2,
        diagnosis,
        events_pb2,
        service_pb2,
        sink_pb2,
        tls,
    )

__all__ = ["admin_pb2", "diagnosis", "events_pb2", "service_pb2", "sink_pb2", "tls"]
