"""`fila auth` against a real server, and where a secret must never turn up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fila import FilaClient
from fila.errors import NotAllowed, QueueNotFound
from fila.v1 import admin_pb2, service_pb2
from tests import forked_python
from tests.access.guarded_server import Guarded, make_queue, refusal

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]  # a process for each command


def fila(guarded: Guarded, *arguments: str, key: str, folder: Path, **environ: str) -> Any:
    """Run one command; the key is in its environment, as people have it."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    given = {"FILA_ADDR": guarded.running.addresses["grpc"], "XDG_CONFIG_HOME": str(folder)}
    return subprocess.run(
        [forked_python.program(), "-c", "from fila_cli.main import main; main()", *arguments],
        env=inherited | given | ({"FILA_API_KEY": key} if key else {}) | environ,
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip


def secret_of(key: str) -> str:
    return key.split("_")[2]


def test_a_key_is_made_granted_used_shown_rotated_and_revoked(guarded: Guarded, tmp_path: Path):
    def run(*arguments: str, key: str = guarded.admin_key) -> Any:
        return fila(guarded, *arguments, key=key, folder=tmp_path)

    made = run("auth", "key", "create", "shop", "--expires", "90d")
    key = made.stdout.strip()
    assert (made.stdout, made.returncode) == (f"{key}\n", 0)
    assert run("auth", "grant", "shop", "--produce", "cli.*").returncode == 0
    run("queue", "create", "cli.orders")
    assert run("enqueue", "cli.orders", "hello", key=key).returncode == 0
    denied = run("consume", "cli.orders", "--count", "1", key=key)
    assert (denied.returncode, "consume:" in denied.stderr) == (1, True)

    shown = run("auth", "show", key=key).stdout
    assert "produce cli.*" in shown
    assert key.split("_")[1] in shown
    assert secret_of(key) not in shown

    file = tmp_path / "shop.key"
    file.write_text(run("auth", "key", "rotate", key.split("_")[1], "--overlap", "0s").stdout)
    by_file = fila(
        guarded, "enqueue", "cli.orders", "again", key="", folder=tmp_path, FILA_API_KEY_FILE=str(file)
    )
    assert by_file.returncode == 0, by_file.stderr
    run("auth", "key", "revoke", file.read_text().split("_")[1], "--yes")
    refused = run("enqueue", "cli.orders", "no", key=file.read_text().strip())
    assert (refused.returncode, "not valid" in refused.stderr) == (1, True)

    told = run("auth", "audit", "--limit", "100").stdout
    assert "permissions=produce cli.*" in told
    assert "RIGHT_" not in told
    listed = json.loads(run("auth", "audit", "--limit", "2", "-o", "json").stdout)
    assert [record["act"] for record in listed["records"]] == ["RevokeKey", "RotateKey"]


def test_an_address_for_webhooks_is_printed_once_and_only_enqueues(guarded: Guarded, tmp_path: Path):
    def run(*arguments: str, key: str = guarded.admin_key) -> Any:
        return fila(guarded, *arguments, key=key, folder=tmp_path)

    run(
        "queue",
        "create",
        "cli.hooks",
        "--intake-header",
        "x-signature",
        "--intake-dedup-header",
        "x-delivery",
    )
    exported = run("export").stdout
    assert 'intake-header = ["x-signature"]\nintake-dedup-header = ["x-delivery"]' in exported
    made = run("auth", "link", "create", "cli.hooks", "--webhook", "--gateway", "https://fila.example/")
    address = made.stdout.strip()
    begins = "https://fila.example/v1/queues/cli.hooks/messages/raw/fila_"
    assert (made.returncode, address.startswith(begins)) == (0, True), made.stderr
    key = address.rpartition("/")[2]
    assert run("enqueue", "cli.hooks", "hello", key=key).returncode == 0
    assert run("consume", "cli.hooks", "--count", "1", key=key).returncode == 1

    listed = run("auth", "link", "list", "cli.hooks").stdout
    assert (" produce " in listed, "never" in listed, secret_of(key) in listed) == (True, True, False)
    run("auth", "link", "revoke", "cli.hooks", key.split("_")[1], "--yes")
    assert "not valid" in run("enqueue", "cli.hooks", "no", key=key).stderr
    for wrong in (
        ("cli.hooks",),
        ("cli.hooks", "acme", "--gateway", "https://x"),
        ("cli.hooks", "--webhook", "--console", "y"),
    ):
        assert run("auth", "link", "create", *wrong).returncode == 2


def test_a_name_is_shown_before_it_is_forgotten_and_asked_about(guarded: Guarded, tmp_path: Path):
    def run(*arguments: str, key: str = guarded.admin_key) -> Any:
        return fila(guarded, *arguments, key=key, folder=tmp_path)

    key = run("auth", "key", "create", "acme-shop", "--as-tenant", "acme").stdout.strip()
    run("auth", "grant", "acme-shop", "--produce", "cli.*")
    would = run("auth", "forget", "acme-shop", "--dry-run")
    assert would.returncode == 0
    for said in ("tenant  acme", "produce cli.*", key.split("_")[1], "would be forgotten"):
        assert said in would.stdout
    asked = run("auth", "forget", "acme-shop")
    assert (asked.returncode, "--yes says that it is meant" in asked.stderr) == (2, True)
    assert "produce cli.*" in asked.stderr
    assert run("auth", "show", "acme-shop").returncode == 0

    done = run("auth", "forget", "acme-shop", "--yes")

    assert (done.returncode, done.stdout) == (0, "acme-shop is forgotten\n")
    assert "not valid" in run("enqueue", "cli.orders", "no", key=key).stderr
    gone = run("auth", "show", "acme-shop")
    assert (gone.returncode, "no principal" in gone.stderr) == (1, True)
    assert "acme-shop" in run("auth", "audit", "--limit", "1").stdout
    last = run("auth", "forget", "admin", "--yes")
    assert (last.returncode, "last admin" in last.stderr) == (1, True)


def test_who_manages_a_queue_makes_shows_uses_and_revokes_a_link(guarded: Guarded, tmp_path: Path):
    def run(*arguments: str, key: str) -> Any:
        return fila(guarded, *arguments, key=key, folder=tmp_path)

    queue = make_queue(guarded, "cli.linked", fairness_key_header="tenant")
    guarded.admin.service.Enqueue(service_pb2.EnqueueRequest(queue=queue, headers={"tenant": "acme"}))
    guarded.admin.service.Enqueue(service_pb2.EnqueueRequest(queue=queue, headers={"tenant": "globex"}))
    manager = guarded.make_key("link-maker", f"manage {queue}").key

    made = run("auth", "link", "create", queue, "acme", "--ttl", "1d", key=manager)
    assert made.returncode == 0, made.stderr
    key = made.stdout.strip()
    address = run(
        "auth", "link", "create", queue, "acme", "--console", "https://console.example/", key=manager
    )
    assert address.stdout.startswith("https://console.example/t#fila_")

    # Its own message, not the two that wait; who consumes is not for it.
    (row,) = run("queue", "list", key=key).stdout.splitlines()[1:]
    name, pending, leased, age, consumers = row.split()
    assert (name, pending, leased, consumers) == (queue, "1", "0", "-")
    assert age.endswith("s")
    assert "globex" not in run("queue", "inspect", queue, key=key).stdout
    assert run("explain", queue, "acme", key=key).returncode == 0
    assert run("explain", queue, "globex", key=key).returncode == 1
    listed = run("auth", "link", "list", queue, key=manager).stdout
    assert f"{key.split('_')[1]}  {queue}  view  acme  link-maker" in " ".join(listed.split()).replace(
        " ", "  "
    )
    revoked = run("auth", "link", "revoke", queue, key.split("_")[1], "--yes", key=manager)
    assert revoked.returncode == 0, revoked.stderr
    assert "not valid" in run("queue", "list", key=key).stderr


def test_who_may_view_sees_who_waits_and_peeks_at_nothing(guarded: Guarded, tmp_path: Path):
    queue = make_queue(guarded, "cli.viewed")
    key = guarded.make_key("viewer").key
    granted = fila(
        guarded, "auth", "grant", "viewer", "--view", "cli.*", key=guarded.admin_key, folder=tmp_path
    )
    assert "view cli.*" in granted.stdout
    for arguments, code in ((("queue", "inspect", queue), 0), (("late",), 0), (("queue", "peek", queue), 1)):
        ran = fila(guarded, *arguments, key=key, folder=tmp_path)
        assert ran.returncode == code, ran.stderr


def test_no_option_takes_a_key_itself():
    told = subprocess.run(
        [sys.executable, "-c", "from fila_cli.main import main; main(['enqueue', '--help'])"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "--api-key-file" in told
    assert "--api-key " not in told


async def test_the_python_client_sends_its_key_and_says_what_a_refusal_means(guarded: Guarded):
    queue = make_queue(guarded, "sdk.orders")
    client = guarded.make_key("sdk", f"produce {queue}")
    async with FilaClient.connect(guarded.running.addresses["grpc"], api_key=client.key) as fila_client:
        await fila_client.enqueue(queue, payload=b"hello")
        with pytest.raises(NotAllowed, match="manage:"):
            await fila_client.delete_queue(queue)
        with pytest.raises(QueueNotFound):
            await fila_client.enqueue("sdk.hidden", payload=b"hello")
        assert secret_of(client.key) not in repr(fila_client._options)


async def test_the_python_client_makes_keys_and_gives_rights(guarded: Guarded):
    address = guarded.running.addresses["grpc"]
    async with FilaClient.connect(address, api_key=guarded.admin_key) as admin:
        key = await admin.create_key("made-here", expires_after="90d", as_tenant="acme")
        given = await admin.grant("made-here", produce=["made.*"])
        assert [(each.right, each.queue) for each in given.permissions] == [("produce", "made.*")]
        async with FilaClient.connect(address, api_key=key) as client:
            own = await client.get_principal()
            assert (own.name, own.tenant, own.keys[0].key_id) == ("made-here", "acme", key.split("_")[1])
        await admin.create_queue("made.linked")
        made = await admin.create_tenant_link("made.linked", "acme", ttl="1d")
        assert secret_of(made.key) not in repr(made)
        assert [each.fairness_key for each in await admin.list_tenant_links("made.linked")] == ["acme"]
        async with FilaClient.connect(address, api_key=made.key) as viewer:
            assert (await viewer.explain_key("made.linked", "acme")).state == "empty"
        await admin.revoke_tenant_link("made.linked", made.link.link_id)
        assert await admin.list_tenant_links("made.linked") == []
        newer = await admin.rotate_key(own.keys[0].key_id)
        await admin.revoke_key(newer.split("_")[1])
        assert (await admin.revoke_grant("made-here")).permissions == []
        assert "made-here" in [each.name for each in await admin.list_principals()]
        assert (await admin.forget_principal("made-here")).tenant == "acme"
        assert "made-here" not in [each.name for each in await admin.list_principals()]


def test_no_secret_is_in_the_log_in_an_answer_or_on_the_disk(guarded: Guarded, tmp_path: Path):
    make_queue(guarded, "secrets")
    client = guarded.make_key("keeper", "produce secrets")
    wrong = f"fila_{client.key.split('_')[1]}_{'wrong' * 10}"
    config = "hush-" + "h" * 40
    script = "function on_enqueue(msg) return {fairness_key = 'scripted-secret'} end"
    client.service.Enqueue(service_pb2.EnqueueRequest(queue="secrets"))
    guarded.admin.admin.SetConfig(admin_pb2.SetConfigRequest(key="token", value=config))
    guarded.admin.admin.UpdateQueue(
        admin_pb2.UpdateQueueRequest(
            queue="secrets", config=admin_pb2.QueueConfig(on_enqueue_script=script),
            update_mask={"paths": ["on_enqueue_script"]},
        )
    )  # fmt: skip
    told = [str(refusal(lambda: guarded.client(wrong).admin.ListQueues(admin_pb2.ListQueuesRequest())))]
    told.append(fila(guarded, "queue", "list", key=wrong, folder=tmp_path).stderr)
    told.append(guarded.running.log_file.read_text())
    told.append(Path(f"/proc/{guarded.running.process.pid}/cmdline").read_bytes().decode())
    secrets = [secret_of(client.key), secret_of(guarded.admin_key), "wrong" * 10, config, "scripted-secret"]
    for secret in secrets:
        assert not [text for text in told if secret in text]
    stored = b"".join(
        file.read_bytes()
        for file in guarded.running.data_dir.rglob("*")
        if file.is_file() and file.name not in ("bootstrap-key", "ballast")
    )
    assert client.key.split("_")[1].encode() in stored, "the id is kept"
    for key in (client.key, guarded.admin_key, wrong):
        assert secret_of(key).encode() not in stored
