"""Signatures of a chain's entries: the broker signs what it lists, and a reader with its public key can tell.

An entry holds the hash of its file and of the entry before it, so its signature covers the file and all that came
before. Three fields say it:

    history      which history it is of: the first signature draws it, and each entry hands it on
    signed_by    the name of the key, the beginning of the hash of its public half
    signature    Ed25519, base64, of WHAT and the entry's hash without this field

The key is read at the start. The history's thread signs as it lists, which takes a tenth of a millisecond a file.
`cryptography` is imported here and nowhere else in the server.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fila_server import errors
from fila_server.history_files.chain import Entry, entry_hash

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SETTING = "history.sign_key_file"
WHAT = b"fila.history.entry\n"
"""What a signature is of, so that it can be taken for no other."""
KEY_BYTES_MAX = 1 << 16
OTHERS = 0o007
MAKE_ONE = "openssl genpkey -algorithm ed25519 -out FILE"
TELL_PUBLIC = "openssl pkey -in FILE -pubout -out PUBLIC"


class KeyUnreadable(Exception):
    """A file holds no public key that signatures could be checked with; the text says which, and why."""


@dataclass(frozen=True)
class PublicKey:
    """Who may have signed."""

    key: Ed25519PublicKey
    name: str


class Signer:
    """Signs entries with one key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.name = _name(key.public_key())

    def signed(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return an entry, complete but for its signature, with it."""
        history = entry.get("history") or os.urandom(8).hex()
        whole = {**entry, "history": history, "signed_by": self.name}
        return whole | {"signature": base64.b64encode(self._key.sign(_message(whole))).decode()}


def read_signer(path: str) -> Signer:
    """Read the key that a server signs with. Raises ConfigInvalid."""
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(KEY_BYTES_MAX)
    except OSError as error:
        raise _refused(f"{path} cannot be read: {error.strerror}") from None
    if mode & OTHERS:
        raise _refused(
            f"others may read or write {path}, its mode is {mode & 0o777:04o}. Run `chmod 600 {path}`; where others "
            "use this machine, make a new key"
        )
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ModuleNotFoundError:
        raise _refused(
            "signing needs cryptography, which is not installed. Run `pip install cryptography`, or set "
            f'{SETTING} to ""'
        ) from None
    key: object
    try:
        key = load_pem_private_key(content, password=None)
    except TypeError:
        raise _refused(f"the key in {path} needs a password. Write it without one: {MAKE_ONE}") from None
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise _refused(f"{path} holds no private Ed25519 key in PEM. Make one: {MAKE_ONE}")
    return Signer(key)


def read_public(path: Path) -> PublicKey:
    """Read a key that signatures are checked with. Raises KeyUnreadable."""
    try:
        content = path.read_bytes()[:KEY_BYTES_MAX]
    except OSError as error:
        raise KeyUnreadable(f"{path} cannot be read: {error.strerror}") from None
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ModuleNotFoundError:
        raise KeyUnreadable(
            "checking signatures needs cryptography, which is not installed: pip install cryptography"
        ) from None
    key: object
    try:
        key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise KeyUnreadable(f"{path} holds no public Ed25519 key in PEM. Of the broker's key: {TELL_PUBLIC}")
    return PublicKey(key, _name(key))


def _refused(why: str) -> errors.ConfigInvalid:
    return errors.ConfigInvalid(f"{SETTING}: {why}", key=SETTING)


def _name(key: Ed25519PublicKey) -> str:
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]


def _message(entry: Entry) -> bytes:
    said = {name: value for name, value in entry.items() if name != "signature"}
    return WHAT + entry_hash(said).encode()


# --- checking ----------------------------------------------------------------------------------


@dataclass
class Checked:
    """What came of a look at the signatures."""

    history: str = ""
    by: list[str] = field(default_factory=list)
    """The keys that signed, in the order of their first signatures."""
    signed: int = 0
    unsigned_before: int = 0
    """Entries that were listed before the first signature."""
    wrong: list[str] = field(default_factory=list)
    """What is not signed as it should be, a sentence each."""


def check(links: Sequence[Entry], keys: Sequence[PublicKey]) -> Checked:
    """Look at the signature of each entry of a chain, in its order. Only entries that these keys signed count."""
    found = Checked()
    found.history = _most_common(entry.get("history") for entry in links if "signature" in entry)
    if not found.history:
        found.wrong.append("no entry is signed: nobody can say who made this history")
        return found
    judged = [(entry, said) for entry, said in zip(links, _judged(links, keys, found), strict=True)]
    for (run, said), group in groupby(judged, key=lambda one: (one[0]["run"], one[1])):
        if said:
            numbers = [entry["number"] for entry, _ in group]
            found.wrong.append(f"{_which(numbers[0], numbers[-1], run)} {said}")
    return found


def _judged(links: Sequence[Entry], keys: Sequence[PublicKey], found: Checked) -> Iterator[str]:
    """What is wrong with each entry's signature, "" for nothing."""
    by_name = {key.name: key for key in keys}
    has_begun = False
    for entry in links:
        if "signature" in entry:
            has_begun = True
            yield _said_of(entry, by_name, found)
        elif has_begun:
            yield "not signed, and entries before it are"
        else:
            found.unsigned_before += 1
            yield ""


def _said_of(entry: Entry, by_name: Mapping[str, PublicKey], found: Checked) -> str:
    name = str(entry.get("signed_by"))
    if name not in by_name:
        return f"signed by the key {name}, and the key that was given is {' or '.join(by_name)}"
    if not _is_of(entry, by_name[name].key):
        return "not as signed: changed since, or with a signature from elsewhere"
    if entry["history"] != found.history:
        return f"signed for another history, {entry['history']}, and this one is {found.history}"
    if name in found.by and name != found.by[-1]:
        return f"signed by the key {name}, after the key {found.by[-1]} had taken over"
    if name not in found.by:
        found.by.append(name)
    found.signed += 1
    return ""


def _is_of(entry: Entry, key: Ed25519PublicKey) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(base64.b64decode(entry["signature"], validate=True), _message(entry))
    except (InvalidSignature, binascii.Error, TypeError, ValueError):
        return False
    return True


def _most_common(names: Iterator[Any]) -> str:
    counted = Counter(str(name) for name in names)
    return counted.most_common(1)[0][0] if counted else ""


def _which(first: int, last: int, run: str) -> str:
    return f"entry {first} of {run} is" if first == last else f"entries {first} to {last} of {run} are"
