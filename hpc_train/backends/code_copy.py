"""`snapshot: git` at a submission: paths of the config, what is copied, and a newer copy."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.load import LoadedConfig, load
from hpc_train.config.python_text.imported_files import imported_files
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

MOST_SHOWN = 5


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


def code_for(
    loaded: LoadedConfig, workdir: Path, runs_dir: Path, configs: Sequence[Config] = ()
) -> Selection | None:
    """What is to be copied for a new run; None where it runs in the project itself.

    Args:
        configs: Of the points, where the run is a sweep.

    Raises:
        ConfigError: it cannot be copied, or what the ranks import would not be in it.
    """
    wanted = loaded.config.snapshot
    if wanted.mode == "none":
        return None
    selection = snapshot.select(wanted, workdir, runs_dir, loaded.origins)
    project = Path(selection.project)
    files = imported_files(configs or [loaded.config], workdir.resolve(), project)
    names = [str(it.relative_to(project)) for it in files if it.is_relative_to(project)]
    copied = {*selection.names}
    linked = tuple(f"{name}/" for name in selection.links)
    missing = [it for it in names if it not in copied and not it.startswith(linked)]
    if not missing:
        return selection
    shown = [os.path.relpath(project / name, workdir.resolve()) for name in missing[:MOST_SHOWN]]
    more = f" and {len(missing) - MOST_SHOWN} more" if missing[MOST_SHOWN:] else ""
    add = shlex.join(["git", "add", *(["-f"] if wanted.untracked else []), *shown])
    raise ConfigError(
        f"snapshot: git does not track {', '.join(shown)}{more}, so that a copy would lack it",
        add if wanted.untracked else f"{add}, or snapshot.untracked=true",
    )


def select_again(run: RunDir, plan: Plan) -> Selection:
    """What a newer copy of the run's project would hold, by its plan.

    Raises:
        HpcTrainError: the run has no copy of its own.
        ConfigError: see `snapshot.select`.
    """
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
    found = code_for(loaded, copy.original, Path(plan.runs_dir))
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
