"""A channel for stubs, to whichever node of a group serves.

A node that stands by names the owner (NOT_OWNER), and the call is made again there. Of several addresses the first that
answers and serves is used, and one that breaks is left for the next call. A takeover takes seconds: for so long
somebody may wait for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from fila_cli.failures import owner_of, reason_of

if TYPE_CHECKING:
    import grpc

PATIENCE_S = 10.0
PAUSE_S = 0.2
CONNECT_S_MAX = 1.0
PROBE_S_MAX = 5.0
_PROBE = "/fila.v1.FilaAdmin/GetStatus"


class GroupChannel:
    """In place of a grpc.Channel, of which stubs need these methods."""

    def __init__(self, targets: Sequence[str], open_channel: Callable[[str], grpc.Channel]) -> None:
        self._targets, self._open = list(targets), open_channel
        self._channels: dict[str, grpc.Channel] = {}
        self._here = self._targets[0]
        self._is_proved = len(self._targets) == 1  # then nobody is asked before

    def close(self) -> None:
        """End what is open."""
        for channel in self._channels.values():
            channel.close()

    def unary_unary(self, *given: Any, **more: Any) -> Following:
        """A stub's call of this kind, as the two below."""
        return Following(self, "unary_unary", given, more)

    def unary_stream(self, *given: Any, **more: Any) -> Following:
        return Following(self, "unary_stream", given, more)

    def stream_stream(self, *given: Any, **more: Any) -> Following:
        return Following(self, "stream_stream", given, more)

    def _channel(self) -> grpc.Channel:
        if self._here not in self._channels:
            self._channels[self._here] = self._open(self._here)
        return self._channels[self._here]

    def each(self) -> Iterator[tuple[str, grpc.Channel]]:
        """Every address that was given, with a channel to that node alone, one by one; those that cannot be reached are
        left out."""
        import grpc

        for target in self._targets:
            if target not in self._channels:
                self._channels[target] = self._open(target)
            with suppress(grpc.FutureTimeoutError):
                grpc.channel_ready_future(self._channels[target]).result(CONNECT_S_MAX)
                yield target, self._channels[target]

    def serving(self) -> grpc.Channel:
        """A channel to the node that serves, as far as is known; to the first address where nobody does."""
        ends_s = time.monotonic() + PATIENCE_S
        asked = 0
        while not self._is_proved:
            if self._serves():
                self._is_proved = True
                break
            asked += 1
            if asked % len(self._targets) == 0:
                if time.monotonic() > ends_s:
                    self._here = self._targets[0]
                    break
                time.sleep(PAUSE_S)
        return self._channel()

    def _serves(self) -> bool:
        """Whether the node here does; if not, another one is here now."""
        import grpc

        channel = self._channel()
        probe: Any = channel.unary_unary(_PROBE)
        try:
            grpc.channel_ready_future(channel).result(CONNECT_S_MAX)
            probe(b"", timeout=PROBE_S_MAX)
        except grpc.FutureTimeoutError:
            self._go_on()
            return False
        except grpc.RpcError as error:
            call: Any = error
            # A node with another answer serves, if not this caller.
            if call.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                return True
            if owner := owner_of(call):
                self._here = owner
            else:
                self._go_on()
            return False
        return True

    def _go_on(self) -> None:
        targets = self._targets
        at = targets.index(self._here) + 1 if self._here in targets else 0
        self._here = targets[at % len(targets)]

    def follows(self, error: grpc.RpcError) -> bool:
        """Note why a call failed; whether it is to be made again, as another node serves and nothing has happened."""
        import grpc

        call: Any = error
        if call.code() is not grpc.StatusCode.UNAVAILABLE:
            return False
        is_refused = reason_of(call) == "NOT_OWNER"
        if len(self._targets) > 1:
            self._is_proved = False
            if not is_refused:
                self._go_on()
        owner = owner_of(call) if is_refused else ""
        if owner:
            self._here = owner
        return bool(owner) or (is_refused and len(self._targets) > 1)


class Following:
    """One call of a stub."""

    def __init__(self, group: GroupChannel, kind: str, given: Sequence[Any], more: dict[str, Any]) -> None:
        self._group, self._kind, self._given, self._more = group, kind, given, more

    def _made(self) -> Any:
        return getattr(self._group.serving(), self._kind)(*self._given, **self._more)

    def future(self, request: Any, **more: Any) -> Any:
        """Begin it."""
        return self._made().future(request, **more)

    def __call__(self, request: Any, **more: Any) -> Any:
        """Make it. A call that answers with a stream is not made again: what it ends with is noted for the next one."""
        import grpc

        if self._kind != "unary_unary":
            call = self._made()(request, **more)
            call.add_callback(lambda: self._group.follows(call))
            return call
        ends_s = time.monotonic() + PATIENCE_S
        for tries in count():
            try:
                return self._made()(request, **more)
            except grpc.RpcError as error:
                if not self._group.follows(error) or (tries and time.monotonic() > ends_s):
                    raise
                if tries:
                    time.sleep(PAUSE_S)
        raise AssertionError("count() has no end")
