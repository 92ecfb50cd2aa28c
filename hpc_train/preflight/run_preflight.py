"""The preflight of an allocation: `run_preflight` starts its steps and makes their answer one.

One probe a node, again without the nodes on which Slurm can start nothing, and where it is worth it
the ranks' own all-reduce.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from hpc_train.config.schema import PreflightConfig
from hpc_train.errors import ConfigError
from hpc_train.plan import env_names
from hpc_train.preflight import probe_files as network
from hpc_train.preflight.checks.findings import Thresholds
from hpc_train.preflight.choose.choose import for_the_test
from hpc_train.preflight.choose.site_profile import SiteProfile
from hpc_train.preflight.collective import CollectiveResult
from hpc_train.preflight.go_policy import GoOrNot, Policy
from hpc_train.preflight.options import PreflightOptions
from hpc_train.preflight.probe_files import last_words
from hpc_train.preflight.verdict import (
    Verdict,
    with_broken,
    with_collectives,
    with_skipped,
    with_unreachable,
)
from hpc_train.slurm.nodes import silent_nodes
from hpc_train.slurm.srun_words import launch_failures
from hpc_train.slurm.step import SRUN_LOG, free_port, node_shell, one_a_node, run_step

__all__ = [
    "Launch",
    "check_sections",
    "preflight_options",
    "run_preflight",
]

COLLECTIVE_S = 30.0
LAST_WORD_S = 1.5
# Each try leaves out at least one node more; then what is known has to do.
TRIES = 4


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How a step is started.

    Attributes:
        python: Interpreter on the nodes.
        environ: Without what srun must not inherit.
        cwd: Working directory.
        ranks_per_node: Of the training.
    """

    python: str
    environ: Mapping[str, str]
    cwd: str
    ranks_per_node: int = 1


def check_sections(config: PreflightConfig) -> None:
    """Read what the schema cannot check as it will be read on the nodes.

    Raises:
        ConfigError: An unknown key, or a value that cannot be meant.
    """
    if not 0 < config.budget_s < math.inf:
        raise ConfigError(
            f"preflight.budget_s: {config.budget_s:g} s leaves no time for anything",
            "write a positive number of seconds, or preflight: off",
        )
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
            on_unchecked=strict,
        ),
        profile=SiteProfile.from_mapping(config.network, "preflight.network"),
        user_env=network.relevant_env(environ),
    )
    return network.for_mode(options, config.mode)


def run_preflight(options: PreflightOptions, launch: Launch) -> Verdict:
    """The whole preflight of an allocation: probes on every node, then the ranks' own all-reduce.

    A node on which Slurm cannot start anything is named, and the others are checked without it: it
    would end the step on all of them (srun stops a step that it could not launch as a whole).
    """
    unreachable: dict[str, str] = {}
    tried = options
    for number in range(1, TRIES + 1):
        verdict = _run_probes(tried, launch)
        found = _unreachable(tried, verdict)
        unreachable |= found
        nodes = tuple(node for node in options.nodes if node not in unreachable)
        if not found or not nodes or _covers(tried, verdict, found):
            break
        tried = replace(
            options,
            nodes=nodes,
            wanted=min(options.wanted or len(options.nodes), len(nodes)),
            master=nodes[0] if options.master else "",
            folder=f"{options.folder}/without-{number}",
        )
    if unreachable:
        verdict = with_unreachable(verdict, unreachable, options)
    if verdict.verdict == "no-go":
        return verdict
    return _run_collective(verdict, tried, launch)


def _run_probes(options: PreflightOptions, launch: Launch) -> Verdict:
    """Start one probe a node by srun, wait for the verdict at most its deadline, end the step."""
    file = network.write_options(options)
    argv = [
        *one_a_node(options.nodes),
        f"--output={str(file.parent).replace('%', '%%')}/probe-%N.log",
        *(launch.python, "-m", "hpc_train.preflight.probes.probe", "--options", str(file)),
    ]
    environment = {**launch.environ, network.TOKEN_ENV: network.new_token()}
    is_done = _Answered(file.parent, options.nodes).check
    run_step(argv, environment, launch.cwd, file.parent, is_done, network.deadline_s(options))
    return network.collect(options)


def _unreachable(options: PreflightOptions, verdict: Verdict) -> dict[str, str]:
    """Nodes that kept the step from starting on all others, and why it is held to be them.

    srun's words are confirmed by asking each slurmd: they may name the nodes behind one in Slurm's
    tree of messages as well. Where srun hangs without a word, the silent slurmd's are named.
    """
    if not _missing(verdict) and not verdict.checked_nothing:
        return {}
    failed = _launch_failures(Path(options.folder), options.nodes)
    silent = silent_nodes(options.nodes)
    if failed:
        return {node: why for node, why in failed.items() if node in silent} or failed
    return dict.fromkeys(silent, "its slurmd does not answer")


def _missing(verdict: Verdict) -> set[str]:
    """Nodes whose probe never came, or fell silent."""
    return {
        item.node
        for item in verdict.findings
        if item.level == "fail" and item.check in ("rendezvous", "alive")
    }


def _covers(options: PreflightOptions, verdict: Verdict, unreachable: Collection[str]) -> bool:
    """Whether the probes have named just these nodes themselves, and have checked the others."""
    ended_by_srun = bool(_launch_failures(Path(options.folder), options.nodes))
    return set(unreachable) == _missing(verdict) and (bool(verdict.pairs) or not ended_by_srun)


def _launch_failures(folder: Path, nodes: Sequence[str]) -> dict[str, str]:
    log = folder / SRUN_LOG
    said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return launch_failures(said, nodes)


def _run_collective(verdict: Verdict, options: PreflightOptions, launch: Launch) -> Verdict:
    """An all-reduce of real ranks on the nodes that are left, where the looks saw GPUs or in full.

    NCCL's own log of this step alone tells which way the bytes really went. A step that leaves no
    result at all is told as unknown: it is no pass, and by itself no reason to stop.
    """
    folder = Path(options.folder)
    if options.mode != "full" and not _saw_gpus(folder, verdict.use_nodes):
        return with_skipped(verdict, "collective", "no GPU was seen; --full runs it with gloo")
    nodes, ranks = verdict.use_nodes, launch.ranks_per_node
    out = folder / "collective"
    argv = [
        *("srun", f"--nodes={len(nodes)}", f"--ntasks={len(nodes) * ranks}"),
        *(f"--ntasks-per-node={ranks}", f"--nodelist={','.join(nodes)}", "--distribution=block"),
        *("--mpi=none", f"--output={str(folder).replace('%', '%%')}/collective-%t.log"),
        *node_shell(verdict.per_node),
        *(launch.python, "-m", "hpc_train.training.collective_step", "--out", str(out)),
        f"--deadline-s={COLLECTIVE_S:g}",
    ]
    chosen = {item.name: item.value for item in (*verdict.environment, *for_the_test())}
    master = {env_names.MASTER_ADDR: nodes[0], env_names.MASTER_PORT: str(free_port())}
    environment = {**launch.environ, **chosen, **master}
    run_step(argv, environment, launch.cwd, folder, lambda: False, 2 * COLLECTIVE_S)
    results, torn = _results(out)
    why = (
        f"{torn[0]} cannot be read"
        if torn
        else f"the step left no result{last_words(folder, 'collective-*.log')}"
    )
    if not results:
        return with_broken(verdict, "collective", why, options.policy)
    return with_collectives(verdict, results, options.policy, nodes=nodes)


class _Answered:
    """Whether all is said: a verdict, that the first node is lost, or srun's that it cannot launch.

    When all others have lost it, a verdict may still come, from a first node that is merely cut
    off; but not for long.
    """

    def __init__(self, folder: Path, nodes: Sequence[str]) -> None:
        self._folder = folder
        self._nodes = nodes
        self._others = nodes[1:]
        self._lost_since: float | None = None

    def check(self) -> bool:
        if (self._folder / network.VERDICT_FILE).exists():
            return True
        if _launch_failures(self._folder, self._nodes):
            return True
        if self._lost_since is None and self._all_others_lost_it():
            self._lost_since = time.monotonic()
        return self._lost_since is not None and time.monotonic() - self._lost_since > LAST_WORD_S

    def _all_others_lost_it(self) -> bool:
        return bool(self._others) and all(
            (self._folder / f"lost-{node}.json").exists() for node in self._others
        )


def _results(folder: Path) -> tuple[list[CollectiveResult], list[str]]:
    results, torn = [], []
    for path in sorted(folder.glob("collective-*.json")):
        try:
            text = path.read_text(encoding="utf-8")
            results.append(CollectiveResult.from_json(json.loads(text)))
        except (OSError, ValueError):
            torn.append(path.name)
    return results, torn


def _thresholds(config: PreflightConfig) -> Thresholds:
    usual = {field.name: field.default for field in fields(Thresholds)}
    values: dict[str, Any] = {}
    for name, value in config.thresholds.items():
        if name not in usual:
            raise ConfigError(
                f"preflight.thresholds.{name}: there is no such threshold",
                f"known thresholds: {', '.join(usual)}",
            )
        if not math.isfinite(value) or value < 0:
            raise ConfigError(f"preflight.thresholds.{name} is {value:g}", "write 0 or more")
        # A config knows fractions alone; what counts MiB is written to the probes as it is read.
        values[name] = math.ceil(value) if isinstance(usual[name], int) else value
    return Thresholds(**values)


def _saw_gpus(folder: Path, nodes: Sequence[str]) -> bool:
    for node in nodes:
        try:
            seen = json.loads((folder / f"look-{node}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if seen.get("gpus"):
            return True
    return False
