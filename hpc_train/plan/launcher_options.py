"""The options and variables with which tutorials start a training, and what each becomes. Data.

Sources: torch.distributed.run's parser (torch 2.13; a test compares), accelerate's launch command
(1.15), deepspeed's runner, sbatch(1), srun(1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class OptionRule:
    """What an option becomes.

    `number`: the quantity `to` (`nodes`, `ranks` a node, `all_ranks`, `machines` are nodes);
    `key`: the config key `to`; `variable`: an environment variable `to` of the ranks; `drop`: not
    needed, `why` says so; `refuse`: there is no equivalent, `why` says what to do.
    """

    does: Literal["number", "key", "variable", "drop", "refuse"]
    to: str = ""
    why: str = ""
    is_switch: bool = False  # takes no value


def _drop(names: Iterable[str], why: str, *, switch: bool = False) -> dict[str, OptionRule]:
    return dict.fromkeys(names, OptionRule("drop", why=why, is_switch=switch))


def _refuse(names: Iterable[str], why: str, *, switch: bool = False) -> dict[str, OptionRule]:
    return dict.fromkeys(names, OptionRule("refuse", why=why, is_switch=switch))


_MET = "hpc-train tells each rank its place and where to meet the others"
_LOGS = "each rank has its log: hpc-train logs RUN --rank R"
_FILE = "name a .py file: one line, runpy.run_module('package.module', run_name='__main__')"
_RANKS = "hpc-train starts each rank once; an attempt starts all of them"

TORCHRUN: Mapping[str, OptionRule] = {
    "nnodes": OptionRule("number", "nodes"),
    "nproc-per-node": OptionRule("number", "ranks"),
    **_drop(("node-rank", "master-addr", "master-port", "local-addr"), _MET),
    **_drop(("rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf"), _MET),
    **_drop(("standalone", "use-env", "virtual-local-rank"), _MET, switch=True),
    **_drop(("log-dir", "redirects", "tee", "local-ranks-filter", "logs-specs", "role"), _LOGS),
    **_drop(("duplicate-stdout-filters", "duplicate-stderr-filters", "event-log-handler"), _LOGS),
    **_drop(("start-method", "monitor-interval", "shutdown-timeout"), _RANKS),
    **_drop(("signals-to-handle",), "hpc-train stops a run at a step's end, by any signal"),
    "max-restarts": OptionRule("key", "requeue.budget", "a run goes on from its checkpoint"),
    **_refuse(("numa-binding",), "Slurm binds: slurm.extra: {gpu-bind: closest}"),
    **_refuse(("module",), _FILE, switch=True),
    **_refuse(("no-python", "run-path"), "hpc-train starts a .py file", switch=True),
}
_PLUGIN = "configure it in the script (Accelerator(...)); the launcher's variables are not set"
ACCELERATE: Mapping[str, OptionRule] = {
    "num-processes": OptionRule("number", "all_ranks"),
    "num-machines": OptionRule("number", "nodes"),
    **_drop(("machine-rank", "main-process-ip", "main-process-port"), _MET),
    **_drop(("rdzv-backend", "rdzv-conf", "main-training-function"), _MET),
    **_drop(("multi-gpu", "same-network"), _MET, switch=True),
    **_drop(("tee", "log-dir", "role"), _LOGS),
    **_drop(("quiet", "debug"), _LOGS, switch=True),
    "max-restarts": TORCHRUN["max-restarts"],
    "monitor-interval": TORCHRUN["monitor-interval"],
    "cpu": OptionRule("key", "trainer.accelerator", "cpu", is_switch=True),
    "mixed-precision": OptionRule("variable", "ACCELERATE_MIXED_PRECISION"),
    "gradient-accumulation-steps": OptionRule("variable", "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"),
    "num-cpu-threads-per-process": OptionRule("variable", "OMP_NUM_THREADS"),
    "dynamo-backend": OptionRule("variable", "ACCELERATE_DYNAMO_BACKEND"),
    "gpu-ids": OptionRule("number", "devices"),
    **_refuse(
        ("config-file",),
        "is not there, or no config of accelerate: give its values as options",
    ),
    **_refuse(("module",), _FILE, switch=True),
    **_refuse(("no-python",), "hpc-train starts a .py file", switch=True),
    **_refuse(("tpu",), "hpc-train trains on GPUs and CPUs", switch=True),
    **_refuse(("use-deepspeed", "use-fsdp", "use-megatron-lm"), _PLUGIN, switch=True),
    **_refuse(("use-parallelism-config", "enable-cpu-affinity"), _PLUGIN, switch=True),
}
DEEPSPEED: Mapping[str, OptionRule] = {
    "num-gpus": OptionRule("number", "ranks"),
    "num-nodes": OptionRule("number", "nodes"),
    **_drop(("master-addr", "master-port", "hostfile", "launcher"), _MET),
    **_refuse(("include", "exclude"), "slurm.nodelist or slurm.exclude choose nodes"),
    **_refuse(("module",), _FILE, switch=True),
}
PYTHON: Mapping[str, OptionRule] = {
    **_drop(("u",), "ranks write unbuffered", switch=True),
    **_refuse(("O", "B", "I", "E", "s", "S"), "set PYTHON... in env.variables", switch=True),
    **_refuse(("W", "X"), "set PYTHONWARNINGS or PYTHON... in env.variables"),
}
_CHOSEN = "the preflight chooses it by what the nodes have; --keep-nccl keeps yours"
_SET = replace(OptionRule("drop"), why=_MET)
VARIABLES: Mapping[str, OptionRule] = {
    **dict.fromkeys(("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK"), _SET),
    **dict.fromkeys(("NODE_RANK", "GROUP_RANK", "LOCAL_WORLD_SIZE"), _SET),
    **_drop(("NCCL_IB_DISABLE", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"), _CHOSEN),
    **_drop(("NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_NET_GDR_LEVEL", "NCCL_NET"), _CHOSEN),
    "CUDA_VISIBLE_DEVICES": OptionRule("number", "devices"),
    "PYTHONUNBUFFERED": OptionRule("drop", why="ranks write unbuffered"),
}
