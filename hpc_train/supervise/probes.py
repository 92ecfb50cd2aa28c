"""The preflight's steps: one probe a node, and where it is worth it the ranks' own all-reduce."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hpc_train.config.schema import PreflightConfig
from hpc_train.errors import ConfigError
from hpc_train.network import preflight as network
from hpc_train.network.collective import CollectiveResult
from hpc_train.network.findings import Thresholds
from hpc_train.network.options import PreflightOptions
from hpc_train.network.policy import GoOrNot, Policy
from hpc_train.network.profile import SiteProfile
from hpc_train.network.verdict import Verdict, with_collectives
from hpc_train.plan import handover
from hpc_train.plan.plan import Plan

__all__ = ["check_sections", "one_a_node", "preflight_options", "run_collective", "run_probes"]

COLLECTIVE_S = 30.0
POLL_S = 0.05


def check_sections(config: PreflightConfig) -> None:
    """Read the two free sections as they will be read on the nodes.

    Raises:
        ConfigError: An unknown key, or a value that cannot be meant.
    """
    _thresholds(config)
    SiteProfile.from_mapping(config.network, "preflight.network")


def preflight_options(
    config: PreflightConfig,
    nodes: Sequence[str],
    folder: Path,
    *,
    wanted: int,
    is_nccl: bool,
    is_local: bool,
    environ: Mapping[str, str],
    seed: int = 0,
) -> PreflightOptions:
    """What the probes of one attempt are asked.

    Args:
        config: The user's wishes.
        nodes: All nodes of the allocation, spares last.
        folder: On the shared file system; where probes leave what they see.
        wanted: Nodes that the ranks need.
        is_nccl: The ranks will use GPUs.
        is_local: The "nodes" are all this machine.
        environ: Where the user's NCCL_* and GLOO_* are.
        seed: Another one on another attempt pairs nodes anew.
    """
    strict: GoOrNot = "no-go" if config.strict else "go"
    options = PreflightOptions(
        nodes=tuple(nodes),
        folder=str(folder),
        wanted=wanted,
        timeout_s=config.budget_s,
        master=nodes[0],
        is_local=is_local,
        is_nccl=is_nccl,
        seed=seed,
        thresholds=_thresholds(config),
        policy=Policy(
            on_degraded="go" if config.allow_degraded else "no-go",
            on_unknown=strict,
            on_broken=strict,
        ),
        profile=SiteProfile.from_mapping(config.network, "preflight.network"),
        user_env=network.relevant_env(environ),
    )
    return network.for_mode(options, config.mode)


def run_probes(
    options: PreflightOptions, python: str, environ: Mapping[str, str], cwd: str
) -> Verdict:
    """Start one probe a node by srun, wait for the verdict at most its deadline, end the step."""
    file = network.write_options(options)
    argv = [
        *one_a_node(options.nodes),
        f"--output={str(file.parent).replace('%', '%%')}/probe-%N.log",
        *(python, "-m", "hpc_train.network.probe", "--options", str(file)),
    ]
    environment = {**environ, network.TOKEN_ENV: network.new_token()}
    verdict = file.parent / network.VERDICT_FILE
    _step(argv, environment, cwd, file.parent, verdict.exists, network.deadline_s(options))
    return network.collect(options)


def run_collective(
    plan: Plan,
    verdict: Verdict,
    options: PreflightOptions,
    environ: Mapping[str, str],
    cwd: str,
) -> Verdict:
    """An all-reduce of real ranks on the nodes that are left, where the looks saw GPUs or in full.

    NCCL's own log of this step alone tells which way the bytes really went.
    """
    folder = Path(options.folder)
    if options.mode != "full" and not _saw_gpus(folder, verdict.use_nodes):
        return verdict
    nodes, ranks = verdict.use_nodes, plan.shape.ranks_per_node
    out = folder / "collective"
    argv = [
        *("srun", f"--nodes={len(nodes)}", f"--ntasks={len(nodes) * ranks}"),
        *(f"--ntasks-per-node={ranks}", f"--nodelist={','.join(nodes)}", "--distribution=block"),
        *("--mpi=none", f"--output={str(folder).replace('%', '%%')}/collective-%t.log"),
        *(plan.shell.python, "-m", "hpc_train.train.collective", "--out", str(out)),
        f"--deadline-s={COLLECTIVE_S:g}",
    ]
    chosen = {item.name: item.value for item in verdict.environment}
    master = {handover.MASTER_ADDR: nodes[0], handover.MASTER_PORT: environ["HPC_TRAIN_PORT"]}
    _step(argv, {**environ, **chosen, **master}, cwd, folder, lambda: False, 2 * COLLECTIVE_S)
    results = [
        CollectiveResult.from_json(json.loads(path.read_text(encoding="utf-8")))
        for path in sorted(out.glob("collective-*.json"))
    ]
    return with_collectives(verdict, results, options.policy)


def _thresholds(config: PreflightConfig) -> Thresholds:
    try:
        return Thresholds(**config.thresholds)  # type: ignore[arg-type]
    except TypeError as error:
        known = ", ".join(Thresholds.__dataclass_fields__)
        raise ConfigError(
            f"preflight.thresholds: {error}".replace("Thresholds.__init__() ", ""),
            f"known thresholds: {known}",
        ) from error


def one_a_node(nodes: Sequence[str]) -> list[str]:
    """The beginning of an srun command that starts one process on each of `nodes`."""
    # The death of one probe is a finding and must not end the others; --overlap lets them run
    # beside whatever else the job runs (srun(1)).
    return [
        "srun",
        f"--nodes={len(nodes)}",
        f"--ntasks={len(nodes)}",
        "--ntasks-per-node=1",
        f"--nodelist={','.join(nodes)}",
        "--kill-on-bad-exit=0",
        "--wait=0",
        "--overlap",
        "--mpi=none",
    ]


def _step(
    argv: Sequence[str],
    environ: Mapping[str, str],
    cwd: str,
    folder: Path,
    is_done: Callable[[], bool],
    limit_s: float,
) -> None:
    """Run a step until it ends, `is_done` says so, or the limit; nothing of it stays."""
    with (folder / "srun.log").open("ab") as log:
        process = subprocess.Popen(
            list(argv),
            env=dict(environ),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + limit_s
    while process.poll() is None and time.monotonic() < deadline and not is_done():
        time.sleep(POLL_S)
    try:
        process.wait(timeout=2.0)
    except subprocess.TimeoutExpired:
        # A stopped probe keeps its step: srun's own SIGTERM handling ends it on the other nodes.
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=3.0)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _saw_gpus(folder: Path, nodes: Sequence[str]) -> bool:
    for node in nodes:
        try:
            seen = json.loads((folder / f"look-{node}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if seen.get("gpus"):
            return True
    return False
