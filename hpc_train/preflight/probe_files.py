"""The step of the probes, one a node, and the files by which it is asked and answers.

1. `write_options` writes `PreflightOptions` into an empty folder (0700) on the shared file system.
   `nodes` are the names Slurm uses (SLURMD_NODENAME), first node first, spares last. It makes the
   two files that other machines wait for, empty: an NFS client that has looked for a name in vain
   goes on for up to a minute saying that there is none, while opening a file that it knows shows
   what is in it by now (nfs(5), "Directory entry caching" and "Close-to-open cache consistency").
2. The token (`new_token`) goes into the environment as `HPC_TRAIN_PREFLIGHT_TOKEN`; it is never on
   a command line and never in a file.
3. `python -m hpc_train.preflight.probes.probe --options FILE` is started once a node (rank from
   SLURM_PROCID); locally: N processes with `--rank R --node NAME --address 127.0.0.R`.
4. Each probe first writes `look-NODE.json`, its inventory. Rank 0 writes `rendezvous.json`, then
   `preflight.json` (the verdict, whole or not at all). A probe that lost rank 0 writes
   `lost-NODE.json`. Every probe ends by itself and with 0; one that was stopped (SIGSTOP) does not,
   so nobody waits for srun: the step is ended at the verdict, at a `lost-` of all others and a
   moment more, or at `deadline_s(options)`.
5. `collect` returns the verdict that was written, or, where the first node itself died or hung,
   one made of the inventories and lost files that names it.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hpc_train.preflight.checks.findings import ALL_NODES, Finding
from hpc_train.preflight.choose.choose import Choice
from hpc_train.preflight.inventory.inventory import NodeInventory
from hpc_train.preflight.options import TOKEN_ENV, VERDICT_FILE, PreflightOptions, PreflightRequest
from hpc_train.preflight.probe_results import ProbeResults, assemble, inventory_of, lost_node
from hpc_train.preflight.probes.rendezvous import RENDEZVOUS_FILE
from hpc_train.preflight.verdict import Skipped, Verdict, decide
from hpc_train.runs.atomic import write_text
from hpc_train.slurm.inherit import for_step
from hpc_train.slurm.srun_words import launch_failures
from hpc_train.slurm.step import SRUN_LOG, one_a_node, run_step

OPTIONS_FILE = "preflight-options.json"
# When all others have lost the first node, a verdict may still come, from one that is merely cut
# off; but not for long.
LAST_WORD_S = 1.5


def new_token() -> str:
    """Return a fresh random token, to be passed by environment alone."""
    return secrets.token_hex(32)


def deadline_s(options: PreflightOptions) -> float:
    """Return the seconds after which a verdict that is not there will not come any more."""
    return options.rendezvous_s + options.timeout_s + options.pair_s + 5.0


def write_options(options: PreflightOptions) -> Path:
    """Write the options into their folder, which is made if need be, and return the file."""
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for awaited in (RENDEZVOUS_FILE, VERDICT_FILE):
        (folder / awaited).write_text("", encoding="utf-8")
    write_text(folder / OPTIONS_FILE, json.dumps(options.to_json()), durable=False)
    return folder / OPTIONS_FILE


def run_probes(options: PreflightOptions, request: PreflightRequest) -> Verdict:
    """Start one probe a node by srun, wait for the verdict at most its deadline, end the step."""
    file = write_options(options)
    argv = [
        *one_a_node(options.nodes, request.srun),
        f"--output={str(file.parent).replace('%', '%%')}/probe-%N.log",
        *(request.python, "-m", "hpc_train.preflight.probes.probe", "--options", str(file)),
    ]
    environment = {**for_step(request.environ), TOKEN_ENV: new_token()}
    is_done = _answered(file.parent, options.nodes)
    run_step(argv, environment, request.cwd, file.parent, is_done, deadline_s(options))
    return collect(options)


def _answered(folder: Path, nodes: Sequence[str]) -> Callable[[], bool]:
    """Return whether all is said: a verdict, the first node lost, or srun that cannot launch."""
    lost_files = [folder / f"lost-{node}.json" for node in nodes[1:]]
    lost_since: list[float] = []

    def is_answered() -> bool:
        if _has_verdict(folder) or not_launched(folder, nodes):
            return True
        if not lost_since and lost_files and all(file.exists() for file in lost_files):
            lost_since.append(time.monotonic())
        return bool(lost_since) and time.monotonic() - lost_since[0] > LAST_WORD_S

    return is_answered


def _has_verdict(folder: Path) -> bool:
    try:
        with (folder / VERDICT_FILE).open("rb") as stream:  # opened, since stat(2) may be late
            return bool(stream.read(1))
    except FileNotFoundError:
        return False


def not_launched(folder: Path, nodes: Sequence[str]) -> dict[str, str]:
    """Return the nodes that srun says it could not start the step on, with its words."""
    log = folder / SRUN_LOG
    said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return launch_failures(said, nodes)


def collect(options: PreflightOptions) -> Verdict:
    """Return the verdict in the options' folder, or what can be told without one."""
    if not _has_verdict(Path(options.folder)):
        return _without_verdict(options, "rank 0 wrote no verdict")
    try:
        return Verdict.read(Path(options.folder) / VERDICT_FILE)
    except (OSError, ValueError) as error:
        return _without_verdict(options, f"{VERDICT_FILE} cannot be read: {error}")


def _without_verdict(options: PreflightOptions, why: str) -> Verdict:
    folder = Path(options.folder)
    seen = {node: found for node in options.nodes if (found := inventory_of(folder, node))}
    if not seen:
        said = last_words(folder, "probe-*.log")
        return _broken(options, f"{why}, and no node what it saw: the probes did not start{said}")
    lost = [node for node in options.nodes if (folder / f"lost-{node}.json").exists()]
    silent = [node for node in options.nodes if node not in seen]
    first = options.nodes[0]
    blamed = silent if first in seen and silent and not lost else [first]
    results = ProbeResults(
        lost=tuple(lost_node(node, "alive", _reason(node, seen, lost, why)) for node in blamed),
        skipped=(Skipped("pairs", why),),
    )
    return assemble(list(seen.values()), results, options)


def _reason(node: str, seen: Mapping[str, NodeInventory], lost: list[str], why: str) -> str:
    if node not in seen:
        return f"{why}; this node's probe never wrote what it saw"
    lost_by = f"; {', '.join(lost[:4])} lost the connection to it" if lost else ""
    return f"{why}: its probe hung or died{lost_by}"


def _broken(options: PreflightOptions, why: str) -> Verdict:
    """Return the answer where the preflight itself broke: the policy decides, not the breakage."""
    fix = "read the step's log; preflight: off goes on without it"
    finding = Finding(ALL_NODES, "probe", "preflight", "unknown", why, fix)
    skipped = [Skipped("everything", why)]
    nodes = list(options.nodes)
    return decide([finding], Choice(), nodes=nodes, policy=options.policy, skipped=skipped)


def last_words(folder: Path, pattern: str) -> str:
    """Return the last error (else line) of a step, or of srun, in brackets; empty for none."""
    for log in [*sorted(folder.glob(pattern)), folder / SRUN_LOG]:
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        lines = text.strip().splitlines()
        if lines:
            # srun's own last words are "Job step aborted", whatever the reason.
            said = next((line for line in reversed(lines) if "srun: error" in line), lines[-1])
            return f" ({log.name}: {said[:200]})"
    return ""
