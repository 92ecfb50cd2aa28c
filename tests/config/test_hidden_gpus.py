"""CUDA_VISIBLE_DEVICES in a script of several ranks: noted before the queue."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.config.files import told_of_script

SET = 'os.environ["CUDA_VISIBLE_DEVICES"] = '
HEAD = "import os\n{}\nimport torch.distributed as dist\ndist.init_process_group('nccl')\n"
OUT = "leave that line out: the job gives each rank its GPU"

told = partial(told_of_script, about="CUDA_VISIBLE_DEVICES")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("line", "sees"),
    [
        (f'{SET}"0"', "to 0, so that all 4 ranks of a node see GPU 0 alone"),
        (f'{SET}"3"', "to 3, so that all 4 ranks of a node see GPU 3 alone"),
        (f'{SET}"0, 1"', "to 0,1, so that all 4 ranks of a node see 2 GPUs"),
        (
            f'from os import environ; {SET[3:]}"0"',
            "to 0, so that all 4 ranks of a node see GPU 0 alone",
        ),
    ],
)
def test_too_few_for_the_ranks_of_a_node_are_noted(tmp_path: Path, line: str, sees: str) -> None:
    said = f"train.py:2 sets CUDA_VISIBLE_DEVICES {sees}; {OUT}"
    text = HEAD.format(line)
    assert told(tmp_path, text, gpus=4) == (None, [said])
    assert told(tmp_path, text, "slurm.nodes=2", gpus=4) == (None, [said])
    assert told(tmp_path, text, gpus=1) == (None, [])
    assert told(tmp_path, text, "script.accelerator=cpu", gpus=4) == (None, [])
    assert told(tmp_path, text, "script.launcher=none", gpus=4) == (None, [])


def test_it_is_noted_in_a_function_that_each_rank_comes_to(tmp_path: Path) -> None:
    main = f'def main():\n    {SET}"0"\n    train()'
    text = f'import os\n{main}\nif __name__ == "__main__":\n    main()\n'
    (note,) = told(tmp_path, text)[1]
    assert note.startswith("train.py:3 sets CUDA_VISIBLE_DEVICES to 0, so that all 2 ranks")


@pytest.mark.parametrize(
    "line",
    [
        f'{SET}"0,1,2,3"',
        f'{SET}""',
        f'{SET}"-1"',
        f"{SET}str(rank)",
        f'{SET}"0"\n{SET}str(rank)',
        f'if debug:\n    {SET}"0"',
        f'def alone():\n    {SET}"0"',
        f'try:\n    {SET}"0"\nfinally:\n    pass',
        'os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")',
        f'{SET}"0"\nos.environ.update(CUDA_VISIBLE_DEVICES=mine)',
        'others["CUDA_VISIBLE_DEVICES"] = "0"',
    ],
)
def test_another_choice_is_the_scripts_business(tmp_path: Path, line: str) -> None:
    assert told(tmp_path, HEAD.format(line), gpus=4) == (None, [])
