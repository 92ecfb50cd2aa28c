"""A plan as a person reads it before it is submitted."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

import click

from hpc_train.cli.common import print_json
from hpc_train.plan.length import length_text
from hpc_train.plan.lr_scale import lr_scale
from hpc_train.plan.plan import Plan, ScriptPlan
from hpc_train.plan.script import PLAN_IN_SCRIPT
from hpc_train.plan.units import time_s
from hpc_train.runs.history_text import duration


def print_dry_run(
    plan: Plan,
    script: str,
    *,
    verbose: bool,
    as_json: bool,
    with_script: bool = True,
    first_step: int | None = None,
    run: str = "",
    more: str = "",
) -> None:
    """Print what would be submitted.

    Args:
        verbose: Print the plan itself, too.
        with_script: A scheduler gets the script; on this machine nothing does.
        first_step: Of a run that goes on: the steps that it has kept.
        run: Of one that goes on: its id.
        more: What the last line says of Slurm.
    """
    if as_json:
        import dataclasses

        document = {"schema_version": 1, "plan": dataclasses.asdict(plan), "script": script}
        print_json(document if first_step is None else {**document, "first_step": first_step})
        return
    for line in plan_lines(plan, os.environ):
        click.echo(line)
    if run:
        click.echo(f"run        {run}")
    if first_step is not None:
        begins = f"step {first_step}" if first_step else "the beginning: nothing is saved"
        click.echo(f"goes on    from {begins}")
    if verbose:
        click.secho("\n# plan.json", bold=True)
        click.echo(plan.to_json(), nl=False)
    else:
        script = PLAN_IN_SCRIPT.sub("(the plan; -v shows it)\n", script)
    if with_script:
        click.secho("\n# job.sbatch", bold=True)
        click.echo(script)
    click.echo(f"nothing was submitted and nothing was written (--dry-run){more}", err=True)


def plan_lines(plan: Plan, shell: Mapping[str, str]) -> list[str]:
    """Ten lines: what will run, in which shape, how the batch is split, where, and how long.

    Args:
        shell: The environment, whose SBATCH_* count where the config says nothing.
    """
    options, training = dict(plan.slurm.options), plan.training
    # A plan whose script works anywhere has no folder of its own: it is submitted from this one.
    runs_dir = Path(plan.workdir).absolute() / Path(plan.runs_dir).expanduser()
    billed = [f"{it} {said}" for it in ("account", "qos") if (said := _asked(options, it, shell))]
    what = {
        "model": training.model.class_path,
        "data": training.data.class_path,
        "until": length_text(training.trainer),
    }
    told = {
        "name": plan.name,
        **(what if plan.script is None else _script(plan.script, plan.shape.world_size)),
        "shape": _shape(plan),
        "batch": "the script's own, on each rank" if plan.script else _batch(plan),
        "partition": ", ".join([_asked(options, "partition", shell) or "the default one", *billed]),
        "time": _time(plan, options.get("time")),
        "saves": _saves(plan),
        "runs in": f"{runs_dir}, by {plan.shell.python}",
    }
    return [f"{what:<10} {text}" for what, text in told.items()]


def _asked(options: Mapping[str, str | None], name: str, shell: Mapping[str, str]) -> str:
    variable = f"SBATCH_{name.upper()}"
    given = shell.get(variable, "")
    return options.get(name) or (f"{given} ({variable} of your shell)" if given else "")


def _script(script: ScriptPlan, ranks: int) -> dict[str, str]:
    scale = lr_scale(script, ranks)
    told = {"script": f"python {shlex.join([script.path, *script.args])}"}
    return {**told, "lr": f"{scale} (scale_lr {script.scale_lr})"} if scale else told


def _shape(plan: Plan) -> str:
    shape = plan.shape
    text = f"{_count(shape.nodes, 'node')} x {_count(shape.ranks_per_node, 'rank')}"
    text += f" = {_count(shape.world_size, 'rank')}"
    text += f", {_devices(plan)}"
    return text + (f", {_count(shape.spares, 'node')} in reserve" if shape.spares else "")


def _devices(plan: Plan) -> str:
    if not plan.shape.gpus_per_node:
        return "on CPUs"
    is_auto = plan.script is not None or plan.training.trainer.get("accelerator") == "auto"
    return "a GPU each" + (", else on CPUs (accelerator auto)" if is_auto else "")


def _batch(plan: Plan) -> str:
    batch = plan.batch
    text = f"{batch.global_batch_size} = {batch.micro_batch_size} a rank"
    text += f" x {_count(plan.shape.world_size, 'rank')}"
    return text + (f" x {batch.accumulate} accumulated" if batch.accumulate > 1 else "")


def _time(plan: Plan, limit: str | None) -> str:
    seconds = time_s(limit) if limit else None
    text = f"{limit} ({duration(seconds)})" if seconds is not None else limit
    text = f"at most {text}" if text else "as long as the partition lets it"
    another = "another follows" if plan.script else "the training goes on in another"
    goes_on = another if plan.requeue.enabled else "no other follows"
    return f"{text}, each job; {goes_on}"


def _saves(plan: Plan) -> str:
    if plan.script and plan.script.resume_when:
        return f"by the script, as {plan.script.resume_when}"
    of_trainer = "of a Lightning Trainer " if plan.script else ""
    by_script = "; other loops save by themselves" if plan.script else ""
    return f"{of_trainer}{_every(plan)}{by_script}"


def _every(plan: Plan) -> str:
    saving = plan.checkpoint
    given = ((saving.every_n_steps, "steps"), (saving.every_n_minutes, "minutes"))
    every = " or ".join(f"{number:g} {unit}" for number, unit in given if number)
    return f"every {every}, and when it is stopped" if every else "when it is stopped"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s'[: number != 1]}"
