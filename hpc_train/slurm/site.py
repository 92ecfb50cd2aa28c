"""How a site has set up its Slurm, by questions that are bounded in time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hpc_train.errors import SlurmError
from hpc_train.slurm.command import run


@dataclass(frozen=True)
class SlurmSite:
    """Names and values as scontrol(1) shows them."""

    config: Mapping[str, str]  # of `show config`
    partitions: Sequence[Mapping[str, str]]  # of `show partition`


def ask_site(limit_s: float) -> SlurmSite:
    """Ask the controller.

    Raises:
        SlurmError: Slurm is not here, refuses, or is silent for `limit_s`.
    """
    questions = (["scontrol", "show", "config"], ["scontrol", "show", "partition", "-o"])
    with ThreadPoolExecutor(max_workers=len(questions)) as pool:
        answers = [pool.submit(run, argv, timeout_s=limit_s) for argv in questions]
        config, partitions = [answer.result() for answer in answers]
    for said in (config, partitions):
        if said.returncode != 0:
            raise SlurmError(f"scontrol: {said.stderr.strip() or 'gave no reason'}")
    return SlurmSite(
        dict(re.findall(r"^(\w+)\s*= (.*?)\s*$", config.stdout, re.MULTILINE)),
        [dict(re.findall(r"(\w+)=(\S*)", line)) for line in partitions.stdout.splitlines()],
    )


def chosen_cluster(environ: Mapping[str, str]) -> str:
    """The cluster that Slurm's commands talk to by SLURM_CLUSTERS; empty for this machine's own."""
    return environ.get("SLURM_CLUSTERS", "")


def check_one_cluster(environ: Mapping[str, str]) -> None:
    """Refuse a submission to a cluster that squeue and scancel would not be asking here.

    Raises:
        SlurmError: naming the variable.
    """
    cluster = chosen_cluster(environ)
    only_sent = environ.get("SBATCH_CLUSTERS", cluster)
    if only_sent != cluster:
        raise SlurmError(
            f"SBATCH_CLUSTERS={only_sent} sends the job to another cluster than the one that squeue"
            " and scancel talk to here",
            f"unset it, and set SLURM_CLUSTERS={only_sent}, here and wherever you look at the run",
        )
    if "," in cluster or cluster == "all":
        raise SlurmError(
            f"SLURM_CLUSTERS={cluster} leaves open which cluster has the job, and ids are its own",
            "let it name one cluster, here and wherever you look at the run",
        )


def controller_down(limit_s: float) -> str:
    """The words of `scontrol ping` where no controller is up; it asks a dead one for no seconds.

    Empty where one is up, or none has answered in `limit_s`: that one may be busy.
    """
    try:
        ping = run(["scontrol", "ping"], timeout_s=limit_s)
    except SlurmError:
        return ""
    lines = [line for line in f"{ping.stdout}\n{ping.stderr}".splitlines() if line.strip("* ")]
    down = [line for line in lines if "DOWN" in line and "RESTORE" not in line]
    return [*down, *lines, "no answer"][0].strip() if ping.returncode else ""


def slurm_version() -> str:
    """Of the commands here, as they say it; empty where they say nothing. No daemon is asked."""
    try:
        return run(["sinfo", "--version"], timeout_s=5).stdout.strip()
    except SlurmError:
        return ""


@dataclass(frozen=True)
class OpenPartition:
    """A partition that is up; where its nodes differ, of the nodes with the fewest GPUs."""

    name: str
    is_default: bool
    gpus_per_node: int
    max_time: str  # in Slurm's form, or `infinite`


def open_partitions(limit_s: float) -> list[OpenPartition]:
    """The partitions that are up, by one sinfo.

    Raises:
        SlurmError: Slurm is not here, refuses, or is silent for `limit_s`.
    """
    said = run(["sinfo", "--noheader", "--format=%P|%a|%G|%l"], timeout_s=limit_s)
    if said.returncode != 0:
        raise SlurmError((said.stderr.strip().splitlines() or ["sinfo gave no reason"])[-1])
    found: dict[str, OpenPartition] = {}
    for line in said.stdout.splitlines():
        name, state, gres, max_time = line.strip().split("|")
        # sinfo(1): a star marks the default; a GRES is gpu:4 or gpu:a100:4(S:0-1).
        gpus = sum(map(int, re.findall(r"\bgpu:(?:[^:,(]+:)?(\d+)", gres)))
        known = found.get(name)
        if state == "up" and (known is None or 0 < gpus < (known.gpus_per_node or gpus + 1)):
            found[name] = OpenPartition(name.rstrip("*"), name.endswith("*"), gpus, max_time)
    return list(found.values())
