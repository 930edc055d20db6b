"""As whom a process asks the broker, and whom it trusts: what is wrong is said in one sentence, and never with the key.

No Spark: each machine's Python asks by itself.
"""

from __future__ import annotations

import os
import pickle
import secrets
import shutil
from pathlib import Path

import pytest
from guarded import start_guarded

from fila.v1.auth_pb2 import RevokeKeyRequest
from pyspark_fila import connection
from pyspark_fila.broker import BrokerLog
from pyspark_fila.connection import Connection
from pyspark_fila.errors import BrokerFailed, OptionInvalid
from pyspark_fila.options import parse_options

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ("FILA_API_KEY", "FILA_CA_FILE", "FILA_CERT_FILE", "FILA_KEY_FILE")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def asked(guarded):
    guarded.broker.create("asked")
    guarded.broker.fill("asked", 3)
    return "asked"


def head(guarded, **options):
    """Ask the broker, as these options say."""
    given = parse_options({"queue": "asked", "timeoutMs": "5000", **guarded.options, **options})
    return BrokerLog(given.connection, "asked").bounds().head


def test_the_key_is_that_of_the_option_or_its_file_or_the_environment(guarded, asked, monkeypatch, tmp_path):
    with pytest.raises(
        BrokerFailed, match=r"does not accept the key .option token or tokenFile, or FILA_API_KEY"
    ):
        head(guarded)
    assert head(guarded, token=guarded.key) == 4
    (tmp_path / "key").write_text(f"{guarded.key}\n")
    assert head(guarded, tokenFile=str(tmp_path / "key")) == 4
    monkeypatch.setenv("FILA_API_KEY", guarded.key)
    assert head(guarded) == 4
    with pytest.raises(BrokerFailed, match="does not accept the key"):
        head(guarded, token="fila_other_" + "x" * 40)


def test_the_authority_is_that_of_the_option_or_the_environment(guarded, asked, monkeypatch):
    authority = guarded.options["caFile"]
    only_address = {"address": guarded.options["address"], "token": guarded.key}

    def head_of(**options):
        given = parse_options({"queue": "asked", "timeoutMs": "5000", **only_address, **options})
        return BrokerLog(given.connection, "asked").bounds().head

    with pytest.raises(BrokerFailed, match="no authority that this client trusts has signed it"):
        head_of()
    monkeypatch.setenv("FILA_CA_FILE", authority)
    assert head_of() == 4
    with pytest.raises(BrokerFailed, match="no authority that this client trusts has signed it"):
        head_of(caFile=str(guarded.files / "other-ca.pem"))
    assert head_of(serverName="localhost") == 4
    with pytest.raises(BrokerFailed, match=r"it is not made out to fila\.example"):
        head_of(serverName="fila.example")


def test_a_certificate_that_has_expired_is_told_at_once(tmp_path):
    expired = start_guarded(ROOT, tmp_path, days=-1)
    try:
        given = parse_options(
            {"queue": "asked", "timeoutMs": "60000", "token": expired.key, **expired.options}
        )
        with pytest.raises(BrokerFailed, match="it has expired"):
            BrokerLog(given.connection, "asked").bounds()
    finally:
        expired.broker.kill()


def test_the_wrong_scheme_is_named(guarded, broker, asked):
    with pytest.raises(BrokerFailed, match="speaks TLS: write https://"):
        BrokerLog(Connection(guarded.broker.address, 5000, token=guarded.key), "asked").bounds()
    with pytest.raises(BrokerFailed, match="speaks without TLS: write http:// instead of https://"):
        BrokerLog(Connection(f"https://{broker.address}", 5000), "orders").bounds()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tokenFile": "MISSING"}, "option tokenFile: cannot be read on .*No such file"),
        ({"tokenFile": "EMPTY"}, "option tokenFile: .*EMPTY on .* must hold one key and nothing more"),
        ({"caFile": "MISSING"}, "option caFile: cannot be read on .*MISSING"),
        ({"caFile": "EMPTY"}, "option caFile: cannot be used on .*holds no certificate in PEM form"),
        (
            {"certFile": "EMPTY", "keyFile": "EMPTY"},
            "option certFile: cannot be used on .*hold no certificate and key",
        ),
    ],
)
def test_a_file_that_a_machine_cannot_use_is_named_with_the_machine(guarded, asked, tmp_path, options, said):
    (tmp_path / "EMPTY").touch()
    with pytest.raises(OptionInvalid, match=said):
        head(guarded, **{name: str(tmp_path / file) for name, file in options.items()})


def test_a_key_that_is_renewed_in_its_file_is_sent_with_the_next_call_and_a_revoked_one_is_told(
    guarded, asked, tmp_path
):
    first, second = guarded.key_of("reader", consume="asked"), guarded.key_of("reader", consume="asked")
    file = tmp_path / "key"
    file.write_text(first.key)
    assert head(guarded, tokenFile=str(file)) == 4
    guarded.broker.auth.RevokeKey(RevokeKeyRequest(key_id=first.key_id))
    with pytest.raises(BrokerFailed, match="does not accept the key"):
        head(guarded, tokenFile=str(file))
    file.write_text(second.key)
    assert head(guarded, tokenFile=str(file)) == 4


def test_a_certificate_that_is_renewed_in_its_file_is_used_from_the_next_call_on(guarded, asked, tmp_path):
    authority = tmp_path / "ca.pem"
    shutil.copy(guarded.files / "other-ca.pem", authority)
    with pytest.raises(BrokerFailed, match="no authority"):
        head(guarded, caFile=str(authority), token=guarded.key)
    shutil.copy(guarded.files / "ca.pem", authority)
    os.utime(authority, ns=(1, 1))
    assert head(guarded, caFile=str(authority), token=guarded.key) == 4
    opened = len(connection._channels)
    assert head(guarded, caFile=str(authority), token=guarded.key) == 4
    assert len(connection._channels) == opened, "the same files, the same channel"


def test_no_message_and_no_picture_of_the_options_has_the_key():
    key = secrets.token_hex(20)
    options = parse_options({"queue": "orders", "token": key})
    assert key not in repr(options)
    assert pickle.loads(pickle.dumps(options)).connection.metadata() == (("authorization", f"Bearer {key}"),)
    for wrong in (f"{key} {key}", f"{key}\n{key}", f"{key}\u00e9"):
        with pytest.raises(OptionInvalid, match="token: must be a key") as refused:
            parse_options({"queue": "orders", "token": wrong})
        assert key not in str(refused.value)
    with pytest.raises(OptionInvalid, match="not both") as refused:
        parse_options({"queue": "orders", "token": key, "tokenFile": "/key"})
    assert key not in str(refused.value)
