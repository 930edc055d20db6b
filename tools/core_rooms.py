"""The rooms of the compiled core, and what each may know: read from the cimports, since import-linter sees none.

    python tools/house.py        prints what breaks a rule, a line each; fails when there is any

A room is a folder below `core/`. A module may know its own room and the rooms above it in ROOMS, no two modules know
each other in a circle, and a name is taken from the module that declares it, so that an arrow here is one in the code.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CORE = Path(__file__).resolve().parents[1] / "server/src/fila_server/core"
PACKAGE = "fila_server.core."

# In the order in which they may know each other: each only those before it.
ROOMS = (
    "structures",  # small structures that know nothing of messages
    "protocol",  # what bytes on the wire mean
    "log",  # the log that copies share, and the rule by which it is read
    "storage",  # RocksDB and its directory
    "threads",  # from thread to thread
    "state",  # what there is: structs and tables, no decision
    "requests",  # a request's way in: the one parse, its sender's rights, the mailbox
    "history",  # what the history and traces are told
    "formats",  # how each thing stands on disk
    "scheduling",  # who may go next
    "index",  # counted things, and what goes with the last who needs them
    "lifecycle",  # one message's life
    "consumers",  # who takes messages: how they come, speak and go
    "sinks",  # batches that are staged aside, and published once
    "admin",  # what an operator asks or changes
    "search",  # messages that a call names: found, told about, taken back
    "maintenance",  # what the broker does by itself
    "recovery",  # the core rebuilt from the store
    "runtime",  # passes, their write, the engine and its threads
    "replay",  # a recorded run followed again
)
MODULES_A_ROOM_MAX = 20
# Some hundred names, and none of them written by us: RocksDB's, librdkafka's, and the generated numbers of fields,
# which a module takes as one and calls by it: `from fila_server.core.protocol cimport v1`, then `v1.MESSAGE_ID`.
WHOLE = {PACKAGE + name for name in ("storage.rocksdb", "log.librdkafka", "protocol.v1", "protocol.seam")}
# Numbers that Python has too, repeated whole: the seam's and the history's.
REPEATED = {PACKAGE + "protocol.commands", PACKAGE + "history.decisions", PACKAGE + "history.inputs"}
EDGES = CORE.parent / "edge"
BESIDE = Path(__file__).resolve().parents[1] / "tests/native"

QUOTED = re.compile(r'#[^\n]*|"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')
IMPORT = re.compile(
    r"^[ \t]*from ([.\w]+) (?:cimport|import) (\([^)]*\)|[^\n]*)$|^[ \t]*c?import (\S+)", re.MULTILINE
)


@dataclass
class Module:
    name: str
    room: str
    known: dict[str, set[str]] = field(default_factory=dict)


def stripped(text: str) -> str:
    """The code: without comments and without what stands in quotes, but for the expressions in an f-string."""
    inside = " ".join(re.findall(r"\{([^{}]*)\}", " ".join(re.findall(r'\bf"(?:\\.|[^"\\\n])*"', text))))
    return QUOTED.sub('""', text) + "\n" + inside


def taken(code: str) -> Iterator[tuple[str, str]]:
    """(module, name as it is used here) of each import in a piece of code; the name of a whole module is "*"."""
    for module, names, whole in IMPORT.findall(code):
        if whole:
            yield whole.rstrip(","), "*"
        for name in re.sub(r"[()]", "", names).split(","):
            if f"{module}.{name.strip()}" in WHOLE:
                yield f"{module}.{name.strip()}", name.strip()
            elif name.strip():
                yield module, name.strip().split(" as ")[-1].strip()


def sources() -> list[Path]:
    return sorted([*CORE.rglob("*.pyx"), *CORE.rglob("*.pxd")])


def named(path: Path) -> str:
    return PACKAGE + ".".join(path.relative_to(CORE).with_suffix("").parts)


def modules() -> dict[str, Module]:
    found: dict[str, Module] = {}
    for path in sources():
        module = found.setdefault(named(path), Module(named(path), path.parent.relative_to(CORE).as_posix()))
        for other, name in taken(stripped(path.read_text())):
            module.known.setdefault(other, set()).add(name)
    return found


def out_of_order(all_modules: dict[str, Module]) -> Iterator[str]:
    for module in all_modules.values():
        if module.room not in ROOMS:
            yield f"{module.name} stands in no room"
            continue
        for other in module.known:
            if other.startswith("."):
                yield f"{module.name} names {other} by where it stands; write the whole name"
            target = all_modules.get(other)
            if target is not None and target.room in ROOMS[ROOMS.index(module.room) + 1 :]:
                yield f"{module.name} knows {other}, whose room comes later"


def in_circles(all_modules: dict[str, Module]) -> Iterator[str]:
    """One line a circle: from each module down, one that is met while still under way closes it."""
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> Iterator[str]:
        if name in path:
            yield " -> ".join([*path[path.index(name) :], name])
            return
        if name in done:
            return
        for other in sorted(all_modules[name].known):
            if other in all_modules and other != name:
                yield from walk(other, [*path, name])
        done.add(name)

    for name in sorted(all_modules):
        yield from walk(name, [])


def handed_on(all_modules: dict[str, Module]) -> Iterator[str]:
    """Names taken from a module that only has them from another, or taken all at once."""
    declared = {
        named(path): stripped(IMPORT.sub("", path.read_text())) for path in sources() if path.suffix == ".pxd"
    }
    for module in all_modules.values():
        for other, names in module.known.items():
            if other.startswith(PACKAGE) and other not in all_modules:
                yield f"{module.name} knows {other}, which is none"
            if other not in declared or other in WHOLE:
                continue
            for name in sorted(names):
                if name == "*" or not re.search(rf"\b{name}\b", declared[other]):
                    yield f"{module.name} takes {name} from {other}, which does not declare it"


def crowded() -> Iterator[str]:
    for room in ROOMS:
        count = len(list((CORE / room).glob("*.pyx")))
        if count > MODULES_A_ROOM_MAX:
            yield f"{room} has {count} modules; {MODULES_A_ROOM_MAX} are the end: look for the missing room"


def unused() -> Iterator[str]:
    for path in sources():
        code = stripped(path.read_text())
        used = IMPORT.sub("", code)
        for module, name in taken(code):
            if name != "*" and not re.search(rf"(?<![\w.]){name}\b", used):
                yield f"{named(path)}{path.suffix} takes {name} from {module} and does not use it"


def declared(code: str) -> Iterator[str]:
    """What a file names for the first time: functions, structs and their fields, members of enums."""
    inside = ""
    for line in code.splitlines():
        if line.strip() and not line.startswith(" "):
            inside = ""
        if opening := re.match(r"(?:cdef|ctypedef) (struct|enum|extern|class)\b *(\w*)", line):
            inside = opening[1]
            if inside == "struct":
                yield opening[2]
        elif function := re.match(r"cdef (?:inline )?[\w* ]*?\b(\w+)\(", line):
            yield function[1]
        elif inside == "enum" and (member := re.match(r" +([A-Z]\w*)", line)):
            yield member[1]
        elif inside == "struct" and "(" not in line and line.strip():
            for field in line.strip().split(None, 1)[-1].split(","):
                if name := re.search(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?\s*$", field):
                    yield name[1]


def dead() -> Iterator[str]:
    """Names that stand where they are declared and defined, and nowhere else; tests and compiled edges count."""
    beside = [*EDGES.rglob("*.pyx"), *EDGES.rglob("*.pxd"), *BESIDE.glob("*.pyx")]
    codes = {path: IMPORT.sub("", stripped(path.read_text())) for path in [*sources(), *beside]}
    times = Counter(name for code in codes.values() for name in re.findall(r"\w+", code))
    for path in sources():
        if named(path) in REPEATED | WHOLE:
            continue
        twin = codes.get(path.with_suffix(".pyx"), "") if path.suffix == ".pxd" else ""
        for name in declared(codes[path]):
            defined = re.search(rf"^cdef [^\n=]*\b{name}\(", twin, re.MULTILINE)
            if times[name] <= 1 + (defined is not None):
                yield f"{named(path)} declares {name}, and nobody uses it"


def faults() -> list[str]:
    found = modules()
    return [*out_of_order(found), *in_circles(found), *handed_on(found), *crowded(), *unused(), *dead()]
