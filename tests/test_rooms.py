"""The compiled core keeps to its rooms, and the check that says so sees what it is for."""

import re
from pathlib import Path

import pytest

from tools import core_rooms


def test_the_core_keeps_to_its_rooms():
    assert core_rooms.faults() == []


@pytest.fixture
def core(tmp_path, monkeypatch):
    """A small core that breaks no rule; a test plants its fault in it."""
    monkeypatch.setattr(core_rooms, "CORE", tmp_path)
    for room in core_rooms.ROOMS:
        (tmp_path / room).mkdir()
    write(tmp_path, "state/state.pxd", "cdef struct Core:\n    int passes\n")
    write(
        tmp_path,
        "runtime/loop.pyx",
        "from fila_server.core.state.state cimport Core\n\ndef run():\n    cdef Core core\n    core.passes += 1\n",
    )
    return tmp_path


def write(core: Path, name: str, text: str) -> None:
    (core / name).write_text(text)


def test_the_small_core_breaks_no_rule(core):
    assert core_rooms.faults() == []


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        (
            "state/paths.pyx",
            "from fila_server.core.runtime.engine cimport Engine\n\ncdef Engine it\n",
            "fila_server.core.state.paths knows fila_server.core.runtime.engine, whose room comes later",
        ),
        (
            "runtime/engine.pyx",
            "from fila_server.core.runtime.threads cimport Thread\n\ncdef Thread it\n",
            "fila_server.core.runtime.engine -> fila_server.core.runtime.threads -> fila_server.core.runtime.engine",
        ),
        (
            "runtime/engine.pyx",
            "from fila_server.core.state.state cimport Thread\n\ncdef Thread it\n",
            "fila_server.core.runtime.engine takes Thread from fila_server.core.state.state, which does not declare it",
        ),
        (
            "runtime/engine.pyx",
            "from fila_server.core.protocol cimport v1\n",
            "fila_server.core.runtime.engine.pyx takes v1 from fila_server.core.protocol.v1 and does not use it",
        ),
        (
            "state/paths.pyx",
            "from fila_server.core.runtime cimport engine\n\nengine.run()\n",
            "fila_server.core.state.paths knows fila_server.core.runtime, which is none",
        ),
        (
            "runtime/engine.pyx",
            "from fila_server.core.state.state cimport *\n",
            "fila_server.core.runtime.engine takes * from fila_server.core.state.state, which does not declare it",
        ),
        (
            "runtime/engine.pyx",
            'from fila_server.core.state.state cimport Core\n\ncdef str it = "Core"      # Core\n',
            "fila_server.core.runtime.engine.pyx takes Core from fila_server.core.state.state and does not use it",
        ),
        (
            "runtime/engine.pyx",
            "from fila_server.core.state.gone cimport Core\n\ncdef Core it\n",
            "fila_server.core.runtime.engine knows fila_server.core.state.gone, which is none",
        ),
        (
            "runtime/engine.pyx",
            "from .threads cimport Thread\n\ncdef Thread it\n",
            "fila_server.core.runtime.engine names .threads by where it stands; write the whole name",
        ),
        ("cellar/bones.pyx", "cdef int it\n", "fila_server.core.cellar.bones stands in no room"),
    ],
)
def test_a_broken_rule_is_told(core, name, text, fault):
    write(core, "runtime/engine.pxd", "cdef class Engine:\n    pass\n")
    write(core, "runtime/threads.pxd", "cdef class Thread:\n    pass\n")
    write(
        core,
        "runtime/threads.pyx",
        "from fila_server.core.runtime.engine cimport Engine\n\ncdef class Thread:\n    cdef Engine of\n",
    )
    (core / name).parent.mkdir(exist_ok=True)
    write(core, name, text)
    assert fault in core_rooms.faults()


@pytest.mark.parametrize(
    ("name", "text", "gone"),
    [
        ("state/state.pxd", "cdef struct Core:\n    int passes\n    int rounds, laps[3]\n", "rounds"),
        ("state/state.pxd", "cdef struct Core:\n    int passes\n    int rounds, laps[3]\n", "laps"),
        ("state/state.pxd", "cdef struct Core:\n    int passes\n\ncdef enum:\n    MOST = 3\n", "MOST"),
        ("runtime/walk.pyx", "cdef int _step(int far) noexcept nogil:\n    return far\n", "_step"),
    ],
)
def test_a_name_that_nobody_uses_is_told(core, name, text, gone):
    write(core, name, text)
    where = "fila_server.core." + name.partition(".")[0].replace("/", ".")
    assert f"{where} declares {gone}, and nobody uses it" in core_rooms.faults()


def test_a_crowded_room_is_told(core):
    for number in range(core_rooms.MODULES_A_ROOM_MAX + 1):
        write(core, f"admin/m{number}.pyx", "cdef int it\n")
    assert [fault for fault in core_rooms.faults() if fault.startswith("admin has 21 modules")]


def test_the_architecture_names_each_room_in_order_with_a_module_to_begin_with():
    text = (Path(__file__).parents[1] / "ARCHITECTURE.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| `([\w/]+)` \|$", text, re.MULTILINE)
    modules = {name.removeprefix(core_rooms.PACKAGE).replace(".", "/") for name in core_rooms.modules()}
    assert tuple(room for room, _ in rows) == core_rooms.ROOMS
    assert [entry for room, entry in rows if entry not in modules or not entry.startswith(f"{room}/")] == []
