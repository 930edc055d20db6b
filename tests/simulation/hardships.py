"""What happens to a broker from outside: full disks and stalls, clocks that are set, clean stops under load, damage.

Beside it retention that drops, frames that are written anew, letters redriven with routings, and batches and pulls as
Redis clients make them. Few promises are judged, and those whatever happens; simulate.py judges what each message has
coming to it while nothing of this happens. One seed, one run: `python -m tests.simulation.hardships SEED [COUNT]`.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from tests.core.driven_engine import MS
from tests.simulation.hardship_model import DLQ, Told
from tests.simulation.oracles import Broken
from tests.simulation.seeds import run_seeds
from tests.simulation.troubled_broker import (
    HARD_BYTES,
    QUEUES,
    ROOMY,
    SOFT_BYTES,
    VISIBILITY_MS,
    Stopped,
    TroubledBroker,
)

STEPS = 150
UNAVAILABLE = 14
"""What is asked of a broker that stops."""
KEYS = ("ant", "bee", "cat")
LONGEST_MS = 300_000
"""No lease, delay or backoff is longer."""
TTL_LATE_MS = 200
"""A pull is served where it stands among a pass's commands, before what ended since the last pass does."""


class Hardships(TroubledBroker):
    """One run."""

    # --- producers ----------------------------------------------------------------------------------

    def _message(self, queue: str, plain: bool) -> tuple[service.EnqueueMessage, Told]:
        rnd, witness = self.random, self.witness
        token = len(witness.told)
        payload = b"%d|" % token + b"." * rnd.choice([10, 500, 20_000, 60_000])
        message = service.EnqueueMessage(queue=queue, payload=payload, headers={"k": rnd.choice(KEYS)})
        told = Told(token, queue, payload, message.headers["k"], self.engine.mono_ns, self.engine.wall_ms)
        told.may_be_gone = queue == "bounded"
        if not plain and rnd.random() < 0.1:
            message.options.delay_ms = rnd.choice([200, 3_000])
        if not plain and queue != "bounded" and rnd.random() < 0.1:
            message.options.ttl_ms = rnd.choice([300, 4_000])
            told.may_be_gone = True
        elif not plain and rnd.random() < 0.2:
            message.options.dedup_key = told.dedup_key = f"pair {token // 40}, {rnd.randrange(3)}"
        witness.told.append(told)
        return message, told

    def enqueue(self) -> None:
        """To one queue; or to several by turns, as a pipeline of pushes; or all or nothing."""
        rnd = self.random
        shape = rnd.choice(["one", "one", "several", "atomic"])
        names = rnd.choices(list(QUEUES), k=1 if shape != "several" else rnd.randint(2, 4))
        count = rnd.choice([1, 2, 5, 20])
        pairs = [self._message(names[i % len(names)], shape == "atomic") for i in range(count)]
        self.say(f"{shape}: {[told.token for _, told in pairs]} to {names}")

        def answered(status: int, payload: bytes) -> None:
            if status == UNAVAILABLE:
                for _, told in pairs:
                    told.refused = True
                return
            results = service.EnqueueBatchResponse.FromString(payload).results
            if status or len(results) != count:
                raise Broken(f"a batch of {count} was answered {status} with {len(results)} results")
            codes = {bool(result.error.code) for result in results}
            if shape == "atomic":
                self.witness.judge("an atomic batch is stored whole or not at all", len(codes) == 1, codes)
            for (message, told), result in zip(pairs, results, strict=True):
                self.witness.answered(told, result.error.code, result.message_id, result.offset)
                self._times(told, message.options)

        batch = service.EnqueueBatchRequest(queue=names[0], messages=[message for message, _ in pairs])
        kind = commands.ENQUEUE_ATOMIC if shape == "atomic" else commands.ENQUEUE_BATCH
        if not self.ask(kind, batch, answered):
            for _, told in pairs:
                told.refused = True

    def _times(self, told: Told, options: service.EnqueueOptions) -> None:
        if told.refused or told.may_be_another or told.lease_id:
            return
        if options.delay_ms:
            told.not_before_ns = told.asked_ns + options.delay_ms * MS
        # What was picked in time may come later where bytes are away or nothing can be written.
        calm = self.trouble == ROOMY and "storage.hot_payload_bytes" not in self.engine.settings
        if options.ttl_ms and calm:
            told.not_after_ns = self.engine.mono_ns + (options.ttl_ms + TTL_LATE_MS) * MS

    # --- consumers ----------------------------------------------------------------------------------

    def pull(self) -> None:
        rnd = self.random
        queue = rnd.choice([*QUEUES, f"work{DLQ}"])
        wait_ms = rnd.choice([0, 0, 700])
        self._pull(queue, rnd.choice([1, 5, 60]), wait_ms, leaves=rnd.random() < 0.1)

    def _pull(self, queue: str, most: int, wait_ms: int, *, leaves: bool) -> None:
        """`leaves`: by the time its answer comes nobody is there to read it."""
        asked_ns = self.engine.mono_ns

        def answered(status: int, payload: bytes) -> None:
            if status == UNAVAILABLE:
                return
            if status:
                raise Broken(f"a pull was answered {status}")
            ids = []
            for message in service.LeaseResponse.FromString(payload).messages:
                lease_id = message.metadata.lease_id
                told = self.witness.delivered(queue, message, asked_ns, self.engine.mono_ns, VISIBILITY_MS)
                self.held[lease_id] = queue, told
                ids.append(lease_id)
            self.say(f"pulled {[self.held[each][1].token for each in ids]} from {queue}")
            if leaves and ids:
                for lease_id in ids:
                    self.held.pop(lease_id)[1].held_until_ns = 0
                self.engine.submit(commands.CANCEL, service.Settle(lease_ids=ids))

        request = service.LeaseRequest(queue=queue, max_messages=most, wait_ms=wait_ms)
        self.ask(commands.LEASE, request, answered)

    def settle(self) -> None:
        rnd = self.random
        if not self.held:
            return
        queue = self.held[rnd.choice(list(self.held))][0]
        mine = [lease_id for lease_id, (where, _) in self.held.items() if where == queue]
        chosen = mine if rnd.random() < 0.3 else rnd.sample(mine, rnd.randint(1, len(mine)))
        self._settle(queue, chosen[:-1] if len(chosen) > 10 else chosen, ack=rnd.random() < 0.75)

    def _settle(self, queue: str, chosen: list[int], *, ack: bool) -> None:
        settled = [self.held.pop(lease_id)[1] for lease_id in chosen]
        self.say(f"{'ack' if ack else 'nack'} {[told.token for told in settled]} of {queue}")
        for told in settled:
            told.open_acks += ack
            if not ack:
                told.held_until_ns = 0

        def answered(status: int, payload: bytes) -> None:
            if status == UNAVAILABLE:
                return
            if status:
                raise Broken(f"settling in {queue} was answered {status}")
            results = service.SettleBatchResponse.FromString(payload).results
            for told, lease_id, result in zip(settled, chosen, results, strict=True):
                if ack and result.code == 0:
                    is_its_lease = told.lease_id == lease_id or (
                        self.witness.is_damaged and bool(told.routed_as)
                    )
                    self.witness.judge("what was acked never comes back", is_its_lease, told)
                if ack and told.lease_id == lease_id:
                    told.open_acks -= 1
                    told.acked = result.code == 0

        items = [
            service.SettleItem(message_id=told.id, lease_id=lease_id, error="no", delay_ms=0)
            for told, lease_id in zip(settled, chosen, strict=True)
        ]
        kind, batch = (
            (commands.ACK_BATCH, service.AckBatchRequest)
            if ack
            else (commands.NACK_BATCH, service.NackBatchRequest)
        )
        self.ask(kind, batch(queue=queue, items=items), answered)

    # --- operators ----------------------------------------------------------------------------------

    def redrive(self) -> None:
        """A page of dead letters, each routed anew as a script would have it."""
        self.quiet()
        peek = admin.PeekMessagesRequest(queue=f"work{DLQ}", max_messages=100)
        page_read = self.engine.call(commands.PEEK_MESSAGES, peek, admin.PeekMessagesResponse)
        self.hear()
        # A lease that ends as the page is read makes its letter ready, and a pull that waits takes it.
        pulled = {told.token for queue, told in self.held.values() if queue == peek.queue}
        letters = [
            letter for letter in page_read.messages if int(letter.payload.split(b"|")[0]) not in pulled
        ]
        if not letters:
            return
        page = seam_frames.RedrivePage(
            dlq_queue=f"work{DLQ}".encode(),
            count=256,
            up_to_offset=letters[-1].metadata.offset,
            only_routed=True,
        )
        routed = []
        for letter in letters:
            told = self.witness.told[int(letter.payload.split(b"|")[0])]
            told.routed_as = f"{self.random.choice(KEYS)} again"
            routed.append(told)
            routing = page.routings.add(offset=letter.metadata.offset, weight=self.random.choice([1, 7]))
            routing.fairness_key = told.routed_as.encode()
        self.say(f"redrive {[told.token for told in routed]}")
        answer = self.engine.call(commands.REDRIVE_MOVE, page.SerializeToString(), seam_frames.RedrivenPage)
        self.hear()
        self.witness.judge("a page moves what is in it", answer.moved == len(routed), answer)

    def end(self) -> None:
        """A kill, a power cut, or a clean stop, with work under way."""
        how = self.random.choice(["kill", "stop"] if self.under_os else ["kill", "power", "stop", "stop"])
        self.relieve()
        for _ in range(self.random.choice([0, 1, 6])):
            self.random.choice([self.enqueue, self.pull, self.settle])()
        if how != "stop":
            for _ in range(self.random.choice([0, 1, 2])):
                self.engine.run_pass()
        self.end_by(how)

    # --- the run ------------------------------------------------------------------------------------

    def run(self) -> Counter[str]:
        often: list[tuple[float, Callable[[], None]]] = [
            (16, self.enqueue),
            (14, self.pull),
            (14, self.settle),
            (12, self.wait),
            (3, self.befall),
            (2, self.set_clock),
            (4, self.redrive),
            (2, self.end),
            (2, self.check),
        ]
        acts, weights = [act for _, act in often], [weight for weight, _ in often]
        for _ in range(STEPS):
            self.random.choices(acts, weights)[0]()
            self.turn()
        self.check()
        if self.random.random() < 0.3:
            self.damage()
        owed = self.witness.owed()
        seen: list[Told] = []
        has_stopped = False
        while True:
            try:
                self.drain(owed, seen)
            except Stopped as stopped:
                # A start steps over a damaged block that it meets, and a compaction may meet it again; the start
                # after that has copied the store, and nothing damaged is left in it.
                if has_stopped or not self.witness.judged["files damaged"]:
                    raise Broken(f"stopped though nothing is damaged, or once more: {stopped}") from stopped
                has_stopped = True
                self.say(str(stopped))
                self.engine.kill()
                self.start_over()
            else:
                return self.witness.judged

    def check(self) -> None:
        self.quiet()
        stored = self.engine.stats("bounded").stored_bytes
        self.hear()
        self.witness.judge("hard retention keeps within its size", stored <= HARD_BYTES, stored)

    def drain(self, owed: list[Told], seen: list[Told]) -> None:
        """Everything comes back and is taken, letters too; then nothing is left but what retention keeps."""
        self.quiet()
        bounded = [told for told in self.witness.told if told.queue == "bounded" and told.stored]
        bounded = [told for told in bounded if not (told.acked or told.open_acks or told.may_be_another)]
        for _ in range(3):
            self.engine.advance(LONGEST_MS)
            self.quiet()
            self.held.clear()
            for queue in (*QUEUES, f"work{DLQ}"):
                self._empty(queue, seen)
        lost = self.engine.core.counters()
        self.witness.is_damaged |= bool(lost["lost_ranges"] or lost["lost_messages"] or lost["lost_acks"])
        self.witness.none_is_lost(owed, seen)
        if not self.witness.is_damaged:
            self.witness.oldest_went_first("bounded", bounded, seen)
            self._nothing_is_left()

    def _empty(self, queue: str, seen: list[Told]) -> None:
        for _ in range(200):
            self._pull(queue, 1_000, 0, leaves=False)
            self.quiet()
            if not self.held:
                return
            seen += [told for _, told in self.held.values()]
            self._settle(queue, list(self.held), ack=True)
            self.quiet()
        raise Broken(f"{queue} is never empty")

    def _nothing_is_left(self) -> None:
        for queue in (*QUEUES, f"work{DLQ}"):
            stats = self.engine.stats(queue)
            most = SOFT_BYTES if queue == "kept" else 0
            empty = not stats.depth and not stats.in_flight and stats.stored_bytes <= most
            self.witness.judge("what is done gives its disk back", empty, (queue, stats))


def simulate_hardships(seed: int) -> Counter[str]:
    """Run one seed; returns how often each judge looked. A failure says how to see it again."""
    world = Hardships(seed)
    try:
        return world.run()
    except Exception as error:
        shown = world.trace if os.environ.get("FILA_SIM_TRACE") else world.trace[-25:]
        again = f"again: python -m tests.simulation.hardships {seed}   (FILA_SIM_TRACE=1 shows every step)"
        failed = f"seed {seed}: {type(error).__name__}: {error}"
        raise Broken("\n".join([failed, again, *shown])) from error
    finally:
        world.engine.remove()


if __name__ == "__main__":
    sys.exit(run_seeds("hardships", simulate_hardships, sys.argv[1:]))
