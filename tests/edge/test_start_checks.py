"""What stops a start before anything is opened: `config check` says the same, and both exit with 2."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fila_server import errors, main, start_checks
from fila_server.access import bootstrap, keys, marker
from fila_server.config.schema import Config, History
from fila_server.config.sections import Auth

COMMANDS = [[], ["config", "check"]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a command there; a start that would open something fails the test."""
    monkeypatch.chdir(tmp_path)
    for opens in ("open_engine", "LoadingPage"):
        monkeypatch.setattr(main, opens, lambda *_: pytest.fail("something was opened"))

    def run(command: list[str], **settings: str) -> Any:
        return CliRunner().invoke(main.main, command, env={f"FILA_{key}": settings[key] for key in settings})

    return run


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def certificate(folder: Path, name: str) -> None:
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem")  # fmt: skip


BROKEN = {
    "files that are not there": (
        {"TLS__CERT_FILE": "none.pem", "TLS__KEY_FILE": "none.key"},
        "tls.cert_file: none.pem cannot be read: No such file or directory",
    ),
    "spans that go nowhere": (
        {"TELEMETRY__TRACE_SAMPLE": "5"},
        (
            "environment variable FILA_TELEMETRY__TRACE_SAMPLE: telemetry.trace_sample: spans are sent to "
            "telemetry.otlp_endpoint, which is empty"
        ),
    ),
    "a collector's address that is none": (
        {"TELEMETRY__OTLP_ENDPOINT": "http://[::1"},
        "environment variable FILA_TELEMETRY__OTLP_ENDPOINT: telemetry.otlp_endpoint: http://[::1 is no address",
    ),
    "no first key": (
        {"AUTH__ENABLED": "true", "AUTH__BOOTSTRAP_KEY_FILE": "none"},
        "auth.bootstrap_key_file: none cannot be read: No such file or directory",
    ),
    "a history below a file": (
        {"HISTORY__ENABLED": "true", "HISTORY__DIR": "file/history"},
        "history.dir: file/history cannot be made: Not a directory",
    ),
    "a key of the history that is not there": (
        {"HISTORY__ENABLED": "true", "HISTORY__SIGN_KEY_FILE": "none"},
        "history.sign_key_file: none cannot be read: No such file or directory",
    ),
    "a key of a history that nobody records": (
        {"HISTORY__SIGN_KEY_FILE": "file"},
        (
            "environment variable FILA_HISTORY__SIGN_KEY_FILE: history.sign_key_file is given without history.enabled: "
            "nothing would be recorded, and nothing signed"
        ),
    ),
    "one address for two": (
        {"METRICS__LISTEN_ADDR": "127.0.0.1:22401", "SERVER__LISTEN_ADDR": "0.0.0.0:22401"},
        (
            "environment variable FILA_METRICS__LISTEN_ADDR: metrics.listen_addr and server.listen_addr cannot both "
            "listen on port 22401: give one of them another port"
        ),
    ),
    "one address for two, by its name": (
        {"METRICS__LISTEN_ADDR": "localhost:22401", "REDIS__LISTEN_ADDR": "127.0.0.1:22401"},
        (
            "environment variable FILA_REDIS__LISTEN_ADDR: redis.listen_addr and metrics.listen_addr cannot both "
            "listen on port 22401: give one of them another port"
        ),
    ),
}


@pytest.mark.parametrize("command", COMMANDS, ids=["start", "config check"])
@pytest.mark.parametrize("module", start_checks.COMPILED)
def test_a_compiled_module_that_a_library_is_missing_for_is_one_line_before_anything_is_opened(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, module: str, command: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)

    result = run(command)

    assert result.exit_code == 1, result.output
    assert result.stderr == (
        f"fila-server: a compiled module cannot be loaded: import of {module} halted; None in sys.modules. "
        "Run `make build` in a checkout. A wheel leaves OpenSSL 3 to the system: install it there\n"
    )


@pytest.mark.parametrize("command", COMMANDS, ids=["start", "config check"])
@pytest.mark.parametrize(("given", "line"), BROKEN.values(), ids=BROKEN)
def test_what_cannot_start_is_exit_2_with_one_line_before_anything_is_opened(
    tmp_path: Path, run: Callable[..., Any], command: list[str], given: dict[str, str], line: str
) -> None:
    (tmp_path / "file").write_text("")

    result = run(command, **given)

    assert result.exit_code == 2, result.output
    assert result.stderr.startswith(f"fila-server: {line}")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("command", COMMANDS, ids=["start", "config check"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"TLS__KEY_FILE": "b.key"}, "the files of [tls] do not fit together"),
        (
            {"TLS__KEY_FILE": "a.key", "TLS__CIPHERS": "ROT13"},
            "tls.ciphers: OpenSSL knows no cipher of 'ROT13'",
        ),
    ],
)
def test_certificates_are_judged_as_a_start_judges_them(
    tmp_path: Path, run: Callable[..., Any], command: list[str], given: dict[str, str], words: str
) -> None:
    certificate(tmp_path, "a")
    certificate(tmp_path, "b")

    result = run(command, TLS__CERT_FILE="a.pem", **given)

    assert result.exit_code == 2, result.output
    assert words in result.stderr


def test_a_check_makes_neither_the_history_nor_the_data_directory(
    tmp_path: Path, run: Callable[..., Any]
) -> None:
    result = run(["config", "check"], HISTORY__ENABLED="true", HISTORY__DIR="deep/history", DATA_DIR="data")

    assert result.exit_code == 0, result.output
    assert not list(tmp_path.iterdir())


def test_a_history_that_may_not_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere

    for place, words in (
        (tmp_path, "cannot be written to"),
        (tmp_path / "new", "cannot be made: Permission denied"),
    ):
        with pytest.raises(errors.ConfigInvalid, match=f"history.dir: {place} {words}"):
            start_checks.check(Config(history=History(enabled=True, dir=str(place))))


def test_the_first_keys_file_may_go_once_there_are_keys(tmp_path: Path, run: Callable[..., Any]) -> None:
    marker.write_changes(tmp_path, 1)
    given = {"AUTH__ENABLED": "true", "AUTH__BOOTSTRAP_KEY_FILE": "gone", "DATA_DIR": str(tmp_path)}

    assert run(["config", "check"], **given).exit_code == 0


def test_the_first_key_is_read_before_the_store_is_opened(tmp_path: Path) -> None:
    text, _ = keys.make(os.urandom)
    file = tmp_path / "first-key"
    file.write_text(text)
    settings = Config(auth=Auth(enabled=True, bootstrap_key_file=str(file)))
    start_checks.check(settings)
    assert bootstrap.key_from_file(str(file)).id in text

    file.write_text("no key")
    with pytest.raises(errors.ConfigInvalid, match="holds no key"):
        start_checks.check(settings)


@pytest.mark.parametrize(
    "given",
    [
        {"METRICS__LISTEN_ADDR": "127.0.0.1:0", "SERVER__LISTEN_ADDR": "127.0.0.1:0"},
        {"METRICS__LISTEN_ADDR": "127.0.0.1:22401", "SERVER__LISTEN_ADDR": "127.0.0.2:22401"},
        {"METRICS__LISTEN_ADDR": "[::1]:22401", "SERVER__LISTEN_ADDR": "0.0.0.0:22401"},
        {"REDIS__ENABLED": "false", "REDIS__LISTEN_ADDR": "127.0.0.1:5555"},
        {"METRICS__LISTEN_ADDR": ""},
    ],
)
def test_addresses_that_do_not_meet_are_taken(run: Callable[..., Any], given: dict[str, str]) -> None:
    assert run(["config", "check"], **given).exit_code == 0
