"""A word typed where a run belongs that is none: a path within one, a checkpoint, `all`."""

from __future__ import annotations

from pathlib import Path

from hpc_train.config.words import WEIGHTS
from hpc_train.plan.states import RunState
from hpc_train.runs.layout import CHECKPOINT_NAME, RunDir
from hpc_train.runs.run_word import run_word


def inside_run(reference: str) -> str:
    """What to name in place of a checkpoint, a log or another part of a run; empty for others."""
    path = Path(reference).absolute()
    run = next((it for it in map(RunDir, path.parents) if it.plan.is_file()), None)
    if run is None or not path.exists():
        return ""
    word = run_word(run.path)
    if CHECKPOINT_NAME.match(path.name) or path.suffix in WEIGHTS:
        return (
            f"that is a checkpoint of {run.name}: write its run, {word}; a run goes on from its"
            f" newest, hpc-train test {word} --ckpt {path} takes this one, and a new run begins"
            f" with it by init_from={path}"
        )
    reads = f"; hpc-train diagnose {reference} reads a log" if path.suffix == ".log" else ""
    return f"that is within a run of {run.name}: write its run, {word}{reads}"


def never_a_run(reference: str) -> str:
    """What to write for a word that is no run's by what it is itself; empty for others."""
    if reference.lower() == "all":
        return "no word means all: name each run; `hpc-train list --active` shows those to end"
    if reference in {it.value for it in RunState}:
        state = f"--state {reference}"
        shows = f"`hpc-train list {state}` shows its runs, `hpc-train rm {state}` removes them"
        return f"{reference} is a state: {shows}"
    if not reference.endswith(WEIGHTS):
        return ""
    return (
        "that names a checkpoint, and RUN is the run whose model it is: hpc-train resume RUN goes"
        f" on from its newest, hpc-train test RUN --ckpt {reference} takes this one, and a new run"
        f" begins with it by init_from={reference}"
    )
