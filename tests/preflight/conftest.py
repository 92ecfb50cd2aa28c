from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.preflight.inventory.collect_inventory import collect_inventory
from hpc_train.preflight.inventory.inventory import NodeInventory

from .made_sysfs import MadeNode


@pytest.fixture
def seen(tmp_path: Path) -> Callable[..., list[NodeInventory]]:
    """What is found on each of some made nodes."""

    def read(*made: MadeNode) -> list[NodeInventory]:
        return [
            collect_inventory(node.write(tmp_path / node.name), {}, lambda: 1.0, node=node.name)
            for node in made
        ]

    return read
