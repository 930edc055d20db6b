"""A command on its way to the core, and what a power cut may take back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.model import Entry, Model


@dataclass(eq=False)
class Asked:
    """A command on its way: what it is, what happens when it is carried out, what its answer must be."""

    kind: int
    token: int
    carried_out: Callable[["Asked"], None] | None = None
    answered: Callable[["Asked", int, bytes], None] | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    executed_pass: int = 0
    index: int = 0
    marker: int = 0  # LEASE: the token of the command behind it


@dataclass(eq=False)
class Snapshot:
    """What a power cut goes back to."""

    model: Model
    under_way: list[Entry]  # copies, as the model is
    originals: list[Entry]
    at_pass: int
    unseen: int  # leases
    synced: dict[str, int]
    newest_id: str  # what came after it may go; under fsync nothing is answered that does
