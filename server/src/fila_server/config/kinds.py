"""How the values of settings are written that are texts with a form: addresses, names, durations, sizes."""

from __future__ import annotations

import re
from typing import ClassVar

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

DAY_MS = 24 * 3600 * 1000


class Address(str):
    """`host:port`; an IPv6 host in brackets."""

    expected = 'an address such as "127.0.0.1:5555" or "[::1]:5555"'

    @classmethod
    def parse(cls, value: object) -> Address:
        """Check the shape; whether the port is free shows when it is bound."""
        if not isinstance(value, str):
            raise ValueError
        host, colon, port = value.rpartition(":")
        is_bracketed = host.startswith("[") and host.endswith("]")
        if not colon or not host or (":" in host and not is_bracketed):
            raise ValueError
        if not (port.isascii() and port.isdigit() and int(port) <= 65535):
            raise ValueError
        return cls(value)

    @property
    def host(self) -> str:
        """The host without brackets."""
        return self.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port; 0 lets the system choose."""
        return int(self.rpartition(":")[2])


class AddressOrOff(str):
    """An address, or the empty string for off."""

    expected = Address.expected + ', or "" for off'

    @classmethod
    def parse(cls, value: object) -> AddressOrOff:
        """Accept what Address accepts, and nothing at all."""
        return cls(value) if value == "" else cls(Address.parse(value))


class HostNames(str):
    """Names of hosts, with commas between them; none by default."""

    expected = 'names such as "fila, fila.internal", with commas between them'

    @classmethod
    def parse(cls, value: object) -> HostNames:
        """Check each name; a port is no part of one."""
        if not isinstance(value, str):
            raise ValueError
        names = cls(value)
        if value.strip() and not all(re.fullmatch(r"[a-z0-9_.-]{1,253}", name) for name in names.each):
            raise ValueError
        return names

    @property
    def each(self) -> tuple[str, ...]:
        """The names, in lower case."""
        return tuple(name.strip().lower() for name in self.split(",")) if self.strip() else ()


class Duration(int):
    """Milliseconds, written as "30s"."""

    expected = 'a duration such as "500ms", "30s", "10m", "24h" or "7d"'
    _MS_BY_UNIT: ClassVar = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": DAY_MS}

    @classmethod
    def parse(cls, value: object) -> Duration:
        """Read a number and its unit; 0 needs none."""
        return cls(_number_with_unit(value, cls._MS_BY_UNIT))


class Size(int):
    """Bytes, written as "16mb"."""

    expected = 'a size such as "64kb", "16mb" or "1gb"'
    _BYTES_BY_UNIT: ClassVar = {"b": 1, "kb": KIB, "mb": MIB, "gb": GIB, "tb": 1024 * GIB}

    @classmethod
    def parse(cls, value: object) -> Size:
        """Read a number and its unit; 0 needs none."""
        return cls(_number_with_unit(value, cls._BYTES_BY_UNIT))


def _number_with_unit(value: object, factor_by_unit: dict[str, int]) -> int:
    text = str(value).strip().lower() if isinstance(value, (str, int)) and value is not True else ""
    match = re.fullmatch(r"(\d{1,12})\s*([a-z]*)", text, re.ASCII)
    if match is None:
        raise ValueError
    number, unit = int(match[1]), match[2]
    if number == 0 and not unit:
        return 0
    if unit not in factor_by_unit:
        raise ValueError
    return number * factor_by_unit[unit]
