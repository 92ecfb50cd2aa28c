"""The report of a week's run: 2 million metric points, 64 nodes of 8 GPUs sampled each 5 s."""

from __future__ import annotations

import dataclasses
import json
import random
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.measure import BenchError, compare, process
from benchmarks.places import Places
from benchmarks.rows import Row, row_of
from tests.report.made import MadeRun, gpu_line, make_run

PAIRS = 7
AT_MOST_S = 3.0
AT_MOST_BYTES = 3_000_000
STEPS = 650_000
NODES = [f"node{number:02d}" for number in range(64)]
LINES = 7 * 24 * 3600 // 5
ATTEMPTS = 14
READ = "import csv, sys; sum(1 for row in csv.reader(open(sys.argv[1])))"


def rows(places: Places) -> Iterator[Row]:
    """The page and the terminal, beside a Python that reads metrics.csv alone."""
    with tempfile.TemporaryDirectory() as folder:
        made = week(Path(folder))
        page = Path(folder) / "page.html"
        peer = partial(process, [places.python, "-c", READ, str(made.run.metrics_csv)])
        for words in (["--html", str(page)], []):
            command = [places.hpc_train, "report", str(made.run.path), *words]
            compared = compare(partial(process, command), peer, pairs=PAIRS)
            row = row_of(f"hpc-train report {'--html' if words else ''} of a week", compared)
            ok = compared.ours.wall_s < AT_MOST_S
            yield dataclasses.replace(row, target=f"< {AT_MOST_S:g} s", ok=ok)
        size = page.stat().st_size
        if "node63" not in page.read_text():
            raise BenchError("the page lacks a node")
        yield Row(
            what="size of that page",
            ours=f"{size / 1e6:.2f} MB",
            peer="",
            ratio="",
            target=f"< {AT_MOST_BYTES / 1e6:g} MB",
            ok=size < AT_MOST_BYTES,
        )


def week(folder: Path) -> MadeRun:
    """The run directory; all nodes' files are one, of their real size."""
    made = make_run(folder, nodes=NODES, batch=1024, slurm={"mem": "512G", "gpus_per_node": 8})
    made.ranks_per_node = 8
    rng, at, each = random.Random(1), 60.0, STEPS // ATTEMPTS
    for number in range(ATTEMPTS):
        first, last = number * each, (number + 1) * each
        at = made.attempt(number, at, steps=(first, last), outcome="preempted") + 300
    made.end(at, "completed")
    lines = ["step,loss,lr,grad_norm,val_loss"]
    for step in range(STEPS):
        val = f"{rng.random():.7f}" if step % 10 == 0 else ""
        lines.append(f"{step},{rng.random():.12f},{1e-3 * step:.9f},{rng.random():.9f},{val}")
    made.metrics("\n".join(lines) + "\n")
    line = gpu_line(0)
    line["gpus"] = line["gpus"] * 2
    text = "".join(json.dumps({**line, "time": 5.0 * n}) + "\n" for n in range(LINES))
    made.run.monitor.mkdir()
    whole = folder / "one.jsonl"
    whole.write_text(text)
    for node in NODES:
        (made.run.monitor / f"{node}.jsonl").symlink_to(whole)
    return made
