"""What `--help` prints: options by theme, and examples as they were written."""

from __future__ import annotations

from typing import Any

import click


class CommonOption(click.Option):
    """An option that every command has; its help stands in a section of its own."""


class ThemedOption(click.Option):
    """An option whose help stands with those of the same theme."""

    def __init__(self, *args: Any, theme: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.theme = theme


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """The help's options: those of the command, those of each theme, then those of every command."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
        if record is None:
            continue
        own = param.theme if isinstance(param, ThemedOption) else "Options"
        title = "Of every command" if isinstance(param, CommonOption) else own
        sections.setdefault(title, []).append(record)
    last = sections.pop("Of every command", [])
    for title, records in [*sections.items(), ("Of every command", last)]:
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


def write_examples(examples: list[str], formatter: click.HelpFormatter) -> None:
    # Written line by line: click would wrap them into one paragraph.
    if examples:
        formatter.write_paragraph()
        formatter.write_text("Examples:")
        for line in examples:
            formatter.write(f"  {line}\n")
