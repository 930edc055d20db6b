"""Messages that replace others, beside a slow twin: any order of steps, with kills between them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fila.v1 import messages_pb2 as messages
from tests.core.driven_engine import DrivenEngine
from tests.core.test_replaced import create, got, over_a_kill, put


class Twin:
    """One channel, as a list: what waits, in order; what is leased; what waits for a lease."""

    def __init__(self) -> None:
        self.waiting: list[tuple[str, str]] = []
        self.leased: dict[str, str] = {}
        self.held: dict[str, str] = {}

    def put(self, payload: str, dedup: str) -> None:
        for at, (_, other) in enumerate(self.waiting):
            if dedup and other == dedup:
                self.waiting[at] = (payload, dedup)
                return
        if dedup and dedup in self.leased.values():
            self.held[dedup] = payload
        else:
            self.waiting.append((payload, dedup))

    def lease(self) -> str:
        payload, dedup = self.waiting.pop(0)
        self.leased[payload] = dedup
        return payload

    def ends(self, payload: str, *, failed: bool, places: dict[str, int]) -> None:
        dedup = self.leased.pop(payload)
        if dedup in self.held:
            new = self.held.pop(dedup)
            places[new] = places[payload]
            at = sum(places[other] < places[new] for other, _ in self.waiting)
            self.waiting.insert(at, (new, dedup))
        elif failed:
            places[payload] = max(places.values()) + 1
            self.waiting.append((payload, dedup))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(["", "d", "e"])),
        st.tuples(st.just("lease"), st.just("")),
        st.tuples(st.sampled_from(["ack", "nack"]), st.sampled_from(["first", "last"])),
        st.tuples(st.just("kill"), st.just("")),
    ),
    max_size=14,
)


@settings(max_examples=25, deadline=None)
@given(steps=STEPS)
def test_any_order_of_steps_and_kills_gives_what_the_slow_twin_gives(steps: list[tuple[str, str]]) -> None:
    engine, twin = DrivenEngine(), Twin()
    create(engine, "q", max_attempts=0)
    held: list[messages.Message] = []
    places: dict[str, int] = {}
    count = 0
    try:
        for what, how in steps:
            if what == "put":
                count += 1
                before = next((each for each, dedup in twin.waiting if how and dedup == how), "")
                put(engine, str(count), how)
                twin.put(str(count), how)
                places[str(count)] = places[before] if before else max([*places.values(), 0]) + 1
            elif what == "lease" and twin.waiting:
                (message,) = engine.lease("q", 1)
                assert message.payload.decode() == twin.lease()
                held.append(message)
            elif what in ("ack", "nack") and held:
                message = held.pop(0 if how == "first" else -1)
                settle = engine.ack if what == "ack" else engine.nack
                assert settle("q", [message]) == [0]
                twin.ends(message.payload.decode(), failed=what == "nack", places=places)
            elif what == "kill":
                over_a_kill(engine)
        assert got(engine) == [payload for payload, _ in twin.waiting]
        assert engine.stats("q").depth == len(twin.held)
    finally:
        engine.remove()
