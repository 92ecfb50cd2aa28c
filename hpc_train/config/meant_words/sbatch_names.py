"""The options of sbatch, and which of them hpc-train sets by keys of its own. Data."""

from __future__ import annotations

from collections.abc import Mapping

from hpc_train.config.keys import MEMORY_KEYS

# sbatch(1) of Slurm 22.05, and what 23.02 to 25.05 added. A site's SPANK plugins add their own, so
# a name that is not here is refused only when it looks like a slip of one that is.
KNOWN = frozenset(
    """
    account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment
    consolidate-segments constraint container container-id contiguous core-spec cores-per-socket
    cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency error exclude exclusive
    export export-file extra extra-node-info get-user-env gid gpu-bind gpu-freq gpus gpus-per-node
    gpus-per-socket gpus-per-task gres gres-flags help hint hold ignore-pbs input job-name
    kill-on-invalid-dep licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu
    mem-per-gpu mincpus network nice no-kill no-requeue nodefile nodelist nodes ntasks
    ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket oom-kill-step open-mode
    output overcommit oversubscribe parsable partition power prefer priority profile propagate qos
    quiet reboot requeue reservation resv-ports segment signal sockets-per-node spread-job stepmgr
    switches test-only thread-spec threads-per-core time time-min tmp tres-bind tres-per-task uid
    usage use-min-nodes verbose version wait wait-all-nodes wait-for-children wckey wrap
    """.split()  # noqa: SIM905 - a hundred words read better as words
)
# Keys of the config's `slurm` that are options of sbatch, with their value as it is.
PASSED_ON = (
    *("account", "partition", "qos", "constraint", "nodelist", "exclude", "reservation"),
    *("licenses", "dependency", "begin", "comment", "mail_user", "mail_type"),
)
_SHAPE = "it follows from slurm.nodes and slurm.gpus_per_node (--nodes, --gpus)"
_HELD = (
    "leave it out; scontrol hold JOB holds what is submitted, scontrol release JOB lets it begin,"
    " and slurm.begin=16:00 has it wait until then"
)
_OUTPUT = {  # what sbatch prints, or reads, and whose job it is
    "parsable": "leave it out: hpc-train submit CFG --json prints the job's number as job_id;"
    " to wait for the run: hpc-train submit NEXT --after RUN",
    "quiet": "leave it out: hpc-train submit CFG > /dev/null prints nothing but what is wrong",
    "verbose": "leave it out: hpc-train submit CFG --dry-run -v shows all that sbatch is given",
    "help": "see hpc-train submit --help, or sbatch --help",
    "usage": "see hpc-train submit --help, or sbatch --usage",
    "version": "see hpc-train --version, or sbatch --version",
    "clusters": "leave it out, and type export SLURM_CLUSTERS=NAME, for submit and for status",
    "input": "leave it out: a rank reads nothing but its files",
    "nodefile": "write slurm.nodelist",
    "wrap": "write the command into a script: hpc-train submit SCRIPT",
    **dict.fromkeys(("uid", "gid"), "leave it out: a job is of the user who submits it"),
}
# sbatch(1), --exclusive[={user|mcs|topo}]: who else may be on the nodes; topo is of newer ones.
EXCLUSIVE = ("user", "mcs", "topo")
OWNED: Mapping[str, str] = {
    **{
        name.replace("_", "-"): f"write slurm.{name}"
        for name in ("nodes", "time", "exclusive", *MEMORY_KEYS, *PASSED_ON)
    },
    "job-name": "write name",
    "cpus-per-task": "write slurm.cpus_per_gpu",
    "cpus-per-gpu": "write slurm.cpus_per_gpu",
    **dict.fromkeys(
        (
            *("ntasks", "ntasks-per-node", "ntasks-per-gpu", "ntasks-per-core"),
            *("ntasks-per-socket", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task"),
            "tres-per-task",
        ),
        _SHAPE,
    ),
    "signal": "write slurm.signal_lead_s",
    "requeue": "write requeue.enabled: true",
    "no-requeue": "write requeue.enabled: false",
    "export": "list names in env.passthrough, values in env.variables",
    "export-file": "write env.variables",
    "output": "logs are in the run directory: `hpc-train logs RUN`",
    "error": "logs are in the run directory: `hpc-train logs RUN`",
    "open-mode": "logs are in the run directory, and a requeue appends to them",
    "array": "write sweep: {KEY: [VALUES]}, or --sweep KEY=VALUES: it makes a job array",
    "chdir": "submit from the folder where the job should start",
    **_OUTPUT,
    "hold": _HELD,
    "test-only": "hpc-train submit --test-only asks whether and when it would start",
    "wait": "hpc-train submit --wait stays until its end",
}
# sbatch(1) and srun(1), short forms.
SHORT: Mapping[str, str] = {
    "N": "nodes",
    "n": "ntasks",
    "c": "cpus-per-task",
    "t": "time",
    "p": "partition",
    "A": "account",
    "J": "job-name",
    "q": "qos",
    "G": "gpus",
    "w": "nodelist",
    "x": "exclude",
    "C": "constraint",
    "o": "output",
    "e": "error",
    "D": "chdir",
    "d": "dependency",
    "L": "licenses",
    "a": "array",
    "H": "hold",
    "W": "wait",
    "b": "begin",
    "i": "input",
    "s": "oversubscribe",
    "Q": "quiet",
    "v": "verbose",
}
SWITCHES = frozenset(
    (
        *("exclusive", "requeue", "no-requeue", "hold", "parsable", "contiguous", "overcommit"),
        *("oversubscribe", "quiet", "verbose", "wait", "test-only", "spread-job", "no-kill"),
        *("use-min-nodes", "reboot", "ignore-pbs", "label", "unbuffered", "pty", "overlap"),
    )
)
