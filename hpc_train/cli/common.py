"""Options and ways of printing that several commands share."""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from hpc_train.cli.option_hints import one_dash, option_hint, stray_hint, swallowed_hint
from hpc_train.cli.torn_sweeps import torn_sweep
from hpc_train.config.flags import FLAGS
from hpc_train.config.scripts.script_words import STARTERS
from hpc_train.errors import ConfigError, HpcTrainError, UsageError

if TYPE_CHECKING:
    from hpc_train.config.load import LoadedConfig
    from hpc_train.runs.events import Event

F = TypeVar("F", bound=Callable[..., Any])

devices_option = click.option(
    "--devices", metavar="0,2", help="GPUs of this machine to train on; not for Slurm."
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
runs_dir_option = click.option(
    "--runs-dir",
    type=click.Path(path_type=Path),
    help="Where to look for runs (also HPC_TRAIN_RUNS_DIR).",
)


def most_options(order: str) -> Callable[[F], F]:
    """`-n` and `--all`: how many rows of a table are shown."""
    number = click.option(
        "-n",
        "number",
        type=click.IntRange(min=1),
        default=30,
        show_default=True,
        help=f"How many, {order} first.",
    )
    everything = click.option(
        "--all", "everything", is_flag=True, help="All of them, however many."
    )

    def refuse_both(function: F) -> F:
        @functools.wraps(function)
        def command(*args: Any, **kwargs: Any) -> Any:
            typed = click.get_current_context().get_parameter_source("number")
            if kwargs["everything"] and typed is ParameterSource.COMMANDLINE:
                raise UsageError(
                    f"-n {kwargs['number']} and --all: one is for so many, the other for all",
                    "leave one of them out",
                )
            return function(*args, **kwargs)

        return cast("F", command)

    return lambda function: number(everything(refuse_both(function)))


def complete_runs(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """What a shell offers where a run is named."""
    from hpc_train.cli.completions import run_words

    return run_words(incomplete, ctx.params.get("runs_dir"))


def complete_keys(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """What a shell offers where `key=value` stands."""
    from hpc_train.cli.completions import key_words

    return key_words(list(ctx.params.get(str(param.name)) or ()), incomplete)


run_argument = click.argument("run", metavar="RUN", shell_complete=complete_runs)


CODE_TOLD = "hpc_train.code_told"  # in click's context: the edited files that a command has named
TYPED = "hpc_train.typed"  # in click's context: the words in front of -- and behind it
FILES = (".py", ".yaml", ".yml")


class ConfigCommand(click.Command):
    """A command that takes CFG; what stands behind `--` are the arguments of a script."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what stands in front of `--`; click itself would drop the sign."""
        mark = args.index("--") if "--" in args else len(args)
        own, behind = args[:mark], args[mark + 1 :] if mark < len(args) else None
        ctx.meta[TYPED] = own, behind or ()
        self._refuse_starter(ctx, args[0] if args else "", args)  # before its own options are met
        if swallowed := swallowed_hint(ctx, own):
            raise UsageError(*swallowed)
        try:
            rest = super().parse_args(ctx, [*own])
        except click.MissingParameter as error:
            if not behind:
                raise
            self._refuse_starter(ctx, behind[0], [*own, *behind])
            what = "-- stands in front of CFG, and what is behind it is for a script"
            raise UsageError(what, f"write {_typed(ctx, behind, own)}") from error
        except click.NoSuchOption as error:
            scripts = (it for it in own if it.endswith(".py") and not it.startswith("-"))
            script = next(scripts, None)
            in_front = own[: own.index(script)] if script else []
            self._refuse_starter(ctx, next((it for it in in_front if it in STARTERS), ""), args)
            word = one_dash(error.option_name, own)
            line = _line_of(ctx, script, own, behind or (), word) if script else ""
            if word and (hint := option_hint(ctx, word, own, script=script or "", line=line)):
                raise UsageError(f"No such option '{word[1:]}'.", hint) from error
            if script is None:
                raise
            hint = option_hint(ctx, error.option_name, own, script=script, line=line)
            raise UsageError(error.message, hint) from error
        self._refuse_starter(ctx, str(ctx.params.get("cfg", "")), args)
        _refuse_quoted(ctx, ctx.params.get("cfg"))
        if torn := torn_sweep(own):
            raise UsageError(*torn)
        is_whole = all("=" in word for word in ctx.params.get("overrides") or ())
        if not is_whole and (stray := stray_hint(ctx, own)):
            raise UsageError(*stray)
        ctx.params["arguments"] = behind
        return rest

    def _refuse_starter(self, ctx: click.Context, word: str, args: list[str]) -> None:
        if word in STARTERS and not Path(word).exists():
            from hpc_train.cli.script_line import line_without

            raise UsageError(
                f"{word} stands where CFG belongs, and hpc-train starts the ranks itself",
                line_without(ctx, word, args),
            )

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; a fix that is another line of the same command is told with the whole line."""
        try:
            return super().invoke(ctx)
        except ConfigError as error:
            from hpc_train.cli.script_line import with_own_words, with_typed

            for it in (error, *error.others):
                it.hint = with_typed(it.hint, ctx, *ctx.meta[TYPED])
                it.hint = with_own_words(it.hint, ctx, *ctx.meta[TYPED])
            raise


def _line_of(
    ctx: click.Context, script: str, own: list[str], behind: Sequence[str], word: str
) -> str:
    """The line to type, its arguments behind `--`; `--lr` for `-lr` where the script has that.

    Args:
        word: With two dashes, as it is meant; empty where it has them.
    """
    from hpc_train.cli.script_line import script_line  # on the way to an error

    text = Path(script).read_text("utf-8", "replace") if word and Path(script).is_file() else ""
    is_its_own = f"'{word}'" in text or f'"{word}"' in text
    meant = [f"-{it}" if f"-{it}".partition("=")[0] == word else it for it in own]
    return script_line(ctx, script, meant if is_its_own else own, behind)


def _refuse_quoted(ctx: click.Context, cfg: Path | None) -> None:
    """Refuse `"train.py --lr 0.1"`, which is one word to the shell."""
    words = str(cfg or "").split()
    first = next((it for it, word in enumerate(words) if word.endswith(FILES)), None)
    is_meant = first == 0 or words[:1] in ([it] for it in STARTERS)
    if cfg is not None and first is not None and is_meant and words[1:] and not cfg.exists():
        fix = f"leave the quotes out: {_typed(ctx, words[first:])}"
        raise UsageError(f"'{cfg}' is one word, and no file is called that", fix)


def _typed(ctx: click.Context, words: Sequence[str], options: Sequence[str] = ()) -> str:
    """A command line of the file that is the first of the words, and of what belongs to it."""
    is_script = words[0].endswith(".py") and words[1:2] not in ([], ["--"])
    line = [*options, words[0], *["--"] * is_script, *words[1:]]
    return f"{ctx.command_path} {shlex.join(line)}"


def config_arguments(function: F) -> F:
    """CFG, `key=value` overrides, and the options that are short for a key."""
    decorators = (
        click.argument("cfg", type=click.Path(path_type=Path, readable=False)),
        click.argument(
            "overrides",
            nargs=-1,
            metavar="[KEY=VALUE]... [-- ARGUMENT...]",
            shell_complete=complete_keys,
        ),
        flag_options(*(name for name in FLAGS if name != "hosts")),
    )
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def sweep_options(function: F) -> F:
    """The options of a sweep."""
    at_most = click.option(
        "--at-most", type=click.IntRange(min=1), help="So many points of a sweep run together."
    )
    sweep = click.option(
        "--sweep",
        multiple=True,
        metavar="KEY=VALUES",
        help="A job array over lr=0.1,0.01 or seed=range(3); with several, over all combinations.",
    )
    return sweep(at_most(function))


def load_config(
    cfg: Path,
    overrides: Sequence[str],
    flags: dict[str, Any],
    *,
    sweep: Sequence[str] = (),
    devices: str | None = None,
    cluster: str | None = None,
    for_notices: bool = False,
) -> LoadedConfig:
    """Read CFG, and say on stderr what is not wrong and should be known.

    Args:
        sweep: What is typed behind each --sweep.
        devices: What is typed behind --devices: what is started from here sees these GPUs alone.
        cluster: `slurm` or `local`, for `devices`; None finds it by itself.
        for_notices: The caller itself looks whether a notice can be sent.
    """
    from hpc_train import api

    if "=" in str(cfg) and not cfg.exists():
        raise UsageError(f"{cfg} stands where CFG belongs", "the config's file comes first")
    if not cfg.is_file():
        from hpc_train.cli.run_for_config import refuse_run  # on the way to an error

        refuse_run(cfg)
    if devices is not None:
        from hpc_train.backends.local_devices import flags_for_devices

        flags = flags_for_devices(devices, flags)
    loaded = api.load(cfg, *overrides, sweep=sweep, **flags)
    _keep_options(loaded)
    print_notes(loaded.notes)
    if loaded.config.notify.urls_from and not for_notices:
        from hpc_train.supervisor.send_notice import channel_notes

        print_notes(channel_notes(loaded.config.notify))
    if devices is not None:
        from hpc_train.backends.local_devices import use_devices

        use_devices(devices, api.plan(loaded).shape, os.environ, cluster)
    return loaded


def _keep_options(loaded: LoadedConfig) -> None:
    """Have the options that are no keys of the config stand in what submits it once more."""
    from hpc_train.config.submission_words import with_options

    context = click.get_current_context(silent=True)
    given = context.params if context else {}
    typed = [
        word for it in ("cluster", "devices") if given.get(it) for word in (f"--{it}", given[it])
    ]
    loaded.composed.words = with_options(loaded.composed.words, typed)


def print_notes(notes: Sequence[str]) -> None:
    """Lines on stderr that are no errors."""
    for note in notes:
        click.secho("note: ", err=True, fg="yellow", nl=False)
        click.echo(note, err=True)


def flag_options(*names: str) -> Callable[[F], F]:
    """The options of these names that are short for a key."""

    def decorate(function: F) -> F:
        for flag in (FLAGS[name] for name in reversed(names)):
            said = f"{flag.help} ({flag.key})."
            function = click.option(flag.option, type=flag.type, help=said)(function)
        return function

    return decorate


def print_json(document: Any) -> None:
    """One document on standard output."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))


def print_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    colors: Mapping[str, str] | None = None,
    least_needed: Sequence[str] | None = None,
) -> None:
    """Columns of plain text; in a pipe no line is wrapped or cut.

    Args:
        colors: Of cells, by their text.
        least_needed: Fits the table to a terminal: these columns are left out first, then the
            first and the last one are cut. None leaves every cell whole.
    """
    from hpc_train.runs.history_text import shortened
    from hpc_train.runs.run_table import fitted_widths

    lines = [list(header), *map(list, rows)]
    widths = _widths(lines)
    if least_needed is not None and sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
        widths = fitted_widths(header, widths, columns, least_needed)
    for number, line in enumerate(lines):
        cells = [
            _colored(shortened(cell, width).ljust(width), (colors or {}).get(cell))
            for cell, width in zip(line, widths, strict=True)
            if width
        ]
        click.secho("  ".join(cells).rstrip(), bold=number == 0 or None)


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def _colored(cell: str, color: str | None) -> str:
    return click.style(cell, fg=color) if color else cell


def check_page(path: Path) -> None:
    """Refuse a place for a page before it is made.

    Raises:
        UsageError: it is a folder, in none that is there, or named as what is no page.
    """
    if path.suffix.lower() in (".pdf", ".png", ".svg", ".json", ".csv", ".md", ".txt"):
        fix = f"write --html {path.with_suffix('.html')}; a browser prints it as PDF"
        raise UsageError(f"--html {path}: what is written is a page of HTML", fix)
    if str(path) != "-" and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise UsageError(
            f"--html {path} cannot be written", "name a file in a folder that is there"
        )


def write_page(path: Path, text: str) -> None:
    """What `--html` names, `-` for standard output.

    Raises:
        HpcTrainError: it cannot be written there.
    """
    from hpc_train.runs.atomic import write_text

    if str(path) == "-":
        click.echo(text)
        return
    try:
        write_text(path.absolute(), text)
    except OSError as error:
        raise HpcTrainError(
            f"--html {path}: {os.strerror(error.errno or 0)}",
            "name a file in a folder where you may write",
        ) from error


def salloc_options(
    nodes: int, gpus: int | None, partition: str | None, account: str | None
) -> list[str]:
    """A short allocation of one task a node, to look at the nodes."""
    options = [f"--nodes={nodes}", "--ntasks-per-node=1", "--time=0:10:00"]
    options += [f"--gres=gpu:{gpus}"] if gpus else []
    options += [f"--partition={partition}"] if partition else []
    return options + ([f"--account={account}"] if account else [])


def shell_word(text: str) -> str:
    """A word as it can be typed."""
    import shlex

    return shlex.quote(text)


def tell_unchecked(submitted: Event) -> None:
    """What a busy controller left unchecked at the submission."""
    if unchecked := submitted.get("unchecked"):
        click.echo(f"unchecked  {unchecked}", err=True)
