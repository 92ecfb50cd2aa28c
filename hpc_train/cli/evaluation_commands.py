"""`hpc-train test`, `validate` and `predict`: one command with three names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpc_train.cli.common import (
    complete_keys,
    flag_options,
    json_option,
    print_notes,
    run_argument,
    runs_dir_option,
    shell_word,
)
from hpc_train.cli.finding import run_to_read
from hpc_train.cli.staying import stay_options, tell_and_stay
from hpc_train.config.words import OF_DATA, WEIGHTS
from hpc_train.errors import UsageError
from hpc_train.plan.plan import Verb
from hpc_train.runs.layout import CHECKPOINT_NAME, RunDir
from hpc_train.runs.run_word import run_word

if TYPE_CHECKING:
    from hpc_train.api import Run

WHAT = {
    "test": "Test the model of RUN with its test_step, on its test_dataloader.",
    "validate": "Validate the model of RUN with its validation_step, on its val_dataloader.",
    "predict": "Predict with the model of RUN, on its predict_dataloader; in that order.",
}
HOW = """

This is a run of its own, named RUN's name and the verb; the training is not touched, and may still
go on. It has RUN's shape unless --nodes or --gpus say otherwise; each sample is taken once.
"""


def _refuse_files(words: Sequence[str]) -> None:
    """Refuse a checkpoint beside RUN, which --ckpt takes, and data, which its class reads."""
    for word in words:
        is_named = word in ("best", "last") or word.endswith(WEIGHTS)
        if "=" not in word and (is_named or CHECKPOINT_NAME.match(Path(word).name)):
            raise UsageError(f"{word!r} is no key=value", f"write --ckpt {shell_word(word)}")
        if "=" not in word and (word.endswith(OF_DATA) or Path(word).exists()):
            key = f"data.init_args.NAME={shell_word(word)}, with the argument's NAME of your class"
            raise UsageError(f"{word!r} is no key=value", f"the data class reads it: {key}")


def evaluation_command(verb: Verb) -> click.Command:
    """The command of one verb."""

    @click.command(verb, help=WHAT[verb] + HOW)
    @run_argument
    @click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...", shell_complete=complete_keys)
    @click.option("--ckpt", default="", metavar="best|last|PATH", help="By default best, if any.")
    @flag_options("nodes", "gpus", "time", "partition", "account", "qos")
    @click.option("--cluster", type=click.Choice(["slurm", "local"]), help="As RUN, by default.")
    @stay_options
    @runs_dir_option
    @json_option
    def command(
        run: str,
        overrides: tuple[str, ...],
        ckpt: str,
        cluster: str | None,
        follow: bool,
        wait: bool,
        runs_dir: Path | None,
        as_json: bool,
        **flags: Any,
    ) -> int:
        _refuse_files(overrides)
        found = run_to_read(run, runs_dir)
        begin = partial(found.evaluate, verb, *overrides, ckpt=ckpt, cluster=cluster or "")
        made, weights = _told(partial(begin, **flags), found.directory)
        told = {"weights": weights}
        if verb == "predict":
            told["predictions"] = str(made.directory.predictions)

        def say() -> None:
            where = {"run": made.directory.run_id, "run_dir": str(made.directory.path)}
            for name, value in {**where, **told}.items():
                click.echo(f"{name:<10} {value}", err=as_json)
            click.echo(f"watch      hpc-train status {run_word(made.directory.path)}", err=as_json)

        document = {"job_id": made.status().job_id, **told} if as_json else {}
        return tell_and_stay(made, document, say, follow=follow, wait=wait, as_json=as_json)

    return command


def _told(begin: Callable[[], tuple[Run, str]], run: RunDir) -> tuple[Run, str]:
    """What `begin` returns, with a line on what is kept of the run, and what has changed since."""
    from hpc_train.python_notes import with_notes
    from hpc_train.runs.provenance import code_changes

    made, notes = with_notes(begin)
    print_notes(notes)
    if changes := code_changes(run):
        print_notes([f"the code is not that of the run: {changes}"])
    return made
