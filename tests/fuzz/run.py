"""Bytes of strangers, guided by what they reach: what is new in the code is kept and changed further.

    python -m tests.fuzz.run wire 300           one target (wire, routing, resp) for so many seconds of the CPU
    python -m tests.fuzz.run wire 0 FILE        one input once more
    python -m tests.fuzz.run wire keep          the fewest that reach all that was reached, into tests/fuzz/corpus

The code that takes them is built with ASan, UBSan and -fsanitize-coverage=trace-pc (gcc has no fuzzer of its own), in
build/fuzzed. Inputs that reached something are in tests/fuzz/corpus, a line of hex each, where everybody begins, and
those of this tree in build/fuzz. One that breaks something is left as build/fuzz/TARGET-broken-..., with exit code 1.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from tests import sanitized
from tests.fuzz.targets import TARGETS, Target

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "fuzzed"
FOUND = ROOT / "build" / "fuzz"
CORPUS = Path(__file__).with_name("corpus")
SHIM = FOUND / "coverage.so"
WATCHED = ("core/protocol", "core/requests", "edge/redis")
INPUT_BYTES_MAX = 2_000
SLOW_S = 2.0
"""No input of two kilobytes may take as long, of the CPU."""
INTERESTING = (
    b"\0",
    b"\xff",
    b"\x80\x01",
    b"\xff" * 9 + b"\x01",
    b"\r\n",
    b"-1",
    b"\x7f\xff\xff\xff",
    b"\x0a\x00",
)


def corpus(name: str) -> list[bytes]:
    """The inputs that are committed."""
    path = CORPUS / f"{name}.hex"
    return [bytes.fromhex(line) for line in path.read_text().splitlines()] if path.exists() else []


def mutated(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """One to four changes, one of which may be a piece of another input."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(found) + 1)
        length = chance.choice((1, 1, 2, 8, 40))
        change = chance.randrange(7)
        if change == 0 and at < len(found):
            found[at] ^= 1 << chance.randrange(8)
        elif change == 1 and at < len(found):
            found[at] = chance.randrange(256)
        elif change == 2:
            del found[at : at + length]
        elif change == 3:
            found[at:at] = chance.choice(INTERESTING)
        elif change == 4:
            found[at:at] = found[at : at + length] * chance.choice((1, 3))
        elif change == 5:
            found[at : at + length] = chance.choice(INTERESTING)
        elif other:
            begin = chance.randrange(len(other))
            found[at:at] = other[begin : begin + chance.choice((length, 200))]
    return bytes(found[:INPUT_BYTES_MAX])


class Fuzzer:
    """One target in this process, which may die of an input."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.target: Target = TARGETS[name]()
        self.shim = ctypes.CDLL(str(SHIM))
        self.inputs: list[bytes] = []
        self.runs = 0
        last = FOUND / f"{name}.last"
        last.write_bytes(bytes(INPUT_BYTES_MAX + 8))
        with last.open("r+b") as file:
            self.last = mmap.mmap(file.fileno(), 0)

    def reaches(self, data: bytes) -> int:
        """Run one input; how much of it was new."""
        self.last[: 8 + len(data)] = len(data).to_bytes(8, "big") + data
        began = time.process_time()
        self.shim.fila_input_begins()
        self.target.run(data)
        fresh: int = self.shim.fila_input_ends()
        self.runs += 1
        took_s = time.process_time() - began
        if took_s > SLOW_S:
            raise AssertionError(f"{len(data)} bytes took {took_s:.1f} s")
        if fresh:
            self.target.judge(data)
        return fresh

    def run(self, seconds: float) -> None:
        chance = random.Random(os.urandom(16))
        for data in self.known():
            self.reaches(data)
            self.inputs.append(data)
        before = self.shim.fila_edges()
        end = time.process_time() + seconds
        while time.process_time() < end:
            for _ in range(500):
                data = mutated(chance, chance.choice(self.inputs), chance.choice(self.inputs))
                if self.reaches(data):
                    self.keep(data)
        edges = self.shim.fila_edges()
        print(
            f"{self.name}: {self.runs} inputs, {edges} edges, {edges - before} of them new, {len(self.inputs)} kept"
        )

    def known(self) -> list[bytes]:
        """All that this tree has."""
        found = [path.read_bytes() for path in sorted((FOUND / self.name).glob("*"))]
        return [*self.target.begin, *corpus(self.name), *found]

    def fewest(self) -> None:
        """The corpus anew: short inputs first, and of the others those that reach something more."""
        kept = [data for data in sorted(self.known(), key=len) if self.reaches(data)]
        lines = [data.hex() + "\n" for data in kept]
        CORPUS.mkdir(exist_ok=True)
        (CORPUS / f"{self.name}.hex").write_text("".join(lines))
        print(f"{self.name}: {len(kept)} of {self.runs} inputs, {self.shim.fila_edges()} edges")

    def keep(self, data: bytes) -> None:
        self.inputs.append(data)
        (FOUND / self.name / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


def build(name: str) -> dict[str, str]:
    """The watched code and the shim, built where they are not; what a process needs to use them."""
    (FOUND / name).mkdir(parents=True, exist_ok=True)
    source = Path(__file__).with_name("coverage.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(SHIM), str(source)], check=True)
    watched = [path for room in WATCHED for path in (ROOT / "server/src/fila_server" / room).glob("*.pyx")]
    sanitized.prepare(COPY, watched)
    sanitized.build(COPY, watched, "-fsanitize-coverage=trace-pc")
    found = sanitized.environment(COPY)
    found["LD_PRELOAD"] += f":{SHIM}"
    return found


def main(words: list[str]) -> int:
    """Run the target in a process of its own, and say what it died of."""
    if len(words) < 2 or words[0] not in TARGETS:
        print(__doc__, file=sys.stderr)
        return 2
    name = words[0]
    if os.environ.get("FILA_FUZZED") == name:
        fuzzer = Fuzzer(name)
        if len(words) > 2:
            fuzzer.reaches(Path(words[2]).read_bytes())
        elif words[1] == "keep":
            fuzzer.fewest()
        else:
            fuzzer.run(float(words[1]))
        return 0
    environ = {**build(name), "FILA_FUZZED": name}
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.run", *words], cwd=ROOT, env=environ, check=False
    )
    if done.returncode:
        last = (FOUND / f"{name}.last").read_bytes()
        data = last[8 : 8 + int.from_bytes(last[:8], "big")]
        broken = FOUND / f"{name}-broken-{hashlib.sha256(data).hexdigest()[:16]}"
        broken.write_bytes(data)
        again = f"python -m tests.fuzz.run {name} 0 {broken.relative_to(ROOT)}"
        print(f"{name}: ended with {done.returncode}; again: {again}")
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
