"""Is the chart of dist/ good? Lints it, holds what it makes to Kubernetes' schemas, and runs its containers.

As root, with Go, buildah and a network: `make release-check ONLY=chart`. helm and kubeconform are built from the Go
modules of this folder. Kubernetes' schemas come with the Python package kubernetes-validate. Those of operators' own
kinds come from their Go modules. No cluster is at hand: each container of the chart runs with its own command,
environment and files in the release's image, in a network of its own, and its probes are asked.
"""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tools.release.commands import ASIDE, DIST
from tools.release.image import Store
from tools.release.image_check import Container, mount
from tools.release.versions import TREE

HERE = TREE / "tools/charts"
FOLDER = ASIDE.with_name("release-chart")
SCHEMAS = "kubernetes-validate==1.37.0"
KUBERNETES = ("1.33.0", "1.37.0")
OF_NOW = f"--kube-version={KUBERNETES[-1]}"
# Modules whose kinds the chart or a page makes, with what the module proxy's log says of them.
OPERATORS = {
    "github.com/prometheus-operator/prometheus-operator@v0.85.0": (
        "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        (
            "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
            "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
        ),
    ),
    "github.com/kedacore/keda/v2@v2.21.0": (
        "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=",
        (
            "config/crd/bases/keda.sh_scaledobjects.yaml",
            "config/crd/bases/keda.sh_triggerauthentications.yaml",
        ),
    ),
}
ALL_ON = (
    "http.enabled=true",
    "http.hosts={api.example}",
    "console.enabled=true",
    "console.hosts={https://console.example}",
    "metrics.serviceMonitor.enabled=true",
    "metrics.alerts.enabled=true",
    "auth.bootstrapKeySecret=first-key",
)
VALUES: dict[str, tuple[str, ...]] = {
    "as it is": (),
    "all on": (*ALL_ON, "tls.secretName=tls", "tls.requireClientCertificate=true"),
    "a claim that is there": ("persistence.existingClaim=data", "podDisruptionBudget.enabled=false"),
}
REFUSED = {
    "replicas=2": "two would share it",
    "tls.requireClientCertificate=true": "needs tls.secretName",
    "http.enabled=true": "http.hosts is empty",
}
NAME = "fila"
KEY = "fila_chartchartchart1_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
READY_S_MAX, STOP_S_MAX = 60.0, 20.0


def main() -> None:
    """Check all of it, or say what is wrong and fail."""
    if "FILA_OWN_NETWORK" not in os.environ:
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        [chart] = DIST.glob("fila-[0-9]*.tgz")
        subprocess.run(["go", "test", "./..."], cwd=HERE, check=True)
        made = {name: _template(chart, values) for name, values in VALUES.items()}
        _lint(chart)
        _refuse(chart)
        _conform([*made.values(), *_of_pages()])
        (FOLDER / "running.yaml").write_text(_template(chart, ALL_ON))
        again = [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "--net",
            sys.executable,
            "-m",
            __spec__.name,
        ]
        os.execvpe(again[0], again, os.environ | {"FILA_OWN_NETWORK": "1"})
    _bring_loopback_up()
    started = _run((FOLDER / "running.yaml").read_text())
    print(
        f"the chart is good: linted, held to the schemas of Kubernetes {' and '.join(KUBERNETES)}, {started} are ready"
    )


def helm(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run helm, of the version that go.mod pins."""
    command = ["go", "-C", str(HERE), "tool", "helm", *map(str, words)]
    around = os.environ | {"HELM_CACHE_HOME": str(FOLDER), "HELM_CONFIG_HOME": str(FOLDER)}
    return subprocess.run(command, env=around, capture_output=True, text=True, check=False)


def _template(chart: Path, values: tuple[str, ...]) -> str:
    ran = helm("template", NAME, chart, OF_NOW, *(f"--set={each}" for each in values))
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _lint(chart: Path) -> None:
    for values in VALUES.values():
        ran = helm("lint", "--strict", chart, OF_NOW, *(f"--set={each}" for each in values))
        assert ran.returncode == 0, ran.stdout + ran.stderr


def _refuse(chart: Path) -> None:
    for value, said in REFUSED.items():
        ran = helm("template", NAME, chart, OF_NOW, f"--set={value}")
        assert ran.returncode, f"{value} is not refused"
        assert said in ran.stderr, ran.stderr


def _of_pages() -> Iterator[str]:
    """What pages print for Kubernetes."""
    for page in (TREE / "docs").rglob("*.md"):
        blocks = page.read_text().split("```yaml\n")[1:]
        yield from (block.split("```")[0] for block in blocks if block.startswith("apiVersion:"))


def _conform(made: list[str]) -> None:
    made_file = FOLDER / "made.yaml"
    made_file.write_text("\n---\n".join(made))
    environment = FOLDER / "environment"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", environment, SCHEMAS],
        check=True,
    )
    kubernetes = environment / "kubernetes_validate/kubernetes-json-schema"
    own = FOLDER / "operators"
    own.mkdir()
    for module, (sum_, files) in OPERATORS.items():
        told = subprocess.run(
            ["go", "mod", "download", "-json", module], cwd=HERE, capture_output=True, text=True, check=True
        )
        found = json.loads(told.stdout)
        assert found["Sum"] == sum_, f"{module} is not what it was"
        for name in files:
            _schemas_of(yaml.safe_load((Path(found["Dir"]) / name).read_text()), own)
    for version in KUBERNETES:
        builtin = FOLDER / version
        builtin.mkdir()
        for file in (kubernetes / f"v{version}-local-strict").iterdir():
            # They name each other by an address of their own, and a validator would look there.
            schema = json.loads(file.read_text().replace("/api/_definitions.json#", "_definitions.json#"))
            schema.pop("$id", None)
            (builtin / file.name).write_text(json.dumps(schema))
        places = (
            f"{builtin}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json",
            f"{own}/{{{{.ResourceKind}}}}.json",
        )
        command = ["go", "-C", str(HERE), "tool", "kubeconform", "-strict", "-summary"]
        command += [word for place in places for word in ("-schema-location", place)]
        ran = subprocess.run([*command, str(made_file)], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        print(f"Kubernetes {version}: {ran.stdout.strip()}")


def _schemas_of(definition: dict[str, Any], folder: Path) -> None:
    """Write the schema of an operator's kind, and let no field pass that it does not name."""
    [version, *_] = [each for each in definition["spec"]["versions"] if each["storage"]]
    schema = _strict(version["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}
    (folder / f"{definition['spec']['names']['kind'].lower()}.json").write_text(json.dumps(schema))


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    inner = {name: _strict(each) for name, each in schema.get("properties", {}).items()}
    closed = (
        {"additionalProperties": False}
        if inner and not schema.get("x-kubernetes-preserve-unknown-fields")
        else {}
    )
    lists = {"items": _strict(schema["items"])} if isinstance(schema.get("items"), dict) else {}
    return {**closed, **schema, **lists, **({"properties": inner} if inner else {})}


def _bring_loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        siocsifflags, iff_up = 0x8914, 1
        fcntl.ioctl(sock, siocsifflags, struct.pack("16sh", b"lo", iff_up))


def _run(made: str) -> str:
    """Start every container in the image, the broker first, and ask their probes."""
    objects = [each for each in yaml.safe_load_all(made) if each]
    pods = [
        each["spec"]["template"]["spec"] for each in objects if each["kind"] in ("StatefulSet", "Deployment")
    ]
    [archive] = DIST.glob("*_oci.tar")
    store = Store(FOLDER / "store")
    running: list[subprocess.Popen[bytes]] = []
    names = []
    try:
        image = store.run("from", f"oci-archive:{archive}")
        settings = json.loads(store.run("inspect", image))["OCIv1"]["config"]
        mounted = Path(store.run("mount", image))
        for pod in sorted(pods, key=lambda pod: str(pod["containers"][0]["name"]) != "broker"):
            [container] = pod["containers"]
            names.append(container["name"])
            place = Place(mounted, settings, FOLDER / container["name"], objects, pod)
            running.append(place.start(container))
            place.wait_until_ready(container, running[-1])
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGTERM)
        ended = [process.wait(STOP_S_MAX) for process in running]
        store.drop()
    # The console ends by the signal itself.
    assert set(ended) <= {0, -signal.SIGTERM}, ended
    return ", ".join(names)


class Place(Container):
    """The image with what a pod mounts, at the paths where it mounts it."""

    def __init__(
        self,
        mounted: Path,
        settings: dict[str, Any],
        folder: Path,
        objects: list[dict[str, Any]],
        pod: dict[str, Any],
    ) -> None:
        super().__init__(mounted, settings, folder)
        self._folder = folder
        # A Service's name leads to loopback.
        self._put("hosts", f"127.0.0.1 localhost {NAME}\n", "/etc/hosts")
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        [container] = pod["containers"]
        for mounted_at in container["volumeMounts"]:
            volume = volumes.get(mounted_at["name"], {})
            if "configMap" in volume:
                [texts] = [each["data"] for each in objects if each["kind"] == "ConfigMap"]
                self._put("settings", texts[mounted_at["subPath"]], mounted_at["mountPath"])
            elif "secret" in volume:
                self._put("key", KEY + "\n", f"{mounted_at['mountPath']}/bootstrap-key")

    def _put(self, name: str, text: str, path: str) -> None:
        """Let a file of the container have this text. A folder that lacks the file becomes one that can be written."""
        target = self.root / path.lstrip("/")
        if target.exists():
            (self._folder / name).write_text(text)
            mount("--bind", str(self._folder / name), str(target))
            return
        there = next(each for each in target.parents if each.exists())
        if not os.path.ismount(there):
            mount("-t", "tmpfs", "tmpfs", str(there))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def start(self, container: dict[str, Any]) -> subprocess.Popen[bytes]:
        """Run what the chart has the container run."""
        given = {each["name"]: each["value"] for each in container.get("env", ())}
        inside, around = self.command(*container["command"], **given)
        return subprocess.Popen(inside, env=around)

    def wait_until_ready(self, container: dict[str, Any], process: subprocess.Popen[bytes]) -> None:
        """Ask each of its probes until it says yes."""
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        give_up_at = time.monotonic() + READY_S_MAX
        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            if kind not in container:
                continue
            probe = container[kind]["httpGet"]
            headers = {each["name"]: each["value"] for each in probe.get("httpHeaders", ())}
            while not _says_yes(ports[probe["port"]], probe["path"], headers):
                assert process.poll() is None, f"{container['name']} ended with {process.returncode}"
                assert time.monotonic() < give_up_at, f"{container['name']}: its {kind} never says yes"
                time.sleep(0.1)


def _says_yes(port: int, path: str, headers: dict[str, str]) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    main()
