"""What `[cluster.kafka]` may say to librdkafka, and what it may not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from fila_server import errors, main
from fila_server.cluster.kafka_settings import all_settings
from fila_server.config import load as config


def loaded(folder: Path, text: str, **environ: str) -> config.LoadedConfig:
    (folder / "fila.toml").write_text(text)
    return config.load(None, environ, folder)


def test_names_with_dots_numbers_and_truths_are_taken_as_librdkafka_writes_them(tmp_path):
    text = '[cluster.kafka]\nsasl.mechanism = "PLAIN"\nsocket.timeout.ms = 900\n"ssl.x" = true\n'
    given = loaded(tmp_path, text).config.cluster.kafka
    assert dict(given) == {"sasl.mechanism": "PLAIN", "socket.timeout.ms": "900", "ssl.x": "true"}
    told = all_settings("a:1", given)
    assert (told["bootstrap.servers"], told["socket.timeout.ms"], told["acks"]) == ("a:1", "900", "all")


def test_a_secret_is_the_first_line_of_its_file(tmp_path):
    (tmp_path / "word").write_text("hush\nsecond line\n")
    text = f'[cluster.kafka]\nsasl.password_file = "{tmp_path}/word"\n'
    told = all_settings("a:1", loaded(tmp_path, text).config.cluster.kafka)
    assert told["sasl.password"] == "hush"
    assert "sasl.password_file" not in told


def test_a_file_that_has_no_value_in_a_line_of_text_is_refused(tmp_path):
    given = loaded(
        tmp_path, f'[cluster.kafka]\nsasl.password_file = "{tmp_path}/word"\n'
    ).config.cluster.kafka
    os.mkfifo(tmp_path / "word")
    with pytest.raises(errors.ConfigInvalid, match="word cannot be read: it is no regular file"):
        all_settings("a:1", given)
    (tmp_path / "word").unlink()
    for content in (b"\xff\n", b"hu\0sh\n", b"hu\x1bsh\n"):
        (tmp_path / "word").write_bytes(content)
        with pytest.raises(errors.ConfigInvalid, match="its first line is no printable text"):
            all_settings("a:1", given)
    (tmp_path / "word").write_bytes(b"hush\r\n\xff")
    assert all_settings("a:1", given)["sasl.password"] == "hush"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('acks = "1"', "acks is not to be changed: the promises of the log rest on it. Take it away"),
        ("delivery.timeout.ms = 5", "delivery.timeout.ms is not to be changed"),
        ('bootstrap.servers = "a:1"', "the brokers' addresses are told where the log is named. Take it away"),
        ('request.required.acks_file = "x"', "request.required.acks_file is not to be changed"),
        ('metadata.broker.list_file = "x"', "metadata.broker.list_file has no place here"),
        ('"transactional.id\\u0000" = "x"', "transactional.id\\u0000 is no name of a setting"),
        ('sasl.password = "x"', "Write it into a file of its own, and name that: sasl.password_file"),
        (
            "sasl.password = [1]",
            "cluster.kafka must be a table of texts, whole numbers, true and false, in the file",
        ),
    ],
)
def test_what_would_break_a_promise_or_show_a_secret_is_refused(tmp_path, line, said):
    with pytest.raises(errors.ConfigInvalid) as refused:
        loaded(tmp_path, f"[cluster.kafka]\n{line}\n")
    assert said in str(refused.value)
    assert str(refused.value).startswith(f"{tmp_path}/fila.toml:1: ")


def test_a_text_from_the_environment_is_no_table(tmp_path):
    with pytest.raises(
        errors.ConfigInvalid, match=r'cluster.kafka must be a table .* in the file, got "acks=1"'
    ):
        loaded(tmp_path, "", FILA_CLUSTER__KAFKA="acks=1")


def test_config_check_prints_a_table_that_reads_back_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = loaded(tmp_path, '[cluster.kafka]\nsasl.username = "a \\"b\\""\n').config.cluster.kafka
    printed = CliRunner().invoke(main.main, ["config", "check"])
    assert printed.exit_code == 0, printed.output
    assert loaded(tmp_path, printed.output).config.cluster.kafka == given
