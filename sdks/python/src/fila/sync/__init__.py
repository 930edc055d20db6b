"""The synchronous twin of `fila`: the same calls, the same names, without `await`.

    from fila.sync import FilaClient

    with FilaClient.connect("localhost:5555") as client:
        client.enqueue("orders", headers={"tenant": "acme"}, payload=b"...")
        for msg in client.consume("orders"):
            client.ack("orders", msg.id)

It runs the asynchronous client on a thread of its own, so it behaves alike in all that matters, and
any number of threads may share it: what they enqueue at the same moment travels together.
"""

from fila.sync.client import Consumer, FilaClient, Message

__all__ = ["Consumer", "FilaClient", "Message"]
