"""Does the Terraform provider do what docs/deploy/terraform.md says? OpenTofu runs it against a server.

    make release-check ONLY=terraform           the provider of dist/ and the server of dist/
    python -m tools.terraform.check             the provider of this tree and the server of this tree

OpenTofu is built once, out of the Go modules of this folder, into build/terraform. The provider is found by a
development override of OpenTofu's configuration, so nothing is asked for it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tools.one_server import serving
from tools.release.commands import DIST
from tools.release.versions import TREE

HERE = TREE / "tools/terraform"
BUILT = TREE / "build/terraform"
PROVIDER = "terraform-provider-fila"
KEY = r"fila_[A-Za-z0-9]+_[A-Za-z0-9]{20}"
COMMAND_S_MAX = 120
# Lines of the page that the check changes.
ATTEMPTS = "max_attempts        = 5"
BUDGET = "budget = { amount = 1000, period_ms = 3600000 }"
PAGE = TREE / "docs/deploy/terraform.md"
HEAD = 'terraform {\n  required_providers {\n    fila = { source = "fila-mq/fila" }\n  }\n}\n'
# The run's own key opens a second connection.
WITH_KEY = """
provider "fila" {
  alias   = "billing"
  api_key = ephemeral.fila_key.billing.key
}

data "fila_config" "region" {
  provider = fila.billing
  key      = fila_config.region.key
}
"""
# Values that a resource cannot have, and what the sentence about them must hold.
REFUSED = (
    ("queue", 'name = "bad"\n durability = "sometimes"', ("durability", "fsync")),
    ("queue", 'name = "bad"\n max_attempts = -1', ("max_attempts", "from 0 to 4294967295")),
    ("queue", 'name = "bad"\n weights = { a = 5000000000 }', ("weights", "4294967295")),
    ("queue", 'name = "bad"\n visibility_timeout_ms = 5', ("visibility_timeout_ms", "1000")),
    ("config", 'key = "terraform.there"\n value = "mine"', ('Import it with the id "terraform.there"',)),
    ("principal", 'name = "bad"\n quotas = { stored_bytes = 5 }', ("quotas", "bound to a tenant")),
    ("config", 'key = "bad"\n value = ""', ("value", "empty")),
    ("grant", 'name = "bad"\n right = "rule"', ("right", "produce")),
    ("limit", 'name = "bad"\n rates = [{ per_second = -1 }]', ("rates", "1e+09")),
    (
        "schedule",
        'queue = "bad"\n schedule = "bad"\n cron = "0 9 * * *"\n every_ms = 5',
        ("every_ms", "exactly one"),
    ),
)


# What the provider of a guarded server is told. Its certificate has a name, and the address has none.
GUARDED = """
provider "fila" {{
{lines}
}}

resource "fila_queue" "orders" {{
  name = "terraform-guarded"
}}
"""
NAME_OF_SERVER = "fila.example"
ADMINS_KEY = "fila_terraformterra_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
# Lines of it that say another thing, or nothing, and the sentence about it.
NOT_LET_IN: tuple[tuple[dict[str, str], str], ...] = (
    ({"api_key": ""}, "no principal has a name of this certificate"),
    ({"api_key": ADMINS_KEY.replace("a", "b")}, "the key is not valid"),
    ({"ca_file": ""}, "no authority that this client trusts has signed it"),
    ({"ca_file": "/no/such/file.pem"}, "the CA file cannot be read: open /no/such/file.pem"),
    ({"cert_file": "", "key_file": ""}, "asks for a client certificate"),
    ({"server_name": ""}, "it is not made out to 127.0.0.1"),
)


class Tofu:
    """OpenTofu in a folder, with the provider that lies in another, and more of an environment."""

    def __init__(self, folder: Path, provider: Path, **more: str) -> None:
        self.folder = folder
        self.main = folder / "main.tf"
        settings = folder / "tofu.rc"
        override = (
            f'provider_installation {{\n  dev_overrides {{\n    "fila-mq/fila" = "{provider}"\n  }}\n}}\n'
        )
        settings.write_text(override)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FILA_", "TF_"))}
        own = {"TF_CLI_CONFIG_FILE": str(settings), "CHECKPOINT_DISABLE": "1"}
        self.environ = kept | own | more

    def run(self, *words: str, good: tuple[int, ...] = (0,)) -> str:
        """Return what a command said; another exit code than a good one ends the check."""
        ran = subprocess.run(
            [tofu(), *words, "-no-color"],
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=COMMAND_S_MAX,
            check=False,
        )
        said = " ".join((ran.stdout + ran.stderr).replace("│", " ").split())
        assert ran.returncode in good, f"tofu {' '.join(words)}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return said

    def apply(self) -> str:
        """Apply what main.tf says."""
        return self.run("apply", "-auto-approve", "-input=false")

    def plan(self) -> str:
        """Return the plan; 2 is the exit code of one that changes something."""
        return self.run("plan", "-input=false", "-detailed-exitcode", good=(0, 2))

    def state(self) -> str:
        """Return the state as it lies on disk."""
        return (self.folder / "terraform.tfstate").read_text()


def main() -> None:
    """Check this tree's provider against this tree's server."""
    BUILT.mkdir(parents=True, exist_ok=True)
    go("-C", str(TREE / "sdks/terraform"), "build", "-o", str(BUILT / PROVIDER), ".")
    check(BUILT, Path(sys.executable).parent)


def check_dist(programs: Path) -> None:
    """Check the provider of dist/ against the server that is among these programs."""
    with tempfile.TemporaryDirectory() as folder:
        [packed] = (DIST / "terraform").glob(f"{PROVIDER}_*.zip")
        with zipfile.ZipFile(packed) as inside:
            [name] = inside.namelist()
            (Path(folder) / PROVIDER).write_bytes(inside.read(name))
        (Path(folder) / PROVIDER).chmod(0o755)
        check(Path(folder), programs)


def go(*words: str) -> None:
    """Run the go command."""
    subprocess.run(["go", *words], check=True)


def tofu() -> str:
    """Return OpenTofu, built the first time: minutes, for it is large."""
    built = BUILT / "tofu"
    if not built.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        go(
            "-C",
            str(HERE),
            "build",
            "-ldflags=-s -w",
            "-o",
            str(built),
            "github.com/opentofu/opentofu/cmd/tofu",
        )
    return str(built)


def check(provider: Path, programs: Path) -> None:
    """Check a provider against a server that serves everybody, and against one that does not."""
    with serving("fila_server.main", python=programs / "python") as port:
        check_open(provider, f"127.0.0.1:{port}", programs / "fila")
    check_guarded(provider, programs)


def check_open(provider: Path, address: str, fila: Path) -> None:
    """Walk through a life: made, unchanged, drifted, put right, refused, imported, destroyed."""
    with tempfile.TemporaryDirectory() as folder:
        run = Tofu(Path(folder), provider, FILA_ADDR=address)
        programs = PAGE.read_text().split("```hcl\n")[1:]
        written = HEAD + "\n".join(
            program.split("```")[0] for program in programs if "required_providers" not in program
        )
        run.main.write_text(written + WITH_KEY)
        check_life(run, [str(fila), "--addr", address])
        check_budget(run)
        check_refusals(run, [str(fila), "--addr", address])
        run.main.write_text(written)
        check_import(run)
        assert "Destroy complete" in run.run("destroy", "-auto-approve")
        assert (
            command([str(fila), "--addr", address], "auth", "key", "list", "-o", "json").count("terraform-")
            == 0
        )
        listed = command([str(fila), "--addr", address], "queue", "list", "-o", "json")
        assert "terraform-orders" not in listed, listed


def check_life(run: Tofu, fila: list[str]) -> None:
    """Make all; again nothing changes; what a person changed comes back; what nobody wrote is left alone."""
    assert "0 changed, 0 destroyed" in run.apply()
    assert "No changes" in run.plan()
    assert "Resources: 0 added, 0 changed, 0 destroyed" in run.apply()
    assert not re.search(KEY, run.state()), "a key is in the state"
    done = command(fila, "auth", "audit", "-o", "json")
    assert done.count('"CreateKey"') == done.count('"RevokeKey"') > 2, done
    command(fila, "queue", "update", "terraform-orders", "--max-attempts", "9")
    assert "max_attempts = 9 -> 5" in run.plan()
    assert "1 changed" in run.apply()
    assert "No changes" in run.plan()
    command(fila, "queue", "update", "terraform-orders", "--max-depth", "1000")
    run.apply()
    assert "No changes" in run.plan()
    assert '"max_depth": 1000' in run.state()
    command(fila, "key", "weight", "terraform-orders", "acme", "7")
    assert "weight = 7 -> 5" in run.plan()
    run.apply()
    command(fila, "limit", "delete", "terraform-provider")
    assert "1 to add" in run.plan()
    run.apply()


def check_budget(run: Tofu) -> None:
    """A budget of nothing takes a limit's budget away, and it comes back."""
    kept = run.main.read_text()
    for program, amount in ((kept.replace(BUDGET, "budget = { amount = 0 }"), 0), (kept, 1000)):
        run.main.write_text(program)
        assert "1 changed" in run.apply()
        assert "No changes" in run.plan()
        assert f'"amount": {amount}' in run.state()


def check_refusals(run: Tofu, fila: list[str]) -> None:
    """Each bad value is refused by a sentence with the field and its bounds, and nothing is made."""
    command(fila, "config", "set", "terraform.there", "theirs")
    kept = run.main.read_text()
    for kind, program, words in REFUSED:
        run.main.write_text(f'{kept}\nresource "fila_{kind}" "bad" {{\n {program}\n}}\n')
        said = run.run("apply", "-auto-approve", good=(1,))
        assert all(word in said for word in words), said
    # Of a queue that is there, the plan knows what the server knows.
    for line, wrong in {
        "visibility_timeout_ms = 7": "visibility_timeout_ms must be from 1000",
        'on_enqueue_script = "function ("': "on_enqueue_script",
    }.items():
        run.main.write_text(kept.replace(ATTEMPTS, f"{ATTEMPTS}\n  {line}"))
        said = run.run("plan", good=(1,))
        assert "Cannot plan fila_queue" in said, said
        assert wrong in said, said
    run.main.write_text(kept)
    assert "theirs" in command(fila, "config", "get", "terraform.there")
    command(fila, "config", "delete", "terraform.there")
    assert '"bad"' not in command(fila, "auth", "list", "-o", "json")


def check_import(run: Tofu) -> None:
    """A state that is lost comes back by imports, and then nothing changes."""
    held = json.loads(run.state())["resources"]
    shutil.move(run.folder / "terraform.tfstate", run.folder / "lost.tfstate")
    keys = {
        "fila_queue": ("name",),
        "fila_limit": ("name",),
        "fila_config": ("key",),
        "fila_principal": ("name",),
        "fila_key_policy": ("queue", "fairness_key"),
        "fila_schedule": ("queue", "schedule"),
        "fila_grant": ("name", "right", "queue", "channel"),
    }
    seen = set()
    for resource in (each for each in held if each["mode"] == "managed"):
        [instance] = resource["instances"]
        identity = ",".join(instance["attributes"][key] for key in keys[resource["type"]])
        run.run("import", f"{resource['type']}.{resource['name']}", identity)
        seen.add(resource["type"])
    assert seen == set(keys), set(keys) - seen
    said = run.plan()
    assert "No changes" in said, said


def check_guarded(provider: Path, programs: Path) -> None:
    """A server that is reached by TLS alone, and that serves who has a key and a certificate: all that the provider may
    be told of it counts, and what it is not told comes from the environment."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        certificate, key, first_key = (str(folder / each) for each in ("it.pem", "it.key", "first-key"))
        make_certificate(certificate, key)
        Path(first_key).write_text(ADMINS_KEY)
        settings = {
            "FILA_AUTH__ENABLED": "true",
            "FILA_AUTH__BOOTSTRAP_KEY_FILE": first_key,
            "FILA_TLS__CERT_FILE": certificate,
            "FILA_TLS__KEY_FILE": key,
            "FILA_TLS__CLIENT_CA_FILE": certificate,
            "FILA_TLS__REQUIRE_CLIENT_CERT": "true",
        }
        with serving("fila_server.main", python=programs / "python", **settings) as port:
            told = {
                "address": f"https://127.0.0.1:{port}",
                "api_key": ADMINS_KEY,
                "ca_file": certificate,
                "cert_file": certificate,
                "key_file": key,
                "server_name": NAME_OF_SERVER,
            }
            run = Tofu(folder, provider)
            for instead, sentence in NOT_LET_IN:
                write_guarded(run, told | instead)
                said = run.run("apply", "-auto-approve", good=(1,))
                assert sentence in said, said
            write_guarded(run, told)
            assert "1 added, 0 changed, 0 destroyed" in run.apply()
            assert "No changes" in run.plan()
            assert ADMINS_KEY not in run.state(), "the provider's key is in the state"
            write_guarded(run, {"server_name": NAME_OF_SERVER})
            named = {
                f"FILA_{name.upper()}": told[name] for name in ("api_key", "ca_file", "cert_file", "key_file")
            }
            run = Tofu(folder, provider, FILA_ADDR=told["address"], **named)
            assert "No changes" in run.plan()
            assert "Destroy complete" in run.run("destroy", "-auto-approve")


def write_guarded(run: Tofu, told: dict[str, str]) -> None:
    """Let the provider be told this of the server; an empty word is not told."""
    lines = "\n".join(f'  {name} = "{word}"' for name, word in told.items() if word)
    run.main.write_text(HEAD + GUARDED.format(lines=lines))


def make_certificate(certificate: str, key: str) -> None:
    """Make a certificate that vouches for itself, of the server and of its client."""
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    words += ["-subj", f"/CN={NAME_OF_SERVER}", "-addext", f"subjectAltName=DNS:{NAME_OF_SERVER}"]
    subprocess.run([*words, "-keyout", key, "-out", certificate], check=True, capture_output=True)


def command(fila: list[str], *words: str) -> str:
    """Run the command line."""
    return subprocess.run([*fila, *words], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    if len(sys.argv) > 1:
        check_dist(Path(sys.argv[1]))
    else:
        main()
    print("the provider is good")
