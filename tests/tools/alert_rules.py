"""Do the alerts cry when they should, and keep silent when all is well? Asks promtool, with what the metric would have
been in each staged state of tests/edge/staged_states.py: so states, table and rules are judged together.

    python -m tests.tools.alert_rules promtool
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from fila_server.operations import troubles
from fila_server.telemetry import catalog
from tests.edge.staged_states import HEALTHY, STAGED, START_MS, Stage, State

RULES = Path(__file__).resolve().parents[2] / "docs/deploy/alerts.yml"
MINUTES = 70
ALERTS = {
    "nobody": ("FilaNobodyConsumes", 1, 3),
    "poison": ("FilaFailing", 0, 3),
    "limit": ("FilaLimitBehind", 1, 3),
    "paused_key": ("FilaPausedLong", 59, 62),
}
"""Of a staged state: its alert, a minute at which it is not there yet, and one by which it must be."""
OURS = tuple(alert for alert, _, _ in ALERTS.values())
OLD = {
    "a message that waits": (
        "fila_queue_oldest_age_seconds{messaging_destination_name='orders'}",
        600,
        "FilaQueueLate",
    ),
    "a letter a month old": (
        "fila_queue_oldest_age_seconds{messaging_destination_name='a.dlq'}",
        2_592_000,
        "",
    ),
    "no backup for two nights": ("fila_backup_age_seconds{instance='a'}", 170_000, "FilaBackupOld"),
    "a backup of last night": ("fila_backup_age_seconds{instance='a'}", 80_000, ""),
}
"""Of a state: a series that grows with the time, what it begins with, and the alert that must be there in the end."""
NAMES = (catalog.TROUBLE, catalog.QUEUE, catalog.CHANNEL, catalog.FAIRNESS_KEY, catalog.THROTTLE_KEY)


def series_of(state: State) -> list[dict[str, str]]:
    """The metric of a state, a value a minute, with its clock set to 1970, where promtool begins."""
    stage = Stage()
    values: dict[str, list[str]] = {}
    for minute in range(MINUTES):
        stage.run(60.0 * minute - stage.at_s, state)
        for reading in stage.troubles.readings():
            labels = ",".join(
                f'{name.replace(".", "_")}="{text}"'
                for name, text in zip(NAMES, reading, strict=False)
                if text
            )
            series = values.setdefault(f"fila_trouble_since_seconds{{{labels}}}", [])
            series += ["_"] * (minute - len(series))
            series.append(f"{reading.since_s - START_MS / 1000 + 1:.0f}")
        for each in values.values():
            each.extend(["_"] * (minute + 1 - len(each)))
    return [{"series": name, "values": " ".join(each)} for name, each in values.items()]


def of_state(name: str, state: State) -> dict[str, Any]:
    """A test of promtool: the state's alert is there in its time, and no other ever is."""
    expected, silent, by = ALERTS.get(name, ("", 0, 0))
    asked = [
        {
            "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)',
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": "{}", "value": int(alert == expected and minute >= by)}],
        }
        for alert in OURS
        for minute in ([silent, by] if alert == expected else range(0, MINUTES, 3))
    ]
    return {"name": name, "interval": "1m", "input_series": series_of(state), "promql_expr_test": asked}


def of_age(name: str, series: str, begins_s: int, expected: str) -> dict[str, Any]:
    """A test of promtool: after some minutes its alert is there, or none."""
    asked = [
        {
            "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)',
            "eval_time": f"{MINUTES}m",
            "exp_samples": [{"labels": "{}", "value": int(alert == expected)}],
        }
        for alert in ("FilaQueueLate", "FilaBackupOld")
    ]
    values = f"{begins_s}+60x{MINUTES}"
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": series, "values": values}],
        "promql_expr_test": asked,
    }


def tests() -> dict[str, Any]:
    """What promtool is given."""
    staged = [of_state(state.__name__, state) for state in STAGED]
    aged = [of_age(name, *told) for name, told in OLD.items()]
    healthy = [of_state(name, state) for name, state in HEALTHY.items()]
    return {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [*staged, *healthy, *aged]}


def main() -> None:
    """Ask promtool, or fail with what it says."""
    troubles.emit = lambda *_, **__: None  # type: ignore[attr-defined]  # nobody reads these events
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "alerts.test.yml"
        file.write_text(yaml.safe_dump(tests()))
        subprocess.run([sys.argv[1], "test", "rules", str(file)], check=True)


if __name__ == "__main__":
    main()
