"""What the user and the supervisor ask of a preflight."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from hpc_train.codec import decode, encode
from hpc_train.errors import ConfigError
from hpc_train.preflight.checks.findings import Thresholds
from hpc_train.preflight.choose.site_profile import SiteProfile
from hpc_train.preflight.go_policy import Policy

__all__ = ["TOKEN_ENV", "Mode", "PreflightOptions"]

# The name of the variable that carries the run's token to every probe. Never on a command line.
TOKEN_ENV = "HPC_TRAIN_PREFLIGHT_TOKEN"

Mode = Literal["off", "quick", "full"]


@dataclass(frozen=True, kw_only=True)
class PreflightOptions:
    """The preflight of one attempt; written to a JSON file that every probe reads.

    Attributes:
        nodes: Expected nodes, in the order of their ranks; spares last.
        folder: Where look files, the rendezvous and the verdict go; shared by all nodes.
        mode: `off`, `quick`, or `full` (longer measurements).
        wanted: Nodes needed; the others are spares. None needs all.
        timeout_s: For everything after the probes have started.
        rendezvous_s: How long the coordinator waits for all nodes.
        silence_s: A node that says nothing for so long is lost.
        pair_s: Deadline of one test between two nodes.
        bandwidth_s: For each direction of each test.
        bandwidth_mib: At most so much in each direction.
        master: Name the ranks will use for the first node; checked on every node.
        is_local: All probes run on this host: names and loopback do not matter.
        is_nccl: Whether the ranks use NCCL; with gloo the HCAs do not matter.
        seed: Of the pairing; another one on another attempt separates other partners.
        thresholds: Where a number becomes a finding.
        policy: What the user allows.
        profile: The site's.
        root: Root of /sys, /proc and /dev.
        user_env: NCCL_*, GLOO_* and MASTER_ADDR as the user set them.
    """

    nodes: tuple[str, ...]
    folder: str
    mode: Mode = "quick"
    wanted: int | None = None
    timeout_s: float = 20.0
    rendezvous_s: float = 7.0
    silence_s: float = 3.0
    pair_s: float = 4.0
    bandwidth_s: float = 0.2
    bandwidth_mib: int = 64
    master: str = ""
    is_local: bool = False
    is_nccl: bool = True
    seed: int = 0
    thresholds: Thresholds = field(default_factory=Thresholds)
    policy: Policy = field(default_factory=Policy)
    profile: SiteProfile = field(default_factory=SiteProfile)
    root: str = "/"
    user_env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.nodes:
            raise ConfigError("preflight: no nodes to look at", "name at least one node")
        for name in ("timeout_s", "rendezvous_s", "silence_s", "pair_s", "bandwidth_s"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(
                    f"preflight.{name}: {getattr(self, name):g} s leaves no time for anything",
                    "write a positive number of seconds, or preflight: off",
                )
        if self.wanted is not None and not 1 <= self.wanted <= len(self.nodes):
            raise ConfigError(
                f"preflight: {self.wanted} nodes are wanted and {len(self.nodes)} are there",
                "ask for more nodes, or for fewer spares",
            )

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON's own types; they hold no secret."""
        document: dict[str, Any] = encode(self)
        return document

    @classmethod
    def from_json(cls, data: Any) -> PreflightOptions:
        """Return the options written by `to_json`.

        Raises:
            ValueError: `data` is not such a document.
            ConfigError: A value cannot be meant.
        """
        return decode(cls, data)
