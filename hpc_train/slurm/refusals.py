"""What Slurm's refusals mean for somebody who wrote a config: the key to change, and to what.

The texts are those of slurm_strerror (slurm/slurm_errno.h) and of sbatch's own option parser.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from hpc_train.config.schema import SlurmConfig
from hpc_train.errors import SlurmError
from hpc_train.plan.sbatch_options import FORMS
from hpc_train.slurm.inherit import for_new_job
from hpc_train.slurm.what_there_is import name_for_refused


@dataclass(frozen=True)
class Refusal:
    """A pattern in sbatch's words, the config key behind it, and what to do."""

    pattern: str
    key: str
    fix: str


_SHORTER = "a run may need several jobs and goes on by itself, so a shorter time works too"
UNAVAILABLE = "Requested node configuration is not available"
REFUSALS = (
    Refusal(
        "Invalid partition name", "slurm.partition (--partition)", "`sinfo -s` lists the partitions"
    ),
    Refusal(
        "Invalid account or account/partition",
        "slurm.account (--account)",
        "`sacctmgr show associations user=$USER format=account,partition,qos` lists yours",
    ),
    Refusal(
        "Invalid qos specification",
        "slurm.qos",
        "`sacctmgr show associations user=$USER format=account,qos` lists yours",
    ),
    Refusal(
        r"Requested time limit is invalid|[Tt]ime limit specification|Invalid --time",
        "slurm.time",
        f"`sinfo -o '%P %l'` shows each partition's longest time; {_SHORTER}",
    ),
    Refusal(
        r"Memory specification can not be satisfied|Invalid memory|--mem",
        "slurm.mem, slurm.mem_per_gpu or slurm.mem_per_cpu",
        "give one of the three, with a unit (64G); `sinfo -N -o '%N %m'` shows what nodes have",
    ),
    Refusal(
        UNAVAILABLE,
        "slurm.nodes, slurm.gpus_per_node, gpu_type, cpus_per_gpu, mem, constraint or exclude",
        "there are not so many nodes with all of that: `sinfo -N -o '%N %P %c %m %G %f'` shows what"
        " each node has",
    ),
    Refusal(
        r"Invalid generic resource|Invalid Trackable RESource|Invalid GRES",
        "slurm.gpus_per_node, slurm.gpu_type or slurm.extra.gres",
        "`sinfo -o '%P %G'` shows the GPUs by partition and type",
    ),
    Refusal(
        r"Invalid node name|Unable to parse.*node|unknown node",
        "slurm.nodelist or slurm.exclude",
        "`sinfo -N -o %N` lists the nodes",
    ),
    Refusal(
        "Invalid feature specification",
        "slurm.constraint",
        "`sinfo -o '%N %f'` lists the features of each node; a&b are both, a|b either of them",
    ),
    Refusal(
        "Requested reservation|reservation is invalid|Invalid reservation",
        "slurm.reservation",
        "`scontrol show reservation` lists them and who may use them",
    ),
    Refusal(
        "Required partition not available",
        "slurm.partition (--partition)",
        "it takes no jobs now; `sinfo -s` shows those that are up",
    ),
    Refusal(
        "Access denied to requested reservation",
        "slurm.reservation",
        "you may not use it: leave it out, or ask whose it is (`scontrol show reservation` has"
        " Users and Accounts)",
    ),
    Refusal("other parameter too long", "slurm.comment or slurm.extra", "write a shorter text"),
    Refusal("Invalid license", "slurm.licenses", "`scontrol show licenses` lists them"),
    Refusal(
        r"Job dependency problem|Invalid job dependency|dependency.*invalid",
        "slurm.dependency",
        "write it like afterok:12345; the job must still be known to `squeue` or `sacct`",
    ),
    Refusal(
        r"Job violates accounting/QOS policy|QOS.*Limit|MaxSubmitJob",
        "slurm.qos, slurm.account or the shape",
        "you are at a limit of your account or QOS: `sacctmgr show qos format=name,maxwall,"
        "maxtrespu,maxsubmitpu` shows them",
    ),
    Refusal(
        r"Node count specification invalid|More processors requested than permitted|"
        r"Requested partition configuration not available",
        "slurm.nodes or --nodes",
        "`sinfo -s` shows how many nodes a partition has",
    ),
    Refusal(
        r"User's group not permitted|Access/permission denied|not permitted to use this",
        "slurm.partition or slurm.account",
        "you may not use this partition: `scontrol show partition` shows who may",
    ),
    Refusal(
        r"unrecognized option|invalid option|unknown option",
        "slurm.extra",
        "`sbatch --help` lists the options of this Slurm; write them without the leading dashes",
    ),
    Refusal(
        "cannot stat file|Unable to process configuration file|ClusterName needs to be specified",
        "",
        "Slurm finds no configuration of its own: let SLURM_CONF name the site's slurm.conf, or"
        " unset it; nothing was submitted",
    ),
    Refusal(
        "Could not establish a configuration source",
        "",
        "Slurm's commands are here and no cluster is behind them: log in to a node of the cluster",
    ),
    Refusal(
        r"Insane message length|Incompatible versions of client and server",
        "",
        "what answers at the controller's address speaks another protocol (SlurmctldHost and"
        " SlurmctldPort of slurm.conf, or another version of Slurm): tell the administrators",
    ),
    Refusal(
        r"Protocol authentication error|munge",
        "",
        "munge does not run on this machine or its clock is off: tell the administrators",
    ),
)

# A limit that sbatch names beside its refusal, and what it limits; squeue(1), JOB REASON CODES.
_LIMITS = {
    r"SubmitJob": "you have as many jobs as {whose} allows, those that wait among them:"
    " `squeue --me` shows them; submit again when one has ended",
    r"Wall": f"change slurm.time: it is longer than {{whose}} allows; {_SHORTER}",
    r"GRES|Gres": "change slurm.gpus_per_node or slurm.nodes (--gpus, --nodes): {whose} allows"
    " other numbers of GPUs",
    r"Node": "change slurm.nodes (--nodes): {whose} allows other numbers of nodes",
    r"CPU|Cpu": "change slurm.cpus_per_gpu or the shape: {whose} allows other numbers of CPUs",
    r"Mem": "change slurm.mem, slurm.mem_per_gpu or slurm.mem_per_cpu: {whose} allows less",
}
QOS_SHOWN = "sacctmgr show qos format=name,maxwall,maxtres%40,maxtrespu%40,maxsubmitpu"
ACCOUNT_SHOWN = (
    "sacctmgr show associations user=$USER format=account,maxwall,maxtres%40,grptres%40,maxsubmit"
)
_WHOSE_LIMIT = {
    "QOS": ("your QOS (slurm.qos)", QOS_SHOWN),
    "Assoc": ("your account (slurm.account)", ACCOUNT_SHOWN),
}

_NOBODY_THERE = re.compile(
    r"Unable to contact slurm controller|Unable to contact controller|Connection refused|"
    r"Zero Bytes were transmitted"
)


def no_controller(words: str) -> SlurmError:
    """Nobody was there to take the job."""
    hint = "nothing was submitted; once `scontrol ping` says UP, the same again"
    return SlurmError(f"Slurm does not answer: {words}", hint)


def refusal_error(stderr: str, options: Mapping[str, str | None] | None = None) -> SlurmError:
    """Slurm's own words, and where we know it the key to change.

    Args:
        stderr: sbatch's words.
        options: sbatch's long options by name; a name among them that Slurm does not know is told
            with those that it has, for which Slurm is asked.
    """
    words = _own_words(stderr)
    if _NOBODY_THERE.search(stderr):
        return no_controller(words)
    used = for_new_job(os.environ, options or {})
    shell = ", ".join(name for name in used if name.startswith("SBATCH_"))
    also = f"; your shell sets {shell}" if shell else ""
    if limit := _limit(stderr):
        return SlurmError(f"Slurm refused the job: {words}", limit + also)
    if options and (names := name_for_refused(stderr, options)):
        return SlurmError(f"Slurm refused the job: {words}", names + also)
    for refusal in REFUSALS:
        if re.search(refusal.pattern, stderr):
            hint = f"change {refusal.key}: {refusal.fix}" if refusal.key else refusal.fix
            return SlurmError(f"Slurm refused the job: {words}", hint + also)
    hint = "nothing was submitted: change the key of slurm, or of slurm.extra, that is named"
    if option := re.search(r"(?:Invalid|value).* ?--([a-z][\w-]+)", stderr):  # sbatch's own parser
        key = option[1].replace("-", "_")
        own = key in {field.name for field in dataclasses.fields(SlurmConfig)}
        name = f"slurm.{key}" if own else f"slurm.extra.{option[1]}"
        said = f"`man sbatch` says how --{option[1]} is written"
        hint = f"change {name}: {FORMS[key][1] if key in FORMS else said}"
    return SlurmError(f"Slurm refused the job: {words}", hint + also)


def _limit(stderr: str) -> str:
    """What to change where sbatch names a limit that the job is beyond; else empty."""
    if found := re.search(r"\b(QOS|Assoc)(?:Max|Grp|Min)\w+", stderr):
        whose, shows = _WHOSE_LIMIT[found[1]]
        if meaning := first_meaning(found[0], _LIMITS):
            return f"{meaning.format(whose=whose)}; `{shows}` shows its limits"
    return ""


def first_meaning(reason: str, table: Mapping[str, str]) -> str:
    """The text of the first of these patterns that is in Slurm's word; empty where none is."""
    return next((text for pattern, text in table.items() if re.search(pattern, reason)), "")


def _own_words(stderr: str) -> str:
    lines = [
        re.sub(r"^(sbatch|scontrol|srun|salloc): (error: )?", "", line).strip()
        for line in stderr.splitlines()
        if line.strip() and not line.startswith(("sbatch: lua", "sbatch: info"))
    ]
    unique = dict.fromkeys(
        line.removeprefix("Batch job submission failed: ") for line in lines if line
    )
    return "; ".join(unique) or "without a word"
