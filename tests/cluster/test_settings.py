"""What `[cluster]` may say, and what is refused before anything is opened."""

from __future__ import annotations

import os
import sys

import pytest
from click.testing import CliRunner

from fila_server import errors, start_checks
from fila_server.config.load import load
from fila_server.main import main
from tests.edge.test_start_checks import certificate

REST = """
node = "fila-1"
log = "kafka://kafka-1:9092,kafka-2:9092/fila-log"
"""
CERTIFICATES = """
cert_file = "node.pem"
key_file = "node.key"
ca_file = "ca.pem"
"""
FAR = f"""[server]
listen_addr = "10.0.0.1:5555"
[cluster]
name = "orders"
peer_addr = "10.0.0.1:5556"
peers = "10.0.0.1:5556, fila-2:5556"
{REST}{CERTIFICATES}"""
NEAR = f"""[cluster]
name = "orders"
peer_addr = "127.0.0.1:5556"
peers = "localhost:5557, [::1]:5558"
secret_file = "secret"
advertised_addr = "127.0.0.1:5555"
{REST}"""


def loaded(tmp_path, text):
    path = tmp_path / "fila.toml"
    path.write_text(text)
    return load(path, {}, tmp_path).config


@pytest.mark.parametrize("text", [FAR, NEAR])
def test_a_node_has_a_log_peers_and_something_by_which_nodes_know_each_other(tmp_path, text):
    cluster = loaded(tmp_path, text).cluster
    assert cluster.is_set
    assert (cluster.log.brokers, cluster.log.topic) == ("kafka-1:9092,kafka-2:9092", "fila-log")
    assert [each.port for each in cluster.peers.each] in ([5556, 5556], [5557, 5558])


def test_without_a_name_there_is_no_group(tmp_path):
    assert not loaded(tmp_path, "").cluster.is_set


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('name = "a b"', r'cluster.name must be a name of up to 63 letters, digits, .*, got "a b"'),
        ('log = "kafka-1:9092"', r'cluster.log must be a log such as "kafka://kafka-1:9092'),
        ('log = "kafka://kafka-1/fila-log"', "cluster.log must be a log such as"),
        ('log = "kafka://kafka-1:9092/two/parts"', "cluster.log must be a log such as"),
        ('peers = "fila-2"', 'cluster.peers must be addresses such as "fila-1:5556, fila-2:5556"'),
        ("clock_skew_max_ms = 99", "cluster.clock_skew_max_ms must be a whole number from 100 to 60000"),
    ],
)
def test_a_value_of_another_form_is_refused(tmp_path, line, why):
    with pytest.raises(errors.ConfigInvalid, match=why):
        loaded(tmp_path, f"[cluster]\n{line}\n")


@pytest.mark.parametrize(
    ("base", "was", "becomes", "key", "why"),
    [
        (FAR, 'name = "orders"', "", "node", "is given without cluster.name, and this server would be a broker alone"),
        (FAR, 'node = "fila-1"', "", "node", "a node of the group orders needs it"),
        (FAR, REST, 'node = "fila-1"', "log", "needs it. Write a log such as"),
        (FAR, 'peer_addr = "10.0.0.1:5556"', "", "peer_addr", "needs it. Write the address at which other nodes"),
        (FAR, 'peer_addr = "10.0.0.1:', 'peer_addr = "0.0.0.0:', "peer_addr", "leads nowhere from other machines"),
        (FAR, 'peer_addr = "10.0.0.1:', 'peer_addr = "[::]:', "peer_addr", "leads nowhere from other machines"),
        (FAR, 'peer_addr = "10.0.0.1:', 'peer_addr = "localhost:', "peer_addr", "leads nowhere from other machines"),
        (FAR, 'peer_addr = "10.0.0.1:5556"', 'peer_addr = "10.0.0.1:0"', "peer_addr", "has no port that others"),
        (FAR, 'listen_addr = "10.0.0.1', 'listen_addr = "0.0.0.0', "advertised_addr", "cannot reach server.listen_ad"),
        (FAR, 'listen_addr = "10.0.0.1', 'listen_addr = "127.0.0.1', "advertised_addr", "cannot reach server.listen_a"),
        (FAR, REST, REST + 'advertised_addr = "0.0.0.0:5555"', "advertised_addr", "leads nowhere from other machines"),
        (FAR, 'ca_file = "ca.pem"', "", "ca_file", "nodes need cluster.cert_file, key_file and ca_file together"),
        (FAR, CERTIFICATES, "", "cert_file", "without certificates anybody could be a node"),
        (FAR, CERTIFICATES, 'secret_file = "s"', "peer_addr", "10.0.0.1:5556 is not on loopback"),
        (FAR, CERTIFICATES, CERTIFICATES + 'secret_file = "s"', "secret_file", "know each other by certificates"),
        (NEAR, "localhost:5557", "fila-2:5557", "peers", "fila-2:5557 is not on loopback"),
        (NEAR, 'secret_file = "secret"', "", "cert_file", "cluster.secret_file is enough"),
        (NEAR, 'peer_addr = "127.0.0.1:5556"', 'peer_addr = "127.0.0.1:5555"', "peer_addr", "both listen on port 5555"),
    ],
)  # fmt: skip
def test_what_could_not_work_or_would_guard_nothing_is_refused(tmp_path, base, was, becomes, key, why):
    assert was in base
    with pytest.raises(errors.ConfigInvalid) as refused:
        loaded(tmp_path, base.replace(was, becomes))
    assert refused.value.key == f"cluster.{key}"
    assert f"cluster.{key}" in str(refused.value)
    assert why in str(refused.value)


def test_files_of_a_group_are_read_before_anything_is_opened(tmp_path):
    near = NEAR.replace('"secret"', f'"{tmp_path}/secret"')
    with pytest.raises(
        errors.ConfigInvalid, match=r"cluster.secret_file: .*/secret cannot be read: No such file"
    ):
        start_checks.check(loaded(tmp_path, near))
    os.mkfifo(tmp_path / "secret")
    with pytest.raises(errors.ConfigInvalid, match="is no regular file"):
        start_checks.check(loaded(tmp_path, near))
    (tmp_path / "secret").unlink()
    (tmp_path / "secret").write_text("short\n")
    with pytest.raises(errors.ConfigInvalid, match=r"has 5 characters in its first line.* 16 or more"):
        start_checks.check(loaded(tmp_path, near))
    (tmp_path / "secret").write_text("a word of some length\n")
    start_checks.check(loaded(tmp_path, near))


def test_certificates_are_loaded_before_anything_is_opened(tmp_path):
    for name in ("node", "ca"):
        certificate(tmp_path, name)
    far = FAR.replace("ca.pem", "authority.pem")
    for name in ("node.pem", "node.key", "authority.pem"):
        far = far.replace(f'"{name}"', f'"{tmp_path}/{name}"')
    settings = loaded(tmp_path, far)
    with pytest.raises(
        errors.ConfigInvalid, match=r"cluster.ca_file: .*authority.pem cannot be read: No such file"
    ):
        start_checks.check(settings)
    (tmp_path / "authority.pem").write_text("none")
    with pytest.raises(errors.ConfigInvalid, match=r"cluster.ca_file: .*authority.pem holds no certificate"):
        start_checks.check(settings)
    (tmp_path / "authority.pem").write_text((tmp_path / "ca.pem").read_text())
    start_checks.check(settings)

    (tmp_path / "node.key").write_text((tmp_path / "ca.key").read_text())
    with pytest.raises(errors.ConfigInvalid, match=r"cluster.cert_file: .* do not load: KEY_VALUES_MISMATCH"):
        start_checks.check(settings)


def test_a_group_needs_confluent_kafka(tmp_path, monkeypatch):
    (tmp_path / "secret").write_text("a word of some length\n")
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(
        errors.ConfigInvalid, match=r"cluster\.name: .* confluent-kafka, which is not installed"
    ):
        start_checks.check(loaded(tmp_path, NEAR.replace('"secret"', f'"{tmp_path}/secret"')))


def test_config_check_says_what_of_a_group_would_not_work(tmp_path):
    path = tmp_path / "fila.toml"
    path.write_text(FAR.replace('node = "fila-1"', ""))
    told = CliRunner().invoke(main, ["config", "check", "--config", str(path)])
    assert told.exit_code == 2
    assert "cluster.node: a node of the group orders needs it" in told.output
