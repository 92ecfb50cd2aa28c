"""Ranks and addresses that a script has written down for all of its ranks: notes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hpc_train.config.fit.code_notes import notes_on_code
from hpc_train.config.load import load
from hpc_train.config.scripts.fixed_ranks import fixed_ranks

LEAVE_OUT = "leave rank, world_size and init_method out: each rank has them in its environment"
SCRIPT = "import os\nimport torch.distributed as dist\nfrom os import environ\n"


def told(text: str, ranks: int = 4) -> list[str]:
    tree = ast.parse(SCRIPT + text)
    return [f"{it[0]} {it[1]}" for it in fixed_ranks(tree, ranks=ranks)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            'dist.init_process_group("gloo", rank=0, world_size=4)',
            "gives init_process_group rank=0 in each of the 4 ranks",
        ),
        (
            "dist.init_process_group(rank=1)",
            "gives init_process_group rank=1 in each of the 4 ranks",
        ),
        (
            "dist.init_process_group(rank=rank, world_size=2)",
            "gives init_process_group world_size=2, and this run has 4 ranks",
        ),
        ('environ["RANK"] = "0"', "sets RANK to 0 in each of the 4 ranks"),
        ('os.environ["LOCAL_RANK"] = "1"', "sets LOCAL_RANK to 1 in each of the 4 ranks"),
        ('os.environ["WORLD_SIZE"] = "1"', "sets WORLD_SIZE to 1, and this run has 4 ranks"),
    ],
)
def test_what_is_of_one_rank_alone_is_told_wherever_it_surely_runs(line: str, said: str) -> None:
    assert told(line) == [f"4 {said}"]
    assert told(f"def main():\n    {line}\nif __name__ == '__main__':\n    main()") == [f"5 {said}"]
    assert told(f"if one:\n    {line}") == []
    assert told(f"try:\n    {line}\nexcept ValueError:\n    pass") == []


@pytest.mark.parametrize(
    "line",
    [
        "dist.init_process_group('gloo')",
        "dist.init_process_group('gloo', rank=rank, world_size=size)",
        "dist.init_process_group('gloo', world_size=4)",
        "dist.init_process_group('gloo', rank=-1, world_size=-1)",
        "dist.init_process_group('gloo', init_method='env://')",
        'os.environ.setdefault("MASTER_ADDR", "localhost")',
        'os.environ["MASTER_ADDR"] = "localhost"',  # the ranks meet where they were started
        'os.environ["MASTER_ADDR"] = host',
        'os.environ["MASTER_ADDR"] = "node7"',
        'os.environ["MASTER_PORT"] = "12355"',
        'os.environ["WORLD_SIZE"] = "4"',
        'os.environ["RANK"] = str(rank)',
        'given["RANK"] = "0"',
    ],
)
def test_what_may_be_right_is_said_nothing_of(line: str) -> None:
    assert told(line) == []


def test_one_rank_and_one_node_may_have_them_written_down() -> None:
    line = 'os.environ["MASTER_ADDR"] = "127.0.0.1"; os.environ["RANK"] = "0"'
    group = "dist.init_process_group('gloo', rank=0, world_size=1)"
    assert told(f"{line}\n{group}", ranks=1) == []
    assert told(line, ranks=2) == ["4 sets RANK to 0 in each of the 2 ranks"]
    assert told(group, ranks=3) == [
        "4 gives init_process_group world_size=1, and this run has 3 ranks"
    ]


@pytest.mark.parametrize(("launcher", "count"), [("srun", 1), ("torchrun", 1), ("none", 0)])
def test_it_is_noted_at_submission(tmp_path: Path, launcher: str, count: int) -> None:
    text = f"{SCRIPT}dist.init_process_group('gloo', rank=0)\n"
    (tmp_path / "train.py").write_text(text)
    (tmp_path / "cfg.yaml").write_text(
        f"slurm: {{nodes: 3, gpus_per_node: 1}}\nscript: {{path: train.py, launcher: {launcher}}}\n"
    )
    notes = notes_on_code(load(tmp_path / "cfg.yaml"), workdir=tmp_path)
    said = f"train.py:4 gives init_process_group rank=0 in each of the 3 ranks; {LEAVE_OUT}"
    assert [it for it in notes if "rank=0" in it] == [said] * count
