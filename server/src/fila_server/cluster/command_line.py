"""`fila-server log verify BROKERS TOPIC`. Every start of the server imports this module, so a command imports what it
does when it is called."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fila_server import errors, logs
from fila_server.usage import EXIT_FAILED, EXIT_USAGE, Asked, fail, load_or_exit

if TYPE_CHECKING:
    from fila_server.cluster.verifying import Found

EXIT_HALTED = 3
"""A reader of this log halts."""
TERMS_SHOWN = 20


@click.group(name="log")
def group() -> None:
    """Look at a log that copies of a broker would share."""


@group.command()
@click.argument("brokers", metavar="HOST:PORT[,HOST:PORT]")
@click.argument("topic")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="Read this file instead of ./fila.toml or /etc/fila/fila.toml.",
)
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
