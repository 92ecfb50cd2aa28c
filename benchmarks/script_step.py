"""Step time of a script under hpc-train, and started bare: DDP by hand, Lightning, Hugging Face.

    python -m benchmarks script_step

Both sides run at once, two ranks each, and step in turn, a block of steps each time: so a busy
machine slows both alike. The script is the same, `benchmarks/stepping.py`.
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
BLOCKS = int(os.environ.get("HPC_TRAIN_BENCH_PAIRS", "40"))
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
            pairs = _pairs(places, kind)
            ratio = median(bare / ours for ours, bare in pairs)
            yield Row(
                what=f"steps/s, {name}, 2 ranks : bare (load {os.getloadavg()[0]:.0f})",
                ours=f"{1000 * median(ours for ours, _ in pairs):.2f} ms",
                peer=f"{1000 * median(bare for _, bare in pairs):.2f} ms",
                ratio=f"{ratio:.3f}",
                target=f">= {AT_LEAST}",
                ok=ratio >= AT_LEAST,
            )


def _pairs(places: Places, kind: str) -> list[tuple[float, float]]:
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
        torchrun += ["--nproc-per-node=2", *words, "bare"]
        commands = ([*run, *options, "--", *words[1:], "ours"], torchrun)
        _run_both(commands, environment, folder)
        ours, bare = (json.loads(times_file(folder, side).read_text()) for side in SIDES)
    return [(a / STEPS, b / STEPS) for a, b in zip(ours[1:], bare[1:], strict=True)]


def _run_both(
    commands: Sequence[Sequence[str]], environment: Mapping[str, str], folder: Path
) -> None:
    """To their end; where one fails the other one would wait for its turn."""
    logs = [folder / f"{side}.log" for side in SIDES]
    started = []
    for command, log in zip(commands, logs, strict=True):
        with log.open("wb") as said:
            started.append(
                subprocess.Popen(command, env=environment, cwd=folder, stdout=said, stderr=said)
            )
    deadline = time.monotonic() + LIMIT_S
    try:
        while None in (codes := [process.poll() for process in started]) and not any(codes):
            if time.monotonic() > deadline:
                break
            time.sleep(0.2)
    finally:
        for process in started:
            process.terminate()
            process.wait()
    if codes != [0, 0]:
        raise BenchError("\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in logs))
