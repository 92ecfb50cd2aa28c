"""A colon that was forgotten is told in its own line, and a text of several lines is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.read import read_text
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, refusal, write

REST = "data: {class_path: a.Data}\nglobal_batch_size: 8\n"
NET = "model:\n  class_path: a.Net\n  init_args:\n"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("name exp\nseed: 3\n", "1: 'name exp'", "name: exp"),
        ("# one\n\nname exp  # two\n# three\nseed: 3\n", "3: 'name exp'", "name: exp"),
        ("name: x\nseed 3\nruns_dir: y\n", "2: 'seed 3'", "seed: 3"),
        ("name: x\nruns_dir: y\nseed 3\n", "3: 'seed 3'", "seed: 3"),
        ("name: x\nruns_dir: y\nseed 3", "3: 'seed 3'", "seed: 3"),
        ("name exp\n", "1: 'name exp'", "name: exp"),
        ("name exp\nseed 3\nrun: 1\n", "1: 'name exp'", "name: exp; in line 2: seed: 3"),
        ("name my first try\nseed: 3\n", "1: 'name my first try'", "name: my first try"),
        ("name exp\nurl: http://a/b\n", "1: 'name exp'", "name: exp"),
        (f"{NET}    lr 0.1\n    width: 3\n", "4: 'lr 0.1'", "lr: 0.1"),
        (f"{NET}    width: 3\n    lr 0.1\n", "5: 'lr 0.1'", "lr: 0.1"),
        (f"{NET}    a: 3\n    lr 0.1\n    b: 2\nseed: 1\n", "5: 'lr 0.1'", "lr: 0.1"),
        ("model:\n  class_path a.B\n  init_args: {}\n", "2: 'class_path a.B'", "class_path: a.B"),
        ("slurm:\n  time 0:10:00\n  nodes: 1\n", "2: 'time 0:10:00'", 'time: "0:10:00"'),
        ("a:\n  - class_path a.B\n    init_args: {}\n", "2: 'class_path a.B'", "class_path: a.B"),
        ("trainer\n  max_epochs: 3\n", "1: 'trainer'", "trainer:"),
        ("name: x\ntrainer\n  max_epochs: 3\n", "2: 'trainer'", "trainer:"),
        ("name: x\nseed\nruns_dir: y\n", "2: 'seed'", "seed: VALUE"),
    ],
)
def test_a_line_without_its_colon_is_named_and_written_out(
    text: str, message: str, hint: str, tmp_path: Path
) -> None:
    error = refusal(write(tmp_path, text))
    assert error.message == f"cfg.yaml:{message} has no colon"
    assert error.hint == f"write {hint}"


@pytest.mark.parametrize(
    ("more", "message", "hint"),
    [
        ("slurm:\n  nodes 2\n", "6: slurm is 'nodes 2'", "write below it nodes: 2"),
        ("slurm:\n  nodes 2\n  spares 1\n", "slurm is", "write below it nodes: 2; spares: 1"),
        ("trainer:\n  max_epochs 3\n", "trainer is 'max_epochs 3'", "write below it max_epochs: 3"),
        ("slurm: {nodes 2}\n", "5: slurm has the key 'nodes 2'", "a colon: {nodes: 2}"),
    ],
)
def test_lines_that_are_a_text_to_yaml_are_told_as_pairs(
    more: str, message: str, hint: str, tmp_path: Path
) -> None:
    error = refusal(write(tmp_path, MINIMAL + more))
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{NET}    lr: 1\n\u00a0\u00a0\u00a0\u00a0width: 3\n    b: 2\n", "5:1: not YAML"),
        (f"{NET}\u00a0\u00a0\u00a0\u00a0lr: 1\n    width: 3\n", "4:1: not YAML"),
        ("model:\n\u00a0\u00a0class_path: a.B\n", "2: the key '\\xa0\\xa0class_path'"),
        (f"name: x\n{NET}    lr:\u00a00.1\n{REST}", "5: model.init_args is 'lr:\\xa00.1'"),
    ],
)
def test_a_space_that_is_none_to_yaml_is_named_in_its_own_line(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        api.load(write(tmp_path, text))
    assert f"cfg.yaml:{message}" in caught.value.message
    assert caught.value.hint == "type a plain one in place of the NO-BREAK SPACE"


@pytest.mark.parametrize(
    "text",
    [
        "doc: some words\n  that go on\nname: x\n",
        "doc:\n  some words\n  go on\nname: x\n",
        "doc: |\n  name exp\n  seed 3\nname: x\n",
        "doc: 'one\n  two three'\nname: x\n",
        "setup:\n  - module load\n    cuda\n  - conda activate\n",
        "labels: {cat dog, a b}\n",
    ],
)
def test_a_text_of_several_lines_is_read_as_it_is(text: str) -> None:
    assert read_text(text, Path("cfg.yaml")).values


@pytest.mark.parametrize(
    "text",
    [
        "doc: some words\n  go on\n  and: here\nname: x\n",
        "this is prose, of several lines\nand: not a config\n",
        "name: x\n\tseed 3\nruns_dir: y\n",
        "import torch\nclass Net(Module):\n",
        "<<<<<<< HEAD\nname: x\n=======\nname: y\n>>>>>>> it\n",
        "name: [1, 2\nseed 3\n",
    ],
)
def test_what_no_colon_mends_is_told_as_before(text: str, tmp_path: Path) -> None:
    assert "colon" not in refusal(write(tmp_path, text)).message
