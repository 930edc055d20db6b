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


class Tofu:
    """OpenTofu in a folder, with the provider that lies in another, for one server."""

    def __init__(self, folder: Path, provider: Path, address: str) -> None:
        self.folder = folder
        self.main = folder / "main.tf"
        settings = folder / "tofu.rc"
        override = (
            f'provider_installation {{\n  dev_overrides {{\n    "fila-mq/fila" = "{provider}"\n  }}\n}}\n'
        )
        settings.write_text(override)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FILA_", "TF_"))}
        self.environ = kept | {
            "TF_CLI_CONFIG_FILE": str(settings),
            "FILA_ADDR": address,
            "CHECKPOINT_DISABLE": "1",
        }

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
    with serving("fila_server.main") as port:
        check(f"127.0.0.1:{port}", BUILT, Path(sys.executable).with_name("fila"))


def check_dist(address: str, fila: Path) -> None:
    """Check the provider of dist/ against a server."""
    with tempfile.TemporaryDirectory() as folder:
        [packed] = (DIST / "terraform").glob(f"{PROVIDER}_*.zip")
        with zipfile.ZipFile(packed) as inside:
            [name] = inside.namelist()
            (Path(folder) / PROVIDER).write_bytes(inside.read(name))
        (Path(folder) / PROVIDER).chmod(0o755)
        check(address, Path(folder), fila)


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


def check(address: str, provider: Path, fila: Path) -> None:
    """Walk through a life: made, unchanged, drifted, put right, refused, imported, destroyed."""
    with tempfile.TemporaryDirectory() as folder:
        run = Tofu(Path(folder), provider, address)
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


def command(fila: list[str], *words: str) -> str:
    """Run the command line."""
    return subprocess.run([*fila, *words], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    if len(sys.argv) > 1:
        check_dist(sys.argv[1], Path(sys.argv[2]))
    else:
        main()
    print("the provider is good")
