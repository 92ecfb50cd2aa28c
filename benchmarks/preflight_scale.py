"""How the preflight's cost grows: N probes as local processes, N = 2, 8, 32, 128.

Writes one JSON line a run: seconds until the verdict (by the coordinator's own clock and from
outside), rounds, memory of a probe, and whether anybody was wrongly named. All N share this
machine's CPUs, so that the seconds are an upper bound of what N nodes need; the rounds are exact.

    python benchmarks/preflight_scale.py --sizes 2,8,32,128 --repeat 3
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hpc_train.preflight.options import TOKEN_ENV, PreflightOptions
from hpc_train.preflight.probe_files import collect, new_token, write_options

# The import alone, without starting to measure, held back until all processes are there: what a
# node pays at once for its own interpreter, N of them pay here one after the other.
PROBE = (
    "import sys, time, os\n"
    "from hpc_train.preflight.probes.probe import main\n"
    "gate = sys.argv.pop(1)\n"
    "open(gate + '.' + str(os.getpid()), 'w').close()\n"
    "while not os.path.exists(gate): time.sleep(0.02)\n"
    "sys.exit(main(sys.argv[1:]))\n"
)


def rss_mib(pid: int) -> float:
    """Return a process's largest resident set so far, 0 where it has gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(x.split()[1]) / 1024 for x in lines if x.startswith("VmHWM")), 0.0)


def trial(count: int, root: str, *, bandwidth_mib: int, seed: int) -> dict[str, object]:
    folder = Path(tempfile.mkdtemp(prefix="preflight-scale-"))
    options = PreflightOptions(
        nodes=tuple(f"n{i}" for i in range(count)),
        folder=str(folder / "run"),
        is_local=True,
        rendezvous_s=60,
        timeout_s=120,
        pair_s=30,
        silence_s=20,
        bandwidth_mib=bandwidth_mib,
        root=root,
        seed=seed,
    )
    gate = folder / "gate"
    processes = start_probes(options, gate)
    try:
        while len(list(folder.glob("gate.*"))) < count:
            time.sleep(0.05)
        gate.touch()
        outside, memory_mib = await_verdict(folder / "run" / "preflight.json", processes)
        verdict = collect(options)
        for process in processes:
            process.wait(60)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "nodes": count,
        "seconds": verdict.seconds,
        "seconds_outside": round(outside, 2),
        "rounds": verdict.rounds,
        "pairs": len(verdict.pairs),
        "verdict": verdict.verdict,
        "named": [*verdict.bad_nodes, *verdict.degraded_nodes],
        "member_mib": round(sorted(memory_mib)[count // 2], 1),
        "coordinator_mib": round(memory_mib[0], 1),
    }


def start_probes(options: PreflightOptions, gate: Path) -> list[subprocess.Popen[bytes]]:
    """A process for each node, all held back until `gate` is there."""
    path, environ = write_options(options), os.environ | {TOKEN_ENV: new_token()}
    command = [sys.executable, "-c", PROBE, str(gate), "--options", str(path)]
    return [
        subprocess.Popen(
            [
                *(*command, "--rank", str(i), "--node", node),
                *("--address", f"127.1.{i // 250}.{i % 250 + 1}"),
            ],
            env=environ,
        )
        for i, node in enumerate(options.nodes)
    ]


def await_verdict(
    file: Path, processes: list[subprocess.Popen[bytes]]
) -> tuple[float, list[float]]:
    """Seconds until `file` is filled, and the most memory (MiB) of each process until then."""
    started = time.monotonic()
    memory_mib = [0.0] * len(processes)
    while not (file.exists() and file.stat().st_size):
        memory_mib = [
            max(before, rss_mib(process.pid))
            for before, process in zip(memory_mib, processes, strict=True)
        ]
        time.sleep(0.1 if len(processes) < 64 else 0.5)
        if time.monotonic() - started > 240:
            raise SystemExit("no verdict in 240 s")
    return time.monotonic() - started, memory_mib


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="2,8,32,128")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--root", default="/", help="a made tree, for nodes with HCAs")
    parser.add_argument("--mib", type=int, default=8, help="at most so much a pair and direction")
    arguments = parser.parse_args()
    for size in arguments.sizes.split(","):
        for seed in range(arguments.repeat):
            result = trial(int(size), arguments.root, bandwidth_mib=arguments.mib, seed=seed)
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
