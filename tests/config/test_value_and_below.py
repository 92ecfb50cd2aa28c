"""A value behind a key's colon, and pairs indented below it: the line that says both."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hpc_train.config.read import read_file
from hpc_train.errors import ConfigError

OWN = "on a line of its own below"
ENDS = "data: {class_path: nets.Data}\ntrainer:\n  max_epochs: 2\n"


def refused(folder: Path, text: str) -> ConfigError:
    (folder / "cfg.yaml").write_text(text)
    with pytest.raises(ConfigError, match="not YAML") as caught:
        read_file(folder / "cfg.yaml")
    return caught.value


@pytest.mark.parametrize(
    ("text", "lines", "meant"),
    [
        (
            "model: nets.Net\n  init_args: {lr: 0.05}\n",
            "1 and 2",
            "model: {class_path: nets.Net, init_args: {lr: 0.05}}",
        ),
        (
            "model: {class_path: nets.Net}\n    init_args: {lr: 1e-3, width: 8}\n",
            "1 and 2",
            "model: {class_path: nets.Net, init_args: {lr: 1e-3, width: 8}}",
        ),
        (
            "data: sets.Data  # mine\n  # arguments\n  root: data/x\n\n  folds: [1, 2]\n\n",
            "1 to 5",
            "data: {class_path: sets.Data, init_args: {root: data/x, folds: [1, 2]}}",
        ),
        ("model: nets.Net\n  class_path: nets.Net\n", "1 and 2", "model: {class_path: nets.Net}"),
        (
            "model: nets.Net\n  class_path: nets.Net\n  init_args: {lr: 1}\n",
            "1 to 3",
            "model: {class_path: nets.Net, init_args: {lr: 1}}",
        ),
        (
            'slurm: {time: "0:10:00"}\n  nodes: 1\n  gpus_per_node: 2\n',
            "1 to 3",
            'slurm: {time: "0:10:00", nodes: 1, gpus_per_node: 2}',
        ),
        (
            "model:\n  class_path: nets.Net\n  init_args: {lr: 0.1,}\n     width: 3\n",
            "3 and 4",
            "init_args: {lr: 0.1, width: 3}",
        ),
    ],
)
def test_both_are_told_in_one_line(tmp_path: Path, text: str, lines: str, meant: str) -> None:
    hint = refused(tmp_path, f"{text}{ENDS}").hint
    assert hint == f"write in place of lines {lines}: {meant}"
    assert isinstance(yaml.safe_load(meant), dict)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (
            "model: nets.Net\n  init_args:\n    lr: 0.05\n",
            f"put class_path: nets.Net {OWN} model:, in the column of init_args",
        ),
        (
            "model: nets.Net\n  layers:\n    - 3\n",
            (
                f"put class_path: nets.Net {OWN} model:, in the column of layers,"
                " and layers below init_args:"
            ),
        ),
        (
            "model: {class_path: nets.Net}\n  init_args:\n    lr: 0.05\n",
            f"put class_path: nets.Net {OWN} model:, in the column of init_args",
        ),
        (
            "slurm: {nodes: 1, gpus_per_node: 2}\n  comment: a, b\n",
            f"put each pair in its braces {OWN} slurm:, in the column of comment",
        ),
    ],
)
def test_what_does_not_fit_in_one_line_is_told_where_it_stands(
    tmp_path: Path, text: str, fix: str
) -> None:
    assert refused(tmp_path, f"{text}{ENDS}").hint == fix


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("model: nets.Net\n  seed: 3\n", "begin seed in the column of the line above"),
        ("model: {class_path: nets.Net}\n  data: {class_path: nets.Data}\n", "begin data in"),
        ("name: exp\n  seed: 3\n", "begin seed in the column of the line above"),
        ("trainer:\n  logger: {a: 1}\n    max_epochs: 3\n", "begin max_epochs in the column"),
    ],
)
def test_a_key_that_was_indented_too_far_is_told_its_column(
    tmp_path: Path, text: str, fix: str
) -> None:
    assert fix in refused(tmp_path, text).hint


def test_what_is_told_is_read(tmp_path: Path) -> None:
    hint = refused(tmp_path, f"model: nets.Net\n  init_args: {{lr: 0.05}}\n{ENDS}").hint
    (tmp_path / "cfg.yaml").write_text(f"{hint.partition(': ')[2]}\n{ENDS}")
    model = read_file(tmp_path / "cfg.yaml").values["model"]
    assert model == {"class_path": "nets.Net", "init_args": {"lr": 0.05}}
