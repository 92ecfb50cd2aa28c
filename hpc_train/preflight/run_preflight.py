"""The preflight's one door: `run_preflight`, called by the supervisor and by the command.

What is checked follows from the config and from the nodes: nothing, this host alone, or one probe
a node (again without the nodes on which Slurm can start nothing) and then the ranks' own
all-reduce.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from hpc_train.config.origins import NOWHERE, Origins
from hpc_train.config.schema import PreflightConfig
from hpc_train.config.words import did_you_mean
from hpc_train.errors import ConfigError
from hpc_train.plan import env_names
from hpc_train.preflight.checks.findings import Thresholds
from hpc_train.preflight.choose.choose import FOR_THE_TEST
from hpc_train.preflight.choose.site_profile import SiteProfile
from hpc_train.preflight.collective import CollectiveResult
from hpc_train.preflight.inventory.collect_inventory import collect_inventory
from hpc_train.preflight.one_node import verdict_of_one
from hpc_train.preflight.options import Policy, PreflightOptions, PreflightRequest, positive
from hpc_train.preflight.probe_files import (
    last_words,
    not_launched,
    run_probes,
)
from hpc_train.preflight.probe_results import ProbeResults, assemble, inventory_of
from hpc_train.preflight.verdict import (
    Skipped,
    Verdict,
    skipped_verdict,
    with_broken,
    with_collectives,
    with_skipped,
    with_unreachable,
)
from hpc_train.slurm.inherit import for_step
from hpc_train.slurm.nodes import silent_nodes
from hpc_train.slurm.step import free_port, node_shell, run_step

COLLECTIVE_S = 30.0
# Each try leaves out at least one node more; then what is known has to do.
TRIES = 4


def run_preflight(config: PreflightConfig, request: PreflightRequest) -> Verdict:
    """Check the nodes as the config asks, choose the network's variables, and answer.

    Raises:
        ConfigError: A value of the config cannot be meant; see `check_sections`.
    """
    options = preflight_options(config, request)
    if config.mode == "off":
        reason = "preflight.mode is off: nothing was checked"
        verdict = skipped_verdict(options.nodes, reason)
    elif request.is_local:
        verdict = check_this_host(options, request.environ)
    elif _is_needless(options, request):
        is_here = request.environ.get("SLURMD_NODENAME") == options.nodes[0]
        verdict = verdict_of_one(
            options.nodes, request.environ, is_looked_at=request.uses_gloo and is_here
        )
    else:
        verdict = run_on_nodes(options, request)
    if request.unreachable:
        asked = replace(options, nodes=request.nodes)
        verdict = with_unreachable(verdict, request.unreachable, asked)
    return verdict


def _is_needless(options: PreflightOptions, request: PreflightRequest) -> bool:
    is_plain = options.mode == "quick" and not request.gpus_per_node
    return len(options.nodes) == 1 and is_plain and not request.is_asked


def check_sections(config: PreflightConfig, origins: Origins = NOWHERE) -> None:
    """Read what the schema cannot check as it will be read on the nodes.

    Args:
        config: Of the run.
        origins: For the file and the line of a refusal.

    Raises:
        ConfigError: An unknown key, or a value that cannot be meant.
    """
    positive("preflight.budget_s", config.budget_s)
    _thresholds(config, origins)
    try:
        SiteProfile.from_mapping(config.network, "preflight.network")
    except ConfigError as error:
        error.message = f"{origins.prefix(error.keys[0])}{error.message}"
        raise


def preflight_options(config: PreflightConfig, request: PreflightRequest) -> PreflightOptions:
    """Return what the probes of one attempt are asked."""
    nodes = tuple(node for node in request.nodes if node not in request.unreachable)
    folder = request.folder
    if request.unreachable:
        folder /= f"without-{len(request.unreachable)}-of-the-ranks"
    on_unknown: Any = "no-go" if config.strict else "go"
    is_full = config.mode == "full"
    pair_s = 10.0 if is_full else PreflightOptions.pair_s
    longer: dict[str, Any] = {"mode": "full", "bandwidth_s": 1.0, "bandwidth_mib": 2048}
    # Who gives more time than usual knows that python starts late there, or that nodes are busy.
    patience = max(1.0, config.budget_s / PreflightConfig.budget_s)
    return PreflightOptions(
        nodes=nodes,
        folder=str(folder),
        wanted=request.wanted,
        timeout_s=max(config.budget_s, 60.0) if is_full else config.budget_s,
        rendezvous_s=patience * PreflightOptions.rendezvous_s,
        silence_s=patience * PreflightOptions.silence_s,
        pair_s=patience * pair_s,
        is_local=request.is_local,
        by_address=not request.is_slurm,
        is_nccl=request.gpus_per_node > 0 or request.is_local,
        seed=request.seed,
        thresholds=_thresholds(config),
        policy=Policy(
            on_degraded="go" if config.allow_degraded else "no-go",
            on_unknown=on_unknown,
            on_broken=on_unknown,
            on_unchecked="no-go" if request.is_asked else on_unknown,
        ),
        profile=SiteProfile.from_mapping(config.network, "preflight.network"),
        user_env={
            name: value
            for name, value in request.environ.items()
            if name.startswith(("NCCL_", "GLOO_")) or name == "MASTER_ADDR"
        },
        **(longer if is_full else {}),
    )


def _thresholds(config: PreflightConfig, origins: Origins = NOWHERE) -> Thresholds:
    usual = {field.name: field.default for field in fields(Thresholds)}
    values: dict[str, Any] = {}
    for name, value in config.thresholds.items():
        key = f"preflight.thresholds.{name}"
        if name not in usual:
            hint = did_you_mean(name, usual) or f"known thresholds: {', '.join(usual)}"
            raise origins.error(key, ": there is no such threshold", hint)
        if not math.isfinite(value) or value < 0:
            raise origins.error(key, f"is {value:g}", "write 0 or more")
        # A config knows fractions alone; what counts MiB is written to the probes as it is read.
        values[name] = math.ceil(value) if isinstance(usual[name], int) else value
    return Thresholds(**values)


def check_this_host(options: PreflightOptions, environ: Mapping[str, str]) -> Verdict:
    """Check this host alone, choose and judge; starts nothing and talks to nobody."""
    started = time.monotonic()
    inventory = collect_inventory(Path(options.root), environ, node=options.nodes[0])
    skipped = (
        Skipped("pairs", "one node: nobody to talk to"),
        Skipped("collective", "needs the ranks: runs inside an allocation"),
    )
    results = ProbeResults(seconds=time.monotonic() - started, skipped=skipped)
    return assemble([inventory], results, options)


def run_on_nodes(options: PreflightOptions, request: PreflightRequest) -> Verdict:
    """The whole preflight of an allocation: probes on every node, then the ranks' own all-reduce.

    A node on which Slurm cannot start anything is named, and the others are checked without it: it
    would end the step on all of them (srun stops a step that it could not launch as a whole).
    """
    unreachable: dict[str, str] = {}
    tried = options
    for number in range(1, TRIES + 1):
        verdict = run_probes(tried, request)
        found = _unreachable(tried, verdict, request)
        unreachable |= found
        nodes = tuple(node for node in options.nodes if node not in unreachable)
        if not found or not nodes or _covers(tried, verdict, found):
            break
        tried = replace(
            options,
            nodes=nodes,
            wanted=min(options.needed, len(nodes)),
            folder=f"{options.folder}/without-{number}",
        )
    if unreachable:
        verdict = with_unreachable(verdict, unreachable, options)
    return verdict if verdict.verdict == "no-go" else _run_collective(verdict, tried, request)


def _unreachable(
    options: PreflightOptions, verdict: Verdict, request: PreflightRequest
) -> dict[str, str]:
    """Nodes that kept the step from starting on all others, and why it is held to be them.

    srun's words are confirmed by asking each slurmd: they may name the nodes behind one in Slurm's
    tree of messages as well. Where srun hangs without a word, the silent slurmd's are named.
    """
    if not _missing(verdict) and not verdict.checked_nothing:
        return {}
    failed = not_launched(Path(options.folder), options.nodes)
    silent = silent_nodes(options.nodes) if request.is_slurm else ()
    if failed:
        return {node: why for node, why in failed.items() if node in silent} or failed
    return dict.fromkeys(silent, "its slurmd does not answer")


def _missing(verdict: Verdict) -> set[str]:
    """Nodes whose probe never came, or fell silent."""
    failed = [item for item in verdict.findings if item.level == "fail"]
    return {item.node for item in failed if item.check in ("rendezvous", "alive")}


def _covers(options: PreflightOptions, verdict: Verdict, unreachable: Mapping[str, str]) -> bool:
    """Whether the probes have named just these nodes themselves, and have checked the others."""
    ended_by_srun = bool(not_launched(Path(options.folder), options.nodes))
    return unreachable.keys() == _missing(verdict) and (bool(verdict.pairs) or not ended_by_srun)


def _run_collective(
    verdict: Verdict, options: PreflightOptions, request: PreflightRequest
) -> Verdict:
    """An all-reduce of real ranks on the nodes that are left, where there are GPUs or in full.

    NCCL's own log of this step alone tells which way the bytes really went. A step that leaves no
    result at all is told as unknown: it is no pass, and by itself no reason to stop.
    """
    folder, nodes = Path(options.folder), verdict.use_nodes
    seen = (inventory_of(folder, node) for node in nodes)
    if options.mode != "full" and not any(node and node.gpus for node in seen):
        return with_skipped(verdict, "collective", "no GPU was seen; --full runs it with gloo")
    out, ranks = folder / "collective", request.ranks_per_node
    argv = [
        *(*request.srun, f"--nodes={len(nodes)}", f"--ntasks={len(nodes) * ranks}"),
        *(f"--ntasks-per-node={ranks}", f"--nodelist={','.join(nodes)}", "--distribution=block"),
        *("--mpi=none", f"--output={str(folder).replace('%', '%%')}/collective-%t.log"),
        *request.rank_options,
        *node_shell(verdict.per_node),
        *(request.rank_python or (request.python,)),
        *("-m", "hpc_train.training.collective_step", "--out", str(out)),
        f"--deadline-s={COLLECTIVE_S:g}",
    ]
    chosen = {item.name: item.value for item in verdict.environment}
    master = {env_names.MASTER_ADDR: nodes[0], env_names.MASTER_PORT: str(free_port())}
    environment = {**for_step(request.environ), **chosen, **FOR_THE_TEST, **master}
    run_step(argv, environment, request.cwd, folder, lambda: False, 2 * COLLECTIVE_S)
    results, torn = _results(out)
    if results:
        return with_collectives(verdict, results, options.policy, nodes=nodes)
    why = f"the step left no result{last_words(folder, 'collective-*.log')}"
    why = f"{torn[0]} cannot be read" if torn else why
    return with_broken(verdict, "collective", why, options.policy)


def _results(folder: Path) -> tuple[list[CollectiveResult], list[str]]:
    results, torn = [], []
    for path in sorted(folder.glob("collective-*.json")):
        try:
            results.append(CollectiveResult.read(path))
        except (OSError, ValueError):
            torn.append(path.name)
    return results, torn
