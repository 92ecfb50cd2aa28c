"""Step time of a script under hpc-train, and started bare: DDP by hand, Lightning, Hugging Face.

    python -m benchmarks script_step

Both sides run at once, two ranks each, and step in turn, a block of steps each time: so a busy
machine slows both alike. The script is the same, `benchmarks/stepping.py`. Where its memory lies
makes a process faster or slower than its twin by some per cent for as long as it lives, so both
are started several times, and the ratio is the median of the starts'. As many starts of the bare
script against itself show what of the spread is the method's own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks.measure import BenchError, user_environment
from benchmarks.places import Places
from benchmarks.rows import Row
from benchmarks.stepping import SIDES, STEPS, times_file

AT_LEAST = 0.99
STARTS = int(os.environ.get("HPC_TRAIN_BENCH_STARTS", "7"))
BLOCKS = 12
SCRIPT = Path(__file__).with_name("stepping.py")
HUGGING_FACE = Path(sys.prefix, "hugging-face")  # see tests/hugging_face.txt
KINDS = {
    "ddp": "DDP by hand",
    "lightning": "Lightning script",
    "hugging_face": "Hugging Face's Trainer",
}
LIMIT_S = 500.0


def rows(places: Places) -> Iterator[Row]:
    """A row a kind of script."""
    for kind, name in KINDS.items():
        if kind != "hugging_face" or HUGGING_FACE.is_dir():
            ours = [_pairs(places, kind) for _ in range(STARTS)]
            null = [_pairs(places, kind, is_null=True) for _ in range(STARTS)]
            yield _row(f"steps/s, {name}, 2 ranks : bare", ours, at_least=AT_LEAST)
            yield _row(f"the same, {name}, bare : bare", null)


def _row(
    what: str, starts: list[list[tuple[float, float]]], *, at_least: float | None = None
) -> Row:
    ratios = sorted(median(bare / ours for ours, bare in pairs) for pairs in starts)
    ours, bare = zip(*[pair for pairs in starts for pair in pairs], strict=True)
    return Row(
        what=f"{what} ({ratios[0]:.3f} to {ratios[-1]:.3f})",
        ours=f"{1000 * median(ours):.2f} ms",
        peer=f"{1000 * median(bare):.2f} ms",
        ratio=f"{median(ratios):.3f}",
        target="" if at_least is None else f">= {at_least}",
        ok=None if at_least is None else median(ratios) >= at_least,
    )


def _pairs(places: Places, kind: str, *, is_null: bool = False) -> list[tuple[float, float]]:
    """Seconds a step of each block, ours and bare; the first block is not counted."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side in SIDES:
            os.mkfifo(folder / side)
        own = {"OMP_NUM_THREADS": "1", "XDG_STATE_HOME": name, "SLURM_CONF": ""}
        environment = {**user_environment(), **own, "PYTHONWARNINGS": "ignore"}
        if kind == "hugging_face":
            environment["PYTHONPATH"] = str(HUGGING_FACE)
        words = [str(SCRIPT), kind, name, str(BLOCKS + 1)]
        run = [places.python, "-m", "hpc_train.cli", "run", "--gpus", "2", words[0]]
        options = ["script.accelerator=cpu", "preflight=off", f"runs_dir={folder}/runs"]
        torchrun = [places.python, "-m", "torch.distributed.run", "--standalone"]
        torchrun += ["--nproc-per-node=2", *words]
        followed = [*torchrun, "ours"] if is_null else [*run, *options, "--", *words[1:], "ours"]
        _run_both((followed, [*torchrun, "bare"]), environment, folder)
        ours, bare = (json.loads(times_file(folder, side).read_text()) for side in SIDES)
    return [(a / STEPS, b / STEPS) for a, b in zip(ours[1:], bare[1:], strict=True)]


def _run_both(
    commands: Sequence[Sequence[str]], environment: Mapping[str, str], folder: Path
) -> None:
    """To their end; where one fails before it the other one would wait for its turn.

    gloo now and then aborts a rank that has done everything, as its peers close their connections:
    whose times are written has not failed.
    """
    logs = [folder / f"{side}.log" for side in SIDES]
    started = []
    for command, log in zip(commands, logs, strict=True):
        with log.open("wb") as said:
            started.append(
                subprocess.Popen(command, env=environment, cwd=folder, stdout=said, stderr=said)
            )
    deadline = time.monotonic() + LIMIT_S
    try:
        while None in (codes := [process.poll() for process in started]):
            failed = any(
                code and not times_file(folder, side).exists()
                for code, side in zip(codes, SIDES, strict=True)
            )
            if failed or time.monotonic() > deadline:
                break
            time.sleep(0.2)
    finally:
        for process in started:
            process.terminate()
            process.wait()
    if not all(times_file(folder, side).exists() for side in SIDES):
        told = [f"{log.name}: {log.read_text()[-1500:]}" for log in logs]
        raise BenchError("\n".join([f"exit codes {codes}", *told]))
