"""Calls of a Fabric and an Accelerator behind `if rank != 0: return`, and under `if rank == 0:`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.test_rank_zero_scripts import noted

FABRIC = """\
from lightning.fabric import Fabric
fabric = Fabric()
net = fabric.setup(make())
"""
ACCELERATE = """\
import accelerate
accelerator = accelerate.Accelerator()
net = accelerator.prepare(make())
"""


def inside(head: str, *lines: str, takes: str = "") -> str:
    """A script whose `train` has these lines from line 5 on, and is called."""
    return f"{head}def train({takes}):\n" + "".join(f"    {it}\n" for it in lines) + "train()\n"


@pytest.mark.parametrize(
    ("head", "leave", "call", "zero"),
    [
        (FABRIC, "fabric.global_rank != 0", "fabric.backward(x)", "fabric.global_rank == 0"),
        (FABRIC, "fabric.global_rank > 0", "fabric.barrier()", "fabric.global_rank == 0"),
        (FABRIC, "not fabric.is_global_zero", "fabric.backward(x)", "fabric.is_global_zero"),
        (FABRIC, "rank != 0", "fabric.save('a', net)", "rank == 0"),
        (ACCELERATE, "not accelerator.is_main_process", "accelerator.backward(x)", ""),
        (ACCELERATE, "accelerator.process_index != 0", "accelerator.gather(x)", ""),
        (ACCELERATE, "rank", "accelerator.wait_for_everyone()", "rank == 0"),
    ],
)
def test_what_all_ranks_call_is_noted(
    tmp_path: Path, head: str, leave: str, call: str, zero: str
) -> None:
    (note,) = noted(tmp_path, inside(head, f"if {leave}: return", "f()", call))
    name = call.partition("(")[0]
    assert note.startswith(f"train.py:7 calls {name}(...) behind `if {leave}: return` (line 5), ")
    assert f"under `if {zero}" in note


@pytest.mark.parametrize("annotation", ["Fabric", "L.Fabric", "'L.Fabric'"])
def test_the_argument_of_a_function_is_one_by_its_annotation(
    tmp_path: Path, annotation: str
) -> None:
    head = "import lightning as L\nfrom lightning import Fabric\n\n"
    text = inside(
        head, "if tool.global_rank == 0:", "    tool.barrier()", takes=f"tool: {annotation}"
    )
    (note,) = noted(tmp_path, text)
    assert note.startswith("train.py:6 calls tool.barrier(...) under `if tool.global_rank == 0`")


@pytest.mark.parametrize(
    "text",
    [
        # Behind it nothing is called that the others would have to call.
        inside(FABRIC, "if fabric.global_rank != 0: return", "fabric.print('x')", "net.eval()"),
        # The others call it before they leave.
        inside(
            FABRIC,
            "if fabric.global_rank != 0:",
            "    fabric.barrier()",
            "    return",
            "fabric.barrier()",
        ),
        inside(
            ACCELERATE,
            "if accelerator.process_index == 1: accelerator.gather(x)",
            "if rank != 0: return",
            "accelerator.gather(x)",
        ),
        # A model of rank 0's own is wrapped by nobody.
        inside(
            "from lightning.fabric import Fabric\nfabric = Fabric()\n\n",
            "if fabric.global_rank != 0: return",
            "fabric.backward(x)",
        ),
        # Objects of one's own, whose `save` and `gather` are of rank 0.
        inside(
            "import store\nctx = store.open()\n\n",
            "if ctx.global_rank != 0: return",
            "ctx.save('a')",
        ),
        inside(
            "from mine import Fabric\nfabric = Fabric()\nfabric.setup(1)\n",
            "if fabric.global_rank != 0: return",
            "fabric.save('a')",
        ),
        # The name is another thing elsewhere in the file.
        inside(FABRIC, "fabric = other()", "if rank != 0: return", "fabric.save('a')"),
        # One process of each machine: what it is for is not known.
        inside(
            ACCELERATE, "if not accelerator.is_local_main_process: return", "accelerator.gather(x)"
        ),
    ],
)
def test_what_is_right_is_not_noted(tmp_path: Path, text: str) -> None:
    assert noted(tmp_path, text) == []
