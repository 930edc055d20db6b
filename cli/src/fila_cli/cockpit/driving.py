"""The cockpit on a terminal: one call a tick, on a thread of its own so that keys answer while the broker does not."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from fila_cli.cockpit.cockpit import Call, Cockpit, in_words
from fila_cli.cockpit.screen import render
from fila_cli.cockpit.terminal import Keys
from fila_cli.troubles import ask_what_is_wrong

if TYPE_CHECKING:
    from fila.v1.events_pb2 import GetStatusResponse
    from fila_cli.session import Session

ANSWER_S_MAX = 5.0
KEYS_MAX = 500
"""Keys that are listed of a queue; more could not be read."""
KEYS_WAIT_S = 0.1


def ask(session: Session, call: Call) -> Any:
    """Make one call of the broker."""
    from fila.v1 import admin_pb2

    timeout_s = min(session.timeout_s, ANSWER_S_MAX)
    admin = session.admin
    if call.what == "queues":
        return admin.ListQueues(admin_pb2.ListQueuesRequest(), timeout=timeout_s)
    if call.what == "keys":
        request = admin_pb2.GetStatsRequest(queue=call.queue, channel=call.channel, max_keys=KEYS_MAX)
        return admin.GetStats(request, timeout=timeout_s)
    if call.what == "explain":
        explain = admin_pb2.ExplainKeyRequest(queue=call.queue, channel=call.channel, fairness_key=call.key)
        return admin.ExplainKey(explain, timeout=timeout_s)
    if call.what == "pause_queue":
        update = admin_pb2.UpdateQueueRequest(
            queue=call.queue, config=admin_pb2.QueueConfig(paused=call.paused), comment=call.reason
        )
        update.update_mask.paths.append("paused")
        return admin.UpdateQueue(update, timeout=timeout_s)
    policy = admin_pb2.SetKeyPolicyRequest(queue=call.queue, fairness_key=call.key)
    if call.what == "pause_key":
        policy.paused, policy.comment = call.paused, call.reason
    else:
        policy.weight = call.weight
    return admin.SetKeyPolicy(policy, timeout=timeout_s)


def _look(session: Session, call: Call) -> tuple[Any, GetStatusResponse]:
    """What a screen shows, and what is wrong."""
    return ask(session, call), ask_what_is_wrong(session, call.queue, call.key)


class Driving:
    """Asks, reads keys and draws until somebody leaves."""

    def __init__(self, session: Session, cockpit: Cockpit, interval_s: float) -> None:
        self._session = session
        self._cockpit = cockpit
        self._interval_s = interval_s
        self._asked: tuple[Call, Future[Any]] | None = None
        self._changing: tuple[Call, Future[Any]] | None = None
        self._next_s = 0.0
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="top")

    def run(self) -> None:
        """Until `q`, Ctrl-C, or an error that trying again would not mend."""
        from rich.live import Live

        try:
            with Keys() as keys, Live(screen=True, auto_refresh=False) as live:
                while not self._cockpit.is_over:
                    self._take_answers()
                    self._ask_when_due()
                    live.update(self._picture(live.console.size), refresh=True)
                    self._press(keys.wait(KEYS_WAIT_S))
        except KeyboardInterrupt:
            return
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _picture(self, size: Any) -> Any:
        return render(
            self._cockpit,
            address=self._session.address,
            clock=time.strftime("%H:%M:%S"),
            now_s=time.monotonic(),
            width=size.width,
            height=size.height,
        )

    def _press(self, pressed: list[str]) -> None:
        for key in pressed:
            before = self._cockpit.look
            change = self._cockpit.press(key)
            if change is not None and self._changing is None:
                self._changing = change, self._pool.submit(ask, self._session, change)
            if self._cockpit.look != before:
                self._next_s = 0.0  # another screen: ask at once

    def _ask_when_due(self) -> None:
        if self._asked is None and time.monotonic() >= self._next_s:
            call = self._cockpit.look
            self._asked = call, self._pool.submit(_look, self._session, call)
            self._next_s = time.monotonic() + self._interval_s

    def _take_answers(self) -> None:
        if self._asked is not None and self._asked[1].done():
            (call, answer), self._asked = self._asked, None
            self._take_look(call, answer)
        if self._changing is not None and self._changing[1].done():
            (call, answer), self._changing = self._changing, None
            self._take_change(call, answer)

    def _take_look(self, call: Call, answer: Future[Any]) -> None:
        import grpc

        now_s = time.monotonic()
        try:
            looked, status = answer.result()
            self._cockpit.take(call, looked, now_s)
            self._cockpit.status = status
        except grpc.RpcError as error:
            failed: Any = error
            passing = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
            if failed.code() in passing:
                self._cockpit.miss(now_s)
            elif failed.code() is grpc.StatusCode.NOT_FOUND and not self._cockpit.only_queue:
                self._cockpit.press("escape")  # deleted meanwhile
                self._cockpit.tell(failed.details(), is_error=True)
            else:
                raise

    def _take_change(self, call: Call, answer: Future[Any]) -> None:
        import grpc

        try:
            answer.result()
        except grpc.RpcError as error:
            failed: Any = error
            self._cockpit.tell(f"could not {in_words(call)}: {failed.details()}", is_error=True)
        else:
            self._cockpit.tell(f"done: {in_words(call)}")
            self._next_s = 0.0
