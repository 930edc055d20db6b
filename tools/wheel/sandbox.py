"""Starts a program as the systemd unit would have it: its system calls, its sockets, no privileges, its limits.

systemd itself is not asked: it would have to be this machine's first process. What can be had without it is made of the
unit's own lines: SystemCallFilter (by the sets that `systemd-analyze syscall-filter` names), RestrictAddressFamilies,
MemoryDenyWriteExecute, NoNewPrivileges, LimitNOFILE, UMask, and ProcSubset by how the caller mounts /proc.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import resource
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

UNIT = Path(__file__).resolve().parents[2] / "docs/deploy/fila.service"

_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_EQUAL = 4  # SCMP_CMP_EQ
_NO_NEW_PRIVILEGES, _DENY_WRITE_EXECUTE = 38, 65  # of prctl


class _Compared(ctypes.Structure):
    """An argument of a system call, and what it must be."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    )


def of(setting: str) -> list[str]:
    """Return what the unit says of a setting, a value a line."""
    return re.findall(rf"^{setting}=(.*)$", UNIT.read_text(), re.MULTILINE)


def allowed_calls() -> set[str]:
    """Return the system calls that are left."""
    allowed: set[str] = {"execve"}  # or nothing would ever be started
    for line in of("SystemCallFilter"):
        named = {call for word in line.lstrip("~").split() for call in _calls(word)}
        allowed = allowed - named if line.startswith("~") else allowed | named
    return allowed


def _calls(word: str) -> set[str]:
    if not word.startswith("@"):
        return {word}
    told = subprocess.run(
        ["systemd-analyze", "syscall-filter", word], capture_output=True, text=True, check=True
    ).stdout
    words = [line.strip() for line in told.splitlines()[1:] if not line.strip().startswith("#")]
    return {call for each in words if each for call in _calls(each)}


def entering(root: Path, user: int) -> Callable[[], None]:
    """Return what a child does between fork and exec to be inside `root` as the unit would have it."""
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    process = ctypes.CDLL(None, use_errno=True)
    numbers = {name: library.seccomp_syscall_resolve_name(name.encode()) for name in allowed_calls()}
    families = [getattr(socket, name) for line in of("RestrictAddressFamilies") for name in line.split()]
    # Or as many as this machine lets even its root have.
    files = min(int(of("LimitNOFILE")[0]), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    mask = int(of("UMask")[0], 8)
    denies_writable_code = of("MemoryDenyWriteExecute") == ["true"]

    def refuse_others() -> None:
        rules = ctypes.c_void_p(library.seccomp_init(_REFUSE))
        for name, number in numbers.items():
            if number >= 0 and name != "socket":
                assert library.seccomp_rule_add_array(rules, _ALLOW, number, 0, None) == 0, name
        for family in families:
            compared = _Compared(0, _EQUAL, int(family), 0)
            call = numbers["socket"]
            assert library.seccomp_rule_add_array(rules, _ALLOW, call, 1, ctypes.byref(compared)) == 0
        assert library.seccomp_load(rules) == 0

    def enter() -> None:
        os.chroot(root)
        os.chdir("/")
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        os.umask(mask)
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        assert process.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
        if denies_writable_code:
            assert process.prctl(_DENY_WRITE_EXECUTE, 1, 0, 0, 0) == 0, "the kernel is older than 6.3"
        refuse_others()

    return enter
