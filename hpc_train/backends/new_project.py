"""A small project that runs, with what Slurm or this machine says of itself in its config."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from hpc_train.config.assets import project_template_dir
from hpc_train.errors import ConfigError, SlurmError, UsageError
from hpc_train.plan.quoting import slug
from hpc_train.plan.units import slurm_time, time_s
from hpc_train.preflight.inventory.gpus import load_nvml, read_gpus
from hpc_train.slurm.command import is_available
from hpc_train.slurm.site import OpenPartition, open_partitions

SLURM_LIMIT_S = 3.0
TIME_S = 1800
RANKS_ON_CPUS = 2
_ENDING = ".template"  # so that no tool takes the files for ours


@dataclass(frozen=True, kw_only=True)
class ProjectShape:
    """What the config asks for, and how that was found out."""

    found: str
    gpus: int = 0  # a node; 0 trains on CPUs
    partition: str = ""
    time_s: int = TIME_S

    @property
    def accelerator(self) -> str:
        """As the Trainer is told."""
        return "gpu" if self.gpus else "cpu"

    def slurm_lines(self) -> str:
        """The section `slurm` of the config."""
        what = "GPUs a node" if self.gpus else "ranks a node, on CPUs"
        partition = (
            f"partition: {json.dumps(self.partition)}" if self.partition else "# partition: gpu"
        )
        lines = [
            f"# {self.found}",
            "nodes: 1",
            f"gpus_per_node: {self.gpus or RANKS_ON_CPUS} # {what}",
            partition,
            f'time: "{slurm_time(self.time_s)}" # in quotes; a run goes on over several jobs',
            "# account: my-project",
        ]
        return "\n".join(f"  {line}" for line in lines)


def new_project(folder: Path, shape: ProjectShape) -> list[Path]:
    """Write the project into an empty folder, which is made if need be.

    Raises:
        UsageError: the folder is not empty (a `.git` does not count), or is a file.
        ConfigError: it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in folder.iterdir() if path.name != ".git")
        if there:
            raise UsageError(
                f"{folder} is not empty: {', '.join(there[:3])}{', ...' * (len(there) > 3)}",
                _instead(folder, there),
            )
        return [_write(path, folder, shape) for path in sorted(project_template_dir().iterdir())]
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"{error.filename} is a file", "name a new folder") from error
    except OSError as error:
        raise ConfigError(
            f"cannot write {error.filename}: {error.strerror}", "name a folder of yours"
        ) from error


def _instead(folder: Path, there: list[str]) -> str:
    """What to do where the folder is somebody's project."""
    new = "name a new folder: hpc-train init my-training"
    if not any(it.endswith(".py") or (folder / it).is_dir() for it in there):
        return new
    files = (it for below in (folder, folder / "configs") for it in sorted(below.glob("*.y*ml")))
    if found := next((it for it in files if _is_config(it)), None):
        return f"this project has a config: hpc-train run {shlex.quote(str(found))}; else {new}"
    return f"{new}; a project of your own needs a config alone, such as the config.yaml in there"


def _is_config(file: Path) -> bool:
    text = file.read_text("utf-8", "replace")
    return re.search(r"^(?:model|script|base|defaults):", text, re.MULTILINE) is not None


def _write(path: Path, folder: Path, shape: ProjectShape) -> Path:
    text = path.read_text(encoding="utf-8")
    if path.name == f"config.yaml{_ENDING}":
        name = slug(folder.resolve().name) or "training"
        text = Template(text).substitute(
            name=json.dumps(name), accelerator=shape.accelerator, slurm=shape.slurm_lines()
        )
    made = folder / path.name.removesuffix(_ENDING)
    made.write_text(text, encoding="utf-8")
    return made


def shape_here(environ: Mapping[str, str]) -> ProjectShape:
    """What Slurm says within 3 s, else what this machine has."""
    why = "no Slurm here"
    if is_available("sinfo"):
        try:
            partitions = open_partitions(SLURM_LIMIT_S)
        except SlurmError as error:
            why = f"Slurm did not answer ({error.message})"
        else:
            if partitions:
                return choose_shape(partitions)
            why = "Slurm shows no partition that is up"
    nvml, _ = load_nvml()
    gpus = 0 if nvml is None else len(read_gpus(nvml, environ))
    has = f"has {gpus} GPUs" if gpus else "has no GPU"
    return ProjectShape(found=f"{why}; this machine {has}", gpus=gpus)


def choose_shape(partitions: list[OpenPartition]) -> ProjectShape:
    """The default partition, but one with GPUs before one without. Pure."""
    best = max(partitions, key=lambda part: (part.gpus_per_node > 0, part.is_default))
    most_s = time_s(best.max_time) if best.max_time not in ("infinite", "n/a") else None
    default = ", Slurm's default" if best.is_default else ""
    has = f"{best.gpus_per_node} GPUs a node" if best.gpus_per_node else "no GPUs"
    return ProjectShape(
        found=f"partition {best.name}{default}: {has}, jobs of up to {best.max_time}",
        gpus=best.gpus_per_node,
        partition=best.name,
        time_s=min(TIME_S, most_s or TIME_S),
    )
