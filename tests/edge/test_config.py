"""What a person sees who mistyped a setting, and which of file, environment and default wins."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from fila_server import errors, main
from fila_server.config import load as config
from fila_server.config.kinds import MIB

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"

BROKEN_FILES = {
    "unknown section": "[sceduler]\nquantum = 1\n",
    "unknown section, nothing like it": "\n[foo]\n",
    "unknown key": "[scheduler]\n\nquantm = 1\n",
    "unknown key, nothing like it": "[storage]\nzzz = 1\n",
    "key outside of a section": "quantum = 1\n",
    "key nobody has, outside of a section": "zzz = 1\n",
    "section that is a value": "lua = 3\n",
    "text for a number": '# a comment\n[scheduler]\nquantum = "many"\n',
    "boolean for a number": "[scheduler]\nquantum = true\n",
    "fraction for a number": "[scheduler]\nquantum = 1.5\n",
    "number too small": "[scheduler]\nquantum = 0\n",
    "number too large": "[limits]\npayload_bytes_max = 67108865\n",
    "number for a boolean": "[redis]\nenabled = 1\n",
    "unknown choice": '[storage]\ndurability = "always"\n',
    "no address": '[server]\nlisten_addr = "localhost"\n',
    "port too large": '[server]\nlisten_addr = "localhost:65536"\n',
    "IPv6 without brackets": '[server]\nlisten_addr = "::1:5555"\n',
    "empty text": '[server]\ndata_dir = ""\n',
    "text with a zero byte": '[server]\ndata_dir = "a\\u0000b"\n',
    "duration without unit": "[redis]\nmessage_timeout = 30\n",
    "duration out of bounds": '[redis]\nmessage_timeout = "13h"\n',
    "size with a wrong unit": '[redis]\nsegment_size = "16mbit"\n',
    "dotted key": 'scheduler.quantum = "x"\n',
    "inline table": 'scheduler = { quantum = "x" }\n',
    "very long value": f'[storage]\ndurability = "{"x" * 500}"\n',
    "not TOML": "[server\n",
    "twice the same key": "[server]\ndata_dir = 'a'\ndata_dir = 'b'\n",
}


def assert_golden(name: str, actual: str) -> None:
    """Compare with a reviewed file; FILA_UPDATE_GOLDEN=1 rewrites it for the next review."""
    expected = GOLDEN / name
    if os.environ.get("FILA_UPDATE_GOLDEN"):
        expected.write_text(actual)
    assert actual == expected.read_text()


def _load(tmp_path: Path, text: str | None = None, **environ: str) -> config.LoadedConfig:
    if text is not None:
        (tmp_path / "fila.toml").write_text(text)
    return config.load(None, environ, tmp_path)


def test_every_mistake_names_file_line_and_key_and_says_what_would_be_right(tmp_path: Path) -> None:
    lines = []
    for mistake, text in BROKEN_FILES.items():
        with pytest.raises(errors.ConfigInvalid) as raised:
            _load(tmp_path, text)
        message = str(raised.value).replace(f"{tmp_path}/", "")
        assert "\n" not in message
        assert re.match(r"fila\.toml:\d+: ", message)
        lines.append(f"{mistake}\n    {message}\n")

    assert_golden("config_errors.txt", "".join(lines))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("FILA_SCHEDULER__QUANTUM", "many", "scheduler.quantum must be a whole number from 1 to"),
        ("FILA_SCHEDULER__QUANTUM", "0", "scheduler.quantum must be a whole number from 1 to"),
        ("FILA_SCEDULER__QUANTUM", "5", "unknown section [sceduler]; did you mean scheduler?"),
        ("FILA_SCHEDULER__QUANTM", "5", "unknown key scheduler.quantm; did you mean quantum?"),
        ("FILA_REDIS__ENABLED", "maybe", "redis.enabled must be true or false"),
        ("FILA_DATA_DIR", "", "server.data_dir must be a printable text that is not empty"),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(
    tmp_path: Path, name: str, value: str, expected: str
) -> None:
    with pytest.raises(errors.ConfigInvalid) as raised:
        _load(tmp_path, **{name: value})

    assert str(raised.value).startswith(f"environment variable {name}: {expected}")


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    text = '[scheduler]\nquantum = 7\n[storage]\ndurability = "os"\n'

    loaded = _load(tmp_path, text, FILA_SCHEDULER__QUANTUM="9", FILA_REDIS__ENABLED="0")

    assert loaded.config.scheduler.quantum == 9
    assert loaded.config.storage.durability == "os"
    assert loaded.config.redis.enabled is False
    assert loaded.config.limits.payload_bytes_max == MIB
    assert loaded.origins["scheduler.quantum"] == "FILA_SCHEDULER__QUANTUM"
    assert loaded.origins["storage.durability"] == f"{tmp_path}/fila.toml:4"
    assert loaded.origins["limits.payload_bytes_max"] == "default"


def test_fila_data_dir_is_the_short_name_and_the_exact_one_wins(tmp_path: Path) -> None:
    assert _load(tmp_path, FILA_DATA_DIR="short").config.server.data_dir == "short"
    both = _load(tmp_path, FILA_DATA_DIR="short", FILA_SERVER__DATA_DIR="exact")
    assert both.config.server.data_dir == "exact"


def test_other_names_with_our_prefix_are_ignored(tmp_path: Path) -> None:
    loaded = _load(tmp_path, FILA_ADDR="http://x", FILA_SERVICE_PORT="1")

    assert loaded.config == config.Config()


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigInvalid, match=r"nowhere\.toml: cannot be read: No such file"):
        config.load(tmp_path / "nowhere.toml", {}, tmp_path)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fila.toml").write_bytes(b"\xff\xfe")

    with pytest.raises(errors.ConfigInvalid, match="is not UTF-8 text"):
        config.load(None, {}, tmp_path)


def test_durations_and_sizes_of_the_redis_section_take_units(tmp_path: Path) -> None:
    text = '[redis]\nmessage_timeout = "90s"\nsegment_size = "1gb"\nhard_retention_period = 0\n'

    redis = _load(tmp_path, text).config.redis

    assert (redis.message_timeout, redis.segment_size, redis.hard_retention_period) == (90_000, 1 << 30, 0)


def test_the_core_gets_its_settings_flat() -> None:
    flat = config.Config().engine_settings()

    assert flat["scheduler.quantum"] == 1000
    assert flat["storage.durability"] == "fsync"
    assert flat["limits.payload_bytes_max"] == MIB
    assert {name.split(".")[0] for name in flat} == {"scheduler", "storage", "limits", "sinks", "history"}
    assert {type(value) for value in flat.values()} == {int, str, bool}


def test_config_check_prints_a_file_that_reads_back_the_same(tmp_path: Path) -> None:
    (tmp_path / "given.toml").write_text("[scheduler]\nquantum = 7\n[metrics]\nlisten_addr = ''\n")

    result = CliRunner().invoke(main.main, ["config", "check", "--config", str(tmp_path / "given.toml")])

    assert result.exit_code == 0, result.output
    assert f"quantum = 7  # {tmp_path}/given.toml:2" in result.output
    again = _load(tmp_path, result.output)
    assert again.config.scheduler.quantum == 7
    assert again.config.metrics.listen_addr == ""
    assert again.config.redis == config.Config().redis


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "require_client_cert = true",
            (
                "tls.require_client_cert is given without tls.cert_file, tls.key_file and tls.client_ca_file: "
                "connections would not be encrypted, and no certificate would be asked for. Give what is missing, "
                "or take tls.require_client_cert away"
            ),
        ),
        (
            'ciphers = "ECDHE+AESGCM"\nmin_version = "1.3"',
            (
                "tls.min_version and tls.ciphers are given without tls.cert_file and tls.key_file: connections would "
                "not be encrypted. Give what is missing, or take tls.min_version and tls.ciphers away"
            ),
        ),
        (
            'client_ca_file = "ca.pem"',
            (
                "tls.client_ca_file is given without tls.cert_file and tls.key_file: connections would not be "
                "encrypted. Give what is missing, or take tls.client_ca_file away"
            ),
        ),
        (
            'cert_file = "server.pem"',
            (
                "tls.cert_file is given without tls.key_file: connections would not be encrypted. Give what is "
                "missing, or take tls.cert_file away"
            ),
        ),
        (
            'cert_file = "server.pem"\nkey_file = "server.key"\nrequire_client_cert = true',
            (
                "tls.require_client_cert is given without tls.client_ca_file: no certificate would be asked for. Give "
                "what is missing, or take tls.require_client_cert away"
            ),
        ),
    ],
)
def test_tls_settings_that_would_do_nothing_are_refused(tmp_path: Path, text: str, line: str) -> None:
    with pytest.raises(errors.ConfigInvalid) as raised:
        _load(tmp_path, f"[tls]\n{text}\n")

    at = 4 if "server.key" in text else 3 if "ciphers" in text else 2
    assert str(raised.value) == f"{tmp_path}/fila.toml:{at}: {line}"


def test_a_required_certificate_that_nobody_would_ask_for_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "run", lambda _settings: pytest.fail("started"))
    given = {"FILA_TLS__REQUIRE_CLIENT_CERT": "true", "FILA_DATA_DIR": str(tmp_path / "data")}

    result = CliRunner().invoke(main.main, ["--listen", "127.0.0.1:0"], env=given)

    assert result.exit_code == 2
    assert result.stderr.startswith(
        "fila-server: environment variable FILA_TLS__REQUIRE_CLIENT_CERT: tls.require_client_cert is given without "
    )
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("command", [[], ["config", "check"]])
def test_a_broken_file_exits_2_with_one_line(tmp_path: Path, command: list[str]) -> None:
    file = tmp_path / "fila.toml"
    file.write_text("[server]\nport = 1\n")

    result = CliRunner().invoke(main.main, [*command, "--config", str(file)])

    assert result.exit_code == 2
    assert result.stderr == (
        f"fila-server: {file}:2: unknown key server.port; known are listen_addr, allow_anonymous, "
        "allow_plaintext, data_dir, io_threads\n"
    )


@pytest.mark.parametrize("command", [[], ["config", "check"]])
@pytest.mark.parametrize("value", ["native", "python", ""])
def test_an_old_configuration_that_names_an_edge_is_told_to_leave_that_out(
    tmp_path: Path, command: list[str], value: str
) -> None:
    file = tmp_path / "fila.toml"
    file.write_text(f'[server]\nedge = "{value}"\n')
    said = "server.edge is gone: there is one edge, and nothing to choose; remove it\n"

    in_file = CliRunner().invoke(main.main, [*command, "--config", str(file)])
    file.write_text("")
    in_environment = CliRunner().invoke(
        main.main, [*command, "--config", str(file)], env={"FILA_SERVER__EDGE": value}
    )

    assert (in_file.exit_code, in_file.stderr) == (2, f"fila-server: {file}:2: {said}")
    assert (in_environment.exit_code, in_environment.stderr) == (
        2,
        f"fila-server: environment variable FILA_SERVER__EDGE: {said}",
    )


@pytest.mark.parametrize("name", ["listen_addr", "bind_address"])
def test_the_redis_port_is_set_by_its_name_and_by_its_earlier_one(tmp_path: Path, name: str) -> None:
    file = tmp_path / "fila.toml"
    file.write_text(f'[redis]\n{name} = "127.0.0.1:7001"\n')

    from_file = config.load(file, {}, tmp_path)
    from_environment = config.load(None, {f"FILA_REDIS__{name.upper()}": "127.0.0.1:7002"}, tmp_path)

    assert (from_file.config.redis.listen_addr, from_file.origins["redis.listen_addr"]) == (
        "127.0.0.1:7001",
        f"{file}:2",
    )
    assert from_environment.config.redis.listen_addr == "127.0.0.1:7002"


def test_a_setting_under_both_of_its_names_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "fila.toml"
    file.write_text('[redis]\nlisten_addr = "127.0.0.1:7001"\nbind_address = "127.0.0.1:7002"\n')
    both = {"FILA_REDIS__BIND_ADDRESS": "127.0.0.1:7001", "FILA_REDIS__LISTEN_ADDR": "127.0.0.1:7002"}
    said = "redis.bind_address is the earlier name of redis.listen_addr, which is set too; remove it"

    with pytest.raises(errors.ConfigInvalid, match=said):
        config.load(file, {}, tmp_path)
    with pytest.raises(errors.ConfigInvalid, match=said):
        config.load(None, both, tmp_path)


def test_the_reference_page_lists_every_setting_with_its_default_and_reason() -> None:
    page = (ROOT / "docs/configuration.md").read_text()

    assert config.reference_tables().strip() in page, "put the output of config.reference_tables() there"
