"""What impolite clients do, each a function that says when it is under way and goes on until it is killed.

python -m tests.liveness.abuses NAME GRPC_ADDRESS REDIS_ADDRESS
"""

from __future__ import annotations

import gzip
import itertools
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

import grpc

from fila.v1 import admin_pb2, admin_pb2_grpc, service_pb2, service_pb2_grpc
from tests.liveness.http2 import RawHttp2
from tests.redis.raw_client import command

MIB = 1024 * 1024

Abuse = Callable[["Victim"], None]
ABUSES: dict[str, Abuse] = {}


def abuse(begin: Abuse) -> Abuse:
    ABUSES[begin.__name__] = begin
    return begin


class Victim:
    """The server, as those who attack it see it."""

    def __init__(self, grpc_address: str, redis_address: str) -> None:
        self.grpc_address = grpc_address
        host, _, port = redis_address.rpartition(":")
        self.redis_address = (host, int(port))

    def channel(self, **arguments: Any) -> grpc.Channel:
        options = [
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
        ]
        return grpc.insecure_channel(self.grpc_address, options=options, **arguments)

    def service(self) -> Any:
        return service_pb2_grpc.FilaServiceStub(self.channel())

    def admin(self) -> Any:
        return admin_pb2_grpc.FilaAdminStub(self.channel())

    def redis(self) -> socket.socket:
        return socket.create_connection(self.redis_address)

    def create_queue(self, name: str, **config: Any) -> None:
        self.admin().CreateQueue(
            admin_pb2.CreateQueueRequest(name=name, config=admin_pb2.QueueConfig(**config))
        )

    def fill(self, queue: str, count: int, payload: bytes = b"x", **headers: str) -> None:
        service, left = self.service(), count
        most = max(1, min(10_000, 8 * MIB // (len(payload) + 64)))
        while left > 0:
            batch = service_pb2.EnqueueBatchRequest(queue=queue)
            for i in range(min(left, most)):
                batch.messages.add(payload=payload, headers={k: f"{v}{left - i}" for k, v in headers.items()})
            service.EnqueueBatch(batch)
            left -= most


def under_way() -> None:
    print("under way", flush=True)


def for_ever(work: Callable[[], object], threads: int = 1) -> NoReturn:
    """Do it again and again on so many threads, whatever it answers."""

    def again() -> None:
        while True:
            try:
                work()
            except (grpc.RpcError, OSError):
                time.sleep(0.01)

    for _ in range(threads):
        threading.Thread(target=again, daemon=True).start()
    under_way()
    while True:
        time.sleep(60)


def _pipeline(victim: Victim, commands: bytes, connections: int = 1) -> NoReturn:
    """Write one piece after the other, while another thread reads the replies."""
    socks = [victim.redis() for _ in range(connections)]
    own = threading.local()

    def read(sock: socket.socket) -> None:
        while sock.recv(MIB):
            pass

    def write() -> None:
        if not hasattr(own, "sock"):
            own.sock = socks.pop()
            threading.Thread(target=read, args=(own.sock,), daemon=True).start()
        own.sock.sendall(commands)

    for_ever(write, threads=connections)


@abuse
def redis_pings(victim: Victim) -> None:
    _pipeline(victim, command("PING") * 20_000)


@abuse
def redis_unknown_commands(victim: Victim) -> None:
    _pipeline(victim, command("NO-SUCH-COMMAND", "x") * 20_000)


@abuse
def redis_inline_commands(victim: Victim) -> None:
    _pipeline(victim, b"PING\r\n" * 20_000)


@abuse
def redis_command_docs(victim: Victim) -> None:
    _pipeline(victim, command("COMMAND", "DOCS") * 2_000)


@abuse
def redis_pings_of_many(victim: Victim) -> None:
    _pipeline(victim, command("PING") * 20_000, connections=20)


@abuse
def abandoned_pulls(victim: Victim) -> None:
    """A hundred that are cancelled, and a hundred whose reader leaves."""
    victim.create_queue("empty")
    service = victim.service()
    pull = service_pb2.LeaseRequest(queue="empty", max_messages=1, wait_ms=300_000)
    read = command("HMGET", "empty", "default", 1, 300)
    for _ in range(100):
        call, reader = service.Lease.future(pull), victim.redis()
        reader.sendall(read)
        time.sleep(0.003)
        call.cancel()
        reader.close()
    under_way()
    time.sleep(600)


_SLOW_SCRIPT = """
function on_enqueue(msg)
  local sum = 0
  for i = 1, 60000 do sum = sum + i end
  return { fairness_key = "k" }
end
"""


@abuse
def slow_script(victim: Victim) -> None:
    victim.create_queue("slow", on_enqueue_script=_SLOW_SCRIPT)
    batch = service_pb2.EnqueueBatchRequest(queue="slow")
    for _ in range(200):
        batch.messages.add(payload=b"x")
    service = victim.service()
    for_ever(lambda: service.EnqueueBatch(batch), threads=50)


@abuse
def slow_scripts_of_many_queues(victim: Victim) -> None:
    services = []
    for number in range(20):
        victim.create_queue(f"slow-{number}", on_enqueue_script=_SLOW_SCRIPT)
        batch = service_pb2.EnqueueBatchRequest(queue=f"slow-{number}")
        for _ in range(200):
            batch.messages.add(payload=b"x")
        services.append((victim.service(), batch))

    def enqueue() -> None:
        services.append(services.pop(0))
        service, batch = services[-1]
        service.EnqueueBatch(batch)

    for_ever(enqueue, threads=40)


@abuse
def mask_paths_by_the_million(victim: Victim) -> None:
    victim.create_queue("masked")
    admin = victim.admin()
    request = admin_pb2.UpdateQueueRequest(queue="masked", update_mask={"paths": ["max_depth"] * 1_000_000})
    for_ever(lambda: admin.UpdateQueue(request), threads=2)


@abuse
def weights_by_the_million(victim: Victim) -> None:
    admin = victim.admin()
    request = admin_pb2.CreateQueueRequest(
        name="w", config={"weights": {str(i): 1 for i in range(1_000_000)}}
    )
    for_ever(lambda: admin.CreateQueue(request), threads=4)


@abuse
def as_many_weights_as_are_allowed(victim: Victim) -> None:
    victim.create_queue("weighed")
    admin = victim.admin()
    config = admin_pb2.QueueConfig(weights={f"the tenant number {i}": 1 for i in range(10_000)})
    request = admin_pb2.UpdateQueueRequest(queue="weighed", config=config, update_mask={"paths": ["weights"]})
    for_ever(lambda: admin.UpdateQueue(request), threads=20)


@abuse
def statistics_of_many_keys(victim: Victim) -> None:
    victim.create_queue("keys", fairness_key_header="tenant")
    victim.fill("keys", 100_000, tenant="t")
    admin = victim.admin()
    request = admin_pb2.GetStatsRequest(queue="keys", max_keys=10_000)
    for_ever(lambda: admin.GetStats(request), threads=40)


@abuse
def queues_by_the_thousand(victim: Victim) -> None:
    admin, number = victim.admin(), itertools.count()

    def create() -> None:
        calls = [
            admin.CreateQueue.future(admin_pb2.CreateQueueRequest(name=f"made-{next(number)}"))
            for _ in range(3000)
        ]
        for call in calls:
            call.exception()

    for_ever(create)


@abuse
def gzip_bombs(victim: Victim) -> None:
    """Compressed once: their sender has nothing to do, the server all the more."""
    bomb = gzip.compress(
        service_pb2.EnqueueRequest(queue="probe", payload=bytes(60 * MIB)).SerializeToString()
    )

    def explode() -> None:
        connection = RawHttp2(victim.grpc_address)
        while True:
            connection.call("/fila.v1.FilaService/Enqueue", bomb, "gzip")

    for_ever(explode, threads=4)


def _fill_with_large(victim: Victim, queue: str, count: int) -> None:
    victim.create_queue(queue)
    victim.fill(queue, count, bytes(4000))


@abuse
def peeks_nobody_reads(victim: Victim) -> None:
    _fill_with_large(victim, "peeked", 1000)
    peek = admin_pb2.PeekMessagesRequest(queue="peeked", max_messages=1000).SerializeToString()
    connections = [RawHttp2(victim.grpc_address) for _ in range(3)]
    for _ in range(150):
        for connection in connections:
            connection.call("/fila.v1.FilaAdmin/PeekMessages", peek)
    for_ever(connections[0].read)


@abuse
def reads_of_the_log_and_consumers_nobody_reads(victim: Victim) -> None:
    _fill_with_large(victim, "logged", 20_000)
    read = admin_pb2.ReadLogRequest(queue="logged", max_batch=1000).SerializeToString()
    consume = service_pb2.ConsumeRequest(
        queue="logged", max_in_flight=10_000, max_batch=500
    ).SerializeToString()
    connections = [RawHttp2(victim.grpc_address) for _ in range(5)]
    for _ in range(40):
        for connection in connections:
            connection.call("/fila.v1.FilaAdmin/ReadLog", read)
            connection.call("/fila.v1.FilaService/Consume", consume)
    for_ever(connections[0].read)


@abuse
def redis_reads_nobody_reads(victim: Victim) -> None:
    _fill_with_large(victim, "hoarded", 20_000)
    connections = [victim.redis() for _ in range(30)]
    for connection in connections:
        connection.sendall(command("HMGET", "hoarded", "default", 1000) * 25)
    under_way()
    time.sleep(600)


if __name__ == "__main__":
    ABUSES[sys.argv[1]](Victim(*sys.argv[2:]))
