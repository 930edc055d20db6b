"""Fila's Python SDK: a typed client for the message broker Fila, asynchronous here, synchronous in `fila.sync`.

    client = await FilaClient.connect("localhost:5555")
    await client.enqueue("orders", headers={"tenant": "acme"}, payload=b"...")
    async for msg in client.consume("orders"):
        await client.ack("orders", msg.id)

Start reading at `client.py`. An enqueue goes through `producer.py` and `frames.py`; a delivery through
`consumer.py`, `session.py` and `holding.py`; an ack through `settle.py`; every call through `connection.py`; every
error is in `errors.py`; every setting in `options.py`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fila.client import FilaClient
    from fila.connection_events import ConnectionEvent
    from fila.consumer import Consumer
    from fila.errors import (
        AnswerLost,
        ChannelExists,
        ChannelNotFound,
        ClientClosed,
        ConfigKeyNotFound,
        Conflict,
        DiskFloor,
        Exists,
        FilaError,
        HooksFull,
        InternalError,
        Invalid,
        LeaseLost,
        LimitExceeded,
        LogDamaged,
        MessageNotFound,
        NotAllowed,
        NotFound,
        NotOwner,
        NotSupported,
        Overloaded,
        QueueExists,
        QueueFull,
        QueueNotFound,
        SomeFailed,
        SourceQueueGone,
        Unavailable,
    )
    from fila.messages import DeadLetter, Message, MessageId, NewMessage, StoredMessage
    from fila.options import Backoff, ClientOptions, Clock
    from fila.settings import (
        IntakeSettings,
        KeyDefaultsSettings,
        QueueSettings,
        RetentionSettings,
        RetrySettings,
    )

__version__ = "0.1.0"

__all__ = [
    "AnswerLost",
    "Backoff",
    "ChannelExists",
    "ChannelNotFound",
    "ClientClosed",
    "ClientOptions",
    "Clock",
    "ConfigKeyNotFound",
    "Conflict",
    "ConnectionEvent",
    "Consumer",
    "DeadLetter",
    "DiskFloor",
    "Exists",
    "FilaClient",
    "FilaError",
    "HooksFull",
    "IntakeSettings",
    "InternalError",
    "Invalid",
    "KeyDefaultsSettings",
    "LeaseLost",
    "LimitExceeded",
    "LogDamaged",
    "Message",
    "MessageId",
    "MessageNotFound",
    "NewMessage",
    "NotAllowed",
    "NotFound",
    "NotOwner",
    "NotSupported",
    "Overloaded",
    "QueueExists",
    "QueueFull",
    "QueueNotFound",
    "QueueSettings",
    "RetentionSettings",
    "RetrySettings",
    "SomeFailed",
    "SourceQueueGone",
    "StoredMessage",
    "Unavailable",
]

_MODULE_BY_NAME = {
    "Backoff": "fila.options",
    "ClientOptions": "fila.options",
    "Clock": "fila.options",
    "ConnectionEvent": "fila.connection_events",
    "Consumer": "fila.consumer",
    "DeadLetter": "fila.messages",
    "FilaClient": "fila.client",
    "Message": "fila.messages",
    "MessageId": "fila.messages",
    "NewMessage": "fila.messages",
    "QueueSettings": "fila.settings",
    "RetentionSettings": "fila.settings",
    "IntakeSettings": "fila.settings",
    "KeyDefaultsSettings": "fila.settings",
    "RetrySettings": "fila.settings",
    "StoredMessage": "fila.messages",
}
"""Of what is not an error."""


if not TYPE_CHECKING:  # it would hide a misspelt name from type checkers

    def __getattr__(name: str) -> object:
        """Import a name's module when the name is first used.

        A user of the generated messages alone (`fila.v1`), such as the broker, does not load the client.
        """
        if name not in __all__:
            raise AttributeError(f"module 'fila' has no attribute {name!r}")
        value: object = getattr(import_module(_MODULE_BY_NAME.get(name, "fila.errors")), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
