"""What every check is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hpc_train.preflight.checks.findings import Thresholds
from hpc_train.preflight.choose.choose import Choice, choose
from hpc_train.preflight.choose.choose_hca import HcaChoice, choose_hcas
from hpc_train.preflight.choose.site_profile import SiteProfile
from hpc_train.preflight.inventory.inventory import Gpu, NodeInventory


class Skip(Exception):  # noqa: N818 (not an error: a check that does not apply)
    """Raised by a check that does not apply; its text says why."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """The nodes (at least one), and what was chosen for them."""

    nodes: tuple[NodeInventory, ...]
    choice: Choice
    hcas: HcaChoice
    thresholds: Thresholds
    is_nccl: bool = True  # false where the training uses gloo: the HCAs then do not matter

    @classmethod
    def of(
        cls,
        nodes: list[NodeInventory],
        env: Mapping[str, str],
        *,
        profile: SiteProfile | None = None,
        thresholds: Thresholds | None = None,
        is_nccl: bool = True,
    ) -> Context:
        """Return the context of these nodes, with the choice made."""
        profile, limits = profile or SiteProfile(), thresholds or Thresholds()
        return cls(
            nodes=tuple(nodes),
            choice=choose(nodes, env, profile, limits),
            hcas=choose_hcas(nodes, profile, limits.memlock_mib),
            thresholds=limits,
            is_nccl=is_nccl,
        )

    @property
    def hcas_count(self) -> bool:
        """Whether what is wrong with an HCA matters: it is used, or would be but for a few nodes.

        Where TCP is the user's wish, or most nodes have no other way, it is only worth a note.
        """
        return self.choice.transport != "TCP" or (not self.hcas.serves_all and self.hcas.are_meant)

    def gpus(self) -> Iterator[tuple[NodeInventory, Gpu]]:
        """Yield each GPU with its node; raises Skip where no node has one that NVML can see."""
        self.need_gpus()
        for node in self.nodes:
            for gpu in node.gpus:
                yield node, gpu

    def need_several(self) -> None:
        """Raise Skip on a single node."""
        if len(self.nodes) < 2:
            raise Skip("one node has nothing to compare with")

    def need_hcas(self) -> None:
        """Raise Skip where no node has an HCA, or the training does not use them."""
        if not self.is_nccl:
            raise Skip("gloo does not use the HCAs")
        if not any(node.hcas for node in self.nodes):
            raise Skip("no HCA on any node")

    def need_gpus(self) -> None:
        """Raise Skip where no node has a GPU that NVML can see."""
        if not any(node.gpus for node in self.nodes):
            raise Skip("no GPU that NVML can see")
