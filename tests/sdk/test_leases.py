"""The memory of leases: bounded, and never wrong about which delivery it means."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fila.leases import Answer, LeaseMemory


def test_it_forgets_only_beyond_its_bound() -> None:
    memory = LeaseMemory(per_generation_max=10)
    for lease_id in range(1, 101):
        memory.remember(f"m{lease_id}", lease_id)

    assert len(memory) <= 20
    assert all(memory.get(f"m{lease_id}") == lease_id for lease_id in range(91, 101))
    assert memory.get("m1") is None


def test_settling_an_old_delivery_keeps_the_new_one() -> None:
    memory = LeaseMemory()
    memory.remember("m", 1)
    memory.remember("m", 2)

    memory.forget("m", 1, Answer())

    assert memory.get("m") == 2


def test_the_leases_of_a_consumer_that_is_over_can_be_taken_over() -> None:
    kept = LeaseMemory()

    kept.remember_all([("m", 1), ("n", 2)])

    assert (kept.get("m"), kept.get("n")) == (1, 2)


@given(
    st.lists(
        st.tuples(st.sampled_from(["remember", "forget"]), st.integers(0, 5), st.integers(1, 50)),
        max_size=200,
    )
)
def test_with_room_for_all_it_agrees_with_a_plain_dict(
    steps: list[tuple[str, int, int]],
) -> None:
    memory, plain = LeaseMemory(per_generation_max=3), dict[str, int]()
    newest = 0
    for step, message, lease in steps:
        message_id = f"m{message}"
        if step == "remember":
            newest += 1
            memory.remember(message_id, newest)
            plain[message_id] = newest
        else:
            memory.forget(message_id, lease, Answer())
            if plain.get(message_id) == lease:
                del plain[message_id]
        for known in list(plain):
            # It may have been forgotten for want of room, but what is remembered is the newest.
            assert memory.get(known) in (plain[known], None)
