"""`snapshot: git` at a submission: paths of the config, what is copied, and a newer copy."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from hpc_train.config.load import LoadedConfig, load
from hpc_train.config.schema import Config
from hpc_train.errors import ConfigError, HpcTrainError
from hpc_train.plan.container import is_file
from hpc_train.plan.plan import Plan
from hpc_train.runs import snapshot
from hpc_train.runs.atomic import write_text
from hpc_train.runs.layout import RunDir
from hpc_train.runs.provenance import code_files, code_state, packages_of, read_state
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.snapshot import Selection


def settle_paths(config: Config, workdir: Path) -> None:
    """What is named from the project stays found from a copy of it; changed in place.

    Runs and a virtual environment stay where they are; a script is that of the copy.
    """
    if config.snapshot.mode == "none":
        return
    for section, key in ((config, "runs_dir"), (config.env, "venv")):
        path = getattr(section, key)
        if path and not path.startswith("~"):
            setattr(section, key, str(workdir / path))
    box = config.container
    box.mounts = [str(workdir / Path(mount).expanduser()) for mount in box.mounts]
    if box.image and is_file(box):
        box.image = str(workdir / Path(box.image).expanduser())
    if config.script.path and Path(config.script.path).is_absolute():
        folder, name = os.path.split(config.script.path)
        config.script.path = os.path.relpath(Path(folder).resolve() / name, workdir.resolve())


def code_for(loaded: LoadedConfig, plan: Plan, workdir: Path, runs_dir: Path) -> Selection | None:
    """What is to be copied for a new run; None where it runs in the project itself.

    Raises:
        ConfigError: it cannot be copied, or what the config names would not be in it.
    """
    wanted = loaded.config.snapshot
    if wanted.mode == "none":
        return None
    selection = snapshot.select(wanted, workdir, runs_dir, loaded.origins)
    top = f"{selection.prefix}/" if selection.prefix else ""
    for name in _own_files(plan):
        inside = os.path.normpath(f"{top}{name}")
        if (workdir / name).exists() and inside not in selection.names:
            raise ConfigError(
                f"snapshot: git does not track {name}, so that a copy would lack it",
                f"git add {name}, or snapshot.untracked=true",
            )
    return selection


def _own_files(plan: Plan) -> list[str]:
    if plan.script is not None:
        return [plan.script.path]
    modules = sorted(packages_of(plan))
    return [name for module in modules for name in (f"{module}.py", f"{module}/__init__.py")]


def select_again(run: RunDir) -> Selection:
    """What a newer copy of the run's project would hold.

    Raises:
        HpcTrainError: the run has no copy of its own.
        ConfigError: see `snapshot.select`.
    """
    plan = read_plan(run)
    copy = snapshot.copy_at(Path(plan.workdir))
    if copy is None:
        raise HpcTrainError(
            f"{run.name} ({run.run_id}) runs in {plan.workdir} itself, without a snapshot",
            "leave --new-snapshot out: it takes the code as it is now",
        )
    if copy.run != run.path:
        raise HpcTrainError(
            f"{run.name} ({run.run_id}) shares the snapshot of {copy.run.name}",
            "submit the training anew for newer code",
        )
    loaded = load(run.config)
    found = code_for(loaded, plan, copy.original, Path(plan.runs_dir))
    if found is None:
        raise ConfigError("the run's config says snapshot: none", "resume RUN snapshot=git")
    return found


@contextlib.contextmanager
def renewed_copy(run: RunDir, selection: Selection) -> Iterator[None]:
    """Put it in the place of the run's copy, and of the record of its code."""
    plan = read_plan(run)
    before = run.environment.read_text(encoding="utf-8")
    state = {
        **code_state(Path(selection.project) / selection.prefix, packages_of(plan)),
        "config": read_state(run).get("config"),
    }
    with snapshot.renewed(selection, run.path, time.strftime("%Y%m%d-%H%M%S")):
        for name, text in code_files(state).items():
            write_text(run.path / name, text)
        try:
            yield
        except BaseException:
            write_text(run.environment, before)
            raise
