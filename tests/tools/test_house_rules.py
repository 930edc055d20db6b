"""tools/house.py sees a breach of each of its rules, planted in a small house that breaks none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tools import house

Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.setattr(house, "ROOT", tmp_path)

    def put(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    put("server/src/fila_server/core/state/state.pxd", "cdef struct Core:\n" + "    int passes\n" * 70)
    put(
        "server/src/fila_server/core/runtime/engine.pyx",
        "from fila_server.core.state.state cimport Core\n\ncdef Core it\n" + "cdef int a\n" * 70,
    )
    put(
        "ARCHITECTURE.md",
        "Begin with `state/state`, `core/runtime/engine.pyx` and `fila_server.core.state`.\n",
    )
    put("tools/look.py", 'ENGINE = "server/src/fila_server/core/runtime/engine.pyx"\n')
    return put


def told() -> list[str]:
    return [
        breach
        for check in (
            house.small,
            house.numbered,
            house.dear,
            house.struck,
            house.second_edge,
            house.dead_paths,
        )
        for breach in check()
    ]


def test_the_small_house_breaks_no_rule(write):
    assert told() == []


CORE = "server/src/fila_server/core"


@pytest.mark.parametrize(
    ("name", "text", "breach"),
    [
        (
            f"{CORE}/runtime/engine.pyx",
            "    if field == 19:\n",
            f"{CORE}/runtime/engine.pyx:1 names a field by its number; core/protocol/v1.pxd has its name",
        ),
        (
            f"{CORE}/runtime/engine.pyx",
            "    name = fields.text[3 if of_all else 4]\n",
            f"{CORE}/runtime/engine.pyx:1 names a text by its number; core/protocol/v1.pxd has its name",
        ),
        (
            f"{CORE}/runtime/engine.pyx",
            "    put_number_field(&row, 17, <uint64_t> (a + 1))\n",
            f"{CORE}/runtime/engine.pyx:1 names a field written by its number; core/protocol/v1.pxd has its name",
        ),
        (
            f"{CORE}/lifecycle/failure.pyx",
            "cdef int bury(int what) noexcept nogil:\n    return what\n",
            f"{CORE}/lifecycle/failure.pyx: bury: for bury the word is dead-letter",
        ),
        (
            "server/src/fila_server/operations/queues.py",
            "class FailureDesk:\n    pass\n",
            "server/src/fila_server/operations/queues.py: FailureDesk: for desk the word is admin",
        ),
        (
            f"{CORE}/scheduling/tokens.pyx",
            "cdef Line* line\n",
            f"{CORE}/scheduling/tokens.pyx: Line: the word is waiters",
        ),
        (
            f"{CORE}/admin/explain.pyx",
            "cdef Looks looks\n",
            f"{CORE}/admin/explain.pyx: Looks: the word is step budget",
        ),
        (
            f"{CORE}/life/answers.pxd",
            '"""What leaves."""\n',
            f"{CORE}/life/answers.pxd has a name that is struck: life",
        ),
        (
            "server/src/fila_server/broker/stream.py",
            '"""Streams."""\n',
            "server/src/fila_server/broker/stream.py: streams are the edge's",
        ),
        (
            "docs/redis.md",
            "Set `edge = {}`.\n".format('"python"'),
            "docs/redis.md names an edge to choose; there is one",
        ),
        (
            "docs/redis.md",
            "See `life/answers`.\n",
            "docs/redis.md:1 names life/answers, which does not exist",
        ),
        (
            "docs/redis.md",
            "See `state/gone`.\n",
            "docs/redis.md:1 names state/gone, which does not exist",
        ),
        (
            "tests/faults/catalogue.py",
            'A = ("state/gone.pyx",)\n',
            "tests/faults/catalogue.py:1 names state/gone.pyx, which does not exist",
        ),
        (
            "bench/load.py",
            "from fila_server.core.gone.engine import Engine\n",
            "bench/load.py:1 names fila_server.core.gone.engine, which does not exist",
        ),
    ],
)
def test_a_breach_is_a_line(write, name, text, breach):
    write(name, text)
    assert breach in told()


def test_a_small_module_with_one_user_is_one_too_many(write):
    write(f"{CORE}/state/leaf.pxd", "cdef int it\n")
    write(
        f"{CORE}/runtime/engine.pyx",
        "from fila_server.core.state.leaf cimport it\n" + "cdef int a\n" * 70,
    )
    assert told() == ["core.state.leaf has 1 lines and one user, core.runtime.engine: let that hold it"]
    write(f"{CORE}/runtime/passes.pyx", "from fila_server.core.state.leaf cimport it\n" + "cdef int a\n" * 70)
    assert told() == []


def test_a_pxd_that_most_modules_read_costs_too_much(write):
    write(f"{CORE}/storage/disk.pxd", "cdef struct Disk:\n" + "    int free\n" * 70)
    write(
        f"{CORE}/state/state.pxd",
        "from fila_server.core.storage.disk cimport Disk\n\ncdef struct Core:\n" + "    Disk disk\n" * 70,
    )
    for number in range(40):
        write(
            f"{CORE}/admin/m{number}.pyx",
            "from fila_server.core.state.state cimport Core\n" + "cdef Core it\n" * 70,
        )
    assert told() == [
        "core.storage.disk.pxd is read by 41 modules; 40 are the end: hold its struct by pointer"
    ]


@pytest.mark.costly("it reads every file of the repository")
def test_the_house_keeps_its_rules():
    assert list(house.breaches()) == []
