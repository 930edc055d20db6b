"""What `fila-server log verify` says of a log, and of what keeps it from being read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fila_server.core.log.record import KIND_BARRIER, KIND_PASS, KIND_TAKEOVER, encode
from tests.log import twin
from tests.log.running_brokers import written

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:confluent_kafka")]


def verify(brokers, topic, tmp_path, config=""):
    (tmp_path / "fila.toml").write_text(config)
    command = [Path(sys.executable).with_name("fila-server"), "log", "verify", brokers.addresses, topic]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_a_whole_log_is_told_with_its_terms_and_what_is_skipped(brokers, opened, tmp_path):
    cluster = bytes(range(16))
    bids = {
        "kind": KIND_TAKEOVER,
        "cluster": cluster,
        "incarnation": 1,
        "format": 1,
        "wall_ms": 1_764_000_000_000,
    }
    first = encode(**bids, nonce=1, name="fila-1")
    passes = []
    chain = 0
    for seq in range(3):
        passes.append(encode(kind=KIND_PASS, term=(0, 1), seq=seq, chain=chain, body=b"writes"))
        chain = twin.mark(passes[-1])
    second = encode(**bids, term=(0, 1), nonce=2, name="fila-2")
    last = encode(kind=KIND_BARRIER, term=(5, 2), seq=0, chain=chain)
    stale = encode(kind=KIND_PASS, term=(0, 1), seq=3, chain=chain)
    written(opened("told"), first, *passes, first, second, last, stale)
    found = verify(brokers, "told", tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == (
        "topic told, cluster 000102030405060708090a0b0c0d0e0f\n"
        "  from offset 0: fila-1, since 2025-11-24 16:00:00 UTC, 3 passes\n"
        "  from offset 5: fila-2, since 2025-11-24 16:00:00 UTC, 0 passes\n"
        "read: 8 records. Effective: 2 takeovers, 3 passes, 1 barriers. Skipped: 1 void takeovers, 1 stale records\n"
        "whole: every reader comes to its end\n"
    )


def test_a_log_at_which_a_reader_halts_is_told_with_what_it_saw(brokers, opened, tmp_path):
    bid = encode(kind=KIND_TAKEOVER, nonce=1, cluster=bytes(16), incarnation=1, format=1, name="fila-1")
    written(opened("foreign"), bid, b"hello")
    found = verify(brokers, "foreign", tmp_path)
    assert found.returncode == 3
    assert found.stdout.endswith(
        "halted: the record at offset 1 is none of this log's: nobody else may write to the topic\n"
    )


def test_a_topic_without_a_record_is_a_log(brokers, tmp_path):
    found = verify(brokers, "empty", tmp_path)
    assert (found.returncode, found.stdout) == (0, "topic empty holds no record yet\n")


def test_what_keeps_a_log_from_being_read_is_one_line(brokers, tmp_path):
    found = verify(brokers, "wide", tmp_path)
    assert found.returncode == 1
    assert found.stderr.startswith("fila-server: topic wide at 127.0.0.1:")
    found = verify(brokers, "told", tmp_path, '[cluster.kafka]\nsasl.password_file = "gone"\n')
    assert (found.returncode, found.stderr) == (
        2,
        (
            "fila-server: cluster.kafka: sasl.password_file: gone cannot be read: No such file or directory. "
            "Name a file whose first line is the value\n"
        ),
    )
