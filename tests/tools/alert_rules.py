"""Do the alerts cry when they should, and keep silent when all is well? Asks promtool, with what the metrics would have
been in each staged state of tests/edge/staged_states.py: so states, table and rules are judged together.

    python -m tests.tools.alert_rules promtool

Of each state every alert of the file is asked for, minute by minute: those that belong to it must be there in their
time, and no other ever.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fila_server.operations import troubles
from fila_server.telemetry import catalog
from tests.edge import staged_states as staged
from tests.edge.staged_states import HEALTHY, START_MS, Stage, State

RULES = Path(__file__).resolve().parents[2] / "docs/deploy/alerts.yml"
RULED: tuple[dict[str, Any], ...] = tuple(
    rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
)
ALERTS: tuple[str, ...] = tuple(rule["alert"] for rule in RULED)
MINUTES = 70
ASKED_EVERY = 3
NAMES = (catalog.TROUBLE, catalog.QUEUE, catalog.CHANNEL, catalog.FAIRNESS_KEY, catalog.THROTTLE_KEY)
UP = {'up{job="fila",instance="a"}': "1x70"}
"""Beside each state: the broker answers."""


class Due(NamedTuple):
    """An alert of a state: a minute at which it is not there yet (-1: from the first on), and one by which it is."""

    alert: str
    silent: int
    by: int
    until: int = MINUTES
    """It is there no longer: what it looks at lies behind it."""


class Row(NamedTuple):
    """A state that is told by metrics of its own, and what must be there."""

    series: dict[str, str]
    due: tuple[Due, ...] = ()


def queue(metric: str, values: str, name: str = "orders", **labels: str) -> dict[str, str]:
    """A series of a queue."""
    more = "".join(f',{label}="{value}"' for label, value in labels.items())
    return {f'{metric}{{instance="a",messaging_destination_name="{name}"{more}}}': values}


def node(instance: str, **values: str) -> dict[str, str]:
    """What a node of a group tells: of the metrics that are named the values, of the others that all is well."""
    well = {"role": "0x70", "in_sync": "1x70", "nodes": "3x70", "nodes_in_sync": "3x70", "short_terms": "0x70",
            "clock_offset_seconds": "0.004x70"}  # fmt: skip
    return {
        f'fila_cluster_{name}{{instance="{instance}",fila_cluster="orders"}}': value
        for name, value in (well | values).items()
    }


def waits(cause: str, a_second: int, channel: str = "default") -> dict[str, str]:
    """So many messages of the queue wait for this all the time."""
    labels = {"messaging_consumer_group_name": channel, "fila_wait_cause": cause}
    return queue("fila_channel_wait_seconds_total", f"0+{60 * a_second}x70", **labels)


OF_TROUBLES: dict[str, tuple[State, Row]] = {
    "messages are lost": (
        staged.lost,
        Row(
            {'fila_storage_lost_messages_total{instance="a"}': "0x4 120x66"},
            (Due("FilaMessagesLost", 4, 6, 13),),
        ),
    ),
    "damage and nothing lost": (staged.damaged, Row({})),
    "the disk is nearly full": (
        staged.disk,
        Row({'fila_storage_disk_level{instance="a"}': "1x70"}, (Due("FilaDiskLow", -1, 0),)),
    ),
    "a script is not called": (
        staged.circuit,
        Row(queue("fila_hook_breaker_state", "2x70", fila_hook="on_enqueue"), (Due("FilaHookOpen", 4, 5),)),
    ),
    "nobody consumes": (
        staged.nobody,
        Row(
            queue("fila_queue_oldest_age_seconds", "0+60x70", "exports") | waits("no_consumer", 1),
            (Due("FilaNobodyConsumes", 1, 3),),
        ),
    ),
    "poison": (
        staged.poison,
        Row(
            queue("fila_messages_dead_lettered_total", "0+300x70", "webhooks"),
            (Due("FilaFailing", 0, 3), Due("FilaDeadLetters", 0, 3)),
        ),
    ),
    "a paused key": (
        staged.paused_key,
        Row(
            queue("fila_queue_oldest_age_seconds", "0+60x70", "kept") | waits("held", 5000),
            (Due("FilaPausedLong", 59, 62),),
        ),
    ),
    "a queue that has been paused for an hour": (
        staged.paused_queue,
        Row(
            queue("fila_queue_oldest_age_seconds", "3600+60x70")
            | queue("fila_queue_paused", "1x70")
            | waits("no_consumer", 70),
            (Due("FilaPausedLong", -1, 2),),
        ),
    ),
    "a paused channel": (
        staged.paused_channel,
        Row(
            queue("fila_queue_oldest_age_seconds", "600+60x70")
            | queue("fila_channel_paused", "1x70", messaging_consumer_group_name="audit")
            | waits("no_consumer", 70, "audit"),
            (Due("FilaPausedLong", 49, 52),),
        ),
    ),
    "a limit that falls behind": (staged.limit, Row({}, (Due("FilaLimitBehind", 1, 3),))),
    "a limit whose slots are taken": (staged.slots, Row({}, (Due("FilaLimitBehind", 1, 12),))),
    "a budget that is spent": (staged.budget, Row({})),
    "a flood": (staged.flood, Row({})),
}
"""The incidents, as tests of the sentence stage them, with what further metrics say meanwhile. Damage without loss, a
spent budget and a flood wake nobody: they are told in the sentence."""

FURTHER: dict[str, Row] = {
    "the broker does not answer": Row({'up{job="fila",instance="a"}': "1x4 0x66"}, (Due("FilaDown", 4, 7),)),
    "the disk fills": Row(
        {'fila_storage_disk_free_bytes{instance="a"}': f"{4 << 30}-{60 << 20}x70"},
        (Due("FilaDiskWillBeLow", 2, 20),),
    ),
    "a message waits, and the queue is late": Row(
        queue("fila_queue_oldest_age_seconds", "600+60x70") | waits("share", 40),
        (Due("FilaQueueLate", 4, 12),),
    ),
    "a sync takes half a second": Row(
        {
            f'fila_commit_sync_duration_seconds_bucket{{instance="a",le="{le}"}}': f"0+{count}x70"
            for le, count in (("0.1", 0), ("0.5", 100), ("+Inf", 100))
        },
        (Due("FilaSyncSlow", 14, 20),),
    ),
    "no backup for two nights": Row(
        {'fila_backup_age_seconds{instance="a"}': "170000+60x70"}, (Due("FilaBackupOld", 60, 69),)
    ),
    "the owner dies, and nobody takes over": Row(
        node("a", role="1x9 0x61", in_sync="1x9 0x61", nodes_in_sync="3x9 2x61") | node("b") | node("c"),
        (Due("FilaClusterNoOwner", 10, 12), Due("FilaClusterStandbyBehind", 14, 16)),
    ),
    "the owner dies, and is not asked any more": Row(
        node("a", role="1x9 _x61", in_sync="1x9 _x61") | node("b") | node("c"),
        (Due("FilaClusterNoOwner", 9, 17),),
    ),
    "a node opens its store for long": Row(
        node("a", role="1x70", in_sync="0x70") | node("b"), (Due("FilaClusterNoOwner", 0, 2),)
    ),
    "nobody but the owner is left": Row(
        node("a", role="1x70", nodes_in_sync="1x70") | node("b", nodes_in_sync="1x70"),
        (Due("FilaClusterOneCopy", 4, 6),),
    ),
    "a standby fetches a copy for long": Row(
        node("a", role="1x70", nodes_in_sync="2x70") | node("b", in_sync="0x70") | node("c"),
        (Due("FilaClusterStandbyBehind", 4, 6),),
    ),
    "a node halts": Row(
        node("a", role="1x70", nodes_in_sync="2x70") | node("b", role="2x70", in_sync="0x70") | node("c"),
        (Due("FilaClusterHalted", 0, 2),),
    ),
    "terms end too soon": Row(
        node("a", role="1x70", short_terms="0x9 3x20 0x40") | node("b", short_terms="0x9 3x20 0x40"),
        (Due("FilaClusterBidsWait", 9, 12, until=31),),
    ),
    "a clock is behind": Row(
        node("a", role="1x70") | node("b", clock_offset_seconds="-1.5x70"),
        (Due("FilaClusterClockOff", 4, 6),),
    ),
    "the log takes half a second": Row(
        {
            f'fila_cluster_confirm_duration_seconds_bucket{{instance="a",fila_cluster="orders",le="{le}"}}': values
            for le, values in (("0.1", "0x70"), ("0.5", "0+100x70"), ("+Inf", "0+100x70"))
        },
        (Due("FilaClusterLogSlow", 14, 20),),
    ),
    # All is well:
    "three nodes in sync": Row(node("a", role="1x70") | node("b") | node("c")),
    "a takeover": Row(node("a", role="1x9 0x61") | node("b", role="0x10 1x60") | node("c")),
    "a group of one node": Row(node("a", role="1x70", nodes="1x70", nodes_in_sync="1x70")),
    "a node that is restarted": Row(
        node("a", role="1x70", nodes_in_sync="2x9 1x3 2x58") | node("b", in_sync="1x9 0x3 1x58")
    ),
    "nothing at all is told of": Row({}),
    "a delay of an hour": Row(queue("fila_queue_oldest_age_seconds", "0x70") | waits("delay", 1)),
    "retention keeps what is done": Row(queue("fila_queue_oldest_age_seconds", "420x70") | waits("share", 1)),
    "a letter a month old": Row(queue("fila_queue_oldest_age_seconds", "2592000+60x70", "orders.dlq")),
    "a flooder that an operator slowed": Row(
        queue("fila_queue_oldest_age_seconds", "600+60x70") | waits("held", 3000)
    ),
    "a backup of last night": Row({'fila_backup_age_seconds{instance="a"}': "80000+60x70"}),
    "a disk with room, less of it at night": Row(
        {'fila_storage_disk_free_bytes{instance="a"}': f"{400 << 30}-{10 << 20}x70"}
    ),
    "a dead letter now and then": Row(queue("fila_messages_dead_lettered_total", "0+1x70")),
    "a sync takes some milliseconds": Row(
        {
            f'fila_commit_sync_duration_seconds_bucket{{instance="a",le="{le}"}}': "0+100x70"
            for le in ("0.1", "0.5", "+Inf")
        }
    ),
}


def series_of(state: State) -> dict[str, str]:
    """The metric of troubles in a state, a value a minute, with its clock set to 1970, where promtool begins."""
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
    return {name: " ".join(each) for name, each in values.items()}


def judged(name: str, series: dict[str, str], due: tuple[Due, ...]) -> dict[str, Any]:
    """A test of promtool."""
    asked = []
    for alert in ALERTS:
        mine = [each for each in due if each.alert == alert]
        for minute in range(0, MINUTES, ASKED_EVERY):
            [there] = [each.by <= minute < each.until for each in mine] or [False]
            is_between = any(
                each.silent < minute < each.by or each.until <= minute < each.until + 6 for each in mine
            )
            if not is_between:
                asked.append(_count(alert, minute, there=there))
        for each in mine:
            asked += [_count(alert, each.silent, there=False)] if each.silent >= 0 else []
            asked.append(_count(alert, each.by, there=True))
    given = [{"series": each, "values": values} for each, values in (UP | series).items()]
    return {"name": name, "interval": "1m", "input_series": given, "promql_expr_test": asked}


def _count(alert: str, minute: int, *, there: bool) -> dict[str, Any]:
    return {
        "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)',
        "eval_time": f"{minute}m",
        "exp_samples": [{"labels": "{}", "value": int(there)}],
    }


class Said(NamedTuple):
    """What an alert says of these series, and where its link leads; in each text that has a number it is rounded."""

    series: dict[str, str]
    minute: int
    labels: dict[str, str]
    summary: str
    path: str = ""


CONSOLE = "https://console.example/b/broker"
PAUSED = {"fila_trouble_kind": "paused", "fila_fairness_key": "x"}
WORDS: dict[str, Said] = {
    "FilaDeadLetters": Said(
        queue("fila_messages_dead_lettered_total", "0+123.4x70", "webhooks"),
        30,
        {"instance": "a", "messaging_destination_name": "webhooks"},
        "webhooks: 1851 dead letters within 15 minutes",
        "/queues/webhooks.dlq/dead-letters",
    ),
    "FilaQueueLate": Said(
        queue("fila_queue_oldest_age_seconds", "600.25+60x70") | waits("share", 40),
        30,
        {"instance": "a", "messaging_destination_name": "orders"},
        "orders: a message waits for 40m 0s",
        "/queues/orders",
    ),
    "FilaBackupOld": Said(
        {'fila_backup_age_seconds{instance="a"}': "180000.7+60x70"},
        30,
        {"instance": "a"},
        "a: the last whole backup began 2d 2h 30m 0s ago",
        "/events",
    ),
    "FilaPausedLong": Said(
        queue(
            "fila_trouble_since_seconds", "0.5x70", "kept", fila_trouble_kind="paused", fila_fairness_key="x"
        ),
        62,
        {
            "instance": "a",
            "messaging_destination_name": "kept",
            "fila_trouble_kind": "paused",
            "fila_fairness_key": "x",
        },
        "kept x: paused for 1h 1m 59s, and messages wait",
        "/queues/kept",
    ),
    "FilaClusterBidsWait": Said(
        node("a", role="1x70", short_terms="3x70"),
        30,
        {"fila_cluster": "orders"},
        "3 owners in a row of the group orders served for less than ten seconds",
    ),
    "FilaClusterClockOff": Said(
        node("a", role="1x70") | node("b", clock_offset_seconds="-1.5432x70"),
        30,
        {"instance": "b", "fila_cluster": "orders"},
        "The clock of b is 1.5 s off from the group's",
    ),
}


def words() -> list[dict[str, Any]]:
    """Tests of promtool: what alerts say, with rounded numbers and a link to the console's page."""
    return [_words(alert, said) for alert, said in WORDS.items()]


def _words(alert: str, said: Said) -> dict[str, Any]:
    [rule] = [each for each in RULED if each["alert"] == alert]
    annotations = {
        "summary": said.summary,
        "do": rule["annotations"]["do"],
        "console": CONSOLE + said.path,
        "runbook": f"docs/operations/runbook.md#{alert.lower()}",
    }
    labels = said.labels | {"severity": rule["labels"]["severity"]}
    return {
        "name": f"the words of {alert}",
        "interval": "1m",
        "external_labels": {"fila_console": CONSOLE},
        "input_series": [{"series": each, "values": values} for each, values in (UP | said.series).items()],
        "alert_rule_test": [
            {
                "eval_time": f"{said.minute}m",
                "alertname": alert,
                "exp_alerts": [{"exp_labels": labels, "exp_annotations": annotations}],
            }
        ],
    }


def excluded() -> list[dict[str, Any]]:
    """A queue with a consumer at night, whose line in the file leaves it out: FilaNobodyConsumes with a name more."""
    line = 'fila_trouble_since_seconds{fila_trouble_kind="nobody_consumes"}'
    assert RULES.read_text().count(line) == 1
    with_names = line.replace("}", ',messaging_destination_name!~"exports|reports"}')
    asked = [
        {
            "expr": f"count({expr} > 0) or vector(0)",
            "eval_time": "30m",
            "exp_samples": [{"labels": "{}", "value": count}],
        }
        for expr, count in ((line, 1), (with_names, 0))
    ]
    series = [{"series": each, "values": values} for each, values in series_of(staged.nobody).items()]
    return [
        {
            "name": "a nightly consumer whose queue is left out",
            "interval": "1m",
            "input_series": series,
            "promql_expr_test": asked,
        }
    ]


def tests() -> dict[str, Any]:
    """What promtool is given."""
    judgements = [
        judged(name, row.series | series_of(state), row.due) for name, (state, row) in OF_TROUBLES.items()
    ]
    judgements += [judged(name, *row) for name, row in FURTHER.items()]
    judgements += [judged(name, series_of(state), ()) for name, state in HEALTHY.items()]
    return {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [*judgements, *excluded(), *words()],
    }


def main() -> None:
    """Ask promtool, or fail with what it says."""
    troubles.emit = lambda *_, **__: None  # type: ignore[attr-defined]  # nobody reads these events
    cried = {each.alert for _, row in OF_TROUBLES.values() for each in row.due}
    cried |= {each.alert for row in FURTHER.values() for each in row.due}
    if missing := set(ALERTS) - cried:
        sys.exit(f"no state makes {', '.join(sorted(missing))} cry: stage one")
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "alerts.test.yml"
        file.write_text(yaml.safe_dump(tests()))
        subprocess.run([sys.argv[1], "test", "rules", str(file)], check=True)


if __name__ == "__main__":
    main()
