"""What happens to a broker from outside: full disks and stalls, clocks that are set, clean stops under load, damage.

Beside it retention that drops, frames that are written anew, letters redriven with routings, and batches and pulls as
Redis clients make them. Few promises are judged, and those whatever happens; simulate.py judges what each message has
coming to it while nothing of this happens. One seed, one run: `python -m tests.simulation.hardships SEED [COUNT]`.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server import commands, errors, seam_frames
from tests.core.driven_engine import MS, DrivenEngine
from tests.core.test_bounded_work import PASS_WORK_MAX, count
from tests.native.coreprobe import disk_becomes, store_stalls
from tests.simulation.hardship_model import DLQ, Told, Witness
from tests.simulation.oracles import Broken, note_judged

STEPS = 150
UNAVAILABLE = 14
"""What is asked of a broker that stops."""
ROOMY, LOW, CRITICAL = 0, 1, 2
STALL = "stall"
VISIBILITY_MS = 5_000
DAY_MS = 86_400_000
HARD_PERIOD_MS = 1_200_000
HARD_BYTES = 600_000
SOFT_BYTES = 200_000
QUEUES = {
    "work": admin.QueueConfig(max_attempts=2),
    "aging": admin.QueueConfig(retention=admin.Retention(hard_period_ms=HARD_PERIOD_MS)),
    "bounded": admin.QueueConfig(retention=admin.Retention(hard_bytes=HARD_BYTES)),
    "kept": admin.QueueConfig(retention=admin.Retention(soft_bytes=SOFT_BYTES)),
}
KEYS = ("ant", "bee", "cat")
LONGEST_MS = 300_000
"""No lease, delay or backoff is longer."""
TTL_LATE_MS = 200
"""A pull is served where it stands among a pass's commands, before what ended since the last pass does."""

Answer = Callable[[int, bytes], None]


class Hardships:
    """One run."""

    def __init__(self, seed: int) -> None:
        self.random = rnd = random.Random(seed * 5003 + 11)
        cold: dict[str, int | str] = {"storage.hot_payload_bytes": rnd.choice([1, 30_000])}
        self.engine = DrivenEngine(cold if rnd.random() < 0.4 else {}, seed=seed)
        self.witness = Witness()
        self.asked: dict[int, Answer] = {}
        self.held: dict[int, tuple[str, Told]] = {}  # by lease
        self.trouble: int | str = ROOMY
        self.trouble_passes = 0
        self.trace: list[str] = []
        self.under_os = rnd.random() < 0.3
        for name, config in QUEUES.items():
            complete = admin.QueueConfig()
            complete.CopyFrom(config)
            complete.visibility_timeout_ms = VISIBILITY_MS
            complete.fairness_key_header = "k"
            complete.dedup_window_ms = DAY_MS
            complete.durability = admin.DURABILITY_OS if self.under_os else admin.DURABILITY_FSYNC
            created = admin.CreateQueueRequest(name=name, config=complete)
            self.engine.call(commands.CREATE_QUEUE, created, admin.CreateQueueResponse)

    def say(self, text: str) -> None:
        self.trace.append(f"[{self.engine.mono_ns // MS}] {text}")

    # --- passes and answers -----------------------------------------------------------------------

    def ask(self, kind: int, request: Any, answered: Answer) -> bool:
        """False where the door itself refused."""
        try:
            token = self.engine.submit(kind, request)
        except errors.DiskFloor:
            return False
        self.asked[token] = answered
        return True

    def hear(self) -> None:
        """What came, also while somebody waited for something else (DrivenEngine.call)."""
        came = [*self.engine.others, *self.engine.core.drain()]
        self.engine.others = []
        for token, kind, status, payload in came:
            if kind == commands.REPLY and token in self.asked:
                self.asked.pop(token)(status, payload)

    def turn(self) -> None:
        for _ in range(self.random.choice([1, 2, 3])):
            self.engine.run_pass()
            self.hear()
            if self.trouble != STALL and self.random.random() < 0.6:
                self.engine.commit()
            if self.random.random() < 0.6:
                self.engine.core.load()
            if self.trouble_passes:
                self.trouble_passes -= 1
                if not self.trouble_passes:
                    self.relieve()

    def wait(self, ms: int = 0) -> None:
        for _ in range(max(1, (ms or self.random.choice([1, 100, 400, 2_000])) // 100)):
            self.engine.advance(min(ms, 100) if ms else self.random.choice([1, 100]))
            self.turn()
        self._grow_old()

    def _grow_old(self) -> None:
        wall_ms = self.engine.wall_ms
        for told in self.witness.told:
            if not told.stored:
                told.since_ms = min(told.since_ms, wall_ms)
        self.witness.ages("aging", wall_ms, HARD_PERIOD_MS)

    def quiet(self) -> None:
        """No trouble, and nothing under way; housekeeping has been by."""
        self.relieve()
        for _ in range(3):
            for _ in range(400):
                again = self.engine.run_pass()
                busy = self.engine.commit() | bool(self.engine.core.load())
                before = len(self.asked)
                self.hear()
                if not busy and before == len(self.asked) and (again is None or again > self.engine.mono_ns):
                    break
            else:
                raise Broken("the core never comes to rest")
            self.engine.advance(100)
        self._grow_old()

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
                    self.witness.judge("what was acked never comes back", told.lease_id == lease_id, told)
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
        letters = self.engine.call(commands.PEEK_MESSAGES, peek, admin.PeekMessagesResponse).messages
        self.hear()
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

    # --- fate ---------------------------------------------------------------------------------------

    def relieve(self) -> None:
        self.trouble, self.trouble_passes = ROOMY, 0
        store_stalls(self.engine.core, False)
        disk_becomes(self.engine.core, ROOMY)

    def befall(self) -> None:
        """The disk is low or full, or the storage engine stalls, for some passes."""
        self.relieve()
        self.trouble = self.random.choice([LOW, CRITICAL, STALL, STALL])
        self.trouble_passes = self.random.choice([1, 5, 30])
        self.say(f"trouble: {self.trouble} for {self.trouble_passes} passes")
        self.witness.judged["passes in trouble"] += self.trouble_passes
        for told in self.witness.told:
            told.not_after_ns = 0
        if self.trouble == STALL:
            store_stalls(self.engine.core, True)
        else:
            assert isinstance(self.trouble, int)
            disk_becomes(self.engine.core, self.trouble)

    def set_clock(self) -> None:
        by_ms = self.random.choice([-600_000, -1_000, 1_000, 600_000, 1_800_000])
        self.say(f"the clock is set by {by_ms}")
        self.witness.judged["clocks set"] += 1
        self.engine.wall_ns += by_ms * MS
        self._grow_old()

    def end(self) -> None:
        """A kill, a power cut, or a clean stop, with work under way."""
        how = self.random.choice(["kill", "stop"] if self.under_os else ["kill", "power", "stop", "stop"])
        self.relieve()
        for _ in range(self.random.choice([0, 1, 6])):
            self.random.choice([self.enqueue, self.pull, self.settle])()
        if how != "stop":
            for _ in range(self.random.choice([0, 1, 2])):
                self.engine.run_pass()
        self._end(how)

    def _end(self, how: str) -> None:
        self._look_back()
        if how == "stop":
            self.engine.core.stop_cleanly(self.engine.mono_ns, self.engine.wall_ns)
            self.hear()
            self.engine.core.close()
        else:
            (self.engine.cut_power if how == "power" else self.engine.kill)()
        self.engine.reopen(self.random.choice([0, 1_000, 600_000, -600_000]))
        self.say(f"{how} and restart")
        self.witness.judged[f"ended by {how}"] += 1
        if how == "stop":
            report = self.engine.core.open_report()
            self.witness.judge("a clean stop leaves a sound store", not any(report.values()), report)
        self.asked.clear()
        self.held.clear()
        self.witness.restarted()
        self._grow_old()

    def _look_back(self) -> None:
        """On a life that ends."""
        self.witness.judged["frames written anew"] += count(self.engine, "rewrites")
        work = count(self.engine, "pass_work_max")
        self.witness.judge("no pass does more than its bound", work <= PASS_WORK_MAX, work)

    def damage(self) -> None:
        """One byte of one file, while the broker is down; what is lost is told."""
        self._look_back()
        self.engine.kill()
        files = [
            path
            for kind in ("*.log", "*.sst", "*.blob")
            for path in sorted((self.engine.directory / "rocksdb").glob(kind))
            if path.stat().st_size
        ]
        if files:
            path = self.random.choice(files)
            content = bytearray(path.read_bytes())
            content[self.random.randrange(len(content))] ^= 1 << self.random.randrange(8)
            path.write_bytes(content)
            self.say(f"a byte of {path.name} is wrong")
            self.witness.judged["files damaged"] += 1
        self.engine.reopen()
        self.asked.clear()
        self.held.clear()
        self.witness.restarted()
        self.witness.is_damaged = any(self.engine.core.open_report().values())

    # --- the run ------------------------------------------------------------------------------------

    def run(self) -> Counter[str]:
        often: list[tuple[float, Callable[[], None]]] = [
            (16, self.enqueue),
            (14, self.pull),
            (14, self.settle),
            (12, self.wait),
            (3, self.befall),
            (2, self.set_clock),
            (2, self.redrive),
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
        self.drain()
        return self.witness.judged

    def check(self) -> None:
        self.quiet()
        stored = self.engine.stats("bounded").stored_bytes
        self.hear()
        self.witness.judge("hard retention keeps within its size", stored <= HARD_BYTES, stored)

    def drain(self) -> None:
        """Everything comes back and is taken, letters too; then nothing is left but what retention keeps."""
        self.quiet()
        owed = self.witness.owed()
        bounded = [told for told in self.witness.told if told.queue == "bounded" and told.stored]
        bounded = [told for told in bounded if not (told.acked or told.open_acks or told.may_be_another)]
        seen: list[Told] = []
        for _ in range(3):
            self.engine.advance(LONGEST_MS)
            self.quiet()
            self.held.clear()
            for queue in (*QUEUES, f"work{DLQ}"):
                self._empty(queue, seen)
        lost = self.engine.core.counters()
        self.witness.is_damaged |= bool(lost["lost_ranges"] or lost["lost_messages"])
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


def main() -> int:
    first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    judged: Counter[str] = Counter()
    bad = 0
    for seed in range(first, first + count):
        try:
            found = simulate_hardships(seed)
            note_judged("hardships", seed, found)
            judged += found
        except Broken as error:
            bad += 1
            print(error if count == 1 else str(error).split("\n")[0][:300], flush=True)
    print(f"{count} seeds, {bad} bad; judged {dict(judged)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
