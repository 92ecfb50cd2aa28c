"""The `hpc-train` command: finds the command asked for, and turns errors into two lines."""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import sys
from typing import Any

import click

from hpc_train import __version__
from hpc_train.errors import HpcTrainError

__all__ = ["cli", "main"]

# One line a command, so that `--help` imports none of them.
COMMANDS = {
    "submit": "Submit a training to Slurm, or to this machine.",
    "run": "Train in the foreground: in an salloc, or on a laptop.",
    "render": "Print the training as an sbatch script.",
    "resume": "Go on with a run that has stopped, in another shape if you like.",
    "status": "Show a run and its history; without RUN, the newest.",
    "list": "List the newest runs, or all.",
    "logs": "Show what a rank has written.",
    "cancel": "End a run for good.",
    "checkpoints": "List a run's checkpoints and whether they are whole.",
    "preflight": "Check nodes, network and GPUs as before a training.",
    "nodes": "Show which nodes are left out, and why.",
    "config": "Show the resolved config and where each value comes from.",
}
INTERRUPTED = 130


class LazyGroup(click.Group):
    """Loads a command's module only when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"hpc_train.cli.{cmd_name}_command")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands, from the lines above."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Names the nearest command where there is none."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"no such command: {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader that has enough (`| head`) is no error, as it is for click."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="hpc-train")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Get a PyTorch Lightning training through a Slurm cluster, with the right result."""
    # click itself does not know NO_COLOR (https://no-color.org).
    if os.environ.get("NO_COLOR"):
        ctx.color = False


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code; a traceback is only for our own bugs."""
    # The interpreter's end otherwise walks everything that was imported: a fifth of a submission.
    atexit.register(gc.freeze)
    words = sys.argv[1:] if arguments is None else arguments
    try:
        code = cli.main(args=words, prog_name="hpc-train", standalone_mode=False)
    except HpcTrainError as error:
        sys.exit(_complain(error, as_json="--json" in words))
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def _complain(error: HpcTrainError, *, as_json: bool) -> int:
    if as_json:
        document: dict[str, Any] = {
            "schema_version": 1,
            "error": error.message,
            "hint": error.hint,
            "exit_code": error.exit_code,
        }
        click.echo(json.dumps(document, indent=2))
    else:
        click.secho("error: ", err=True, fg="red", bold=True, nl=False)
        click.echo(error.message, err=True)
        if error.hint:
            click.secho("  fix: ", err=True, fg="green", nl=False)
            click.echo(error.hint, err=True)
    return error.exit_code
