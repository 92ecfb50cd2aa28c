"""`hpc-train completion`: what makes a shell complete our words."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from hpc_train.errors import HpcTrainError, UsageError

LINES = {
    "bash": ("~/.bashrc", 'eval "$(hpc-train completion bash)"'),
    "zsh": ("~/.zshrc, behind compinit", 'eval "$(hpc-train completion zsh)"'),
    "fish": ("~/.config/fish/config.fish", "hpc-train completion fish | source"),
}
# click's scripts put a space behind every word; behind `key=` comes its value.
WITHOUT_SPACE = {
    "bash": (
        "COMPREPLY+=($value)",
        'COMPREPLY+=("$value"); [[ $value == *[=.] ]] && compopt -o nospace',
    ),
    "zsh": (
        "compadd -U -V unsorted -a completions",
        (
            "compadd -U -V unsorted -- ${completions:#*[=.]}\n"
            "        compadd -U -S '' -V unsorted -- ${(M)completions:#*[=.]}"
        ),
    ),
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(LINES)), required=False)
def command(shell: str | None) -> int:
    """Print the script that completes commands, runs, keys and class paths in SHELL.

    Without SHELL it is your login shell. In bash: eval "$(hpc-train completion bash)" in ~/.bashrc.
    """
    from click.shell_completion import get_completion_class

    from hpc_train.cli.main import cli

    shell = shell or Path(os.environ.get("SHELL", "")).name
    made = get_completion_class(shell) if shell in LINES else None
    if made is None:
        known = ", ".join(LINES)
        raise UsageError(f"no completion for the shell {shell!r}", f"name one of {known}")
    try:
        script = made(cli, {}, "hpc-train", "_HPC_TRAIN_COMPLETE").source()
    except RuntimeError as error:  # an old bash
        raise HpcTrainError(str(error)) from error
    click.echo(script.replace(*WITHOUT_SPACE[shell]) if shell in WITHOUT_SPACE else script)
    if sys.stdout.isatty():
        where, line = LINES[shell]
        click.echo(f"to have it in every shell, add to {where}:\n  {line}", err=True)
    return 0
