"""Who made a history: the broker signs what it lists, and whatever is not signed as it should be is named."""

import os
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fila_server import errors
from fila_server.config.schema import History
from fila_server.history_files import chain, signing, upkeep
from fila_server.history_files.files import RunFiles
from fila_server.history_files.recorder import Recorder
from tests.recording.recorded import RecordedEngine
from tests.recording.test_chain import RUNS, cell, links, of_run, put, record, resealed, verified
from tests.recording.test_replay import busy

pytestmark = pytest.mark.needs("module:cryptography")


class Pair:
    """A broker's key and its public half, as files."""

    def __init__(self, folder: Path, name: str) -> None:
        from cryptography.hazmat.primitives import serialization

        key = new_key()
        self.private, self.public = folder / f"{name}.pem", folder / f"{name}.pub"
        self.private.touch(mode=0o600)
        self.private.write_bytes(pem(key))
        self.public.write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        self.signer = signing.read_signer(str(self.private))

    @property
    def name(self) -> str:
        return self.signer.name

    @property
    def asked(self) -> tuple[str, str]:
        return "--public-key", str(self.public)


def new_key() -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate()


def pem(key: Any, password: bytes | None = None) -> bytes:
    from cryptography.hazmat.primitives import serialization

    how = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    content: bytes = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)
    return content


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Pair(tmp_path_factory.mktemp("keys"), "broker")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Pair(tmp_path_factory.mktemp("keys"), "other")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, pair: Pair) -> Path:
    directory = tmp_path_factory.mktemp("signed") / "history"
    for number, run in enumerate(RUNS):
        record(directory, run, 3 + 10 * number, pair.signer)
    return directory


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory, pair: Pair) -> Path:
    """The history of another broker, which signs with the same key."""
    directory = tmp_path_factory.mktemp("elsewhere") / "history"
    record(directory, RUNS[0], 23, pair.signer)
    return directory


@pytest.fixture
def history(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "history"))


def test_a_signed_history_is_authentic_for_who_has_the_public_key(history: Path, pair: Pair):
    code, said = verified(history, *pair.asked)
    assert code == 0, said
    count = len(links(history))
    assert re.search(
        f"Authentic: {count} entries are one chain.*; {count} of them are signed by {pair.name}, ", said
    )
    assert "the core decided the same again" in said


def test_a_promise_is_judged_beside_the_signatures(history: Path, pair: Pair):
    code, said = verified(history, *pair.asked, "--against", "reference")
    assert code == 0, said
    assert "Authentic: " in said
    assert "promises kept: each of " in said


def test_what_nobody_looked_at_is_consistent_and_never_authentic(history: Path, pair: Pair):
    code, said = verified(history)
    assert code == 0, said
    assert "Consistent: " in said
    assert "Authentic" not in said
    assert f"note: entries name {pair.name} as who signed them: --public-key FILE checks that" in said


def test_a_history_without_signatures_is_not_authentic(tmp_path: Path, pair: Pair):
    record(tmp_path / "history", RUNS[0], 3)
    code, said = verified(tmp_path / "history")
    assert (code, "Consistent: " in said, "Authentic" in said) == (0, True, False)
    code, said = verified(tmp_path / "history", *pair.asked)
    assert code == 3
    assert "This history is not authentic: no entry is signed: nobody can say who made this history." in said


def unsigned(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in ("signature", "signed_by")}


def chained_anew(history: Path, change: Callable[[int, dict[str, Any]], dict[str, Any]]) -> None:
    """Change entries, by their place, and make all hashes behind them anew."""
    before = ""
    for place, entry in enumerate(links(history)):
        changed = change(place, entry) | {"before": before}
        put(changed)
        before = chain.entry_hash(changed)


def a_signature_of_another_entry(history: Path, elsewhere: Path) -> None:
    entries = links(history)
    put(entries[3] | {"signature": entries[2]["signature"]})


def a_signature_of_another_directory(history: Path, elsewhere: Path) -> None:
    put(links(history)[3] | {"signature": links(elsewhere)[3]["signature"]})


def an_entry_of_another_directory(history: Path, elsewhere: Path) -> None:
    place = links(history)[3]["_path"]
    put(links(elsewhere)[3] | {"_path": place})


def the_name_of_another_history(history: Path, elsewhere: Path) -> None:
    put(links(history)[3] | {"history": "0" * 16})


FALSIFIED: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "a signature taken out": (
        lambda history, _: put(unsigned(links(history)[3])),
        f"entry 4 of {RUNS[0]} is not signed, and entries before it are",
    ),
    "a signature taken out, all hashes made anew": (
        lambda history, _: chained_anew(
            history, lambda place, entry: unsigned(entry) if place == 3 else entry
        ),
        f"entry 4 of {RUNS[0]} is not signed, and entries before it are",
    ),
    "every signature behind a moment taken out": (
        lambda history, _: chained_anew(
            history, lambda place, entry: unsigned(entry) if place > 3 else entry
        ),
        f"entries 1 to [0-9]+ of {RUNS[1]} are not signed, and entries before it are",
    ),
    "every signature taken out": (
        lambda history, _: chained_anew(history, lambda _, entry: unsigned(entry)),
        "no entry is signed: nobody can say who made this history",
    ),
    "a signature of another entry": (
        a_signature_of_another_entry,
        f"entry 4 of {RUNS[0]} is not as signed",
    ),
    "a signature of another directory": (
        a_signature_of_another_directory,
        f"entry 4 of {RUNS[0]} is not as signed",
    ),
    "an entry of another directory": (
        an_entry_of_another_directory,
        f"entry 4 of {RUNS[0]} is signed for another history, [0-9a-f]{{16}}, and this one is [0-9a-f]{{16}}",
    ),
    "the name of another history": (
        the_name_of_another_history,
        f"entry 4 of {RUNS[0]} is not as signed",
    ),
    "a signature that is none": (
        lambda history, _: put(links(history)[3] | {"signature": "?"}),
        f"entry 4 of {RUNS[0]} is not as signed",
    ),
    "a signature that is no text": (
        lambda history, _: put(links(history)[3] | {"signature": [7], "signed_by": {}}),
        f"entry 4 of {RUNS[0]} is signed by the key {{}}, and the key that was given is",
    ),
    "a wait, all hashes made anew": (
        lambda history, _: resealed("decisions", cell("wait_share_ms", [60_000]))(history),
        "are not as signed: changed since, or with a signature from elsewhere",
    ),
}


@pytest.mark.parametrize("kind", FALSIFIED)
def test_whatever_is_not_signed_as_it_was_is_found_and_named(
    history: Path, elsewhere: Path, pair: Pair, kind: str
):
    falsify, said_of_it = FALSIFIED[kind]
    falsify(history, elsewhere)
    code, said = verified(history, *pair.asked)
    assert code == 3, said
    assert re.search(said_of_it, said), said
    assert "Authentic" not in said


def test_another_key_is_named_and_so_is_the_one_that_was_given(history: Path, pair: Pair, other: Pair):
    code, said = verified(history, *other.asked)
    assert code == 3
    count = len(of_run(history, RUNS[0]))
    assert (
        f"entries 1 to {count} of {RUNS[0]} are signed by the key {pair.name}, "
        f"and the key that was given is {other.name}" in said
    )


def test_keys_that_followed_one_another_are_each_needed(tmp_path: Path, pair: Pair, other: Pair):
    record(tmp_path / "history", RUNS[0], 3, pair.signer)
    record(tmp_path / "history", RUNS[1], 13, other.signer)
    code, said = verified(tmp_path / "history", *pair.asked, *other.asked)
    assert code == 0, said
    assert f"are signed by {pair.name} and then {other.name}, " in said
    code, said = verified(tmp_path / "history", *other.asked)
    assert code == 3
    assert (
        f"of {RUNS[0]} are signed by the key {pair.name}, and the key that was given is {other.name}" in said
    )


def test_a_key_that_was_given_up_signs_nothing_any_more(tmp_path: Path, pair: Pair, other: Pair):
    for run, signer in (
        *zip(RUNS, (pair.signer, other.signer), strict=True),
        ("20260302T160000-cccccc", pair.signer),
    ):
        record(tmp_path / "history", run, 3, signer)
    code, said = verified(tmp_path / "history", *pair.asked, *other.asked)
    assert code == 3
    assert (
        f"of 20260302T160000-cccccc are signed by the key {pair.name}, after the key {other.name} had taken over"
        in said
    )


def test_what_was_listed_before_anybody_signed_is_told_apart(tmp_path: Path, pair: Pair):
    record(tmp_path / "history", RUNS[0], 3)
    record(tmp_path / "history", RUNS[1], 13, pair.signer)
    code, said = verified(tmp_path / "history", *pair.asked)
    assert code == 0, said
    count = len(of_run(tmp_path / "history", RUNS[0]))
    assert (
        f"note: the first {count} entries are not signed: they are as they were when the first signature"
        in said
    )
    assert f"{len(of_run(tmp_path / 'history', RUNS[1]))} of them are signed by {pair.name}" in said


def test_the_end_of_a_run_that_was_killed_is_signed_by_the_next_start(history: Path, pair: Pair):
    files = RunFiles(history, "20260302T160000-cccccc", 1, pair.signer)
    files.gap(0, 1, "nothing")
    os.close(files._mark[1])  # as its process dies
    assert upkeep.end_dead_runs(history, 2, pair.signer) == ["20260302T160000-cccccc"]
    assert signing.check(links(history), [signing.read_public(pair.public)]).wrong == []


def test_the_scheduler_goes_on_while_somebody_signs(tmp_path: Path):
    """A key in a slow device, say: only the history waits for it."""
    free, asked = threading.Event(), threading.Event()

    class Slow(signing.Signer):
        def __init__(self) -> None:
            pass

        def signed(self, entry: Any) -> dict[str, Any]:
            asked.set()
            assert free.wait(60)
            return dict(entry)

    engine = RecordedEngine()
    recording = engine.core.recording
    assert recording is not None
    recorder = Recorder(recording, History(enabled=True, dir=str(tmp_path)), signer=Slow())
    recorder.start()
    for part in range(2):
        busy(engine, part, steps=20, makes=part == 0)
        recording.cut()
        engine.run_pass()
        engine.sleep(3_600_000, step_ms=3_600_000)  # files are closed, and signed, as another hour begins
    assert asked.wait(60)
    offset = engine.enqueue("orders", b"x", {"tenant": "late"})
    assert offset in [message.metadata.offset for message in engine.lease("orders")]
    free.set()
    engine.remove()
    assert recorder.finish(60)


def rsa() -> bytes:
    from cryptography.hazmat.primitives.asymmetric import rsa as kind

    return pem(kind.generate_private_key(65537, 2048))


REFUSED: dict[str, tuple[Callable[[], bytes] | None, int, str]] = {
    "none": (None, 0, "cannot be read: No such file or directory"),
    "others may read it": (
        lambda: pem(new_key()),
        0o644,
        "others may read or write .*key, its mode is 0644. Run `chmod 600 .*key`",
    ),
    "no key": (lambda: b"hello", 0o600, "holds no private Ed25519 key in PEM. Make one: openssl genpkey"),
    "another kind": (rsa, 0o600, "holds no private Ed25519 key in PEM"),
    "a password": (
        lambda: pem(new_key(), b"secret"),
        0o600,
        "the key in .* needs a password. Write it without one",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_file_that_holds_no_key_for_the_broker_alone_is_refused_in_a_sentence(tmp_path: Path, kind: str):
    content, mode, said = REFUSED[kind]
    if content is not None:
        (tmp_path / "key").write_bytes(content())
        (tmp_path / "key").chmod(mode)
    with pytest.raises(errors.ConfigInvalid, match=f"history.sign_key_file: .*{said}"):
        signing.read_signer(str(tmp_path / "key"))


def test_a_file_that_holds_no_public_key_is_refused(history: Path, pair: Pair):
    code, said = verified(history, "--public-key", str(pair.private))
    assert code == 2
    assert "holds no public Ed25519 key in PEM. Of the broker's key: openssl pkey -in FILE -pubout" in said
    code, said = verified(history, "--public-key", str(history / "none"))
    assert code == 2
    assert "none cannot be read: No such file or directory" in said
