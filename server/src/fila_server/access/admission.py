"""Who comes in, what they may do, and how what they hold open ends when that changes.

    enter    key or certificate, and peer  ──►  Caller             each call, or once a Redis connection
    check    Caller and Need and queue     ──►  or one of errors.py   what is judged in Python
    hold     something that stays open     ──►  ended within a second of the change that forbids it

Frames of messages are judged by core/requests/rights, under the caller's number, when they are submitted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from fila_server import errors
from fila_server.access import keys
from fila_server.access.directory import Directory
from fila_server.access.failures import Failures, is_loopback
from fila_server.access.records import PrincipalRecord
from fila_server.access.rights import ADMIN, CANCEL, CONSUME, MANAGE, PRODUCE, VIEW, is_admin
from fila_server.access.table import ANY, LOOK, NOTHING, Need
from fila_server.broker.mirror import DEFAULT_CHANNEL
from fila_server.core.requests.rights_table import Rights

LOOK_EVERY_S = 0.25
"""How often keys that expire, and what is held open, are looked at: a change is in force within a second."""

ALL = PRODUCE | CONSUME | MANAGE | ADMIN | VIEW | CANCEL

NO_KEY = (
    'a key is needed: send it as "authorization: Bearer fila_..." (FILA_API_KEY for the clients and the command '
    "line), or as AUTH over the Redis protocol"
)
NOT_LOCAL = (
    "this server serves its own machine only, since it asks for no keys: switch auth.enabled on and make a key, or "
    "allow everybody with server.allow_anonymous"
)
NOT_PLAIN = (
    "a key must not travel unencrypted from another machine: connect by TLS (tls.cert_file), or allow it with "
    "server.allow_plaintext where a proxy ends TLS"
)


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a call."""

    number: int | None
    """Of the compiled table; None: keys are off, and everybody may do everything."""

    name: str
    key_id: str
    tenant: str
    is_admin: bool
    peer: str
    claimed_address: str = ""
    """Whom a console or a gateway says it calls for; for the audit, and for nothing else."""

    @property
    def who(self) -> str:
        """For the audit: the principal's name and the key."""
        return f"{self.name} ({self.key_id})" if self.key_id else self.name


class Hold:
    """Something that stays open: a stream, a waiting pull, a connection."""

    __slots__ = ("caller", "channel", "end", "error", "queue", "right")

    def __init__(
        self,
        caller: Caller,
        right: int,
        queue: str,
        channel: str,
        end: Callable[[errors.FilaServerError], None],
    ) -> None:
        self.caller = caller
        self.right = right
        self.queue = queue
        self.channel = channel
        self.end = end
        self.error: errors.FilaServerError | None = None


class Admission:
    """The judgement for everything that is done in Python. All methods belong to the loop's thread."""

    def __init__(
        self,
        table: Rights,
        directory: Directory,
        failures: Failures,
        *,
        is_on: bool,
        allow_anonymous: bool = False,
        allow_plaintext: bool = False,
        wall_ms: Callable[[], int],
        denied: Callable[[str, str, str], None] = lambda _what, _who, _peer: None,
    ) -> None:
        self.table = table
        self.directory = directory
        self.failures = failures
        self.is_on = is_on
        self._allow_anonymous = allow_anonymous
        self._allow_plaintext = allow_plaintext
        self._wall_ms = wall_ms
        self._denied = denied
        self._holds: set[Hold] = set()
        self._generation = -1
        self._looking: asyncio.Task[None] | None = None

    # --- coming in --------------------------------------------------------------------------

    def enter(
        self, key: bytes | None, address: str, *, encrypted: bool, names: tuple[str, ...] = ()
    ) -> Caller:
        """Say who calls, by key, else by the names of its certificate. Raises Unauthenticated.

        `address` is the peer's, without a port; `key` is the text after "Bearer".
        """
        if not self.is_on:
            if not (self._allow_anonymous or is_loopback(address)):
                self._denied("not_local", "", address)
                raise errors.Unauthenticated(NOT_LOCAL)
            return Caller(None, "anonymous", "", "", True, address)
        if key is not None:
            if not (encrypted or self._allow_plaintext or is_loopback(address)):
                self._denied("plaintext", "", address)
                raise errors.Unauthenticated(NOT_PLAIN)
            return self._by_key(key, address)
        for name in names:
            if caller := self.directory.caller_of_name(name):
                return self._caller(caller, self.directory.principals[name], "", address)
        self._denied("no_key" if not names else "unknown_certificate", "", address)
        if names:
            raise errors.Unauthenticated(
                "no principal has a name of this certificate: an admin makes one with fila auth grant"
            )
        raise errors.Unauthenticated(NO_KEY)

    def _by_key(self, text: bytes, address: str) -> Caller:
        key = keys.parse(text)
        caller, record = self.directory.find(key.id, key.digest) if key is not None else (0, None)
        if caller and record is not None:
            return self._caller(caller, self.directory.principals[record.principal], record.id, address)
        name = record.principal if record is not None else ""
        why = "expired" if record is not None else "wrong"
        self._denied(f"{why}_key", name or (key.id if key is not None else ""), address)
        refusal = errors.Unauthenticated(
            "the key has expired; ask an admin for another"
            if record is not None
            else "the key is not valid: it was mistyped, or it was revoked"
        )
        delay_s = self.failures.add(address, key.id if key is not None else "")
        refusal.before_reported = partial(self.failures.wait, delay_s)
        raise refusal

    @staticmethod
    def _caller(number: int, principal: PrincipalRecord, key_id: str, address: str) -> Caller:
        return Caller(number, principal.name, key_id, principal.tenant, is_admin(principal), address)

    # --- what they may do -------------------------------------------------------------------

    def check(self, caller: Caller, need: Need, queue: str = "", channel: str = "") -> None:
        """Raises QueueNotFound where the caller has no right at all on the queue, else PermissionDenied."""
        if caller.number is None or need.right == NOTHING:
            return
        if not self.table.holds(caller.number):
            raise errors.Unauthenticated("the key was revoked or has expired; ask an admin for another")
        if not need.queue:
            if not self.is_admin(caller) and not (caller.tenant and need.for_tenant):
                self._refuse(
                    caller,
                    f"{need.words}: this key has no such right; an admin gives it with fila auth grant",
                )
            return
        everywhere, somewhere = self.table.on(
            caller.number, queue.encode(), (channel or "default").encode() if need.channel else b""
        )
        if not somewhere and not need.creates:
            self._denied("hidden", caller.name, caller.peer)
            raise errors.QueueNotFound(queue)
        # Consume may be given by channel; of the others the queue alone decides.
        granted = everywhere if need.right == CONSUME else somewhere
        # A tenant is told about itself alone, and whatever it may do there is enough for that.
        right = ANY if need.right == LOOK and need.for_tenant and caller.tenant else need.right
        if not granted & right:
            self._denied("no_right", caller.name, caller.peer)
            raise errors.PermissionDenied.on_queue(need.words, queue)
        self.check_bound(caller, need)

    def check_bound(self, caller: Caller, need: Need) -> None:
        """Raises PermissionDenied for a tenant's key where the answer would speak of others."""
        if caller.number is not None and caller.tenant and not need.for_tenant:
            self._refuse(
                caller,
                f'{need.words}: this key is bound to tenant "{caller.tenant}", which produces, and looks at its own '
                "numbers",
            )

    def _refuse(self, caller: Caller, why: str) -> None:
        self._denied("no_right", caller.name, caller.peer)
        raise errors.PermissionDenied(why)

    def is_admin(self, caller: Caller) -> bool:
        """Whether the caller is an admin now; what it was when it came in may be long ago."""
        return caller.number is None or bool(self.table.on(caller.number, b"")[0] & ADMIN)

    def sees(self, caller: Caller, queue: str) -> bool:
        """Whether the caller has any right on the queue: others do not exist for it."""
        return caller.number is None or bool(self.table.on(caller.number, queue.encode())[1])

    def sees_channel(self, caller: Caller, queue: str, channel: str) -> bool:
        """Whether the caller may name the channel: one that consumes others does not, and who produces only names
        the one that everybody knows. A tenant's key names any, where it is told its own numbers."""
        if caller.number is None:
            return True
        everywhere, somewhere = self.table.on(caller.number, queue.encode(), channel.encode())
        if may_look := somewhere & LOOK:
            return bool(everywhere & may_look)
        return bool(everywhere & PRODUCE) and (channel == DEFAULT_CHANNEL or bool(caller.tenant))

    def sees_all_channels(self, caller: Caller, queue: str) -> bool:
        """Whether the caller may name every channel of the queue, those to come too."""
        return self.sees_channel(caller, queue, "")

    def may_watch(self, caller: Caller, queue: str, channel: str = "") -> bool:
        """Whether the caller may be told what happens there; of the broker itself (no queue) admins are told."""
        if caller.number is None:
            return True
        # Asked again for each event of a stream that may have begun with other rights.
        everywhere, somewhere = self.table.on(caller.number, queue.encode(), channel.encode())
        if everywhere & ADMIN:
            return True
        if not queue or caller.tenant:
            return False
        return bool((everywhere if channel else somewhere) & LOOK)

    def may_name(self, caller: Caller, principal: str) -> bool:
        """Whether the caller may be told that it was this principal, and from where."""
        return self.is_admin(caller) or (bool(principal) and principal == caller.name)

    def sees_keys(self, caller: Caller, queue: str) -> bool:
        """Whether the caller may be told names of fairness keys and buckets: a mere producer is not."""
        return caller.number is None or bool(self.table.on(caller.number, queue.encode())[1] & LOOK)

    def may_produce(self, caller: Caller, queue: str) -> bool:
        """Whether the caller may enqueue there."""
        return caller.number is None or bool(self.table.on(caller.number, queue.encode())[1] & PRODUCE)

    def may_manage(self, caller: Caller, queue: str) -> bool:
        """Whether the caller may change the queue."""
        return caller.number is None or bool(self.table.on(caller.number, queue.encode())[1] & MANAGE)

    def sees_messages(self, caller: Caller, queue: str) -> bool:
        """Whether the caller may be shown parts of messages, as a script's error quotes them."""
        if caller.number is None:
            return True
        return bool(self.table.on(caller.number, queue.encode())[1] & (CONSUME | MANAGE))

    # --- what stays open --------------------------------------------------------------------

    def hold(
        self,
        caller: Caller,
        right: int,
        queue: str,
        channel: str,
        end: Callable[[errors.FilaServerError], None],
    ) -> Callable[[], None]:
        """Call `end` when the caller loses the right (0: any valid key); the returned function takes that back."""
        if caller.number is None:
            return _nothing
        hold = Hold(caller, right, queue, channel, end)
        self._holds.add(hold)
        return lambda: self._holds.discard(hold)

    def start(self) -> None:
        """Look from now on."""
        self._looking = asyncio.get_running_loop().create_task(self._look_on())

    def stop(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()

    async def _look_on(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    def look(self) -> None:
        """End what its holder may no longer hold."""
        self.directory.look()
        if self.table.generation == self._generation:
            return
        self._generation = self.table.generation
        for hold in list(self._holds):
            error = self._why_ended(hold)
            if error is not None:
                self._holds.discard(hold)
                hold.end(error)

    def _why_ended(self, hold: Hold) -> errors.FilaServerError | None:
        number = hold.caller.number
        assert number is not None
        if not self.table.holds(number):
            return errors.Unauthenticated("the key was revoked or has expired; ask an admin for another")
        if not hold.right:
            return None
        everywhere, somewhere = self.table.on(number, hold.queue.encode(), hold.channel.encode())
        # As in check(): consume may be given by channel.
        if (everywhere if hold.right == CONSUME else somewhere) & hold.right:
            return None
        what = f'the right on queue "{hold.queue}"' if hold.queue else "the right"
        return errors.PermissionDenied(
            f"{what} was taken back while it was in use; an admin gives it with fila auth grant"
        )

    # --- counted quotas ---------------------------------------------------------------------

    def take_stream(self, caller: Caller) -> Callable[[], None]:
        """Count a stream or waiting pull; raises QuotaExceeded. The returned function gives it back."""
        if caller.number is None:
            return _nothing
        return _once(self.table.give_stream, self.table.take_stream(caller.number))

    def take_connection(self, caller: Caller) -> Callable[[], None]:
        """Count a connection of the Redis protocol; raises QuotaExceeded. The returned function gives it back."""
        if caller.number is None:
            return _nothing
        return _once(self.table.give_connection, self.table.take_connection(caller.number))


def _once(give: Callable[[int], None], principal: int) -> Callable[[], None]:
    given_back = False

    def give_back() -> None:
        nonlocal given_back
        if not given_back:
            given_back = True
            give(principal)

    return give_back


def _nothing() -> None:
    pass
