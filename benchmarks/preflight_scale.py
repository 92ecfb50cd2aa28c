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
    nodes = tuple(f"n{i}" for i in range(count))
    options = PreflightOptions(
        nodes=nodes,
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
    path, gate = write_options(options), folder / "gate"
    processes = [
        subprocess.Popen(
            [
                sys.executable, "-c", PROBE, str(gate), "--options", str(path), "--rank", str(i),
                "--node", nodes[i], "--address", f"127.1.{i // 250}.{i % 250 + 1}",
            ],
            env=os.environ | {TOKEN_ENV: new_token_of(folder)},
        )
        for i in range(count)
    ]  # fmt: skip
    try:
        while len(list(folder.glob("gate.*"))) < count:
            time.sleep(0.05)
        gate.touch()
        started = time.monotonic()
        memory: dict[int, float] = {}
        while not (folder / "run" / "preflight.json").exists():
            for process in processes:
                memory[process.pid] = max(memory.get(process.pid, 0), rss_mib(process.pid))
            time.sleep(0.1 if count < 64 else 0.5)
            if time.monotonic() - started > 240:
                raise SystemExit("no verdict in 240 s")
        outside = time.monotonic() - started
        verdict = collect(options)
        for process in processes:
            process.wait(60)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    members = sorted(memory.values())
    return {
        "nodes": count,
        "seconds": verdict.seconds,
        "seconds_outside": round(outside, 2),
        "rounds": verdict.rounds,
        "pairs": len(verdict.pairs),
        "verdict": verdict.verdict,
        "named": [*verdict.bad_nodes, *verdict.degraded_nodes],
        "member_mib": round(members[len(members) // 2], 1),
        "coordinator_mib": round(memory.get(processes[0].pid, 0.0), 1),
    }


_TOKENS: dict[Path, str] = {}


def new_token_of(folder: Path) -> str:
    return _TOKENS.setdefault(folder, new_token())


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
