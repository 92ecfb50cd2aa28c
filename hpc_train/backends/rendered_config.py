"""What a rendered script keeps of its config's files, and what these say otherwise by now."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train.config.load import LoadedConfig, load
from hpc_train.plan.from_config import with_training
from hpc_train.plan.plan import Plan, RenderedFrom

if TYPE_CHECKING:
    from hpc_train.backends.compare_runs import Pairs

_SECTIONS = ("checkpoint", "requeue", "watchdog", "preflight")
_OF_PLACE = ("partition", "account", "qos", "constraint", "nodelist", "exclude", "reservation")
_OPTIONS = ("time", "mem", *_OF_PLACE)  # of sbatch, which the config has under the same names


def rendered_from(loaded: LoadedConfig, workdir: Path) -> RenderedFrom:
    """What the script keeps: names, from its folder where they lie in it, and no values."""
    names = {_name(file, workdir): digest(file) for file in loaded.files}
    return RenderedFrom(
        file=_name(loaded.files[-1], workdir), typed=loaded.origins.typed(), digests=names
    )


def _name(file: Path, workdir: Path) -> str:
    path = Path(os.path.abspath(file))  # noqa: PTH100 - `..` of a link stays
    return str(path.relative_to(workdir) if path.is_relative_to(workdir) else path)


def digest(file: Path) -> str:
    """Of its text; empty where it cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except OSError:
        return ""


def edited_files(plan: Plan) -> bool:
    """Whether a file of the config has another text now; one that is gone says nothing."""
    kept, workdir = plan.rendered_from, Path(plan.workdir)
    if kept is None or not (workdir / kept.file).is_file():
        return False
    now = {name: digest(workdir / name) for name in kept.digests}
    return any(now[name] not in ("", was) for name, was in kept.digests.items())


def changes_since_rendered(plan: Plan, kept: RenderedFrom) -> tuple[Pairs, LoadedConfig]:
    """The values of the script, and those of the file now, by key; and the file as it reads.

    Raises:
        HpcTrainError: it does not read well now.
    """
    from hpc_train.backends.compare_runs import differing, flat  # not to render

    fresh = load(Path(plan.workdir) / kept.file)
    now = with_training(plan, fresh.config, fresh.origins)
    own, others = _values(plan), _values(now)
    config = dataclasses.asdict(fresh.config)
    others |= {name: config[name] for name in _SECTIONS}
    if not plan.script:
        others["global_batch_size"] = fresh.config.global_batch_size
    for name in _OPTIONS:
        own[f"slurm.{name}"] = dict(plan.slurm.options).get(name)
        others[f"slurm.{name}"] = config["slurm"][name]
    return differing(flat(own), flat(others), _left_out(kept.typed)), fresh


def _values(plan: Plan) -> dict[str, Any]:
    document = dataclasses.asdict(plan)
    values = {**document["training"], **{name: document[name] for name in _SECTIONS}}
    if plan.script:  # it has its own model, data and batch
        return {name: it for name, it in values.items() if name not in ("model", "data")}
    return {**values, "global_batch_size": plan.batch.global_batch_size}


def _left_out(typed: list[str]) -> list[str]:
    """Keys that were typed, and those whose value they may have changed as well."""
    above = [key.rpartition(".")[0] for key in typed if key.endswith(".class_path")]
    lists = [
        ".".join(parts[:at])
        for parts in (key.split(".") for key in typed)
        for at, part in enumerate(parts)
        if part.isdigit()
    ]
    return [*typed, *above, *lists]
