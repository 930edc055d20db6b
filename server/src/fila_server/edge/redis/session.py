"""Who a connection is and what it speaks, and the commands that only touch that.

    HELLO AUTH SELECT RESET QUIT PING ECHO CLIENT

Client libraries send these on connect without being asked, so the answers are Redis's own.
"""

from __future__ import annotations

from fila_server import errors
from fila_server.access.admission import NOT_PLAIN
from fila_server.edge.redis.client import Client, Session
from fila_server.edge.redis.reply_bytes import (
    COMPATIBLE_VERSION,
    OK,
    RESP2,
    Value,
    encode,
    error_reply,
    integer,
    refusal,
)


async def hello(client: Client, args: list[bytes]) -> bytes:
    """HELLO [2|3 [AUTH name key] [SETNAME name]]"""
    session = client.session
    protocol, name = session.protocol, session.name
    credentials: tuple[bytes, bytes] | None = None
    if args:
        if args[0] not in (b"2", b"3"):
            return error_reply("NOPROTO", "unsupported protocol version")
        protocol = int(args[0])
    rest = args[1:]
    while rest:
        option = rest[0].upper()
        if option == b"AUTH" and len(rest) >= 3:
            credentials, rest = (rest[2], rest[1]), rest[3:]
        elif option == b"SETNAME" and len(rest) >= 2:
            if (refused := _check_client_text(rest[1], "Client names")) is not None:
                return refused
            name = rest[1].decode()
            rest = rest[2:]
        else:
            return error_reply("ERR", f"Syntax error in HELLO option '{_text(rest[0])}'")
    # Only once all of it is read: what is refused leaves everything as it was.
    if credentials is not None and (refused := await _authenticate(client, *credentials)) is not None:
        return refused
    if client.entry.caller is None:
        return error_reply(
            "NOAUTH", "HELLO must be called with the client already authenticated, or with AUTH"
        )
    session.protocol, session.name = protocol, name
    about: dict[str, Value] = {
        "server": "fila", "version": COMPATIBLE_VERSION, "proto": protocol, "id": session.id,
        "mode": "standalone", "role": "master", "modules": [],
    }  # fmt: skip
    return encode(about, protocol)


async def auth(client: Client, args: list[bytes]) -> bytes:
    """AUTH [name] key: the name is the key's, or `default`. Without auth.enabled the answers are Redis's then."""
    if len(args) == 1 and not client.server.admission.is_on:
        return error_reply(
            "ERR",
            "AUTH <password> called without any password configured for the default user. "
            "Are you sure your configuration is correct?",
        )
    refused = await _authenticate(client, args[-1], args[0] if len(args) == 2 else b"default")
    return OK if refused is None else refused


async def _authenticate(client: Client, key: bytes, name: bytes) -> bytes | None:
    """Let the client be who has the key; the refusal where it is not."""
    if not client.server.admission.is_on:
        return None if name == b"default" else _wrong_password()
    try:
        client.entry.authenticate(key, name.decode("utf-8", "replace"))
    except errors.Unauthenticated as error:
        if error.before_reported is not None:
            await error.before_reported()
        return refusal(error) if error.message == NOT_PLAIN else _wrong_password()
    except errors.QuotaExceeded as error:
        return refusal(error)
    return None


def select(_client: Client, args: list[bytes]) -> bytes:
    """SELECT 0"""
    try:
        number = int(args[0])
    except ValueError:
        return error_reply("ERR", "value is not an integer or out of range")
    return OK if number == 0 else error_reply("ERR", "DB index is out of range")


def reset(client: Client, _args: list[bytes]) -> bytes:
    """RESET: the client is as if newly connected, without its AUTH."""
    client.entry.begin()
    client.await_key()
    client.session.protocol = RESP2
    client.session.name = ""
    client.session.channels.clear()
    return b"+RESET\r\n"


def quit_(client: Client, _args: list[bytes]) -> bytes:
    """QUIT"""
    client.quit()
    return OK


def ping(_client: Client, args: list[bytes]) -> bytes:
    """PING [message]"""
    return encode(args[0], RESP2) if args else b"+PONG\r\n"


def echo(_client: Client, args: list[bytes]) -> bytes:
    """ECHO message"""
    return encode(args[0], RESP2)


def client(client: Client, args: list[bytes]) -> bytes:
    """CLIENT SETNAME | GETNAME | ID | INFO | SETINFO | LIST | NO-EVICT"""
    session, now = client.session, client.server.now()
    match [args[0].upper(), *args[1:]]:
        case [b"ID"]:
            return integer(session.id)
        case [b"GETNAME"]:
            return encode(session.name or None, session.protocol)
        case [b"SETNAME", name]:
            if (refused := _check_client_text(name, "Client names")) is not None:
                return refused
            session.name = name.decode()
            return OK
        case [b"SETINFO", attribute, value]:
            return _set_info(session, attribute, value)
        case [b"INFO"]:
            return encode(session.describe(now, client.entry.user) + "\n", RESP2)
        case [b"LIST"]:
            lines = (
                f"{other.session.describe(now, other.entry.user)}\n"
                for other in client.server.connections
                if client.entry.sees_client(other.entry)
            )
            return encode("".join(lines), RESP2)
        case [b"NO-EVICT", word] if word.upper() in (b"ON", b"OFF"):
            return OK
    return error_reply(
        "ICOM", f"unknown subcommand or wrong number of arguments for CLIENT '{_text(args[0])}'"
    )


def _set_info(session: Session, attribute: bytes, value: bytes) -> bytes:
    if (refused := _check_client_text(value, _text(attribute))) is not None:
        return refused
    match attribute.upper():
        case b"LIB-NAME":
            session.library = value.decode()
        case b"LIB-VER":
            session.library_version = value.decode()
        case _:
            return error_reply("ERR", f"Unrecognized option '{_text(attribute)}'")
    return OK


def _check_client_text(text: bytes, what: str) -> bytes | None:
    """CLIENT LIST is one line of words a client; these must not break it, or fill our memory."""
    if len(text) <= 256 and all(33 <= byte <= 126 for byte in text):
        return None
    return error_reply(
        "ERR", f"{what} cannot contain spaces, newlines or special characters, or over 256 bytes"
    )


def _text(arg: bytes) -> str:
    return arg.decode("utf-8", "replace")


def _wrong_password() -> bytes:
    return error_reply("WRONGPASS", "invalid username-password pair or user is disabled.")
