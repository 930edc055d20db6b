"""The layers of a profile are named by the rooms that there are."""

from __future__ import annotations

import re
from pathlib import Path

from fila_bench.scenarios.profile import LAYERS

CORE = Path(__file__).parents[2] / "server" / "src" / "fila_server" / "core"
APART = {"admin", "history", "replay"}
"""Rooms that are no part of a message's way: they count as the rest."""


def test_each_room_of_the_core_has_one_layer_and_no_layer_names_a_room_that_is_gone() -> None:
    named = [
        room
        for _, rooms in LAYERS
        for each in re.findall(r"/core/\(([\w|]+)\)/", rooms)
        for room in each.split("|")
    ]
    rooms = {path.name for path in CORE.iterdir() if path.is_dir() and any(path.glob("*.pyx"))}

    assert len(named) == len(set(named))
    assert set(named) == rooms - APART
