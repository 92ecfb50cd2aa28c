"""Scripts that start their ranks themselves, as processes: told before the queue."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpc_train.cli.translate_command import command
from tests.config.files import told_of_script

HEAD = """\
import torch.multiprocessing as mp
import torch.distributed as dist
def setup(rank, size): dist.init_process_group("gloo", rank=rank, world_size=size)
def main(rank, size): setup(rank, size); go(rank)
"""
SPAWN = HEAD + 'if __name__ == "__main__":\n    n = 2\n    mp.spawn(main, args=(n,), nprocs=n)\n'
ALREADY = "(torch.multiprocessing.spawn), and hpc-train starts the ranks already"
ONE = "; or let it train one rank, by RANK, WORLD_SIZE and LOCAL_RANK, which are set"
NONE = f"add script.launcher=none, and it starts all ranks itself{ONE}"


told = partial(told_of_script, about="starts the ranks already")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        SPAWN,
        SPAWN.replace("nprocs=n", "nprocs=2"),
        SPAWN.replace("args=(n,), nprocs=n", "(n,), 2"),
        SPAWN.replace("mp.spawn", "mp.start_processes"),
        SPAWN.replace("import torch.multiprocessing as mp", "import torch").replace(
            "mp.spawn", "torch.multiprocessing.spawn"
        ),
        "from torch.multiprocessing import spawn\n" + SPAWN[35:].replace("mp.spawn", "spawn"),
    ],
)
def test_a_spawn_that_each_rank_comes_to_is_refused(tmp_path: Path, text: str) -> None:
    refused, _ = told(tmp_path, text)
    already = ALREADY.replace("spawn)", "start_processes)" if "start_p" in text else "spawn)")
    assert refused == (f"train.py:7 starts 2 processes {already}", NONE)
    assert told(tmp_path, text, "script.launcher=none") == (None, [])


def test_the_shape_is_in_what_is_told(tmp_path: Path) -> None:
    refused, _ = told(tmp_path, SPAWN, gpus=1)
    assert refused is not None
    assert refused[1] == NONE.replace("add ", "add --gpus 2 ")
    refused, _ = told(tmp_path, SPAWN, "slurm.nodes=2")
    assert refused is not None
    of_each = "it starts those of each node itself, by NODE_RANK and NNODES, which are set"
    assert refused[1] == f"add script.launcher=none, and {of_each}{ONE}"


PROCESSES = SPAWN.replace("mp.spawn(main, args=(n,), nprocs=n)", "mp.Process(target=main).start()")


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        (SPAWN.replace("n = 2", "n = count()"), f"starts processes {ALREADY}"),
        (SPAWN.replace("    mp.", "    if n > 1: mp."), f"starts 2 processes {ALREADY}"),
        (f"from pytorch_lightning import Trainer\n{SPAWN}", f"starts 2 processes {ALREADY}"),
        (SPAWN.replace("n = 2", "n = 2; n += 1"), f"starts processes {ALREADY}"),
        (PROCESSES, f"starts processes {ALREADY.replace('spawn)', 'Process)')}"),
        (
            PROCESSES.replace("import torch.multi", "import multi"),
            "starts processes (multiprocessing.Process), and hpc-train starts the ranks already",
        ),
    ],
)
def test_what_may_not_be_reached_or_start_one_alone_is_noted(
    tmp_path: Path, text: str, starts: str
) -> None:
    line = next(it for it, row in enumerate(text.splitlines(), 1) if "main" in row and "mp." in row)
    assert told(tmp_path, text) == (None, [f"train.py:{line} {starts}: {NONE}"])
    assert told(tmp_path, text, "script.launcher=none") == (None, [])


@pytest.mark.parametrize(
    "text",
    [
        SPAWN.replace("n = 2", "n = 1"),
        SPAWN.replace(", nprocs=n", ""),
        SPAWN.replace("mp.spawn", "mine.spawn"),
        PROCESSES.replace("target=main", "target=print"),
        PROCESSES.replace("target=main", ""),
        PROCESSES.replace("dist.init", "dist.no_"),
        HEAD + "mp.set_start_method('spawn')\n",
    ],
)
def test_other_processes_are_the_scripts_business(tmp_path: Path, text: str) -> None:
    assert told(tmp_path, text) == (None, [])


ASKED = HEAD + (
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('--world-size')\n"
    "p.add_argument('--multiprocessing-distributed', action='store_true')\nargs = p.parse_args()\n"
    "if args.multiprocessing_distributed:\n    mp.spawn(main, nprocs=torch.cuda.device_count())\n"
    "else:\n    main(0, 1)\n"
)


@pytest.mark.parametrize(
    ("text", "words", "is_alone"),
    [
        (SPAWN, "", True),
        (ASKED, "--multiprocessing-distributed --world-size 1", True),
        (ASKED, "--world-size 1", False),
        (
            ASKED.replace("nprocs=torch.cuda.device_count()", "nprocs=1"),
            "--multiprocessing-dist",
            False,
        ),
        (HEAD, "", False),
    ],
)
def test_translate_lets_it_start_its_own_ranks(
    tmp_path: Path, text: str, words: str, is_alone: bool
) -> None:
    (tmp_path / "train.py").write_text(text)
    said = CliRunner().invoke(command, [f"python train.py {words}"]).output
    line = "hpc-train submit train.py script.launcher=none"
    assert (line in said) is is_alone
    assert ("launcher: none" in said) is is_alone
    starts = "starts its ranks (torch.multiprocessing.spawn): script.launcher=none; add --gpus N"
    assert (starts in said) is is_alone
    said = (
        CliRunner().invoke(command, [f"srun -N 2 --gpus-per-node 4 python train.py {words}"]).output
    )
    line = "hpc-train submit --nodes 2 --gpus 4 train.py script.launcher=none"
    assert (line in said) is is_alone
    assert "add --gpus" not in said


def test_the_rank_of_one_stays_with_one_process_that_starts_the_others(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SPAWN)
    words = "--world-size 1 --rank 0 --dist-url tcp://localhost:1"
    said = CliRunner().invoke(command, [f"python train.py {words}"]).output
    assert "is of one" not in said
    assert "each node itself" not in said
    said = CliRunner().invoke(command, [f"srun -N 2 python train.py {words}"]).output
    assert (
        "# --rank 0: is of one, and all ranks get it: leave it and --world-size 1 out and" in said
    )
    assert "# --dist-url tcp://localhost:1: is each node itself" in said
