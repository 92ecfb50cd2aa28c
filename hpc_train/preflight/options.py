"""What the user and the supervisor ask of a preflight."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hpc_train.codec import Document
from hpc_train.errors import ConfigError
from hpc_train.preflight.checks.findings import Thresholds
from hpc_train.preflight.choose.site_profile import SiteProfile

# The name of the variable that carries the run's token to every probe. Never on a command line.
TOKEN_ENV = "HPC_TRAIN_PREFLIGHT_TOKEN"
VERDICT_FILE = "preflight.json"

_Answer = Literal["go", "no-go"]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What the user allows."""

    on_degraded: _Answer = "go"  # whether a slow but working job may start
    on_unknown: _Answer = "go"  # whether it may start where a check could not tell
    on_broken: _Answer = "go"  # whether it may start where a part of the preflight itself broke
    # Whether it may start, as degraded, where nothing at all could be checked
    on_unchecked: _Answer = "go"


@dataclass(frozen=True, kw_only=True)
class PreflightRequest:
    """What is to be checked, and how a step is started there."""

    # Of the allocation, in the order of the ranks, spares last; this host's name alone where there
    # is no allocation
    nodes: tuple[str, ...]
    folder: Path  # on the shared file system; where probes leave what they see
    # Of the batch step; what the steps must not inherit is left out of them
    environ: Mapping[str, str]
    python: str  # interpreter on the nodes
    cwd: str  # working directory of the steps
    rank_python: tuple[str, ...] = ()  # what runs Python as the ranks do; () = `python`
    rank_options: tuple[str, ...] = ()  # of srun, for the ranks alone
    wanted: int | None = None  # nodes that the ranks need; None needs all
    gpus_per_node: int = 0  # of the training; without any it uses gloo
    ranks_per_node: int = 1  # of the training
    uses_gloo: bool = False  # whether its ranks surely meet by gloo
    # Nodes on which Slurm could not start the ranks, and its words
    unreachable: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0  # another one on another attempt pairs nodes anew
    srun: tuple[str, ...] = ("srun",)  # what a step is started with
    is_local: bool = False  # there is no allocation: this host alone is checked
    # A person asks, and nothing else follows: what would be skipped before a training is checked,
    # and where nothing could be checked the answer is no
    is_asked: bool = False

    @property
    def is_slurm(self) -> bool:
        """Whether Slurm knows the nodes; the names of hosts behind ssh mean something to ssh."""
        return self.srun == ("srun",)


@dataclass(frozen=True, kw_only=True)
class PreflightOptions(Document):
    """The preflight of one attempt; written to a JSON file, without a secret, for every probe."""

    nodes: tuple[str, ...]  # expected nodes, in the order of their ranks; spares last
    folder: str  # where inventories, the rendezvous and the verdict go; shared by all nodes
    mode: Literal["quick", "full"] = "quick"  # `quick`, or `full` (longer measurements)
    wanted: int | None = None  # nodes needed; the others are spares. None needs all.
    timeout_s: float = 20.0  # for everything after the probes have started
    rendezvous_s: float = 7.0  # how long the coordinator waits for all nodes
    silence_s: float = 3.0  # a node that says nothing for so long is lost
    pair_s: float = 4.0  # deadline of one test between two nodes
    bandwidth_s: float = 0.2  # for each direction of each test
    bandwidth_mib: int = 64  # at most so much in each direction
    is_local: bool = False  # all probes run on this host: names and loopback do not matter
    by_address: bool = False  # the ranks are told an address: the nodes' names do not matter
    is_nccl: bool = True  # whether the ranks use NCCL; with gloo the HCAs do not matter
    seed: int = 0  # of the pairing; another one on another attempt separates other partners
    thresholds: Thresholds = field(default_factory=Thresholds)  # where a number becomes a finding
    policy: Policy = field(default_factory=Policy)  # what the user allows
    profile: SiteProfile = field(default_factory=SiteProfile)  # the site's
    root: str = "/"  # root of /sys, /proc and /dev
    # NCCL_*, GLOO_* and MASTER_ADDR as the user set them
    user_env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.nodes:
            raise ConfigError("preflight: no nodes to look at", "name at least one node")
        for name in ("timeout_s", "rendezvous_s", "silence_s", "pair_s", "bandwidth_s"):
            positive(f"preflight.{name}", getattr(self, name))
        if not 1 <= self.needed <= len(self.nodes):
            raise ConfigError(
                f"preflight: {self.wanted} nodes are wanted and {len(self.nodes)} are there",
                "ask for more nodes, or for fewer spares",
            )

    @property
    def needed(self) -> int:
        """How many nodes the ranks need."""
        return len(self.nodes) if self.wanted is None else self.wanted


def positive(name: str, seconds: float) -> None:
    """Refuse a time that leaves none; the name is the config's.

    Raises:
        ConfigError: It is no positive number.
    """
    if not 0 < seconds < math.inf:
        raise ConfigError(
            f"{name}: {seconds:g} s leaves no time for anything",
            "write a positive number of seconds, or preflight: off",
        )
