"""The loops over a consumer: what each has taken, has settled, and is measured by."""

from __future__ import annotations

from fila.leases import Answer


class Sample:
    """One measurement of how long messages take."""

    __slots__ = ("asked", "began_s", "count", "unsettled")

    def __init__(self, began_s: float, count: int) -> None:
        self.began_s = began_s
        self.count = count
        self.unsettled = count
        self.asked = False


class Loop:
    """One loop over a consumer, as its session knows it. It has nothing in hand where it has settled all it took."""

    __slots__ = (
        "answer_told", "began_s", "has_parted", "number", "sample", "settled", "settled_by", "settled_told", "taken",
        "taken_told", "waits",
    )  # fmt: skip

    def __init__(self, number: int) -> None:
        self.number = number
        self.taken = 0
        """How many messages it took so far."""
        self.taken_told = 0
        """Of how many of them the controller knows."""
        self.settled = 0
        """How many of them were settled or lost."""
        self.settled_told = 0
        self.settled_by: Answer | None = None
        """What settles the last message that it had in hand, as long as it has nothing in hand."""
        self.answer_told: Answer | None = None
        """Of which answer the controller knows."""
        self.sample: Sample | None = None
        """Of what it works on, if that is a sample."""
        self.began_s = 0.0
        """When it took messages last."""
        self.waits = True
        """Whether it found nothing when it asked last, or has not asked."""
        self.has_parted = False

    @property
    def awaits_answer(self) -> bool:
        """Whether it has settled all it took, and the broker has not answered yet."""
        return (
            self.settled == self.taken and self.settled_by is not None and self.settled_by.answered_s is None
        )
