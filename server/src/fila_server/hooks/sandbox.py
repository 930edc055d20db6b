"""One Lua runtime around one script, and the limits it cannot get past.

One runtime a script, not one environment a queue in a shared runtime: the allocator of a
runtime is the only place where memory can be capped, so what a script keeps between calls
is bounded only if nobody else allocates there; and a runtime that was driven into its
memory limit can be thrown away without touching another queue. It costs 0.5 ms and 100 to 250 KiB
a script, made when the script is first called.

The time and instruction limits live on the Lua side (meter.lua); memory is this side's:

    base | script's own: 1 MiB | config mirror | room for the arguments of a crossing, and its answers
                                                                                             ^ ceiling

Handing arguments in happens outside any protected call: if Lua ran out of memory there, it
would abort the process. So no crossing starts without that room below the ceiling, which is
raised for a message that needs more, and a script that keeps too much is reset instead of called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, NamedTuple

from lupa import lua54

CONFIG_VALUE_BYTES_MAX = 64 * 1024

_COMPILE_BYTES_MAX = 16 * 1024 * 1024
_COMPILE_BYTES_PER_SCRIPT_BYTE = 64
"""What compiling may take; sources stay far below, so this only bounds surprises."""

_CROSSING_ROOM_BYTES = 144 * 1024
"""For what crosses: arguments (64 KiB and their tables), then the routings. meter.lua sees to it between calls."""

_MIRROR_ROOM_BYTES = 208 * 1024
"""For the config a script has asked for (fila.lua)."""

_INSTRUCTIONS_PER_MS = 200_000
"""About what Lua does in a millisecond; the clock decides, this is for work no clock is read in."""

_LIBRARY_FILES = ("meter.lua", "patterns.lua", "libraries.lua", "fila.lua", "script.lua")
_SOURCES = {
    name: resources.files(__package__).joinpath(name).read_bytes()
    for name in (*_LIBRARY_FILES, "on_enqueue.lua", "on_failure.lua")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HookLimits:
    """What one call of a script may take. Mirrors sections `[lua]` and `[limits]` of the settings."""

    timeout_ms: int = 10
    memory_bytes: int = 1024 * 1024
    script_bytes: int = 64 * 1024
    pause_after_ns: int = 2_000_000
    """A batch of calls ends after about this long, so that a crossing stays below the 5 ms of the I/O thread."""
    look_every: int = 100
    """Instructions between two looks at what a script has spent; 1 counts each, and makes it some times slower."""


class HookFailure(NamedTuple):
    """Why a script gave no decision. `kind`: error, time, memory, circuit_open, closed."""

    kind: str
    text: str


class ScriptRefused(Exception):
    """The script does not compile, fails at its top level, or does not define its function."""


class RuntimeConfig(NamedTuple):
    """The runtime config as scripts read it: one dict for all, and a version that changes with it."""

    values: dict[bytes, bytes]
    version: list[int]

    def set(self, config_key: bytes, value: bytes | None) -> None:
        if value:
            self.values[config_key] = value
        else:
            self.values.pop(config_key, None)
        self.version[0] += 1

    def replace(self, values: Mapping[bytes, bytes]) -> None:
        self.values.clear()
        self.values.update(values)
        self.version[0] += 1


def new_runtime_config() -> RuntimeConfig:
    # Version 0 is what a script sees while its top level runs.
    return RuntimeConfig({}, [1])


def _refuse_python(_object: object, _name: object, _is_setting: object) -> str:
    # No Python object is ever reachable by a script; should one be one day, it has no attributes.
    raise AttributeError("hooks cannot reach into Python")


class Sandbox:
    """A compiled script. `call` crosses into Lua; everything belongs to one thread."""

    def __init__(
        self,
        script: bytes,
        function_name: str,
        *,
        limits: HookLimits,
        config: RuntimeConfig,
        now_ns: Callable[[], int],
        seed: int,
    ) -> None:
        self._script = script
        self._function_name = function_name
        self._limits = limits
        self._config = config
        self._now_ns = now_ns
        self._seed = seed
        self._base_bytes = 0
        self._kept_max = 0
        self._ceiling = 0
        self._runtime: Any = None
        self._call: Any = None
        self._trusted: Any = None
        self.reset()

    def reset(self) -> None:
        """Start afresh, forgetting what the script kept. Raises ScriptRefused."""
        if len(self._script) > self._limits.script_bytes:
            raise ScriptRefused(
                f"has {len(self._script)} bytes; at most {self._limits.script_bytes} are allowed"
            )
        runtime = lua54.LuaRuntime(
            encoding=None,
            register_eval=False,
            register_builtins=False,
            attribute_filter=_refuse_python,
            max_memory=0,
        )
        trusted = runtime.table()
        arguments: dict[str, tuple[Any, ...]] = {
            "meter.lua": (
                self._now_ns,
                self._limits.timeout_ms * _INSTRUCTIONS_PER_MS,
                self._limits.timeout_ms * 1_000_000,
                self._limits.pause_after_ns,
                self._limits.look_every,
            ),
            "libraries.lua": (self._seed,),
            # A dict's own method: called from Lua it runs no Python code, so nothing can be raised in it.
            "fila.lua": (self._config.values.get,),
            "script.lua": (self._script, self._function_name.encode()),
        }
        load = runtime.execute(b"return load")
        for name in _LIBRARY_FILES:
            load(_SOURCES[name], b"=fila", b"t")(trusted, *arguments.get(name, ()))
        call = load(_SOURCES[f"{self._function_name}.lua"], b"=fila", b"t")(trusted)
        self._define(runtime, trusted)
        self._runtime, self._call, self._trusted = runtime, call, trusted

    def _define(self, runtime: Any, trusted: Any) -> None:
        compile_bytes = _COMPILE_BYTES_MAX + _COMPILE_BYTES_PER_SCRIPT_BYTE * len(self._script)
        runtime.set_max_memory(compile_bytes, total=True)
        problem = trusted[b"compile"]()
        if problem is not None:
            raise ScriptRefused(_text(problem))
        trusted[b"set_baseline"]()
        self._base_bytes = runtime.get_memory_used(total=True)
        self._ceiling = (
            self._base_bytes + self._limits.memory_bytes + _MIRROR_ROOM_BYTES + _CROSSING_ROOM_BYTES
        )
        self._kept_max = self._ceiling - _CROSSING_ROOM_BYTES
        runtime.set_max_memory(self._ceiling, total=True)
        refusal = trusted[b"define"](self._ceiling / 1024, self._kept_max / 1024)
        if refusal is not None:
            raise ScriptRefused(_text(refusal[1]))

    def call(self, arguments: list[Any], arguments_bytes: int) -> tuple[Any, ...] | HookFailure:
        """Cross into Lua with `arguments`, whose strings have `arguments_bytes` in all."""
        runtime = self._runtime
        # A string costs its bytes and about 24 more, a slot 16 on the stack and 16 in a table, up to
        # twice that while either grows; headers go into a table of their own.
        room = arguments_bytes + 128 * len(arguments) + 4096
        if runtime.get_memory_used(total=True) > self._kept_max:
            failure = self._make_room()
            if failure is not None:
                return failure
        ceiling = self._ceiling
        if room > _CROSSING_ROOM_BYTES:
            ceiling += room
            runtime.set_max_memory(ceiling, total=True)
        try:
            results: tuple[Any, ...] = self._call(self._config.version[0], ceiling / 1024, *arguments)
        except lua54.LuaError as error:
            # Our own code was hit by a limit, in one of the few instructions nobody guards: start afresh.
            if isinstance(error, lua54.LuaMemoryError):  # whose text is empty
                return self._reset_after(HookFailure("memory", "the script left no memory for its answer"))
            return self._reset_after(HookFailure("error", _text(str(error))))
        finally:
            if room > _CROSSING_ROOM_BYTES:
                runtime.set_max_memory(self._ceiling, total=True)
                if runtime.get_memory_used(total=True) > self._ceiling:
                    # A queue may not get another message for long, and there may be a thousand of them.
                    runtime.gccollect()
        return results

    def instructions_used(self) -> int:
        """Of the last call, exact to `look_every`."""
        return int(self._trusted[b"instructions_used"]())

    def heap_bytes(self) -> int:
        """What is on the heap beyond what is ours, once the garbage is gone."""
        self._runtime.gccollect()
        return max(int(self._runtime.get_memory_used(total=True)) - self._base_bytes, 0)

    def stop_collecting(self) -> int:
        """From now on garbage stays; returns what is on the heap."""
        self._runtime.execute(b"collectgarbage('collect') collectgarbage('stop')")
        return int(self._runtime.get_memory_used(total=True))

    def collect_again(self) -> int:
        """Return what is on the heap, then collect as ever."""
        used = int(self._runtime.get_memory_used(total=True))
        self._runtime.execute(b"collectgarbage('restart')")
        return used

    def failure(self, kind: bytes, text: bytes) -> HookFailure:
        """What the Lua side reported. A script whose own hoard leaves no memory starts afresh."""
        failure = HookFailure(kind.decode(), _text(text))
        kept_max = self._kept_max
        if kind == b"memory":
            kept_max = self._base_bytes + self._limits.memory_bytes // 2
        if self._runtime.get_memory_used(total=True) > kept_max:
            self._runtime.gccollect()
            if self._runtime.get_memory_used(total=True) > kept_max:
                return self._reset_after(failure)
        return failure

    def _make_room(self) -> HookFailure | None:
        runtime = self._runtime
        runtime.gccollect()
        if runtime.get_memory_used(total=True) > self._kept_max:
            return self._reset_after(
                HookFailure("memory", "the script keeps more memory between calls than a hook may use")
            )
        return None

    def _reset_after(self, failure: HookFailure) -> HookFailure:
        try:
            self.reset()
        except ScriptRefused as refusal:
            # It ran once and does not any more, so it depends on luck or config; the old runtime stays.
            return HookFailure("error", str(refusal))
        return failure


def _text(problem: object) -> str:
    raw = problem if isinstance(problem, bytes) else str(problem).encode()
    return raw[:512].decode("utf-8", "replace")
