"""`hpc-train diff`: what is not as it was when a run trained."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpc_train import api
from hpc_train.cli.common import (
    json_option,
    print_json,
    print_notes,
    run_argument,
    runs_dir_option,
)
from hpc_train.cli.finding import run_to_read
from hpc_train.cli.namesakes import newest_of_name
from hpc_train.errors import NoSuchRunError, UsageError
from hpc_train.runs.layout import RunDir
from hpc_train.runs.registry import folders, matching_runs
from hpc_train.runs.run_of_file import CONFIGS
from hpc_train.runs.run_word import run_word

if TYPE_CHECKING:
    from hpc_train.backends.compare_runs import RunDifferences


@click.command("diff")
@run_argument
@click.argument("other", metavar="[RUN2]", required=False)
@runs_dir_option
@json_option
def command(run: str, other: str | None, runs_dir: Path | None, as_json: bool) -> int:
    """Show how code, packages and config differ between RUN and now, or between two runs.

    RUN@K is attempt K of a run; without it, the newest that has begun. Now is the folder that the
    run was submitted from, the Python that runs this command, and the config file as it stands.
    What an attempt of RUN had otherwise than the one before is named as well.
    """
    from hpc_train.backends.compare_runs import compare_runs, compare_with_now

    if other is not None:
        _refuse_configs(run, other, runs_dir)
    first, attempt = _find(run, runs_dir)
    if other is None:
        compared = compare_with_now(first.directory, attempt)
    else:
        second, other_attempt = _find(other, runs_dir)
        compared = compare_runs(first.directory, second.directory, attempt, other_attempt)
        if first.directory.path == second.directory.path and attempt == other_attempt:
            _tell_same(run, first.directory, runs_dir)
    if as_json:
        others = second.directory.run_id if other is not None else None
        named = {"schema_version": 1, "run": first.directory.run_id, "other": others}
        print_json({**named, **dataclasses.asdict(compared)})
    else:
        _print(compared)
    return 0


def _refuse_configs(first: str, second: str, runs_dir: Path | None) -> None:
    """Refuse a config's file beside another one, or beside a run.

    Raises:
        UsageError: with what compares them.
    """
    files = [it for it in (first, second) if it.endswith(CONFIGS) and Path(it).is_file()]
    if not files:
        return
    if len(files) > 1:
        what = f"diff compares runs, and {first} and {second} are configs"
        raise UsageError(what, _diff_of_files(first, second))
    (file,) = files
    run = _find(second if file == first else first, runs_dir)[0].directory
    from hpc_train.backends.compare_runs import written_config
    from hpc_train.backends.submit_again import as_typed_here

    if written_config(run).get("file") == str(Path(file).absolute()):
        raise UsageError(
            f"{file} is the config that {run.name} ({run.run_id}) was submitted with",
            f"hpc-train diff {run_word(run.path)} compares the run with it",
        )
    own = as_typed_here(str(run.config)) if run.config.is_file() else "CFG"
    raise UsageError(f"diff compares runs, and {file} is a config", _diff_of_files(own, file))


def _diff_of_files(first: str, second: str) -> str:
    """The line for bash that compares two configs by their values, however they are written."""
    shown = (f"hpc-train config show {shlex.quote(it)} --plain" for it in (first, second))
    return " ".join(["diff", *(f"<({it})" for it in shown)])


def _find(reference: str, runs_dir: Path | None) -> tuple[api.Run, int | None]:
    try:
        return run_to_read(reference, runs_dir), None
    except NoSuchRunError:
        name, _, attempt = reference.rpartition("@")
        if not name or not attempt.isdigit():
            raise
        return run_to_read(name, runs_dir), int(attempt)


def _tell_same(word: str, run: RunDir, runs_dir: Path | None) -> None:
    """Both words mean one run: which, and the others that one of them may have meant."""
    matches = matching_runs(word, folders(runs_dir)) if word == run.name else [run]
    print_notes([f"both are {run.run_id}", *filter(None, [newest_of_name(word, matches)])])


def _print(compared: RunDifferences) -> None:
    from hpc_train.backends.compare_runs import said

    lines = [f"code      {name}" for name in compared.code.files]
    if compared.code.commit:
        lines.append("commit    " + " -> ".join(one[:9] for one in compared.code.commit))
    for kind, pairs in (
        ("place", compared.place),
        ("package", compared.packages),
        ("config", compared.config),
    ):
        for name, (before, after) in pairs.items():
            lines.append(f"{kind:<9} {name}: {said(before)} -> {said(after)}")
    among = list(_among_attempts(compared))
    lines = lines or ["nothing differs from now, but among the attempts:"] * bool(among)
    typed = [
        f"typed     {name}: {said(own)} (by the file: {said(file)})"
        for name, (own, file) in compared.typed.items()
    ]
    click.echo("\n".join([*(lines or ["nothing differs"] * (not among)), *among, *typed]))
    for reason in compared.unknown:
        click.echo(f"not compared: {reason}", err=True)


def _among_attempts(compared: RunDifferences) -> Iterator[str]:
    from hpc_train.backends.compare_runs import said

    for number, one in compared.attempts.items():
        than = "the submission" if one.before is None else f"attempt {one.before}"
        what = [*one.files]
        for pairs in (one.place, one.packages):
            what += [f"{name} {said(old)} -> {said(new)}" for name, (old, new) in pairs.items()]
        yield f"attempt   {number} differs from {than}: {', '.join(what)}"
