"""The long options of sbatch that exist, and the keys by which hpc-train sets some of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hpc_train.config.keys import MEMORY_KEYS
from hpc_train.config.origins import NOWHERE, Origins
from hpc_train.config.words import did_you_mean

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
_WORDS = "now|today|tomorrow|midnight|noon|elevenses|fika|teatime|[ap]m|uts"
_MAILS = "NONE|BEGIN|END|FAIL|REQUEUE|ALL|INVALID_DEPEND|STAGE_OUT|TIME_LIMIT(_[589]0)?|ARRAY_TASKS"
_AFTER = r"(after\w*(:\d+([_+](\d+|\*))*)+|singleton|\d+)"
_BEGIN = rf"(?=.*\w)([-\d:/.+\sT]|{_WORDS}|(second|minute|hour|day|week)s?)+"
# Keys whose form sbatch(1) fixes: a pattern, and how to write them.
FORMS: Mapping[str, tuple[str, str]] = {
    "begin": (_BEGIN, "write it like now+1hour or 2026-11-30T08:00"),
    "dependency": (rf"{_AFTER}([,?]{_AFTER})*", "write it like afterok:12345, or --after RUN"),
    "mail_type": (rf"({_MAILS})(,({_MAILS}))*", "write END,FAIL; others: BEGIN, REQUEUE, ALL"),
    "mail_user": (r"\S+", "write one address"),
    "gpu_type": (r"[\w.-]+", "write the type alone: a100; how many is slurm.gpus_per_node"),
    **dict.fromkeys(
        ("partition", "nodelist", "exclude", "licenses", "qos", "account", "reservation"),
        (r"\S+", "write it without spaces: a,b"),
    ),
}
_SHAPE = "it follows from slurm.nodes and slurm.gpus_per_node (--nodes, --gpus)"
_COMMAND = "it is the command's business: see `hpc-train submit --help`"
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
    **dict.fromkeys(
        (
            *("clusters", "help", "hold", "input", "nodefile", "parsable", "quiet"),
            *("test-only", "usage", "verbose", "version", "wait", "wrap", "uid", "gid"),
        ),
        _COMMAND,
    ),
}
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z", re.ASCII)


def extra_options(
    extra: Mapping[str, object], origins: Origins = NOWHERE
) -> list[tuple[str, str | None]]:
    """The options of `slurm.extra`: `{nice: 100, contiguous: true}`; false leaves one out.

    Raises:
        ConfigError: for a name that cannot be one, that hpc-train sets itself, or that is one
            letter away from an option of sbatch; and for a value that is a list or a mapping.
    """
    options: list[tuple[str, str | None]] = []
    for key, value in extra.items():
        name = _option_name(key, origins)
        if isinstance(value, (list, dict)):
            raise origins.error(
                f"slurm.extra.{key}",
                f"is a {type(value).__name__}, and sbatch takes one value",
                "write the value as sbatch takes it, as one text",
            )
        if value is True or value is None:
            options.append((name, None))
        elif value is not False:
            options.append((name, str(value)))
    return options


def _option_name(key: str, origins: Origins) -> str:
    full = f"slurm.extra.{key}"
    name = key.lstrip("-").replace("_", "-")
    if _NAME.match(name) is None:
        raise origins.error(
            full,
            "cannot be the name of an option of sbatch",
            "write the long name without dashes in front: {nice: 100}",
        )
    if name in OWNED:
        raise origins.error(full, f": hpc-train sets --{name} itself", OWNED[name])
    if name not in KNOWN:
        meant = did_you_mean(name, KNOWN)
        if meant:
            raise origins.error(full, f": sbatch has no --{name}", meant)
    return name
