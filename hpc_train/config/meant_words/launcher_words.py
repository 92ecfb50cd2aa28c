"""What other launchers, in the place of `script.launcher`, are here. Data.

Each rank of a script is started with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT,
which all of these read.
"""

from __future__ import annotations

_OUT = "leave it out: "
_NO_NEED = {
    "accelerate": "an accelerate script needs no launcher",
    "deepspeed": "a script that calls deepspeed.initialize() needs no launcher",
    "mpi": "the ranks are started without MPI, and RANK and WORLD_SIZE tell each its place",
    "python": "python is started for each rank",
    "ddp": "DistributedDataParallel needs no launcher",
    "fsdp": "FSDP needs no launcher",
    "slurm": "srun starts the ranks, or what stands for it without Slurm",
    "local": "--cluster local starts the ranks on this machine",
    "lightning": "a Trainer needs no launcher",
    "fabric": "a Fabric needs no launcher",
    "hydra": "a Hydra app needs no launcher: its overrides come behind --",
    "auto": "srun is the default",
}
_CALLED = {
    **dict.fromkeys(("accelerator", "huggingface", "hf", "accelerate launch"), "accelerate"),
    **dict.fromkeys(("mpirun", "mpiexec", "openmpi", "horovod", "horovodrun"), "mpi"),
    **dict.fromkeys(("python3", "standard", "default"), "python"),
    **dict.fromkeys(("submitit", "sbatch", "salloc", "pyxis"), "slurm"),
    **dict.fromkeys(("localhost", "ssh"), "local"),
    **dict.fromkeys(("pytorch_lightning", "trainer"), "lightning"),
    **dict.fromkeys(("torch.distributed.launch", "torch.distributed.run", "elastic"), "torchrun"),
    **dict.fromkeys(("torch", "pytorch", "torch.distributed", "torchelastic"), "torchrun"),
    **dict.fromkeys(("spawn", "mp.spawn", "multiprocessing", "mp", "fork"), "none"),
    **dict.fromkeys(("off", "false", "no", "self", "own"), "none"),
}
_FIXES = {
    "torchrun": "write script.launcher=torchrun, or leave it out: a script needs none",
    "none": "write script.launcher=none, where the script starts the ranks of a node itself",
}


def launcher_hint(word: str) -> str:
    """What to write for a launcher; empty of a word that is none."""
    name = word.strip().lower().replace("-", "_")
    name = _CALLED.get(name, name)
    return _OUT + _NO_NEED[name] if name in _NO_NEED else _FIXES.get(name, "")
