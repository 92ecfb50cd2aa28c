"""Arguments of a script that mean another run, or a place that nobody has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hpc_train.cli.translate_command import command
from hpc_train.config.scripts.typed_arguments import notes_on_arguments
from tests.plan.configs import config


def notes(
    folder: Path, *words: str, nodes: int = 1, gpus: int = 2, launcher: Any = "srun"
) -> list[str]:
    made = config()
    script = replace(made.script, path="train.py", args=[*words], launcher=launcher)
    slurm = replace(made.slurm, nodes=nodes, gpus_per_node=gpus)
    return [*notes_on_arguments(replace(made, script=script, slurm=slurm), folder)]


TCP = ["--dist-url", "tcp://localhost:10001"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--data_path", "/path/to/imagenet/train"], "/path/to/imagenet/train"),
        (["--data=/path/to/imagenet"], "--data=/path/to/imagenet"),
        (["data.root=path/to/set"], "data.root=path/to/set"),
        (["./path/to"], "./path/to"),
        (["--out", "/PATH/TO/x"], "/PATH/TO/x"),
    ],
)
def test_a_placeholder_of_a_readme_is_told(tmp_path: Path, words: list[str], named: str) -> None:
    told = f"script.args: {named} is a placeholder, and is not there: write your own path"
    assert notes(tmp_path, *words) == [told]


@pytest.mark.parametrize(
    "words",
    [
        ["--data", "/data/imagenet"],
        ["--data", "/data/path/to/x"],
        ["path/to/here"],
        ["--path", "to"],
        ["path/tomato"],
        ["trainer.devices=2", "trainer.num_nodes=1"],
        ["trainer.devices=[0]"],
        ["trainer.devices=auto"],
        ["--trainer.devices", "4"],
        ["model.devices=4"],
    ],
)
def test_others_are_not(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "path" / "to" / "here").mkdir(parents=True)
    assert notes(tmp_path, *words) == []


def test_a_trainer_of_another_shape_is_told_with_the_option(tmp_path: Path) -> None:
    asks = "asks its Trainer for"
    devices, num_nodes = notes(tmp_path, "trainer=ddp", "trainer.devices=4", "+trainer.num_nodes=2")
    assert devices == (
        f"script.args: trainer.devices=4 {asks} 4, and this run has 2 ranks a node: submit it with"
        " --gpus 4, or leave trainer.devices=4 out"
    )
    assert num_nodes == (
        f"script.args: +trainer.num_nodes=2 {asks} 2, and this run has 1 node: submit it with"
        " --nodes 2, or leave +trainer.num_nodes=2 out"
    )
    assert notes(tmp_path, "trainer.devices=4", "trainer.num_nodes=2", nodes=2, gpus=4) == []


@pytest.mark.parametrize(
    ("words", "rank", "size"),
    [
        (["--world-size", "2", "--rank", "0"], "--rank 0", "--world-size 2"),
        (["--rank=0", "--world_size=2", "--dummy"], "--rank=0", "--world_size=2"),
        (["--node-rank", "1", "--world-size", "8"], "--node-rank 1", "--world-size 8"),
    ],
)
def test_the_rank_of_one_node_is_told(
    tmp_path: Path, words: list[str], rank: str, size: str
) -> None:
    told = (
        f"{rank} is of one, and all ranks get it: leave it and {size} out where the script reads"
        " RANK and WORLD_SIZE, which are set for each"
    )
    assert notes(tmp_path, *words) == [f"script.args: {told}"]
    assert notes(tmp_path, *words, gpus=1) == []
    typed = f"python train.py {' '.join(words)}"
    said = CliRunner().invoke(command, [typed]).output
    assert f"# {rank}: {told.removeprefix(f'{rank} ')}\n" in said


@pytest.mark.parametrize(
    ("words", "write"),
    [
        (["--dist-url", "tcp://10.0.0.1:33"], "--dist-url env://"),
        (["--dist-url=tcp://node1:33"], "--dist-url env://"),
        (["--init_method", "tcp://node1:33", "--dummy"], "--init_method env://"),
        (["tcp://node1:33"], "env:// for tcp://node1:33"),
    ],
)
def test_with_an_address_it_is_told_that_the_environment_has_all(
    tmp_path: Path, words: list[str], write: str
) -> None:
    said = f"out and write {write}, with which the script reads RANK and WORLD_SIZE, which are set"
    (note,) = notes(tmp_path, *words, "--world-size", "2", "--rank", "0", nodes=2)
    assert said in note


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"])
def test_an_address_of_each_node_itself_is_told_on_several(tmp_path: Path, host: str) -> None:
    words = ["--dist-url", f"tcp://{host}:10001"]
    told = (
        f"--dist-url tcp://{host}:10001 is each node itself, and they would not meet: write"
        " --dist-url env://, with which MASTER_ADDR and MASTER_PORT are read"
    )
    assert notes(tmp_path, *words, nodes=2) == [f"script.args: {told}"]
    assert notes(tmp_path, *words) == []
    assert notes(tmp_path, "--dist-url", "tcp://node1:1", nodes=2) == []
    assert notes(tmp_path, "--dist-url", "env://", nodes=2) == []
    assert notes(tmp_path, "--tracker", f"http://{host}:80", nodes=2) == []


def test_one_process_that_starts_all_ranks_may_have_the_rank_of_one(tmp_path: Path) -> None:
    words = [*TCP, "--world-size", "1", "--rank", "0"]
    assert notes(tmp_path, *words, launcher="none") == []
    assert len(notes(tmp_path, *words, launcher="none", nodes=2)) == 2


@pytest.mark.parametrize("words", [["--rank", "8"], ["--world-size", "2"], ["--rank", "8", "2"]])
def test_a_rank_alone_may_be_another_thing(tmp_path: Path, words: list[str]) -> None:
    assert notes(tmp_path, *words) == []


PARSER = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("-a", "--amp", type=bool, default=True)
parser.add_argument("--fast", action=argparse.BooleanOptionalAction)
parser.add_argument("--name")
parser.add_argument("--lr", type=float)
args = parser.parse_args()
"""


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        (["--amp", "False"], "--amp False"),
        (["--lr", "0", "--amp=false"], "--amp=false"),
        (["--amp", "0", "--name", "no"], "--amp 0"),
        (["--amp", "no"], "--amp no"),
        (["-a", "False"], "-a False"),
    ],
)
def test_a_false_that_type_bool_makes_true_is_told(
    tmp_path: Path, words: list[str], typed: str
) -> None:
    (tmp_path / "train.py").write_text(PARSER)
    said = f"{typed} gives True: type=bool makes True of every text that is not empty (train.py:3)"
    write = "write action=argparse.BooleanOptionalAction for it there, and type --no-amp"
    assert notes(tmp_path, *words) == [f"script.args: {said}: {write}; or type --amp="]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--amp", "True"], PARSER),
        (["--amp="], PARSER),
        (["--amp", "1"], PARSER),
        (["--name", "False"], PARSER),
        (["--lr", "0"], PARSER),
        (["--no-fast"], PARSER),
        ([], PARSER),
        (["--amp", "False"], PARSER.replace("type=bool", "type=str2bool")),
        (["--amp", "False"], PARSER.replace("parse_args()", "parse_args(words())")),
        (["--amp", "False"], "import fire\nfire.Fire(train)\n"),
    ],
)
def test_another_value_is_no_false_text(tmp_path: Path, words: list[str], text: str) -> None:
    (tmp_path / "train.py").write_text(text)
    assert notes(tmp_path, *words) == []
