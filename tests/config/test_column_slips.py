"""A line that begins in a wrong column, or a dash without its space: where it belongs is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.read import read_text
from hpc_train.errors import ConfigError
from tests.config.files import write

MODEL = "model:\n  class_path: a.Net\n  init_args:\n    lr: 0.1\n    width: 3\n"
TRAINER = (
    "trainer:\n  max_epochs: 3\n  callbacks:\n    - class_path: a.B\n"
    "      init_args:\n        patience: 1\n"
)


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        (
            MODEL.replace("    width", "   width"),
            5,
            "width in the column of lr in the line above: 5",
        ),
        (MODEL.replace("    lr", "     lr"), 5, "width in the column of lr in the line above: 6"),
        (
            MODEL.replace("  init_args", " init_args"),
            3,
            "init_args in the column of class_path in the line above: 3",
        ),
        (f"{MODEL} data: {{class_path: a.D}}\n", 6, "data in the column of model in line 1: 1"),
        (f"{MODEL}   data:\n    class_path: a.D\n", 6, "data in the column of model in line 1: 1"),
        (f"{MODEL}  slurm:\n    nodes: 1\n", 6, ""),  # reads well, and is refused by its keys
        (
            "trainer:\n   max_epochs: 3\n  accelerator: cpu\n",
            3,
            "accelerator in the column of max_epochs in the line above: 4",
        ),
        (
            "slurm:\n  nodes: 1\n gpus_per_node: 3\n",
            3,
            "gpus_per_node in the column of nodes in the line above: 3",
        ),
        (
            TRAINER.replace("      init_args", "    init_args"),
            5,
            "init_args in the column of class_path in the line above: 7",
        ),
        (f"{TRAINER}       mode: max\n", 7, "mode in the column of patience in the line above: 9"),
        (f"{TRAINER}   - class_path: a.C\n", 7, "the dash in the column of the dash in line 4: 5"),
        (f"{TRAINER}     - class_path: a.C\n", 7, "the dash in the column of the dash in line 4"),
        (
            "loggers:\n  - csv\n - wandb\n",
            3,
            "the dash in the column of the dash in the line above",
        ),
        (
            f"{MODEL}    layers:\n      - in: 3\n        out: 4\n       act: relu\n",
            9,
            "act in the column of out in the line above: 9",
        ),
    ],
)
def test_the_column_that_is_meant_is_told(text: str, line: int, hint: str) -> None:
    if not hint:
        read_text(text, Path("cfg.yaml"))
        return
    with pytest.raises(ConfigError) as caught:
        read_text(text, Path("cfg.yaml"))
    assert caught.value.message.startswith(f"cfg.yaml:{line}:")
    assert f"begin {hint}" in caught.value.hint


@pytest.mark.parametrize("section", ["slurm", "trainer", "model"])
def test_a_dash_in_a_section_that_has_pairs_is_to_be_left_out(section: str) -> None:
    names = {"slurm": "nodes time", "trainer": "max_epochs precision"}
    first, second = names.get(section, "class_path init_args").split()
    text = f"name: x\n{section}:\n  - {first}: 1\n  {second}: 2\n"
    with pytest.raises(ConfigError) as caught:
        read_text(text, Path("cfg.yaml"))
    wanted = f"leave out the dash of {first} in the line above: {section} has pairs, {first} and"
    assert caught.value.hint.startswith(wanted)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("  a: {epoch}-{val_loss:.2f}\n", 'put it in quotes: a: "{epoch}-{val_loss:.2f}"'),
        ("  a: {epoch:02d}-x  # c\n", 'put it in quotes: a: "{epoch:02d}-x"'),
        ("  a: {b: {epoch}-{x}, c: 1}\n", 'put it in quotes: b: "{epoch}-{x}"'),
        ("  a: {epoch} {x}  # c\n", 'put it in quotes: a: "{epoch} {x}"'),
        ("  a: {epoch:02d}\n", 'put it in quotes: "{epoch:02d}"'),
        ("  a: {x:.2f}\n", 'put it in quotes: "{x:.2f}"'),
        ("  a: {lr:0.1}\n", "write a space behind the colon: {lr: 0.1}"),
        ("  a: {n:3, b:.2f}\n", "write a space behind the colon: {n: 3}"),
        ("  -class_path: a.B\n", "write a space behind the dash: - class_path: ..."),
        ("  -class_path: a.B\n   init_args: {x: 1}\n", "behind the dash: - class_path: a.B"),
        ("  - csv\n  -wandb\n", "write a space behind the dash: - wandb"),
    ],
)
def test_braces_of_a_file_name_and_a_dash_without_its_space(text: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_text(f"name: x\nloggers:\n{text}", Path("cfg.yaml"))
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "a: {b: 1}  # {x}-{y}\n",
        'a: "{epoch}-{x}"\n',
        "a: {epoch}\n",
        "a: [-1, -x]\nb:\n  - -5\n  - -csv\n",
        "slurm:\n  extra: {-x: 1}\n",
    ],
)
def test_what_reads_well_stays(text: str) -> None:
    read_text(text, Path("cfg.yaml"))


NET = "name: x\nglobal_batch_size: 32\nmodel:\n  class_path: nets.Net\n"
DATA = "data:\n  class_path: nets.Data\n"
ITEM = "trainer:\n  callbacks:\n    - class_path: a.B\n      init_args:\n"
WITH = ", with the lines below it"


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        (
            "trainer:\nmax_epochs: 3\n  accelerator: cpu\n",
            3,
            "max_epochs to the column of accelerator (3): it belongs below trainer: in line 1",
        ),
        (
            "trainer:  # c\n# d\nmax_epochs: 3\n\nprecision: 32\n    callbacks: []\n",
            6,
            "max_epochs and precision to the column of callbacks (5): they belong below trainer:",
        ),
        (
            "model:\nclass_path: nets.Net\n  init_args:\n    width: 3\n",
            3,
            "class_path to the column of init_args (3): it belongs below model: in line 1",
        ),
        (
            "slurm:\ntime: '1:00:00'\n  partition: gpu\n",
            3,
            "time to the column of partition (3): it belongs below slurm: in line 1",
        ),
        (
            "model:\n  class_path: nets.Net\n  init_args:\n  width: 3\n    lr: 0.1\n",
            5,
            "width to the column of lr (5): it belongs below init_args: in line 3",
        ),
        (
            f"{ITEM}      monitor: x\n        patience: 3\n",
            6,
            "monitor to the column of patience (9): it belongs below init_args: in line 4",
        ),
    ],
)
def test_a_key_in_the_column_of_its_empty_parent_is_to_be_indented(
    text: str, line: int, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_text(text, Path("cfg.yaml"))
    assert caught.value.message.startswith(f"cfg.yaml:{line}:")
    assert caught.value.hint.startswith(f"indent {hint}")


@pytest.mark.parametrize(
    "text",
    [
        "trainer:\nname: x\n  accelerator: cpu\n",
        "trainer:\n  max_epochs: 3\n   accelerator: cpu\n",
        "trainer:\n  callbacks:\n  max_epochs: 3\n    accelerator: cpu\n",
    ],
)
def test_a_key_that_may_stand_where_it_does_is_not_to_be_indented(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_text(text, Path("cfg.yaml"))
    assert "indent" not in caught.value.hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            f"{NET}{DATA}trainer:\nmax_epochs: 3\naccelerator: cpu\n",
            "indent max_epochs and accelerator: they belong below trainer: in line 7",
        ),
        (
            f"name: x\nglobal_batch_size: 32\nmodel:\nclass_path: nets.Net\n{DATA}",
            "indent class_path: it belongs below model: in line 3",
        ),
        (
            f"{NET}data:\n\nclass_path: nets.Data\ninit_args:\n  path: a\nseed: 3\n",
            f"indent class_path and init_args{WITH}: they belong below data: in line 5",
        ),
        (
            f"{NET}{DATA}trainer:\n  accelerator: cpu\nmax_epochs: 3\n",
            "write below trainer: max_epochs: 3",
        ),
        (
            "name: x\nmodel:\nclass_path: nets.Net\ndata:\nclass_path: nets.Data\n",
            "indent each below the key of its object: model or data",
        ),
    ],
)
def test_keys_at_the_margin_below_an_empty_section_are_told_once(
    tmp_path: Path, text: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, text))
    assert caught.value.hint == hint
    assert str(caught.value).count("is no key of hpc-train") <= 1
