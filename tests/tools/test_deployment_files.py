"""What is written for containers, Prometheus, Grafana and systemd agrees with the server, and with itself."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from fila_cli.main import fila as commands
from fila_console.routes import PAGES
from fila_server.config.load import settings_by_section
from fila_server.main import main

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "docs/deploy"
CONTAINERFILE = (ROOT / "Containerfile").read_text()
METRICS = set(re.findall(r"`(fila_\w+)`", (ROOT / "docs/telemetry.md").read_text()))
PARTS = (".", "sdks/python", "cli")
OF_HISTOGRAMS = re.compile(r"_(bucket|sum|count)$")


def read(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text())


def environment_of_the_image() -> dict[str, str]:
    [block] = re.findall(r"^ENV ((?:.*\\\n)*.*)$", CONTAINERFILE, re.MULTILINE)
    return dict(pair.split("=", 1) for pair in block.replace("\\\n", " ").split())


def unknown(names: set[str]) -> set[str]:
    """Those of the environment's names that are no setting."""
    known = {
        f"FILA_{section.upper()}__{key.upper()}"
        for section, keys in settings_by_section().items()
        for key in keys
    }
    return {name for name in names if name.startswith("FILA_")} - known - {"FILA_DATA_DIR"}


def test_every_setting_of_image_compose_file_and_unit_exists():
    unit = re.findall(r"^Environment=(\w+)=", (DEPLOY / "fila.service").read_text(), re.MULTILINE)
    compose = read("compose.yaml")["services"]["fila"]["environment"]

    assert not unknown({*environment_of_the_image(), *compose, *unit})


def test_the_image_exposes_the_ports_it_listens_on():
    listening = {
        value.rpartition(":")[2] for name, value in environment_of_the_image().items() if "ADDR" in name
    }

    [exposed] = re.findall(r"^EXPOSE (.*)$", CONTAINERFILE, re.MULTILINE)
    assert set(exposed.split()) == listening


def test_the_compose_file_publishes_on_loopback_only_what_the_containers_listen_on():
    services = read("compose.yaml")["services"]
    [exposed] = re.findall(r"^EXPOSE (.*)$", CONTAINERFILE, re.MULTILINE)

    ports = [port for service in services.values() for port in service["ports"]]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert {port.rpartition(":")[2] for port in services["fila"]["ports"]} < set(exposed.split())


def test_what_the_compose_file_starts_beside_the_broker_takes_the_options_it_gives():
    services = read("compose.yaml")["services"]
    for name in ("console", "http"):
        fila, command = services[name]["entrypoint"]
        given = CliRunner().invoke(commands, [command, *services[name]["command"], "--help"])
        assert (fila, command, given.exit_code) == ("fila", name, 0)
        listening = services[name]["command"][services[name]["command"].index("--listen") + 1]
        assert [port.rpartition(":")[2] for port in services[name]["ports"]] == [listening.rpartition(":")[2]]


def test_every_file_that_the_compose_file_mounts_is_there():
    services = read("compose.yaml")["services"]
    mounts = [mount.split(":")[0] for service in services.values() for mount in service.get("volumes", ())]

    assert [mount for mount in mounts if mount.startswith(".") and not (DEPLOY / mount).exists()] == []
    build = services["fila"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).exists()


def test_prometheus_scrapes_the_port_of_the_metrics_page():
    [job] = read("prometheus.yml")["scrape_configs"]
    [target] = job["static_configs"][0]["targets"]

    host, _, port = target.partition(":")
    assert host in read("compose.yaml")["services"]
    assert read("compose.yaml")["services"][host]["environment"]["FILA_METRICS__ALLOWED_HOSTS"] == host
    assert environment_of_the_image()["FILA_METRICS__LISTEN_ADDR"].endswith(f":{port}")
    assert job.get("metrics_path", "/metrics") == "/metrics"


def test_grafana_finds_its_source_and_the_dashboard():
    compose = read("compose.yaml")["services"]["grafana"]
    mounted = {mount.split(":")[1]: mount.split(":")[0] for mount in compose["volumes"]}
    [provider] = read("grafana/dashboards.yaml")["providers"]
    [source] = read("grafana/datasources.yaml")["datasources"]
    dashboard = json.loads((DEPLOY / mounted[provider["options"]["path"]] / "fila.json").read_text())

    variable = next(each for each in dashboard["templating"]["list"] if each["type"] == "datasource")
    assert variable["query"] == source["type"]
    assert source["isDefault"]
    # A dashboard that asks for its source at an import would stay empty where it is provisioned.
    assert "__inputs" not in dashboard


def test_every_metric_of_an_alert_is_told_by_the_server():
    [group] = read("alerts.yml")["groups"]
    asked = [re.sub(r"by \([^)]*\)", "", rule["expr"]) for rule in group["rules"]]
    used = {name for expression in asked for name in re.findall(r"\bfila_\w+(?!\w*=)", expression)}

    assert used
    assert {OF_HISTOGRAMS.sub("", name) for name in used} <= METRICS


def test_every_alert_says_what_to_do_and_leads_to_the_console_and_to_its_paragraph_of_the_runbook():
    [group] = read("alerts.yml")["groups"]
    page = (DEPLOY.parent / "operations/runbook.md").read_text()
    paragraphs = re.findall(r"^## (Fila\w+)$", page, re.MULTILINE)

    assert sorted(paragraphs) == sorted(rule["alert"] for rule in group["rules"])
    for rule in group["rules"]:
        said = rule["annotations"]
        assert said.keys() == {"summary", "do", "console", "runbook"}
        assert said["runbook"] == f"docs/operations/runbook.md#{rule['alert'].lower()}"
        path = said["console"].removeprefix("{{ $externalLabels.fila_console }}")
        path = path.replace("{{ $labels.messaging_destination_name }}", "orders").removeprefix("/")
        assert re.sub(r"^queues/[^/]+", "queues/{queue}", path) in PAGES, path
    labels = read("prometheus.yml")["global"]["external_labels"]
    assert labels["fila_console"].endswith("/b/broker")


@pytest.mark.parametrize("name", ["console", "http"])
def test_a_unit_starts_console_and_gateway_with_options_they_take_beside_the_broker(name: str):
    unit = (DEPLOY / f"fila-{name}.service").read_text()
    [started] = re.findall(r"^ExecStart=/opt/fila/bin/fila (.*)$", unit, re.MULTILINE)
    [broker] = re.findall(r"^Environment=FILA_ADDR=(.*)$", unit, re.MULTILINE)

    assert started.split()[0] == name
    assert CliRunner().invoke(commands, [*started.split(), "--help"]).exit_code == 0
    assert "--listen 127.0.0.1:" in started
    assert broker == "http://127.0.0.1:5555"


def test_the_units_of_broker_console_and_gateway_have_one_sandbox():
    def sandbox(name: str) -> list[str]:
        lines = (DEPLOY / name).read_text().partition("# The file system")[2].splitlines()[1:]
        assert len(lines) > 20
        return lines

    assert sandbox("fila.service") == sandbox("fila-console.service") == sandbox("fila-http.service")


def test_what_stops_the_server_waits_for_its_drain():
    seconds = re.search(r"^TimeoutStopSec=(\d+)", (DEPLOY / "fila.service").read_text(), re.MULTILINE)

    assert int(seconds[1]) > 10
    assert int(read("compose.yaml")["services"]["fila"]["stop_grace_period"].rstrip("s")) > 10
    assert "SIGTERM" in CONTAINERFILE


def test_the_image_installs_what_a_server_its_console_and_its_gateway_ask_for():
    parts = [tomllib.loads((ROOT / part / "pyproject.toml").read_text()) for part in PARTS]
    ours = {part["project"]["name"] for part in parts}
    asked = [each for part in parts for each in part["project"]["dependencies"]]
    # The console and the HTTP gateway run from the same image.
    for part in parts:
        extras = part["project"].get("optional-dependencies", {})
        asked += [each for name in ("console", "http") for each in extras.get(name, ()) if "[" not in each]
    wanted = {re.split(r"[<>=]", each)[0] for each in asked} - ours
    pinned = {
        line.split("==")[0].replace("_", "-")
        for line in (ROOT / "requirements/server.txt").read_text().splitlines()
        if "==" in line
    }

    assert {each.replace("_", "-") for each in wanted} <= pinned
    assert not pinned & ours
    # One version of a library in development, tests and images.
    developed = (ROOT / "requirements/build.txt").read_text()
    for line in (ROOT / "requirements/server.txt").read_text().splitlines():
        assert "==" not in line or line.split(" ")[0] in developed


def test_the_server_names_version_and_commit():
    said = CliRunner().invoke(main, ["--version"]).output

    assert re.fullmatch(r"fila-server \d+\.\d+\.\d+ \(commit ([0-9a-f]{12}|unknown)\)\n", said)


def test_the_wheel_takes_along_every_file_that_the_console_serves():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packed = project["tool"]["setuptools"]["package-data"]["fila_console"]
    folder = ROOT / "console/src/fila_console"
    served = [
        path.relative_to(folder)
        for path in folder.rglob("*")
        if path.suffix in {".css", ".html", ".js", ".svg", ".woff2"}
    ]

    assert {path.suffix for path in served} >= {".css", ".html", ".js", ".svg"}
    assert [str(path) for path in served if not any(path.match(pattern) for pattern in packed)] == []
