"""The command `fila-pipeline`: one word a job, the answer printed, the rest in OUT."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fila_pipeline.backtest import (
    SEEDS,
    PolicyNotTried,
    backtest,
    check_policy,
    try_policy,
)
from fila_pipeline.checkpoint import checkpoint, sweep
from fila_pipeline.comparison import FAIR, compare_policies, make_history
from fila_pipeline.evidence import KeyRefused, look, read_keys
from fila_pipeline.history import History, HistoryMissing, check_is_there, open_history
from fila_pipeline.imported import Imported, ImportRefused, read_log
from fila_pipeline.jobs.compact import compact
from fila_pipeline.pages.comparison import comparison_page
from fila_pipeline.pages.overview import overview
from fila_pipeline.pages.page import Page, render
from fila_pipeline.pages.policy import compare, policy_page
from fila_pipeline.replay import FIFO, MISSING, RECORDED, BacktestMissing, core_is_here
from fila_pipeline.runs import JOBS, Choices, notes, run_job
from fila_pipeline.segments import SAME, WRONG, Verdict
from fila_pipeline.storage import Storage, StorageUnreachable
from fila_pipeline.synthetic import noisy_neighbours, record
from fila_pipeline.verdicts import DIFFERS, said, tell_judged, tell_verdicts, written

ABOUT = {
    "fairness": "who was served, and who should have been",
    "delays": "why messages waited (--key X --from T --to T for one tenant's afternoon)",
    "throttles": "what the limits held back, and what larger ones would have freed",
    "retries": "what failures cost, and which messages fail again and again",
    "capacity": "the smallest rate of consumers that holds a p99 wait for every key",
    "anomalies": "keys whose arrivals, cost or failures broke with their own past",
}
REFERENCE = "reference"

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "true",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    "spark.driver.memory": "2g",
}


class SparkNotStarted(Exception):
    """There is no Spark to run in: no cluster where one is named, a setting that it does not take, no "
    "Java."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. 0 when it ran, also on too little data; 2 for a wrong argument, no history, a URL that
    cannot be opened or no Spark; 3 for a backtest that came to other decisions.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    if getattr(given, "head", "") and len(given.history) > 1:
        parser.error("--head is of one directory: give --history once beside it")
    if given.command == "synthetic":
        if "://" in given.out:
            print(
                f"fila-pipeline: --out {given.out} must be a directory of this machine, not a URL",
                file=sys.stderr,
            )
            return 2
        count = record(noisy_neighbours(given.seconds, given.seed), Path(given.out))
        print(f"{given.out}: a made-up history of {count:,} messages")
        return 0
    try:
        imported = _check_before_spark(given)
        if imported is not None:
            directory = f"{given.out.rstrip('/')}/history"
            given.history = [directory]
            print(f"Serving {len(imported.arrivals):,} messages to {directory}", flush=True)
            make_history(imported, Path(directory))
        spark = session(given.master, given.conf)
        try:
            return _run(spark, given, imported.assumed if imported is not None else ())
        finally:
            spark.stop()
    except (
        *(SparkNotStarted, HistoryMissing, BacktestMissing),
        *(PolicyNotTried, StorageUnreachable, ImportRefused, KeyRefused),
    ) as missing:
        print(f"fila-pipeline: {missing}", file=sys.stderr)
        return 2


def _check_before_spark(given: argparse.Namespace) -> Imported | None:
    """Refuse at once what a start of Spark, and a replay of everything, would only say later; returns an "
    "imported log."""
    for policy in _policies(given):
        check_policy(_read(policy))
    if given.command in ("backtest", "checkpoint", "compare") and not core_is_here():
        raise BacktestMissing(MISSING)
    if given.command == "backtest":
        read_keys(given.public_keys)
        if given.policy is not None and given.against == REFERENCE:
            raise PolicyNotTried("--policy is tried with the core: leave out --against reference")
    if getattr(given, "log", None) is not None:
        return _imported(given)
    elsewhere = any("://" in directory for directory in given.history) or "HADOOP_CONF_DIR" in os.environ
    if not elsewhere and not any(setting.startswith("spark.hadoop.fs.defaultFS=") for setting in given.conf):
        check_is_there(given.history)
    return None


def _policies(given: argparse.Namespace) -> Sequence[str]:
    named = getattr(given, "policy", None)
    return [named] if isinstance(named, str) else named or []


def _imported(given: argparse.Namespace) -> Imported:
    """Read the log, once there is a place for its history."""
    if given.mapping is None or given.workers is None:
        raise ImportRefused("--import needs --mapping FILE and --workers, a number or estimate")
    if "://" in given.out:
        raise ImportRefused(
            f"--out {given.out} must be a directory of this machine, not a URL, beside --import"
        )
    if Path(given.out, "history").exists():
        raise ImportRefused(f"{given.out}/history is there already: give another --out, or remove it")
    return read_log(given.log, given.mapping, given.workers)


def session(master: str, settings: Sequence[str]) -> SparkSession:
    """Start Spark, inside this process unless `master` names a cluster."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("fila-pipeline").master(master)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config(
            "spark.driver.host", "127.0.0.1"
        )
    chosen = dict(pair.split("=", 1) for pair in settings)
    for name, value in (SETTINGS | chosen).items():
        builder = builder.config(name, value)
    try:
        made: SparkSession = builder.getOrCreate()
    except (Py4JJavaError, PySparkException):
        raise SparkNotStarted(
            f"Spark did not start with --master {master}; what it printed above says why: "
            "look at --master and --conf, and whether Java 17 is there"
        ) from None
    return made


def _run(spark: SparkSession, given: argparse.Namespace, assumed: Sequence[str] = ()) -> int:
    _reach(spark, given)
    print(f"Reading the list of {', '.join(given.history)}", flush=True)
    history = open_history(spark, *given.history)
    for note in notes(history):
        print(f"  note: {note}")
    if given.command == "checkpoint":
        return _checkpoint(spark, history, given.until)
    facts = f"{history.messages:,} decisions in {len(history.files):,} files"
    print(f"  {facts}", flush=True)
    if given.command == "compact":
        for directory in history.directories:
            for merged in compact(open_history(spark, directory), given.remove_replaced):
                print(f"{merged.hour}: {merged.files_before} files to one, {merged.rows:,} rows")
        return 0
    if given.command == "compare":
        return _compare(spark, history, given, assumed)
    choices = Choices(
        window_s=given.window,
        key=getattr(given, "key", None),
        since=getattr(given, "since", None),
        until=getattr(given, "until", None),
        p99_ms=getattr(given, "p99_ms", 1000.0),
    )
    if given.command == "backtest":
        return _backtest(spark, history, given)
    if given.command == "report":
        return _report(history, given.out, choices, facts)
    said(given.command, run_job(given.command, history, given.out, choices), given.out)
    return 0


def _reach(spark: SparkSession, given: argparse.Namespace) -> None:
    """Open both ends at once: a job of an hour should not find at its end that it has nowhere to write."""
    ends = [("history", directory) for directory in given.history]
    if getattr(given, "out", None) is not None:
        ends.append(("out", given.out))
    for flag, directory in ends:
        try:
            Storage.reached(spark, directory)
        except StorageUnreachable as why:
            raise StorageUnreachable(f"--{flag} {directory} cannot be opened: {why}") from None


def _report(history: History, out: str, choices: Choices, facts: str) -> int:
    """Every job; the backtest too, where the broker recorded this history and its core is at hand."""
    pages: dict[str, Page] = {}
    for name in JOBS:
        pages[name] = run_job(name, history, f"{out.rstrip('/')}/{name}", choices)
        said(name, pages[name], f"{out.rstrip('/')}/{name}")
    verdicts = backtest(history.spark, *history.directories) if history.has_inputs and core_is_here() else []
    if verdicts:
        pages["backtest"] = tell_verdicts(history, verdicts, f"{out.rstrip('/')}/backtest")
    # What every job's page says of the history stands once.
    told = notes(history)
    bare = {
        name: replace(page, notes=[each for each in page.notes if each not in told])
        for name, page in pages.items()
    }
    html = overview(bare, f"{facts}, {len(pages)} questions.", told, datetime.now(UTC), history.directory)
    Storage(history.spark, out).write("index.html", html)
    print(f"All of them: {out.rstrip('/')}/index.html")
    return DIFFERS if any(verdict.outcome in WRONG for verdict in verdicts) else 0


def _backtest(spark: SparkSession, history: History, given: argparse.Namespace) -> int:
    out = given.out
    policy = _read(given.policy) if given.policy is not None else None
    is_looked_at = given.head or given.public_keys
    keys = read_keys(given.public_keys)
    evidence = look(spark, history.directories, given.head, keys) if is_looked_at else {}
    if given.against == REFERENCE:
        return tell_judged(history, evidence, out)
    verdicts = backtest(spark, *history.directories)
    tell_verdicts(history, verdicts, out, evidence)
    if any(verdict.outcome in WRONG for verdict in verdicts) or any(each.wrong for each in evidence.values()):
        return DIFFERS
    if policy is not None:
        _policy(spark, history, verdicts, policy, given)
    return 0


def _compare(spark: SparkSession, history: History, given: argparse.Namespace, assumed: Sequence[str]) -> int:
    out = given.out.rstrip("/")
    verdicts = backtest(spark, *history.directories)
    tell_verdicts(history, verdicts, f"{out}/backtest")
    if any(verdict.outcome in WRONG for verdict in verdicts):
        return DIFFERS
    names = [Path(policy).name for policy in given.policy]
    alike = len(set(names)) < len(names)
    policies = {path if alike else Path(path).stem: _read(path) for path in given.policy}
    if set(policies) & {FAIR, FIFO, RECORDED}:
        raise PolicyNotTried(f"a policy's file must be called otherwise than {FAIR}, {FIFO} and {RECORDED}")
    print(
        f"Comparing {2 + len(policies)} courses, each with consumers as they were, slower and faster",
        flush=True,
    )
    compared = compare_policies(spark, history.directories, _from_their_beginning(verdicts), policies)
    storage = Storage(spark, out)
    written(storage, "tenants", compared.rows)
    page = comparison_page(
        compared.rows,
        FIFO,
        FAIR,
        RECORDED,
        drawn=compared.drawn,
        waited_before=compared.waited_before,
        assumed=assumed,
    )
    page = replace(page, notes=[*page.notes, *notes(history)])
    storage.write("index.html", render(page, datetime.now(UTC), given.log or history.directory))
    said("compare", page, out)
    return 0


def _from_their_beginning(verdicts: Sequence[Verdict]) -> list[str]:
    runs = [verdict.run for verdict in verdicts if verdict.outcome == SAME and not verdict.since]
    if not runs:
        raise PolicyNotTried(
            "no start of the broker could be replayed from its beginning, so no other policy can be tried "
            "on this history"
        )
    return runs


def _checkpoint(spark: SparkSession, history: History, until: datetime | None) -> int:
    verdicts = [each for directory in history.directories for each in checkpoint(spark, directory, until)]
    for verdict in verdicts:
        print(
            f"{verdict.run}: {verdict.outcome}, {verdict.passes:,} passes, {verdict.decisions:,} decisions "
            f"({verdict.said})"
        )
    for directory in history.directories:
        for name in sweep(spark, directory):
            print(f"{name}: removed, nothing that is recorded goes on from it")
    return DIFFERS if any(verdict.outcome in WRONG for verdict in verdicts) else 0


def _read(policy: str) -> str:
    try:
        return Path(policy).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyNotTried(f"--policy {policy} cannot be read: {error}") from None


def _policy(
    spark: SparkSession, history: History, verdicts: Sequence[Verdict], policy: str, given: argparse.Namespace
) -> None:
    runs = _from_their_beginning(verdicts)
    print(f"Trying the policy, {given.seeds} courses", flush=True)
    courses = try_policy(spark, history.directories, policy, runs, given.seeds)
    compared = compare(courses.recorded, courses.as_it_was, courses.with_policy, courses.slowed)
    out = f"{given.out.rstrip('/')}/policy"
    storage = Storage(spark, out)
    written(storage, "keys", compared)
    page = policy_page(
        compared, given.seeds, courses.drawn, courses.unknown, courses.refused, courses.script_failures
    )
    page = replace(page, notes=[*page.notes, *notes(history)])
    storage.write("index.html", render(page, datetime.now(UTC), history.directory))
    said("policy", page, out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fila-pipeline", description="Ask a recorded history of Fila what happened, and why."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="JOB")
    for name, about in ABOUT.items():
        _add_common(commands.add_parser(name, help=about, description=about), out=True)
    delays = commands.choices["delays"]
    delays.add_argument("--key", help="only this fairness key")
    delays.add_argument("--from", dest="since", type=_moment, help="only from this moment on, ISO 8601 (UTC)")
    delays.add_argument("--to", dest="until", type=_moment, help="only before this moment")
    commands.choices["capacity"].add_argument(
        "--p99-ms", type=_positive, default=1000.0, help="the p99 wait to hold, in milliseconds (1000)"
    )
    everything = commands.add_parser(
        "report", help="every job, and an index page", description="Run every job."
    )
    everything.add_argument(
        "--all", action="store_true", required=True, help="every job; the only choice so far"
    )
    _add_common(everything, out=True)
    _add_backtest(
        commands.add_parser(
            "backtest",
            help="replay what the broker took in through its own core, and compare (exit 3: it differs)",
        )
    )
    _add_compare(commands.add_parser("compare", help="what fairness bought, tenant by tenant"))
    later = commands.add_parser(
        "checkpoint",
        help="make a later starting point for backtests (exit 3: what is recorded does not follow)",
        description="Follow each start of the broker to where its files end, and write the core as it is then beside "
        "them: a backtest can begin there once retention has removed what comes before.",
    )
    later.add_argument(
        "--until", type=_moment, help="only files that began before this moment, ISO 8601 (UTC)"
    )
    _add_common(later, out=False)
    merging = commands.add_parser(
        "compact", help="merge the small files of each hour", description=compact.__doc__
    )
    merging.add_argument(
        "--remove-replaced",
        action="store_true",
        help="also remove the files that were merged: only while nobody reads",
    )
    _add_common(merging, out=False)
    made_up = commands.add_parser(
        "synthetic", help="write a made-up history", description="Write a made-up history."
    )
    made_up.add_argument("--out", required=True, help="the directory to write it to")
    made_up.add_argument("--seconds", type=_positive, default=3600.0, help="how long it spans (3600)")
    made_up.add_argument("--seed", type=int, default=1, help="the same seed gives the same history (1)")
    return parser


def _add_backtest(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Replay what the broker took in through its own core, and compare every decision; then, with --policy, "
        "model what other settings would have done."
    )
    parser.add_argument("--policy", metavar="FILE", help="TOML: settings of queues and limits to try")
    parser.add_argument(
        "--seeds", type=_seeds, default=SEEDS, help=f"courses of the model, 1 to 100 ({SEEDS})"
    )
    parser.add_argument(
        "--against",
        choices=("core", REFERENCE),
        default="core",
        help="reference: judge each delivery by what is promised, as fila history verify does",
    )
    parser.add_argument(
        "--head",
        default="",
        metavar="HASH",
        help="an entry that must be there, as fila history status printed it",
    )
    parser.add_argument(
        "--public-key",
        dest="public_keys",
        action="append",
        default=[],
        metavar="FILE",
        help="check that this key signed every entry; repeat it for keys that followed one another",
    )
    _add_common(parser, out=True)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Model a recording as it was, first in, first out, and under other policies, and say how long each "
        "tenant would have waited. With --import the same of a log that is not Fila's."
    )
    parser.add_argument(
        "--policy", metavar="FILE", action="append", default=[], help="TOML, as for backtest; repeat for more"
    )
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument("--import", dest="log", metavar="CSV", help="a log of messages, in place of --history")
    parser.add_argument("--mapping", metavar="FILE", help="TOML: which columns of the log say what")
    parser.add_argument("--workers", metavar="N", help="how many served the log, or estimate")
    _add_common(parser, out=True, or_history=one)


def _add_common(
    parser: argparse.ArgumentParser, *, out: bool, or_history: argparse._MutuallyExclusiveGroup | None = None
) -> None:
    """or_history: of which --history is one."""
    (or_history or parser).add_argument(
        "--history",
        action="append",
        required=or_history is None,
        help="the history's directory, or a URL that Spark can read; repeat it for the nodes of a group",
    )
    if out:
        parser.add_argument("--out", required=True, help="where index.html and the Parquet tables go")
    parser.add_argument(
        "--window", type=_window, default=60.0, help="whole seconds of a window, 1 to 86400 (60)"
    )
    parser.add_argument(
        "--master", default="local[*]", help="Spark's master; the default runs inside this process"
    )
    parser.add_argument(
        "--conf",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="Spark setting, repeatable",
    )


def _setting(text: str) -> str:
    if "=" not in text or not text.startswith("spark."):
        raise argparse.ArgumentTypeError(f"must look like spark.driver.memory=4g, got {text!r}")
    return text


def _window(text: str) -> float:
    if not text.isdigit() or not 1 <= int(text) <= 86_400:
        raise argparse.ArgumentTypeError(f"must be whole seconds from 1 to 86400, got {text!r}")
    return float(text)


def _seeds(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to 100, got {text!r}")
    return int(text)


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e12:
        raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}")
    return number


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be ISO 8601, such as 2026-03-02T14:00, got {text!r}"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


if __name__ == "__main__":
    sys.exit(main())
