"""`fila completion`: the script a shell needs to complete fila's commands, flags and queue names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from fila_cli.session import Command


@click.command(
    cls=Command,
    examples="""
    eval "$(fila completion bash)"
    fila completion zsh > ~/.zfunc/_fila
    fila completion fish > ~/.config/fish/completions/fila.fish
    """,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes fila in SHELL."""
    kind = get_completion_class(shell)
    assert kind is not None, "click knows the three shells of the choice above"
    root = ctx.find_root()
    # source() of bash asks the installed bash for its version; the script itself needs no such check.
    complete = kind(root.command, {}, "fila", "_FILA_COMPLETE")
    print(complete.source_template % complete.source_vars())
