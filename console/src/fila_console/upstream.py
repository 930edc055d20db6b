"""One broker with one key: everything the console asks goes through here, and a failure comes back in words.

Browsers that use one key share one of these, its connection, and what is being watched (`watches.py`). Nothing of
answers is kept but colours, so that a key has the same one on every page.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from fila import FilaError, StoredMessage
from fila.answers import (
    ChannelInfo,
    ConsumerInfo,
    FoundKeys,
    QueueDetails,
    QueueInfo,
    QueueVersion,
    QueueVersionDetails,
    SeekPreview,
    Stats,
    answer,
)
from fila.connection import Connection
from fila.dead_letters import Operation
from fila.each_node import joined
from fila.explanation import KeyExplanation, KeyPolicyPreview
from fila.limits import LimitPage, LimitState
from fila.methods import GET_CLUSTER_STATUS, LIST_QUEUES, WHO_AM_I
from fila.observations import BrokerStatus, Event, KeyPolicyState, LateKeys
from fila.options import ClientOptions
from fila.principals import Identity, Principal
from fila.schedules import SchedulePage
from fila.tried import DryRun
from fila.v1.admin_pb2 import ListQueuesRequest
from fila.v1.auth_pb2 import WhoAmIRequest
from fila.v1.cluster_pb2 import NODE_ROLE_OWNER, GetClusterStatusRequest, GetClusterStatusResponse
from fila.watched import Series, StatsChange
from fila.whereabouts import MessageStatus
from fila_console.broker_clock import BrokerClock
from fila_console.changes import Changes, NewKeyPolicy
from fila_console.feed import Feed
from fila_console.line import CALL_S_MAX, CONNECT_S_MAX, credentials_of
from fila_console.settings import Broker
from fila_console.trouble import Trouble, trouble_of

DLQ = ".dlq"
GROUP_EVERY_S, GROUP_S_MAX = 30.0, 0.5
COLORS = 7
"""Colours of series; what comes later shares them."""
_COLORED_MAX = 4_096


class NamedQueues(NamedTuple):
    """Queues that a search found, by name."""

    names: list[str]
    matched: int
    """How many there are."""


class GroupStatus(NamedTuple):
    """How the nodes of a group are."""

    status: GetClusterStatusResponse
    asked: int
    """0: the node that serves says so; else so many nodes, none of which serves, said how they are themselves."""


class Upstream(Changes):
    """The calls. Each raises Trouble."""

    def __init__(self, broker: Broker, key: str, ca_file: str = "") -> None:
        super().__init__(broker, key, ca_file)
        self._colors: OrderedDict[tuple[str, str], int] = OrderedDict()
        self.clock = BrokerClock()
        self.is_in_group = False
        """Whether the broker is a node of a group, and tells this key of it; by learn_group."""
        self._group_asked_s = float("-inf")

    def color(self, queue: str, key: str) -> int:
        """The place of a key in the palette, the same wherever it is shown."""
        known = self._colors.get((queue, key))
        if known is not None:
            return known
        if len(self._colors) >= _COLORED_MAX:
            self._colors.popitem(last=False)
        used = [color for (name, _), color in self._colors.items() if name == queue]
        free = [color for color in range(COLORS) if color not in used]
        digest = hashlib.sha256(f"{queue}\0{key}".encode(errors="replace")).digest()
        chosen = free[0] if free else digest[0] % COLORS
        self._colors[queue, key] = chosen
        return chosen

    # What is read.

    async def status(self, queue: str = "", max_troubles: int = 0) -> BrokerStatus:
        """How the broker is, and what is wrong: with it, or with one queue."""
        client = await self.connect()
        return await self.told(client.get_status(queue=queue, max_troubles=max_troubles))

    async def group(self) -> GroupStatus:
        """How the nodes of the group are, by the one that serves; where none does, by each that answers."""
        client = await self.connect()
        asked = GetClusterStatusRequest()
        told = await self.told(client._connection.call(GET_CLUSTER_STATUS, asked, {}))
        self.is_in_group = bool(told.group)
        if not told.nodes or told.nodes[0].role == NODE_ROLE_OWNER:
            return GroupStatus(told, 0)
        answers = await asyncio.gather(*map(self._of_node, self.broker.addresses))
        own = [each for each in answers if each is not None and each.nodes] or [told]
        owners = [each for each in own if each.nodes[0].role == NODE_ROLE_OWNER]
        return GroupStatus(owners[0], 0) if owners else GroupStatus(joined(own), len(own))

    async def _of_node(self, address: str) -> GetClusterStatusResponse | None:
        """What a node says that perhaps does not serve; None where nothing came."""
        options = ClientOptions(
            api_key=self.key, call_timeout_s=CONNECT_S_MAX, retry_for_s=0, name="fila console"
        )
        connection = Connection(address, options, self._credentials)
        try:
            return await connection.call(GET_CLUSTER_STATUS, GetClusterStatusRequest(), {})
        except FilaError:
            return None
        finally:
            await connection.close()

    async def learn_group(self) -> None:
        """See whether the menu has a page of the group, now and then, and without holding up a page for long."""
        now_s = time.monotonic()
        if now_s - self._group_asked_s < GROUP_EVERY_S:
            return
        self._group_asked_s = now_s
        with contextlib.suppress(TimeoutError, Trouble):
            async with asyncio.timeout(GROUP_S_MAX):
                await self.group()

    async def who(self) -> Identity:
        """Whose key this is, and whether the broker asks for one."""
        client = await self.connect()
        return await self.told(client.who_am_i())

    async def find_keys(self, queue: str, prefix: str, most: int) -> FoundKeys:
        """The keys that begin so."""
        client = await self.connect()
        return await self.told(client.find_keys(queue, prefix, limit=most))

    def follow(
        self, queues: Sequence[str] = (), channel: str = "", top: int = 50, keys: Sequence[str] = ()
    ) -> Feed:
        """What the broker tells of these queues and of their keys with the largest backlogs; or of all queues together,
        and of those in which most waits."""

        async def told() -> AsyncIterator[StatsChange]:
            client = await self.connect()
            try:
                async for change in client.watch_stats(queues, channel=channel or None, top=top, keys=keys):
                    if change.at is not None:
                        self.clock.hear(change.at)
                    yield change
            except FilaError as error:
                raise trouble_of(error, self.broker.address) from error

        return Feed(told, keys)

    async def series(self, queue: str, channel: str = "", keys: Sequence[str] = ()) -> Series:
        """The last hour of a channel, and of keys."""
        client = await self.connect()
        return await self.told(client.get_series(queue, channel=channel or None, keys=keys))

    async def preview_seek(self, queue: str, channel: str, target: int | datetime) -> SeekPreview:
        """What moving a channel would do."""
        client = await self.connect()
        return await self.told(client.preview_seek(queue, channel or None, target))

    async def principals(self, prefix: str) -> list[Principal]:
        """Names that begin so, with their rights and keys; for admins."""
        client = await self.connect()
        return await self.told(client.list_principals(prefix))

    async def queues(self) -> list[QueueInfo]:
        """Every queue the key may name."""
        client = await self.connect()
        return await self.told(client.list_queues())

    async def named_queues(self, *, prefix: str = "", containing: str = "", most: int) -> NamedQueues:
        """The first queues whose names begin so, or have that in them."""
        client = await self.connect()
        asked = ListQueuesRequest(prefix=prefix, containing=containing, page_size=most)
        told = await self.told(client._connection.call(LIST_QUEUES, asked, {}))
        return NamedQueues([each.name for each in told.queues], told.matched)

    async def crowded_queues(self, most: int) -> tuple[list[str], int]:
        """Of queues those in which most waits, those without keys apart, and how many queues there are."""
        client = await self.connect()
        told = await self.told(_first_of(client.watch_stats(top=most)))
        names = {each.state.queue: None for each in told.channels if each.state.active_keys}
        queues = told.sums.queues if told.sums is not None else len(names)
        return [name for name in names if not name.endswith(DLQ)], queues

    async def queue(self, name: str) -> QueueDetails:
        """A queue's settings."""
        client = await self.connect()
        return await self.told(client.get_queue(name))

    async def channels(self, queue: str) -> list[str]:
        """A queue's channels that the key may know of, by name."""
        client = await self.connect()
        return [each.name for each in await self.told(client.list_channels(queue))]

    async def channel_infos(self, queue: str) -> list[ChannelInfo]:
        """A queue's channels that the key may know of, in numbers."""
        client = await self.connect()
        return await self.told(client.list_channels(queue))

    async def versions(self, queue: str, most: int = 0) -> list[QueueVersion]:
        """The versions of a queue's settings, newest first; 0: all that are kept."""
        client = await self.connect()
        return await self.told(client.list_queue_versions(queue, limit=most))

    async def version(self, queue: str, number: int) -> QueueVersionDetails:
        """One version, with its settings."""
        client = await self.connect()
        return await self.told(client.get_queue_version(queue, number))

    async def dry_run(self, queue: str, last: int, **settings: Any) -> DryRun:
        """What other settings would do to the newest messages and dead letters; nothing is changed."""
        client = await self.connect()
        return await self.told(client.dry_run_policy(queue, last=last, **settings))

    async def operations(self, dlq: str) -> list[Operation]:
        """What the broker does or did with dead letters, newest first."""
        client = await self.connect()
        return await self.told(client.list_operations(dlq))

    async def stats(self, queue: str, channel: str = "", max_keys: int = 1) -> Stats:
        """A queue in numbers."""
        client = await self.connect()
        return await self.told(client.get_stats(queue, channel=channel or None, max_keys=max_keys))

    async def late(self, queue: str = "", max_keys: int = 50) -> LateKeys:
        """The keys that wait longest."""
        client = await self.connect()
        return await self.told(client.list_late(queue, max_keys=max_keys))

    async def explain(self, queue: str, key: str, channel: str = "") -> KeyExplanation:
        """What holds a key's next message."""
        client = await self.connect()
        return await self.told(client.explain_key(queue, key, channel=channel or None))

    async def limits(self, prefix: str = "", after: str = "") -> LimitPage:
        """Limits and how they are; for admins."""
        client = await self.connect()
        return await self.told(client.list_limits(prefix, after=after))

    async def limit_of(self, throttle_key: str) -> LimitState | None:
        """What messages meet that name this throttle key; for admins."""
        client = await self.connect()
        return await self.told(client.get_limit(throttle_key))

    async def schedules(self, queue: str, page_token: str = "") -> SchedulePage:
        """Schedules with their next moments, of one queue or of all that the key may manage."""
        client = await self.connect()
        return await self.told(client.list_schedules(queue, page_token=page_token))

    async def message(
        self, queue: str, message_id: str, dedup_key: str = "", channel: str = ""
    ) -> MessageStatus:
        """Where one message is, and what happened to it."""
        client = await self.connect()
        return await self.told(
            client.get_message(
                queue, message_id, dedup_key=dedup_key, channel=channel or None, with_past=True
            )
        )

    async def preview_key_policy(
        self, queue: str, key: str, policy: NewKeyPolicy, channel: str = ""
    ) -> KeyPolicyPreview:
        """What a change of a key's policy would do; what is None stays."""
        client = await self.connect()
        return await self.told(
            client.preview_key_policy(
                queue,
                key,
                channel=channel or None,
                weight=policy.weight,
                max_in_flight=policy.cap,
                rate_per_second=policy.rate,
                committed_per_second=policy.committed,
                paused=policy.paused,
            )
        )

    async def key_policies(self, queue: str, key: str = "") -> list[KeyPolicyState]:
        """What was set for single keys."""
        client = await self.connect()
        return await self.told(client.list_key_policies(queue, fairness_key=key))

    async def consumers(self, queue: str, channel: str = "") -> list[ConsumerInfo]:
        """Who consumes."""
        client = await self.connect()
        return await self.told(client.list_consumers(queue, channel=channel or None))

    async def peek(
        self, queue: str, after_offset: int = 0, most: int = 100, key: str = ""
    ) -> list[StoredMessage]:
        """Pending messages, in order of offset, without leasing them."""
        client = await self.connect()
        return await self.told(
            client.peek(queue, after_offset=after_offset, max_messages=most, fairness_key=key)
        )

    async def read_log(
        self, queue: str, most: int, from_offset: int = 0, from_time: datetime | None = None, key: str = ""
    ) -> list[StoredMessage]:
        """Retained messages from an offset or a moment on."""
        client = await self.connect()

        async def read() -> list[StoredMessage]:
            found: list[StoredMessage] = []
            messages = client.read_log(
                queue, from_offset=from_offset, from_time=from_time, fairness_key=key, max_batch=most
            )
            async for message in messages:
                found.append(message)
                if len(found) >= most:
                    break
            return found

        return await self.told(read())

    async def newest_offset(self, queue: str, oldest: int, head: int) -> int:
        """The newest retained offset; `oldest` is there, and below `head` a crash leaves out up to a million."""
        behind, middle = head, head - 1
        while behind - oldest > 1:
            if found := await self.read_log(queue, 1, middle):
                oldest = found[0].offset
            else:
                behind = middle
            middle = (oldest + behind) // 2
        return oldest

    async def events(
        self, queue: str, kinds: Sequence[str], key: str, after_position: int, *, follow: bool
    ) -> AsyncIterator[Event]:
        """What happened; with `follow` what happens, too."""
        client = await self.connect()
        try:
            async for event in client.watch_events(
                queue=queue, kinds=kinds, fairness_key=key, after_position=after_position, follow=follow
            ):
                yield event
        except FilaError as error:
            raise trouble_of(error, self.broker.address) from error


class KeyCheck:
    """Whose a key is, asked over one connection for all keys that somebody comes with."""

    def __init__(self, broker: Broker, ca_file: str = "") -> None:
        self._broker = broker
        self._ca_file = ca_file
        self._connection: Connection | None = None

    async def whose(self, key: str) -> Identity:
        """What the broker says of a key. Raises Trouble."""
        if self._connection is None:
            # Without a key of its own, whatever the environment holds.
            options = ClientOptions(
                api_key="", call_timeout_s=CALL_S_MAX, retry_for_s=CONNECT_S_MAX, name="fila console"
            )
            credentials = credentials_of(self._broker, self._ca_file)
            self._connection = Connection(self._broker.address, options, credentials)
        try:
            told = await self._connection.with_key(key).call(WHO_AM_I, WhoAmIRequest(), {})
        except FilaError as error:
            raise trouble_of(error, self._broker.address) from error
        return answer(Identity, told)

    async def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            await self._connection.close()


async def asks_for_no_key(broker: Broker, ca_file: str = "") -> bool:
    """Whether the broker serves this machine without a key. Raises Trouble when it does not answer."""
    nobody = Upstream(broker, "", ca_file)
    try:
        return not (await nobody.who()).auth_enabled
    except Trouble as trouble:
        if trouble.logs_out:
            return False
        raise
    finally:
        await nobody.close()


async def _first_of(changes: AsyncIterator[StatsChange]) -> StatsChange:
    return await anext(changes)
