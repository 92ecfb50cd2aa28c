"""What is not wrong with a submission and should be known before the job begins."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.cli.common import print_notes
from hpc_train.errors import SlurmError
from hpc_train.plan.plan import Plan
from hpc_train.plan.quoting import slug
from hpc_train.runs.layout import RunDir
from hpc_train.runs.run_word import run_word

if TYPE_CHECKING:
    from hpc_train.backends.twins import Twins
    from hpc_train.config.load import LoadedConfig
    from hpc_train.runs.sweep_dir import SweepDir


def note_submission_to(cluster: str | None, asked: LoadedConfig | Plan) -> None:
    """Say where the runs' folder is one that the nodes of a cluster do not see."""
    from hpc_train.backends.submit import detect_cluster
    from hpc_train.doctor.examine_folder import existing_parent, unseen_elsewhere

    runs_dir = asked.runs_dir if isinstance(asked, Plan) else asked.config.runs_dir
    folder = existing_parent(Path(runs_dir).expanduser())
    if (told := unseen_elsewhere(folder)) and (cluster or detect_cluster()) == "slurm":
        print_notes([f"runs_dir {told}: set runs_dir to a folder on the shared file system"])


def note_script(cluster: str | None, loaded: LoadedConfig) -> None:
    """Say what a script saves and no next job finds, and on Slurm what it reads of arrays."""
    from hpc_train.backends.submit import detect_cluster
    from hpc_train.config.scripts.own_saves import note_on_own_saves
    from hpc_train.config.scripts.unfit_resume import note_on_unfit_resume

    script = loaded.config.script.path
    if not script:
        return
    for look in (note_on_own_saves, note_on_unfit_resume):
        if said := look(loaded.config, Path.cwd()):
            print_notes([said])
    if (cluster or detect_cluster()) != "slurm":
        return
    from hpc_train.config.meant_words.launcher_variables import notes_on_array
    from hpc_train.config.python_text.script_tree import script_tree

    tree = script_tree(Path.cwd() / script)
    print_notes([*notes_on_array(script, tree)] if tree else [])


def note_variables(plan: Plan, environ: Mapping[str, str]) -> None:
    """Say which of sbatch's variables are not used, since the config has their options."""
    from hpc_train.slurm.inherit import unused_variables

    if unused := unused_variables(environ, dict(plan.slurm.options)):
        print_notes([f"{', '.join(unused)} of your shell: not used, as the config says that"])


def note_allocation(environ: Mapping[str, str]) -> None:
    """Say where the nodes of the job that one is in would stay unused."""
    if job := environ.get("SLURM_JOB_ID"):
        own = f"this is job {job}, and the training is another one"
        print_notes([f"{own}: hpc-train run CFG trains on the nodes of {job}"])


def note_cluster(words: str) -> None:
    """Of a training in the foreground, outside of any job: say where a cluster may have been meant.

    Args:
        words: The config and what was typed behind it.
    """
    from hpc_train.slurm.command import is_available, run

    try:
        answers = is_available() and run(["scontrol", "ping"], timeout_s=2).returncode == 0
    except SlurmError:
        return  # without an answer there is no cluster to send anybody to
    if answers:
        here = "this is no job of Slurm's, and trains on this machine"
        print_notes([f"{here}; for the cluster: hpc-train submit {words}"])


def note_twin(run: RunDir, *, in_foreground: bool = False) -> None:
    """Say where a run of the same name and config waits or trains already, or could go on."""
    from hpc_train.backends.twins import twins_of

    twins = twins_of(run)
    for twin in twins.is_open[:1]:
        job = f" as job {twin.job_id}" if twin.job_id else ""  # it is being submitted
        same = f"{twin.run} trains the same and is {twin.state.value}{job}"
        end = "Ctrl-C" if in_foreground else f"hpc-train cancel {run_word(run.path)}"
        print_notes([f"{same}: where one is enough, {end}"])
    _note_stopped(twins)


def note_stopped_twin(plan: Plan) -> None:
    """Of a run that is not submitted yet: say where one of its name and config could go on."""
    folder = Path(plan.runs_dir).expanduser().absolute() / slug(plan.name)
    if not folder.is_dir():
        return
    from hpc_train.backends.twins import twins_of_plan  # which reads runs, and may ask Slurm

    _note_stopped(twins_of_plan(plan, folder))


def _note_stopped(twins: Twins) -> None:
    if it := twins.stopped:
        has = f"{it.run} trained the same, has a checkpoint of step {twins.step} and"
        again = f"hpc-train resume {run_word(it.run_dir)} goes on there, this run begins anew"
        print_notes([f"{has} is {it.state.value}: {again}"])
    if shorter := twins.shorter:
        had = " and ".join(f"trainer.{key} {it}" for key, it in shorter.before.items())
        words = " ".join(f"trainer.{key}={it}" for key, it in shorter.now.items())
        longer = f"hpc-train resume {run_word(shorter.run.path)} {words} goes on there"
        same = f"{shorter.run.run_id} trained the same with {had} and {shorter.reached}"
        print_notes([f"{same}: {longer}, this run begins anew"])


def note_twin_sweep(sweep: SweepDir) -> None:
    """Say where a sweep of the same name and points waits or trains already."""
    from hpc_train.backends.twins import twin_of_sweep

    if twin := twin_of_sweep(sweep):
        same = f"{twin.sweep} trains the same points and is {twin.state.value}"
        job = f" as job array {twin.job_id}" if twin.job_id else ""  # it is being submitted
        one = f"hpc-train cancel {run_word(sweep.path)}"
        print_notes([f"{same}{job}: where one is enough, {one}"])


def note_refusal(plan: Plan, what: str = "submit would refuse it") -> bool:
    """Of a job that is not submitted yet: say what Slurm would refuse, as far as sinfo tells.

    Args:
        plan: Of the job.
        what: Would happen then.

    Returns:
        Whether there is a Slurm that was asked.
    """
    from hpc_train.backends.submit import detect_cluster
    from hpc_train.slurm.partitions import foreseen_refusal

    try:
        is_there = detect_cluster() == "slurm"
    except SlurmError:
        return False
    if is_there and (said := foreseen_refusal(dict(plan.slurm.options), plan)):
        print_notes([f"{what}: {said}"])
    return is_there


def note_torch(cluster: str | None, loaded: LoadedConfig) -> None:
    """Say where a job of Slurm's asks for GPUs, and the torch of this Python knows none."""
    from hpc_train.backends.submit import detect_cluster
    from hpc_train.config.fit.code_notes import torch_notes

    if (notes := torch_notes(loaded.config)) and (cluster or detect_cluster()) == "slurm":
        print_notes(notes)


def note_tools(cluster: str | None, loaded: LoadedConfig) -> None:
    """Say what of env only the nodes can tell, what lacks a PATH, what installs, and where it goes.

    Lines that go into another folder are said on this machine, too.
    """
    from hpc_train.backends.check_environment import (
        installing_lines,
        moving_lines,
        path_notes,
        unchecked_tools,
        unseen_sources,
    )
    from hpc_train.backends.submit import detect_cluster

    env = loaded.config.env
    is_copied = loaded.config.snapshot.mode == "git"
    print_notes(moving_lines(env.setup, Path.cwd(), os.environ, is_copied=is_copied))
    is_asked = env.modules or env.conda or env.setup or "PATH" in env.variables
    if is_asked and (cluster or detect_cluster()) == "slurm":
        notes = [*unchecked_tools(env, os.environ), *path_notes(env), *installing_lines(env.setup)]
        print_notes([*notes, *unseen_sources(env.setup, Path.cwd())])


def note_this_machine(loaded: LoadedConfig, *, is_asked: bool) -> None:
    """Of a run on this machine: that a cluster may have been meant, and what is not used then.

    Args:
        loaded: Its config.
        is_asked: Whether `--cluster local` was written.
    """
    from hpc_train.backends.submit import NAME_CLUSTER, is_configured
    from hpc_train.slurm.command import is_available

    slurm, notes = loaded.config.slurm, []
    has_commands = is_available("sbatch") and is_available("srun")
    why = "it trains on this machine"
    is_several = slurm.nodes > 1 and not is_asked and not loaded.config.hosts
    why += f", which stands for the {slurm.nodes} nodes" if is_several else ""
    if not is_asked and has_commands:
        no_cluster = "sbatch is here and no cluster behind it (SLURM_CONF is not set)"
        notes.append(f"{no_cluster}: {why}; for the cluster: {NAME_CLUSTER}, and submit again")
    only_typed = is_asked or has_commands
    keys = [
        f"slurm.{name}"
        for name in ("partition", "account", "qos")
        if (loaded.origins.is_typed(f"slurm.{name}") if only_typed else getattr(slurm, name))
    ]
    if not is_asked and not has_commands:
        why = f"sbatch is not in PATH, and {why}"
        if is_several or is_configured(os.environ):
            why += "; where `module load slurm` or the like brings it, submit again"
            notes.extend([] if keys else [why])
    if keys:
        be = "is" if len(keys) == 1 else "are"
        notes.append(f"{', '.join(keys)} {be} not used: {why}")
    print_notes(notes)
