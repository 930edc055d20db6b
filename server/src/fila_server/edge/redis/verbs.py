"""Every command by name: how many arguments it takes, who carries it out, and what COMMAND says about it.

RPUSH, HMGET and HDEL stand here for COMMAND's sake only: the decoder has handled them already.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fila_server import errors
from fila_server.edge.redis import introspect, queues, sentinel, session
from fila_server.edge.redis.client import Client
from fila_server.edge.redis.entry import BEFORE_AUTH
from fila_server.edge.redis.reply_bytes import Simple, Value, encode, error_reply, integer, refusal

MANY = 1 << 31
ECHOED_BYTES_MAX = 128
"""How much of an unknown command is repeated to the client."""

Handler = Callable[[Client, list[bytes]], "bytes | Awaitable[bytes]"]


@dataclass(frozen=True, slots=True)
class Verb:
    """One command."""

    handler: Handler
    least: int
    most: int
    usage: str
    summary: str
    is_write: bool = False
    of_a_group: bool = False
    """A broker alone does not know it."""

    @property
    def arity(self) -> int:
        """As COMMAND counts: with the name, negative for "at least"."""
        return self.least + 1 if self.least == self.most else -(self.least + 1)


def run(client: Client, args: list[bytes], argc: int) -> bytes | Awaitable[bytes]:
    """Carry out one command; `args` may hold fewer than `argc` where no command takes so many."""
    name = args[0].upper()
    verb = _known(client).get(name)
    if client.entry.caller is None and name not in BEFORE_AUTH and not _is_http(name, args):
        return error_reply("NOAUTH", "Authentication required.")
    if verb is None:
        return _unknown(client, name, args)
    if argc - 1 < verb.least:
        return error_reply("MPA", f"missing parameter: {verb.usage}")
    if argc - 1 > verb.most:
        return error_reply("IPA", f"too many parameters: {verb.usage}")
    try:
        client.entry.check(name.decode(), args[1:])
    except errors.QueueNotFound as error:
        if name in (b"DEL", b"SREM"):
            return integer(0)  # as of a queue that never was
        return refusal(error)
    return verb.handler(client, args[1:])


def _unknown(client: Client, name: bytes, args: list[bytes]) -> bytes:
    if _is_http(name, args):
        # A web page made somebody's browser talk to us: what follows could be commands in a form's body.
        client.quit()
    text = args[0][:ECHOED_BYTES_MAX].decode("utf-8", "replace")
    return error_reply("UCOM", f"ERR unknown command '{text}'")


def _is_http(name: bytes, args: list[bytes]) -> bool:
    return name in (b"POST", b"HOST:") or args[-1].startswith(b"HTTP/")


def command(client: Client, args: list[bytes]) -> bytes:
    """COMMAND [COUNT | INFO [name ...] | DOCS [name ...]]"""
    word = args[0].upper() if args else b"INFO"
    known = _known(client)
    names = [name.upper() for name in args[1:]] or list(known)
    value: Value
    match word:
        case b"COUNT":
            return integer(len(known))
        case b"INFO":
            value = [_about(name, known[name]) if name in known else None for name in names]
        case b"DOCS":
            value = {name.decode().lower(): _doc(known[name]) for name in names if name in known}
        case _:
            return error_reply("ICOM", "COMMAND has COUNT, INFO and DOCS")
    return encode(value, client.session.protocol)


def _about(name: bytes, verb: Verb) -> Value:
    flags = [Simple("write" if verb.is_write else "readonly")]
    has_key = verb.is_write or name == b"HMGET"
    first, last, step = (1, 1, 1) if has_key else (0, 0, 0)
    return [name.decode().lower(), verb.arity, flags, first, last, step, [], [], [], []]


def _doc(verb: Verb) -> Value:
    return {"summary": verb.summary, "since": "0.1.0", "group": "generic", "syntax": verb.usage}


def _known(client: Client) -> dict[bytes, Verb]:
    return _VERBS if client.server.group else _ALONE


def _role(client: Client, _args: list[bytes]) -> bytes:
    group = client.server.group
    return sentinel.role(group() if group else None, client.session.protocol)


def _sentinel(client: Client, args: list[bytes]) -> bytes:
    assert client.server.group
    return sentinel.answer(client.server.group(), args, client.session.protocol)


def _subscribe(client: Client, args: list[bytes]) -> bytes:
    # Nothing is published here: a term that is over ends the connection.
    return sentinel.subscribed(client.session.channels, args, client.session.protocol)


def _unsubscribe(client: Client, args: list[bytes]) -> bytes:
    return sentinel.unsubscribed(client.session.channels, args, client.session.protocol)


def _decoded(_client: Client, _args: list[bytes]) -> bytes:
    raise AssertionError("the decoder handles this command")


_VERBS: dict[bytes, Verb] = {
    b"RPUSH": Verb(
        _decoded, 2, MANY, "RPUSH queue message [message ...]", "Push messages, all or none.", True
    ),
    b"HMGET": Verb(_decoded, 3, 4, "HMGET queue channel count [timeout]", "Lease messages.", False),
    b"HDEL": Verb(_decoded, 3, MANY, "HDEL queue channel ticket [ticket ...]", "Ack messages.", True),
    b"HMSET": Verb(queues.hmset, 4, 4, "HMSET queue channel TS|ID value", "Seek a channel.", True),
    b"SET": Verb(queues.set_, 2, 3, "SET queue channel [NX]", "Make a queue with its channel.", True),
    b"SETNX": Verb(queues.setnx, 2, 2, "SETNX queue channel", "Make what is missing of the two.", True),
    b"DEL": Verb(queues.del_, 1, 2, "DEL queue [channel]", "Delete a queue or a channel.", True),
    b"SREM": Verb(queues.srem, 2, 2, "SREM queue channel|*", "Drop what is pending.", True),
    b"INFO": Verb(
        introspect.info, 0, 1, "INFO [server|replication|queues|queues.prefix]", "Look at server or queues."
    ),
    b"ROLE": Verb(_role, 0, 0, "ROLE", "Say whether this node serves, and who follows."),
    b"SENTINEL": Verb(
        _sentinel, 1, 2, "SENTINEL question [group]", "Say where the nodes of the group are.", of_a_group=True
    ),
    b"SUBSCRIBE": Verb(
        _subscribe, 1, 16, "SUBSCRIBE channel [channel ...]", "Hear of another owner.", of_a_group=True
    ),
    b"UNSUBSCRIBE": Verb(
        _unsubscribe, 0, 16, "UNSUBSCRIBE [channel ...]", "Hear of it no more.", of_a_group=True
    ),
    b"CONFIG": Verb(
        introspect.config, 1, 3, "CONFIG GET section | SET key value", "Read or change settings."
    ),
    b"COMMAND": Verb(command, 0, 60, "COMMAND [COUNT|INFO|DOCS [name ...]]", "List the commands."),
    b"HELLO": Verb(
        session.hello, 0, 60, "HELLO [2|3 [AUTH user password] [SETNAME name]]", "Choose the protocol."
    ),
    b"AUTH": Verb(session.auth, 1, 2, "AUTH [user] password", "Authenticate."),
    b"SELECT": Verb(session.select, 1, 1, "SELECT 0", "Choose the database: there is one."),
    b"CLIENT": Verb(
        session.client, 1, 60, "CLIENT subcommand [argument ...]", "Name, list and describe clients."
    ),
    b"PING": Verb(session.ping, 0, 1, "PING [message]", "Answer."),
    b"ECHO": Verb(session.echo, 1, 1, "ECHO message", "Answer with the message."),
    b"RESET": Verb(session.reset, 0, 0, "RESET", "Be as if newly connected."),
    b"QUIT": Verb(session.quit_, 0, MANY, "QUIT", "Close the connection."),
}
_ALONE = {name: verb for name, verb in _VERBS.items() if not verb.of_a_group}
