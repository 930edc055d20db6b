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


def private_file(path, text):
    path.touch(0o600)
    path.write_text(text)


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
        (FAR, REST, REST + 'advertised_redis_addr = "[::1]:1"', "advertised_redis_addr", "leads nowhere from other"),
        (FAR, 'ca_file = "ca.pem"', "", "ca_file", "nodes need cluster.cert_file, key_file and ca_file together"),
        (FAR, CERTIFICATES, "", "cert_file", "without certificates anybody could be a node"),
        (FAR, CERTIFICATES, 'secret_file = "s"', "peer_addr", "10.0.0.1:5556 is not on loopback"),
        (FAR, CERTIFICATES, CERTIFICATES + 'secret_file = "s"', "secret_file", "know each other by certificates"),
        (NEAR, "localhost:5557", "fila-2:5557", "peers", "fila-2:5557 is not on loopback"),
        (NEAR, 'secret_file = "secret"', "", "cert_file", "cluster.secret_file is enough"),
        (FAR, 'peers = "10.0.0.1:5556, fila-2:5556"', "", "peers", "needs it. Write cluster.peer_addr of each node"),
        (FAR, "fila-2:5556", "fila-2:5556, FILA-2:5556", "peers", "FILA-2:5556 and fila-2:5556 are one node"),
        (FAR, "fila-2:5556", "[fd00::2]:5556, [fd00:0::2]:5556", "peers", "are one node. Write cluster.peer_addr of"),
        (FAR, "fila-2:5556", "fila-2:0", "peers", "fila-2:0 has no port that others could know"),
        (FAR, "fila-2:5556", "0.0.0.0:5557", "peers", "0.0.0.0:5557 leads nowhere from other machines"),
        (NEAR, "[::1]:5558", "127.0.0.1:5557", "peers", "127.0.0.1:5557 and localhost:5557 are one node"),
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


def test_a_node_asks_the_others_and_not_itself_however_its_address_is_written(tmp_path):
    text = NEAR.replace("localhost:5557", "localhost:5556, localhost:5557")
    assert loaded(tmp_path, text).cluster.other_nodes == ("localhost:5557", "[::1]:5558")
    alone = loaded(tmp_path, NEAR.replace("localhost:5557, [::1]:5558", "127.0.0.1:5556"))
    assert alone.cluster.other_nodes == ()


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
    private_file(tmp_path / "secret", "short\n")
    with pytest.raises(errors.ConfigInvalid, match=r"has 5 characters in its first line.* 16 or more"):
        start_checks.check(loaded(tmp_path, near))
    (tmp_path / "secret").write_text("a word of some length\n")
    start_checks.check(loaded(tmp_path, near))


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602])
def test_a_secret_that_others_can_read_or_write_is_none(tmp_path, mode):
    settings = loaded(tmp_path, NEAR.replace('"secret"', f'"{tmp_path}/secret"'))
    private_file(tmp_path / "secret", "a word of some length\n")
    start_checks.check(settings)
    (tmp_path / "secret").chmod(mode)
    with pytest.raises(
        errors.ConfigInvalid,
        match=rf"cluster.secret_file: others may read or write .*, its mode is {mode:04o}.*chmod",
    ):
        start_checks.check(settings)


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
    private_file(tmp_path / "secret", "a word of some length\n")
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


@pytest.mark.needs("module:confluent_kafka")
@pytest.mark.parametrize("command", [[], ["config", "check"]], ids=["start", "config check"])
@pytest.mark.parametrize(
    ("line", "code", "why"),
    [
        ('no.such = "1"', 2, 'librdkafka refuses no.such: No such configuration property: "no.such"'),
        ('socket.timeout.ms = "soon"', 2, "librdkafka refuses socket.timeout.ms: "),
        ("socket.timeout.ms = 1", 2, "librdkafka refuses socket.timeout.ms: "),
        ('security.protocol = "SASL_SSL"\nsasl.mechanism = "NONE"', 2, "librdkafka does not start: "),
        ('security.protocol = "SSL"\nssl.ca.location = "/none"', 2, "librdkafka does not start: "),
        (
            "transaction.timeout.ms = 900000\nqueue.buffering.max.kbytes = 0",
            2,
            "librdkafka refuses queue.buffering",
        ),
        ('plugin.library.paths = "libm.so.6"', 2, "plugin.library.paths would load code into the broker"),
        (
            'plugin.library.paths_file = "/none"',
            2,
            "plugin.library.paths_file would load code into the broker",
        ),
        ('sasl.username_file = "/none"', 2, "sasl.username_file: /none cannot be read"),
        ("socket.timeout.ms = 2100", 0, ""),
    ],
)
def test_a_start_and_a_check_judge_what_librdkafka_is_told_alike(
    tmp_path, monkeypatch, command, line, code, why
):
    private_file(tmp_path / "secret", "a word of some length\n")
    path = tmp_path / "fila.toml"
    path.write_text(NEAR.replace('"secret"', f'"{tmp_path}/secret"') + f"[cluster.kafka]\n{line}\n")
    opened: list[object] = []
    monkeypatch.setattr("fila_server.main.LoadingPage.at", opened.append)
    monkeypatch.setattr("fila_server.main._stand_by", lambda *_: sys.exit(0))

    told = CliRunner().invoke(main, ["--config", str(path), *command])

    assert told.exit_code == code, told.output
    assert told.stderr.count("\n") == (1 if code else 0)
    assert why in told.stderr
    assert bool(opened) == (code == 0 and not command)
