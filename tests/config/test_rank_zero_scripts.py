"""A call that all ranks have to make is noted where a script's rank 0 alone makes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.python_text.script_tree import script_tree
from hpc_train.config.scripts.rank_zero_scripts import rank_zero_of_script
from tests.config.files import write
from tests.config.test_ranks_apart import told

RAW = """\
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    net = DistributedDataParallel(torch.nn.Linear(1, 1))
    for epoch in range(3):
        net(torch.ones(1)).backward()
{body}
main()
"""
CALLBACK = """\
import lightning as L
from lightning.pytorch.callbacks import Callback
class Keeper(Callback):
    def on_train_epoch_end(self, trainer, module):
        if {test}:
            trainer.save_checkpoint("keep.ckpt")
def main():
    trainer = L.Trainer(callbacks=[Keeper()])
    trainer.fit(net)
{body}
main()
"""


def noted(folder: Path, text: str) -> list[str]:
    file = write(folder, text, "train.py")
    tree = script_tree(file)
    assert tree is not None
    found = rank_zero_of_script(tree, file, [str(folder)])
    return [f"{name}:{line} {said}; {hint}" for name, line, said, hint in found]


def raw(*lines: str) -> str:
    return RAW.format(body="\n".join(f"        {it}" for it in lines))


@pytest.mark.parametrize(
    ("test", "call"),
    [
        ("rank == 0", "dist.all_reduce(loss)"),
        ("dist.get_rank() == 0", "torch.distributed.barrier()"),
        ("0 == rank", "x = [dist.all_gather_object(a, b)]"),
        ("is_main_process()", "dist.barrier()"),
        ("self.is_main", "dist.broadcast(x, 0)"),
        ("accelerator.is_main_process", "accelerator.wait_for_everyone()"),
        ("fabric.is_global_zero", "fabric.barrier()"),
    ],
)
def test_it_is_noted_with_its_line_and_the_condition(tmp_path: Path, test: str, call: str) -> None:
    (note,) = noted(tmp_path, raw(f"if {test}:", f"    {call}"))
    assert note.startswith("train.py:10 calls ")
    assert f"under `if {test}`, and all ranks have to call it" in note


def test_it_is_said_at_submission_where_there_are_several_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = raw("if rank == 0:", "    dist.all_reduce(loss)")
    said = "train.py:10 calls dist.all_reduce(...) under `if rank == 0`, and all ranks have to call"
    assert said in told(tmp_path, text)[1]
    assert said not in told(tmp_path, text, gpus=1)[1]


def test_a_module_of_the_script_s_own_is_read_as_well(tmp_path: Path) -> None:
    helper = "import torch.distributed as dist\ndef f(rank):\n    if rank == 0:\n"
    helper += "        dist.barrier()\n"
    write(tmp_path, helper, "helper.py")
    (note,) = noted(tmp_path, "import helper\nhelper.f(0)\n")
    assert note.startswith("helper.py:4 calls dist.barrier(...) under `if rank == 0`")


@pytest.mark.parametrize("test", ["trainer.is_global_zero", "trainer.global_rank == 0"])
def test_a_callback_of_a_script_that_saves_on_rank_0_alone(tmp_path: Path, test: str) -> None:
    (note,) = noted(tmp_path, CALLBACK.format(test=test, body=""))
    assert note.startswith("train.py:6 calls trainer.save_checkpoint(...) under `if ")


def test_a_save_behind_the_training_on_rank_0_alone(tmp_path: Path) -> None:
    body = "    if trainer.is_global_zero:\n        trainer.save_checkpoint('last.ckpt')"
    (note,) = noted(tmp_path, CALLBACK.format(test="epoch == 3", body=body))
    assert note.startswith("train.py:11 calls trainer.save_checkpoint(...) under `if trainer.is_gl")


@pytest.mark.parametrize(
    "lines",
    [
        ["if rank == 0:", "    print('done'); torch.save({}, 'a.pt')"],
        ["if rank == 0:", "    dist.barrier()", "else:", "    dist.barrier()"],
        ["if rank != 0:", "    dist.barrier()", "if rank == 0:", "    dist.barrier()"],
        ["if rank not in (-1, 0): dist.barrier()", "if rank == 0: dist.barrier()"],
        ["if rank == 0:", "    dist.barrier()", "    continue", "dist.barrier()"],
        ["if rank == 0:", "    dist.all_reduce(x, group=mine)"],
        ["if rank == 0 and world > 1:", "    dist.barrier()"],
        ["if local_rank == 0:", "    dist.barrier()"],
        ["if rank == 0:", "    dist.send(x, 1)", "else:", "    dist.recv(x, 0)"],
        ["if rank == 0:", "    board.reduce(x); pool.barrier()"],
        ["if epoch == 0:", "    dist.barrier()"],
        ["if rank == 0:", "    def save(): dist.barrier()"],
        ["if not is_main:", "    dist.barrier()", "if is_main:", "    dist.barrier()"],
    ],
)
def test_what_rank_0_may_do_alone_is_not_noted(tmp_path: Path, lines: list[str]) -> None:
    assert noted(tmp_path, raw(*lines)) == []


def test_a_printing_callback_is_not_noted(tmp_path: Path) -> None:
    text = CALLBACK.format(test="trainer.is_global_zero", body="")
    text = text.replace('trainer.save_checkpoint("keep.ckpt")', "print(trainer.current_epoch)")
    assert noted(tmp_path, text) == []
