"""The preflight's face: what a supervisor, a command and a notebook call.

Contract with whoever starts the probes
---------------------------------------
1. Make an empty folder on the shared file system (0700) and write `PreflightOptions.to_json()`
   into a file there (`write_options`). `nodes` are the names Slurm uses (SLURMD_NODENAME), first
   node first, spares last.
2. Make a token (`new_token`) and put it into the environment as `HPC_TRAIN_PREFLIGHT_TOKEN`; it is
   never on a command line and never in a file.
3. Start one probe a node:
   `srun --nodes=N --ntasks=N --ntasks-per-node=1 --kill-on-bad-exit=0 --wait=0 --overlap
   python -m hpc_train.preflight.probes.probe --options FILE`
   (rank from SLURM_PROCID). `--kill-on-bad-exit=0`: the death of one probe is a finding, and must
   not end the others. Locally: N processes with `--rank R --node NAME --address 127.0.0.R`.
4. Each probe first writes `look-NODE.json` (its inventory). Rank 0 writes `rendezvous.json`, then
   `preflight.json` (the verdict, whole or not at all). A probe that lost rank 0 writes
   `lost-NODE.json`. Every probe ends by itself and with 0; one that was stopped (SIGSTOP) does not,
   so do not wait for srun: wait for `preflight.json`, or for a `lost-` of all others and a moment
   more, at most `deadline_s(options)`, then end the step.
5. Call `collect(options)`: the verdict that was written, or, where the first node itself died or
   hung, one made of the look and lost files that names it. Where srun could start nothing on some
   nodes, the rest is tried again in a fresh folder, and `verdict.with_unreachable` adds them.
6. Export `Verdict.for_node(NODE)` on each node; leave `bad_nodes` out; train on `use_nodes`.
7. With GPUs (or to be thorough), run the collective step on `use_nodes` with
   `choose.for_the_test` beside it, and give its results to `verdict.with_collectives`; one that
   left none goes to `verdict.with_broken`.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.codec import decode
from hpc_train.preflight.checks.findings import ALL_NODES, Finding
from hpc_train.preflight.choose.choose import Choice
from hpc_train.preflight.inventory.collect_inventory import collect_inventory
from hpc_train.preflight.inventory.inventory import NodeInventory
from hpc_train.preflight.options import TOKEN_ENV, Mode, PreflightOptions
from hpc_train.preflight.probe_results import Lost, ProbeResults, assemble
from hpc_train.preflight.probes.probe import VERDICT_FILE
from hpc_train.preflight.probes.rendezvous import write_json
from hpc_train.preflight.verdict import Policy, Skipped, Verdict, decide

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "TOKEN_ENV",
    "VERDICT_FILE",
    "Mode",
    "Policy",
    "PreflightOptions",
    "Verdict",
    "collect",
    "deadline_s",
    "for_mode",
    "last_words",
    "new_token",
    "relevant_env",
    "run_preflight_local",
    "skipped_verdict",
    "write_options",
]

OPTIONS_FILE = "preflight-options.json"
_PREFIXES = ("NCCL_", "GLOO_")


def new_token() -> str:
    """Return a fresh random token, to be passed by environment alone."""
    return secrets.token_hex(32)


def relevant_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return the user's variables that the choice has to respect."""
    return {
        name: value
        for name, value in env.items()
        if name.startswith(_PREFIXES) or name == "MASTER_ADDR"
    }


def for_mode(options: PreflightOptions, mode: Mode) -> PreflightOptions:
    """Return the options with the measurements, and the deadlines, of `quick` or `full`."""
    if mode != "full":
        return replace(options, mode=mode)
    return replace(
        options,
        mode=mode,
        bandwidth_s=1.0,
        bandwidth_mib=2048,
        pair_s=max(options.pair_s, 10.0),
        timeout_s=max(options.timeout_s, 60.0),
    )


def deadline_s(options: PreflightOptions) -> float:
    """Return the seconds after which a verdict that is not there will not come any more."""
    return options.rendezvous_s + options.timeout_s + options.pair_s + 5.0


def write_options(options: PreflightOptions) -> Path:
    """Write the options into their folder, which is made if need be, and return the file."""
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / OPTIONS_FILE
    write_json(path, options.to_json())
    return path


def run_preflight_local(
    options: PreflightOptions,
    env: Mapping[str, str] | None = None,
    clock: Callable[[], float] = time.time,
) -> Verdict:
    """Look at this host alone, choose and judge; starts nothing and talks to nobody.

    Args:
        options: `nodes` holds this host's name alone.
        env: The environment of the step.
        clock: Seconds since the epoch.
    """
    if options.mode == "off":
        return skipped_verdict(options, "preflight: off")
    started = time.monotonic()
    inventory = collect_inventory(
        Path(options.root), os.environ if env is None else env, clock, node=options.nodes[0]
    )
    skipped = (
        Skipped("pairs", "one node: nobody to talk to"),
        Skipped("collective", "needs the ranks: runs inside an allocation"),
    )
    trial = ProbeResults(seconds=time.monotonic() - started, skipped=skipped)
    return assemble([inventory], trial, options)


def skipped_verdict(options: PreflightOptions, reason: str) -> Verdict:
    """Return a `go` that says that nothing was looked at."""
    return Verdict(verdict="go", skipped=(Skipped("everything", reason),), use_nodes=options.nodes)


def collect(options: PreflightOptions) -> Verdict:
    """Return the verdict in the options' folder, or what can be told without one."""
    folder = Path(options.folder)
    try:
        return Verdict.from_json(json.loads((folder / VERDICT_FILE).read_text()))
    except FileNotFoundError:
        return _without_verdict(options, folder, "rank 0 wrote no verdict")
    except (OSError, ValueError) as error:
        return _without_verdict(options, folder, f"{VERDICT_FILE} cannot be read: {error}")


def _without_verdict(options: PreflightOptions, folder: Path, why: str) -> Verdict:
    looks = {node: seen for node in options.nodes if (seen := _look_of(folder, node))}
    lost = [node for node in options.nodes if (folder / f"lost-{node}.json").exists()]
    first = options.nodes[0]
    silent = [node for node in options.nodes if node not in looks]
    if not looks:
        said = last_words(folder, "probe-*.log")
        return _broken(options, f"{why}, and no node what it saw: the probes did not start{said}")
    blamed = silent if first in looks and silent and not lost else [first]
    trial = ProbeResults(
        lost=tuple(
            Lost(node=node, check="alive", reason=_reason(node, looks, lost, why))
            for node in blamed
        ),
        skipped=(Skipped("pairs", why),),
    )
    return assemble(list(looks.values()), trial, options)


def last_words(folder: Path, pattern: str) -> str:
    """Return the last error (else line) of a step, or of srun, in brackets; empty for none."""
    for log in [*sorted(folder.glob(pattern)), folder / "srun.log"]:
        if not log.exists():
            continue
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        if lines:
            # srun's own last words are "Job step aborted", whatever the reason.
            said = next((line for line in reversed(lines) if "srun: error" in line), lines[-1])
            return f" ({log.name}: {said[:200]})"
    return ""


def _reason(node: str, looks: dict[str, NodeInventory], lost: list[str], why: str) -> str:
    if node not in looks:
        return f"{why}; this node's probe never wrote what it saw"
    witnesses = f"; {', '.join(lost[:4])} lost the connection to it" if lost else ""
    return f"{why}: its probe hung or died{witnesses}"


def _look_of(folder: Path, node: str) -> NodeInventory | None:
    try:
        return decode(NodeInventory, json.loads((folder / f"look-{node}.json").read_text()))
    except (OSError, ValueError):
        return None


def _broken(options: PreflightOptions, why: str) -> Verdict:
    """Return the answer where the preflight itself broke: the policy decides, not the breakage."""
    finding = Finding(
        node=ALL_NODES, part="probe", check="preflight", level="unknown", evidence=why,
        fix="read the step's log; preflight: off goes on without it",
    )  # fmt: skip
    return decide(
        [finding],
        Choice(),
        nodes=list(options.nodes),
        policy=options.policy,
        skipped=[Skipped("everything", why)],
    )
