"""What producers say of how messages are shared: over headers, below a hook, and only where their queue lets it."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from fila.v1 import service_pb2 as service


class Said(NamedTuple):
    """Options of one enqueue; what is empty or 0 was not said."""

    fairness_key: str = ""
    weight: int = 0
    cost: int = 0
    """In thousandths."""

    def put(self, options: service.EnqueueOptions) -> None:
        """As an enqueue tells it."""
        if self.fairness_key:
            options.fairness_key = self.fairness_key
        if self.weight:
            options.weight = self.weight
        if self.cost:
            options.cost = self.cost / 1000


NOTHING_SAID = Said()


def something_said(rnd: Random, keys: list[str], *, may_weigh: bool) -> Said:
    """One to three of them. A weight of a message that may be refused would be nobody's."""
    said = Said()
    while said == NOTHING_SAID:
        said = Said(
            rnd.choice(["", *keys]),
            rnd.choice([0, 0, 1, 2, 9, 1000]) if may_weigh else 0,
            rnd.choice([0, 0, 1, 500, 2000, 7250, 40_000]),
        )
    return said
