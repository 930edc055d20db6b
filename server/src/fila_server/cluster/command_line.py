"""`fila-server log verify BROKERS TOPIC`, and `fila-server cluster init` and `leave`. Every start of the server imports
this module, so a command imports what it does when it is called."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fila_server import errors, logs
from fila_server.one_line import EXIT_USAGE, fail
from fila_server.usage import EXIT_FAILED, Asked, load_or_exit

if TYPE_CHECKING:
    from fila_server.cluster.reseeding import Held
    from fila_server.cluster.verifying import Found
    from fila_server.config.schema import Config
    from fila_server.core.runtime.store_copy import StoreCopy

EXIT_HALTED = 3
"""A reader of this log halts."""
TERMS_SHOWN = 20


_config = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="Read this file instead of ./fila.toml or /etc/fila/fila.toml.",
)


@click.group(name="log")
def group() -> None:
    """Look at a log that copies of a broker would share."""


@group.command()
@click.argument("brokers", metavar="HOST:PORT[,HOST:PORT]")
@click.argument("topic")
@_config
@click.pass_obj
def verify(asked: Asked, brokers: str, topic: str, config_path: Path | None) -> None:
    """Read a whole log and say what it holds: its terms, what counts, what is skipped.

    Login, TLS and tuning stand in the configuration, as [cluster.kafka]. Exit code 3: a reader halts at what is in the
    log. 1: the log could not be read to its end.

    \b
    Example:
      fila-server log verify kafka-1:9092,kafka-2:9092 fila-log
    """
    from fila_server.cluster import kafka_settings, verifying
    from fila_server.core.log.kafka import KafkaLog, LogRefused

    settings = load_or_exit(Asked(config_path or asked.config_path, asked.flags)).config
    logs.setup(level=settings.log.level, form=settings.log.format)
    try:
        library, given = kafka_settings.judged(brokers, topic, settings.cluster.kafka)
        log = KafkaLog(library, topic, given)
    except errors.ConfigInvalid as error:
        fail(error, EXIT_USAGE)
    except errors.StartError as error:
        fail(error, EXIT_FAILED)
    except LogRefused as refused:
        fail(errors.StartError(f"topic {topic} at {brokers}: {refused}"), EXIT_FAILED)
    try:
        found = verifying.read_all(log)
    except errors.StartError as error:
        fail(errors.StartError(f"topic {topic} at {brokers}: {error}"), EXIT_FAILED)
    finally:
        log.close()
    for line in lines(topic, found):
        click.echo(line)
    if found.why:
        sys.exit(EXIT_HALTED)


def lines(topic: str, found: Found) -> list[str]:
    """What is said of a log."""
    state = found.state
    if state is None or (not found.records and not found.why):
        return [f"topic {topic} holds no record yet"]
    earlier = len(found.terms) - TERMS_SHOWN
    said = [f"topic {topic}, cluster {state['cluster'].hex()}"] if found.terms else [f"topic {topic}"]
    said += ["  it began with the data of a broker, which is in no record"] if found.began_with_data else []
    said += [f"  {earlier:,} earlier terms"] if earlier > 0 else []
    for term in found.terms[-TERMS_SHOWN:]:
        began = datetime.fromtimestamp(term.began_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        said.append(f"  from offset {term.offset:,}: {term.node}, since {began} UTC, {term.passes:,} passes")
    said += [
        (
            f"read: {found.records:,} records. Effective: {state['terms']:,} takeovers, {state['passes']:,} passes, "
            f"{state['barriers']:,} barriers. Skipped: {state['void_bids']:,} void takeovers, "
            f"{state['stale']:,} stale records"
        )
    ]
    if state["parts"]:
        said.append(
            f"the last pass has {state['parts']} parts, and {state['part']} of them are there; it is not applied"
        )
    said.append(f"halted: {found.why}" if found.why else "whole: every reader comes to its end")
    return said


@click.group(name="cluster")
def cluster_group() -> None:
    """Make a broker's data a group's, and back, while the node is stopped; and save a group whose log lost its end."""


@cluster_group.command(name="init")
@click.option(
    "--from",
    "data_dir",
    metavar="DATA_DIR",
    required=True,
    type=click.Path(path_type=Path),
    help="The data directory of the broker that stands still.",
)
@_config
@click.pass_obj
def init(asked: Asked, data_dir: Path, config_path: Path | None) -> None:
    """Begin a group with the data of a broker alone: DATA_DIR becomes this node's copy.

    The topic of cluster.log must be a new one, and no node may run. Each message and each lease stays. Where this was
    cut off, run it again.

    \b
    Example:
      fila-server cluster init --from /var/lib/fila
    """
    from fila_server.cluster import founding, kafka_settings, starting
    from fila_server.cluster.identity import group_id, node_number
    from fila_server.cluster.topic import TopicKeeper, ask
    from fila_server.core.log.kafka import KafkaLog, LogRefused

    settings = load_or_exit(Asked(config_path or asked.config_path, asked.flags)).config
    logs.setup(level=settings.log.level, form=settings.log.format)
    cluster = settings.cluster
    topic = cluster.log.topic
    try:
        if not cluster.is_set:
            raise _no_group("the group that begins, and of this node")
        starting.check(cluster)
        founding.check_directory(data_dir)
        library, given = kafka_settings.judged(cluster.log.brokers, topic, cluster.kafka)
        TopicKeeper(topic, partial(ask, topic, given), accepts_weak=cluster.accept_weak_topic).begin()
        try:
            log = KafkaLog(library, topic, given, appends=True)
        except LogRefused as refused:
            raise errors.StartError(f"cluster.log: {cluster.log}: {refused}") from None
        who = founding.Identity(node_number(cluster.node), cluster.node, group_id(cluster.name))
        try:
            founding.begin_group(data_dir, settings.engine_settings(), topic, log, who)
        finally:
            log.close()
    except errors.ConfigInvalid as error:
        fail(error, EXIT_USAGE)
    except errors.StartError as error:
        fail(error, EXIT_FAILED)
    click.echo(
        f"{data_dir} is the first copy of the group {cluster.name}. Start {cluster.node} on it, then the other nodes "
        "with empty data directories: they take a copy"
    )


@cluster_group.command(name="reseed")
@click.option(
    "--from", "node", metavar="NODE", required=True, help="The node whose copy the group goes on with."
)
@click.option("--force", is_flag=True, help="Also where another copy may hold more.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@_config
@click.pass_obj
def reseed(asked: Asked, node: str, force: bool, yes: bool, config_path: Path | None) -> None:
    """Go on with NODE's copy, where the log itself lost its end, or its topic was made anew, and all nodes halt.

    Each node keeps running. What each holds is shown first. Every other node then takes a copy of NODE's, and sets its
    own aside. Run it where the settings of a node are: who may read its secret, or its key, may do this.

    \b
    Example:
      fila-server cluster reseed --from fila-2
    """
    from fila_server.cluster import reseeding, starting
    from fila_server.cluster.peers import Trust

    settings = load_or_exit(Asked(config_path or asked.config_path, asked.flags)).config
    logs.setup(level=settings.log.level, form=settings.log.format)
    try:
        if not settings.cluster.is_set:
            raise _no_group("the group, and of a node of it")
        starting.check(settings.cluster)
        trust = Trust.of(settings.cluster)
        held = reseeding.look(settings.cluster, trust)
        for line in copies(held):
            click.echo(line)
        one, doubts = reseeding.judged(held, node)
        if doubts and not force:
            raise errors.StartError("; ".join(doubts) + ". With --force it is done all the same")
        if not yes:
            click.confirm(f"What {node} does not hold is gone for the group. Go on?", abort=True, err=True)
        reseeding.order(one, settings.cluster, trust, int(time.time()))
    except errors.ConfigInvalid as error:
        fail(error, EXIT_USAGE)
    except errors.StartError as error:
        fail(error, EXIT_FAILED)
    click.echo(f"{node} owns the group from here on; the other nodes take a copy of it")


def copies(held: Sequence[Held]) -> list[str]:
    """What each node holds, a line each."""
    said = []
    for each in held:
        report = each.report
        if report is None:
            said.append(f"{each.name}: it does not answer")
        elif report.position < 0:
            said.append(f"{each.name}: no copy. {report.lacks}".rstrip(". "))
        else:
            at = datetime.fromtimestamp(report.record_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
            why = f". {report.lacks}" if report.lacks else ""
            said.append(f"{each.name}: {report.role}, up to offset {report.position:,} of {at} UTC{why}")
    return said


@cluster_group.command(name="leave")
@click.argument("data_dir", metavar="DATA_DIR", type=click.Path(path_type=Path))
@click.option(
    "--as-it-is",
    is_flag=True,
    help="Do not read the log to its end first: what it holds beyond this copy is missing then.",
)
@_config
@click.pass_obj
def leave(asked: Asked, data_dir: Path, as_it_is: bool, config_path: Path | None) -> None:
    """Make a copy of a group the data of a broker alone: DATA_DIR, whose node is stopped, as are all others.

    It reads the log of cluster.log to its end first, so that it has all that the group answered.

    \b
    Examples:
      fila-server cluster leave /var/lib/fila
      fila-server cluster leave --as-it-is /var/lib/fila
    """
    from fila_server.cluster import leaving

    settings = load_or_exit(Asked(config_path or asked.config_path, asked.flags)).config
    logs.setup(level=settings.log.level, form=settings.log.format)
    try:
        follow = None if as_it_is else _follower(settings, data_dir)
        position = leaving.leave_group(data_dir, settings.engine_settings(), follow)
    except errors.ConfigInvalid as error:
        fail(error, EXIT_USAGE)
    except errors.StartError as error:
        fail(error, EXIT_FAILED)
    said = f"{data_dir} is the data of a broker alone"
    if position is not None:
        end = "What the log holds beyond it is not in it" if as_it_is else "which is the log's end"
        said += f", up to offset {position} of the log{'. ' if as_it_is else ', '}{end}"
    click.echo(
        f"{said}. Take [cluster] out of its settings, start it, and start no other node of the group any more"
    )


def _follower(settings: Config, data_dir: Path) -> Callable[[], StoreCopy]:
    """What opens the copy, to read the log on."""
    from fila_server.cluster import founding, kafka_settings, starting
    from fila_server.cluster.identity import group_id, node_number
    from fila_server.cluster.written import WrittenFormat
    from fila_server.core.log.kafka import KafkaLog, LogRefused
    from fila_server.core.runtime.store_copy import StoreCopy

    cluster = settings.cluster
    if not cluster.is_set:
        raise _no_group(
            "its node, so that it reads the log to its end; or give --as-it-is, and it has what it has"
        )
    starting.check(cluster)
    founding.check_directory(data_dir)
    library, given = kafka_settings.judged(cluster.log.brokers, cluster.log.topic, cluster.kafka)
    try:
        log = KafkaLog(library, cluster.log.topic, given, appends=True)  # as a copy needs it; nothing is
    except LogRefused as refused:
        raise errors.StartError(
            f"cluster.log: {cluster.log}: {refused}. Look at its brokers, or give --as-it-is: what the log holds "
            "beyond this copy is missing then"
        ) from None

    def follow() -> StoreCopy:
        copy = StoreCopy(
            str(data_dir),
            settings.engine_settings(),
            log,
            node=node_number(cluster.node),
            cluster=group_id(cluster.name),
            name=str(cluster.node),
        )
        copy.reads_up_to(WrittenFormat(data_dir).format)
        return copy

    return follow


def _no_group(whose: str) -> errors.ConfigInvalid:
    return errors.ConfigInvalid(
        f"cluster.name: it is empty. Give --config with the [cluster] of {whose}", key="cluster.name"
    )
