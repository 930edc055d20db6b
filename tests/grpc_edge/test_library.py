"""The server says when its HTTP/2 library is one in which floods are not mended."""

import pytest

from fila_server.edge import library
from fila_server.edge.library import FLOOR

OF_DEBIAN = "7f00-7f01 r-xp 00000000 fe:00 12 /usr/lib/x86_64-linux-gnu/libnghttp2.so.14.24.1\n"
OF_A_WHEEL = "7f00-7f01 r-xp 00000000 fe:00 12 /opt/fila/lib/fila_server.libs/libnghttp2-1a2b.so.14\n"


def debian_has(version: str):
    """What dpkg answers; it compares by itself where the test's machine has it."""

    def ask(command):
        if command[0] == "dpkg-query":
            return version or None
        return "" if version >= FLOOR else None  # both are of one length

    return ask


@pytest.mark.parametrize(
    ("maps", "version", "warned"),
    [
        (OF_DEBIAN, "1.52.0-1+deb12u2", True),
        (OF_DEBIAN, FLOOR, False),
        (OF_DEBIAN, "1.52.0-1+deb12u4", False),
        (OF_A_WHEEL, "1.52.0-1+deb12u1", False),
        (OF_DEBIAN, "", False),
        ("", "1.52.0-1+deb12u1", False),
    ],
    ids=["older", "floor", "newer", "the wheel's own", "no package", "not loaded"],
)
def test_a_library_below_the_floor_is_told(maps, version, warned, monkeypatch):
    said = []
    monkeypatch.setattr(library.log, "warning", lambda event, **_: said.append(event), raising=False)

    assert library.check_library(maps or "7f00 other.so\n", debian_has(version)) is warned
    assert said == ["edge.library_outdated"] * warned
