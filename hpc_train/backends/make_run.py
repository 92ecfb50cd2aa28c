"""A new run's directory, with everything that its submission needs."""

from __future__ import annotations

import os
import time
from pathlib import Path

from hpc_train.backends.check_environment import check_environment, check_image
from hpc_train.backends.code_copy import code_for
from hpc_train.backends.look_at_hosts import look_at_hosts
from hpc_train.backends.started_by import refuse_several
from hpc_train.config.load import LoadedConfig
from hpc_train.config.show import to_yaml
from hpc_train.plan.plan import Plan
from hpc_train.plan.quoting import slug
from hpc_train.plan.script import render_script
from hpc_train.runs.layout import RunDir
from hpc_train.runs.provenance import code_files, code_state, packages_of
from hpc_train.runs.registry import (
    absent_folders,
    create_run,
    new_run_id,
    remove_run,
    unwritable,
)
from hpc_train.runs.snapshot import take


def make_run(
    loaded: LoadedConfig, portable: Plan, workdir: Path, held: Path | None = None
) -> RunDir:
    """Make it with config, plan and script; nothing is submitted.

    Args:
        portable: The plan with its folders relative to `workdir`.
        held: A folder with links to the plan's weights, which becomes the run's.

    Raises:
        ConfigError: when `env` cannot be had, or `runs_dir` cannot be written.
        CheckError: when a host cannot begin, or a launcher has started this several times.
    """
    from concurrent.futures import ThreadPoolExecutor

    if not portable.hosts:  # machines that are joined by hand may be started by any launcher
        refuse_several(os.environ)
    check_environment(loaded.config.env, workdir, os.environ, loaded.origins)
    check_image(loaded.config.container, workdir, loaded.origins)
    look_at_hosts(portable, workdir)
    runs = workdir / Path(portable.runs_dir).expanduser()
    folder, run_id = slug(portable.name), new_run_id(time.time())
    run = RunDir(runs / folder / run_id)
    code = code_for(loaded, workdir, runs)
    decided = portable.placed(str(code.workdir_in(run.path) if code else workdir), str(runs))
    with ThreadPoolExecutor(max_workers=1) as beside:  # git answers meanwhile
        state = beside.submit(code_state, workdir, packages_of(decided))
        files = {
            run.config.name: to_yaml(loaded.config),
            run.script.name: render_script(portable, run_dir=str(run.path)),
            **code_files({**state.result(), "config": config_record(loaded)}),
            run.plan.name: decided.to_json(),
        }
    absent = absent_folders(run.path.parent)
    create_run(runs, folder, run_id, files)
    if code is not None:
        try:
            take(code, run.path)
        except OSError as error:
            remove_run(run, absent)
            raise unwritable(error, run.path) from error
    if held is not None:
        held.rename(run.weights)
    elif decided.weights:
        from hpc_train.backends.find_weights import hold_weights

        hold_weights(Path(decided.weights), run.weights)
    return run


def config_record(loaded: LoadedConfig) -> dict[str, object]:
    """Where the config stands that the run was submitted with, and what was typed over it."""
    return {
        "file": str(loaded.files[-1].absolute()),
        "typed": loaded.origins.typed(),
        "words": loaded.composed.words,
        "read": [str(file.absolute()) for file in loaded.files],
    }
