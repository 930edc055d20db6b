"""Three brokers of Kafka's protocol in a process of their own: librdkafka's mock cluster. No Java, up in some 50 ms.

    python tests/log/mock_brokers.py LIBRARY TOPIC=PARTITIONS ...    prints the brokers' addresses, then reads commands:

    down N | up N | rtt N MS | leader TOPIC N | error API CODE COUNT | quit

Each command is answered with a line. API 0 is Produce; codes are Kafka's.
"""

from __future__ import annotations

import ctypes
import sys

TEXT, POINTER, I16, I32, SIZE = (
    ctypes.c_char_p,
    ctypes.c_void_p,
    ctypes.c_int16,
    ctypes.c_int32,
    ctypes.c_size_t,
)


def declared(path: str) -> ctypes.CDLL:
    lib = ctypes.CDLL(path)
    for name, result, *arguments in (
        ("conf_new", POINTER),
        ("new", POINTER, ctypes.c_int, POINTER, TEXT, SIZE),
        ("mock_cluster_new", POINTER, POINTER, ctypes.c_int),
        ("mock_cluster_bootstraps", TEXT, POINTER),
        ("mock_topic_create", ctypes.c_int, POINTER, TEXT, ctypes.c_int, ctypes.c_int),
        ("mock_broker_set_down", ctypes.c_int, POINTER, I32),
        ("mock_broker_set_up", ctypes.c_int, POINTER, I32),
        ("mock_broker_set_rtt", ctypes.c_int, POINTER, I32, ctypes.c_int),
        ("mock_partition_set_leader", ctypes.c_int, POINTER, TEXT, I32, I32),
        ("mock_push_request_errors_array", None, POINTER, I16, SIZE, POINTER),
    ):
        function = getattr(lib, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return lib


def main(path: str, *topics: str) -> None:
    lib = declared(path)
    text = ctypes.create_string_buffer(256)
    cluster = lib.rd_kafka_mock_cluster_new(lib.rd_kafka_new(0, lib.rd_kafka_conf_new(), text, 256), 3)
    for topic in topics:
        name, _, partitions = topic.partition("=")
        lib.rd_kafka_mock_topic_create(cluster, name.encode(), int(partitions), 3)
        lib.rd_kafka_mock_partition_set_leader(cluster, name.encode(), 0, 1)
    print(lib.rd_kafka_mock_cluster_bootstraps(cluster).decode(), flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "quit":
            return
        if word in ("down", "up"):
            getattr(lib, f"rd_kafka_mock_broker_set_{word}")(cluster, int(rest[0]))
        elif word == "rtt":
            lib.rd_kafka_mock_broker_set_rtt(cluster, int(rest[0]), int(rest[1]))
        elif word == "leader":
            lib.rd_kafka_mock_partition_set_leader(cluster, rest[0].encode(), 0, int(rest[1]))
        elif word == "error":
            api, code, count = map(int, rest)
            codes = (ctypes.c_int * count)(*[code] * count)
            lib.rd_kafka_mock_push_request_errors_array(cluster, api, count, codes)
        print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
