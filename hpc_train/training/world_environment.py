"""What `World` found, in the words of Lightning's cluster environments; imports none of them."""

from __future__ import annotations

from hpc_train.plan.world import World


class WorldEnvironment:
    """The ranks are there already; who is who was checked before.

    Lightning's SLURMEnvironment reads `rack[1-2]n[01-02]` as the host `rack1`
    (lightning_fabric/plugins/environments/slurm.py, resolve_root_node_address) and takes a port
    from the job id, which two jobs on one node share.
    """

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    @property
    def creates_processes_externally(self) -> bool:
        """The launcher made one process a rank."""
        return True

    @property
    def main_address(self) -> str:
        """Host of global rank 0."""
        return self._world.master_addr

    @property
    def main_port(self) -> int:
        """Port of the rendezvous."""
        return self._world.master_port

    @staticmethod
    def detect() -> bool:
        """Never by itself: it is given to the Trainer."""
        return False

    def world_size(self) -> int:
        """Ranks over all nodes."""
        return self._world.world_size

    def set_world_size(self, size: int) -> None:
        """Lightning's own count, which is ours; see `validate_settings`."""

    def global_rank(self) -> int:
        """This process among all."""
        return self._world.rank

    def set_global_rank(self, rank: int) -> None:
        """Lightning's own count, which is ours."""

    def local_rank(self) -> int:
        """This process among those of its node."""
        return self._world.local_rank

    def node_rank(self) -> int:
        """This node among all."""
        return self._world.node_rank
