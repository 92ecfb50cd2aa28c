"""The `hpc-train` command: finds the command asked for, and turns errors into two lines."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpc_train import __version__
from hpc_train.cli.best_by_metric import best_by_metric, best_with_value
from hpc_train.cli.option_hints import (
    expanded_hint,
    extra_hint,
    lacking_value,
    long_dash,
    option_hint,
    value_hint,
)
from hpc_train.cli.typed_options import as_options
from hpc_train.config.long_paths import told_as_typed
from hpc_train.errors import HpcTrainError, UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# One line a command, so that `--help` imports none of them.
COMMANDS = {
    "init": "Write a small project that runs into an empty folder.",
    "submit": "Submit a training to Slurm, or to this machine.",
    "run": "Train in the foreground: in an salloc, or on a laptop.",
    "launch": "Train on machines without a scheduler, over ssh.",
    "render": "Print the training as an sbatch script.",
    "resume": "Go on with a run that has stopped, in another shape if you like.",
    "test": "Test the model of a run, on its test data.",
    "validate": "Validate the model of a run anew.",
    "predict": "Predict with the model of a run, and write the predictions.",
    "status": "Show a run and its history; without RUN, the newest.",
    "diagnose": "Say why a run, a job or a log failed: who first, the cause, the fix.",
    "report": "Show what runs were worth: goodput, metrics, nodes; as a page with --html.",
    "bench": "Measure a training over shapes: rate, efficiency, where time goes.",
    "list": "List the newest runs, or all.",
    "top": "Show all runs on a live page, on the terminal or in a browser.",
    "diff": "Show how code, packages and config differ from now, or between two runs.",
    "logs": "Show what a rank has written.",
    "cancel": "End a run for good.",
    "rm": "Remove runs that have ended; asks before.",
    "du": "Show what runs take on the disk.",
    "checkpoints": "List a run's checkpoints and whether they are whole.",
    "preflight": "Check nodes, network and GPUs as before a training.",
    "doctor": "Look at this machine and its Slurm: pass, warn or fail, with the fix.",
    "notify": "Send a test notice to where a config's notices go.",
    "nodes": "Show which nodes are left out, and why.",
    "translate": "Print what a command of a tutorial is here.",
    "completion": "Print what makes bash, zsh or fish complete our words.",
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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """What a shell offers for a command; none of them is imported for it."""
        from click.shell_completion import CompletionItem

        names = [name for name in COMMANDS if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=COMMANDS[name]) for name in names), *options]

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
            from hpc_train.cli.unknown_commands import meant_command

            meant, line = meant_command(args, COMMANDS)
            if line:
                raise UsageError(f"no such command: {name!r}", line)
            hint = f" Did you mean {meant!r}?" if meant else ""
            ctx.fail(f"no such command: {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader that has enough (`| head`) is no error, as it is for click."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from hpc_train.cli.version import version_text

        click.echo(version_text())
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and the commit, and exit.",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Get a PyTorch Lightning training through a Slurm cluster, with the right result."""
    # click itself does not know NO_COLOR (https://no-color.org).
    if os.environ.get("NO_COLOR"):
        ctx.color = False


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code; a traceback goes into a file."""
    # The interpreter's end otherwise walks everything that was imported: a fifth of a submission.
    atexit.register(gc.freeze)
    words = sys.argv[1:] if arguments is None else arguments
    for name in ("stdin", "stdout", "stderr"):  # None where the shell has closed it: >&-
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "w"))
    try:
        _check_folder()
        code = cli.main(args=words, prog_name="hpc-train", standalone_mode=False)
    except HpcTrainError as error:
        typed = told_as_typed(error.__cause__, words, os.environ) or _long_dash(words, error)
        sys.exit(_complain(_captured(words) or typed, words))
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        said = _captured(words) or _long_dash(words, _usage(error, words))
        sys.exit(_complain(said, words))
    except Exception as error:  # noqa: BLE001 - the last resort: a bug of ours, told in two lines
        foreseen = told_as_typed(error, words, os.environ)
        sys.exit(_complain(foreseen or _unforeseen(error), words))
    sys.exit(code if isinstance(code, int) else 0)


def _captured(words: Sequence[str]) -> HpcTrainError | None:
    from hpc_train.cli.captured_output import captured_output  # on the way to an error

    return captured_output(words)


def _check_folder() -> None:
    try:
        Path.cwd()
    except FileNotFoundError:
        raise UsageError("the folder that you are in is not there any more", "cd") from None


def _with_the_newest(where: str, command: str) -> str:
    """The line with this folder's newest run; empty where there is none, or it would be ended."""
    from hpc_train.cli.finding import name_of_newest_here  # on the way to an error

    evaluates = command in ("test", "validate", "predict")
    name = "" if command == "cancel" else name_of_newest_here(training=evaluates)
    kind = "training" if evaluates else "run"
    return f"{where} {name} takes the newest {kind} here; " if name else ""


def _usage(error: click.ClickException, words: Sequence[str]) -> HpcTrainError:
    """What click says of the words of a command line."""
    command = words[0] if words[0] in COMMANDS else ""
    context = getattr(error, "ctx", None)
    where = context.command_path if context else f"hpc-train {command}".rstrip()
    hint = best_with_value(words) or f"`{where} --help` shows what there is"
    if isinstance(error, click.MissingParameter) and error.param and error.param.name == "run":
        hint = f"{_with_the_newest(where, command)}`hpc-train list` names the runs; {hint}"
    if isinstance(error, click.MissingParameter) and error.param and error.param.name == "cfg":
        hint = _configs_here(where) or hint
    unknown = error.option_name if isinstance(error, click.NoSuchOption) else ""
    if unknown and (known := _hint_of_unknown(context, unknown, words)):
        return UsageError(error.message, known)
    if isinstance(error, click.BadOptionUsage) and error.message.endswith("an argument."):
        asked = cli.get_command(click.Context(cli), command)  # click has no context here
        hint = lacking_value(asked, error.option_name) if asked else hint
    if context is not None and error.message.startswith("No such command"):
        hint = f"{where} show CFG"
    if context is not None and error.message.startswith("Got unexpected extra argument"):
        extra = error.message.partition("(")[2].rstrip(")").split()
        if expanded := expanded_hint(context, extra):
            return UsageError(*expanded)
        hint = best_by_metric(context, extra) or extra_hint(context, *extra) or hint
        if context.info_name == "init":
            name = " ".join([str(context.params.get("folder")), *extra])
            hint = f"one folder; a name with blanks is quoted: {where} {shlex.quote(name)}"
    said = error.format_message().replace("\n", " ")
    if isinstance(error, click.BadParameter) and error.param is not None:
        hint = value_hint(context, str(error.param.name), error.message) or hint
    return UsageError(said, hint)


def _hint_of_unknown(context: click.Context | None, unknown: str, words: Sequence[str]) -> str:
    """What to write for an option that is not there; for all in one, where they are Slurm's."""
    from hpc_train.cli.short_options import hint_for_all  # on the way to an error

    all_short = hint_for_all(context, words) if len(unknown) == 2 else ""
    return all_short or option_hint(context, unknown, words)


_MOST_CONFIGS = 5
_IS_CONFIG = re.compile(rb"^(?:model|script|base|defaults)\s*:", re.MULTILINE)  # not mkdocs.yml


def _configs_here(command: str) -> str:
    """What to type where the config is left out: those of this folder, by name."""
    files = [it for it in Path().iterdir() if it.suffix in (".yaml", ".yml") and it.is_file()]
    readable = [it for it in files if os.access(it, os.R_OK)]
    names = sorted(it.name for it in readable if _IS_CONFIG.search(it.read_bytes()))
    if not names:
        return ""
    if len(names) == 1:
        return f"{command} {shlex.quote(names[0])}"
    return f"{command} CFG, one of: {', '.join(map(shlex.quote, names[:_MOST_CONFIGS]))}"


def _long_dash(words: Sequence[str], error: HpcTrainError) -> HpcTrainError:
    """The same error, or that a dash of a web page stands where two of the keyboard's belong."""
    mark = words.index("--") if "--" in words else len(words)
    for number, word in enumerate(words):
        typed = long_dash(word)
        if typed and (number < mark or word in error.message):
            what = f"{word} begins with a long dash, as web pages and editors write it"
            return UsageError(what, f"type {typed}")
    return error


def _unforeseen(error: Exception) -> HpcTrainError:
    """An error that nobody has foreseen, with its traceback in a file of the user's own."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        if error.filename is None:  # nor does what is left of the output fit, at Python's end
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        what = f"{error.filename or 'the output'} cannot be written: {error.strerror}"
        return HpcTrainError(what, "make room there, or name another folder")
    import tempfile
    import traceback

    from hpc_train.runs.state import state_dir

    text = "".join(traceback.format_exception(error))
    said = " ".join(str(error).split())[:300]
    what = f"{type(error).__name__}: {said}" if said else type(error).__name__
    for folder in (state_dir(os.environ), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"traceback-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
            file.write_text(f"hpc-train {__version__}\n{text}", encoding="utf-8")
        except OSError:
            continue
        return HpcTrainError(what, f"hpc-train did not expect this; the traceback is in {file}")
    return HpcTrainError(what, f"hpc-train did not expect this: {text}")  # no disk takes it


def _complain(error: HpcTrainError, words: Sequence[str]) -> int:
    for it in (error, *error.others):
        it.hint = as_options(it.hint, words)
    if "--json" in words:
        document: dict[str, Any] = {
            "schema_version": 1,
            "error": error.message,
            "hint": error.hint,
            "exit_code": error.exit_code,
        }
        if error.others:  # what else was found, in one go
            told = [{"error": it.message, "hint": it.hint} for it in error.others]
            document["others"] = told
        click.echo(json.dumps(document, indent=2))
    else:
        color = False if os.environ.get("NO_COLOR") else None
        for it in (error, *error.others):
            click.secho("error: ", err=True, fg="red", bold=True, nl=False, color=color)
            click.echo(it.message, err=True)
            if it.hint:
                click.secho("  fix: ", err=True, fg="green", nl=False, color=color)
                click.echo(it.hint, err=True)
    return error.exit_code
