"""`fila-server history verify`: what a history is worth as evidence, in a sentence; `fila history verify` runs it."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fila_server.history_files import verifying
    from fila_server.history_files.evidence import Evidence

_HEAD = re.compile("[0-9a-f]{64}", re.ASCII)
EXIT_DIFFERS = 3
"""Something was changed, or does not follow from what was taken in."""


@click.group(name="history")
def group() -> None:
    """Look at what a broker recorded."""


@group.command()
@click.argument(
    "directories",
    metavar="DIRECTORY...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
)
@click.option(
    "--head",
    default="",
    metavar="HASH",
    help="An entry that must be there, as fila history status printed it.",
)
@click.option(
    "--against",
    type=click.Choice(["core", "reference"]),
    default="core",
    show_default=True,
    help="core: replay through the broker's own. reference: judge each delivery by what is promised.",
)
@click.option(
    "--public-key",
    "public_keys",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Check that this key signed every entry; repeat it for keys that followed one another.",
)
def verify(directories: tuple[Path, ...], head: str, against: str, public_keys: tuple[Path, ...]) -> None:
    """Check the chain of a history's files, and replay what they hold through the core.

    Exit code 3: something was changed, cut or added, is not signed, does not follow, or broke a promise. Of a group
    give the directory of each node: what they recorded doubly, and what none of them did, is said.

    \b
    Examples:
      fila-server history verify /var/lib/fila/history
      fila-server history verify fila-1/history fila-2/history
    """
    if head and len(directories) > 1:
        raise click.UsageError("--head is of one directory: verify that one alone")
    if head and not _HEAD.fullmatch(head):
        raise click.UsageError(
            f"--head: {head[:64]!a} is no head: give all 64 digits, 0-9 and a-f, as 'fila history status' has them"
        )
    try:
        from fila_server.history_files import chain, evidence, signing, upkeep

        if against == "core":
            from fila_server.history_files import verifying  # noqa: F401
    except ModuleNotFoundError as missing:
        raise click.UsageError(
            f"reading a history's files needs {missing.name}: pip install {missing.name}"
        ) from None
    recorded = [directory for directory in directories if (directory / chain.LIST).is_dir()]
    for directory in directories:
        if directory not in recorded and not (recorded and directory.is_dir()):
            raise click.UsageError(f"{directory} holds no history: it has no folder {chain.LIST}")
    try:
        keys = [signing.read_public(path) for path in public_keys]
    except signing.KeyUnreadable as why:
        raise click.UsageError(f"--public-key: {why}") from None
    wrong = False
    for directory in directories:
        if len(directories) > 1:
            click.echo(f"{directory}:")
        if directory not in recorded:
            click.echo(
                "note: nothing was recorded here: a node of a group records the terms in which it serves"
            )
            continue
        found = evidence.look(directory, head, keys)
        if len(directories) > 1 and not (found.found.wrong or upkeep.entries(directory)):
            click.echo(
                "note: nothing is listed: its broker has closed no file yet, or was killed before it did"
            )
            continue
        wrong = _verified(directory, found, against, is_all=len(directories) == 1) or wrong
    _of_group(recorded)
    if wrong:
        sys.exit(EXIT_DIFFERS)


def _of_group(directories: Sequence[Path]) -> None:
    """Say how the terms of a group's nodes follow one another."""
    from fila_server.history_files import terms, upkeep

    found = terms.terms({str(directory): upkeep.entries(directory) for directory in directories})
    if not found:
        return
    for note in terms.notes(found):
        click.echo(f"note: {note}")
    nodes = sorted({term.node for term in found})
    count = len({term.term for term in found})
    click.echo(f"Of a group: {count} term{'s' if count > 1 else ''} of {' and '.join(nodes)}.")


def _verified(directory: Path, found: Evidence, against: str, *, is_all: bool) -> bool:
    """Say what one directory is worth; True: something is wrong."""
    from fila_server.history_files import upkeep

    for said in found.wrong:
        click.echo(f"wrong: {said}")
    if not (found.found.wrong or upkeep.entries(directory)):
        raise click.ClickException(
            f"{directory} lists no file: its broker has closed none yet, or all of it was removed; nothing was verified"
        )
    for said in found.noted:
        click.echo(f"note: {said}")
    if against == "reference":
        is_wrong = _judged(directory, found)
        return bool(found.wrong) or is_wrong
    from fila_server.history_files import terms, verifying

    entries = upkeep.entries(directory)
    verdicts = verifying.verify_all(directory, entries, is_all=is_all)
    for verdict in verdicts:
        since = f", from the checkpoint of {verdict.since} on" if verdict.since else ""
        said = f" ({verdict.said})" if verdict.said else ""
        counts = f"{verdict.passes:,} passes, {verdict.decisions:,} decisions"
        click.echo(f"{terms.named(verdict.run, entries)}: {verdict.outcome}, {counts}{since}{said}")
    click.echo(answer(found, verdicts))
    return bool(found.wrong) or any(verdict.outcome in verifying.WRONG for verdict in verdicts)


def _judged(directory: Path, found: Evidence) -> bool:
    """Say what the slow judge makes of it; True: a promise was broken."""
    from fila_server.history_files import judging, terms, upkeep

    entries = upkeep.entries(directory)
    judged = judging.judge_all(directory, entries)
    for each in judged:
        said = f" ({each.said})" if each.said else ""
        counts = f"{each.judgement.deliveries:,} deliveries, the turn of {each.judgement.turns:,} judged"
        click.echo(f"{terms.named(each.run, entries)}: {each.outcome}, {counts}{said}")
        for wrong in each.judgement.wrong:
            click.echo(f"broken: {wrong}")
    for said in judging.not_judged(judged):
        click.echo(f"not judged: {said}")
    is_broken = any(each.outcome == judging.BROKEN for each in judged)
    said = judging.answer(judged)
    click.echo(said if is_broken and not found.wrong else found.answer(said.rstrip(".")))
    return is_broken


def answer(found: Evidence, verdicts: list[verifying.Verdict]) -> str:
    """Return the verdict in a sentence or two."""
    from fila_server.history_files import verifying

    wrong = [verdict for verdict in verdicts if verdict.outcome in verifying.WRONG]
    if wrong and not found.wrong:
        return f"This history does not follow. {wrong[0].run}: {wrong[0].said}."
    same = [verdict for verdict in verdicts if verdict.outcome == verifying.SAME]
    return found.answer(_replayed(same, len(verdicts)))


def _replayed(same: list[verifying.Verdict], of: int) -> str:
    if not same:
        return "nothing could be replayed, so nobody can say whether its decisions follow"
    decisions, deliveries = sum(each.decisions for each in same), sum(each.deliveries for each in same)
    rest = f"; {of - len(same)} starts could not be replayed" if of > len(same) else ""
    return (
        f"the core decided the same again, {decisions:,} decisions, {deliveries:,} of them deliveries{rest}"
    )
