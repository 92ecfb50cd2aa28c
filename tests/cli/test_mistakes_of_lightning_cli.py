"""Options as LightningCLI has them, in front of a config and of a run: what to type here.

A fix that a message names is typed as well, and is not refused.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from tests.cli.run_of_yesterday import CONFIG, NETS, project, refused, run

__all__ = ["project", "run"]

NO_DASHES = "a key of the config has no dashes: "


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("--model.lr 0.2", "model.init_args.lr=0.2"),
        ("--model.lr=0.2", "model.init_args.lr=0.2"),
        ("-model.lr=0.2", "model.init_args.lr=0.2"),
        ("--model.init_args.lr 0.2", "model.init_args.lr=0.2"),
        ("--model.class_path nets.Net", "model.class_path=nets.Net"),
        ("--data.path a/b", "data.init_args.path=a/b"),
        ("--data.width 64", "data.init_args.width=64"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_an_argument_of_a_class_is_told_as_the_config_has_it(
    hpc, project: Path, typed: str, key: str, is_first: bool
) -> None:
    start = "    def __init__(self, path='x', width=1): ...\n"
    text = NETS.replace("    def train_dataloader", f"{start}    def train_dataloader")
    (project / "nets.py").write_text(text)
    line = f"{typed} cfg.yaml" if is_first else f"cfg.yaml {typed}"
    refused(hpc, f"submit --dry-run {line}", "No such option", NO_DASHES + key)
    assert hpc("submit", "--dry-run", "cfg.yaml", key).code == 0


@pytest.mark.parametrize(
    ("typed", "key"),
    [("--model.lr 0.2", "model.lr=0.2"), ("--model.init_args.lr=0.2", "model.lr=0.2")],
)
def test_with_target_an_argument_stands_beside_it(hpc, project: Path, typed: str, key: str) -> None:
    text = CONFIG.replace("class_path", "_target_")
    (project / "base.yaml").write_text(text)
    (project / "top.yaml").write_text("defaults: [base.yaml]\n")
    for file in ("base.yaml", "top.yaml"):
        refused(hpc, f"submit --dry-run {file} {typed}", "No such option", NO_DASHES + key)
        assert hpc("submit", "--dry-run", file, key).code == 0


def test_an_argument_that_the_class_does_not_take_is_told_with_what_it_takes(
    hpc, project: Path
) -> None:
    message = "No such option"
    refused(hpc, "run cfg.yaml --model.nope 3", message, "nets.Net takes lr: let it take nope, too")
    refused(hpc, "run cfg.yaml --model.learning_rate 3", message, "write model.init_args.lr")
    (project / "cfg.yaml").write_text("a: [\n")  # no YAML: what was typed is all that is known
    refused(hpc, "run cfg.yaml --model.lr 3", message, f"{NO_DASHES}model.lr=3")


@pytest.mark.parametrize("option", ["--data.batch_size", "--data.init_args.batch_size"])
def test_the_batch_of_a_rank_is_told_as_that_of_all(hpc, project: Path, option: str) -> None:
    fix = "write global_batch_size=N, the samples of one step over all ranks: 64 for one rank"
    refused(hpc, f"run cfg.yaml {option} 64", "No such option", fix)


def test_what_was_typed_beside_class_path_is_told_as_it_is_typed(hpc, project: Path) -> None:
    message = "model.lr stands beside class_path"
    refused(hpc, "run cfg.yaml model.lr=0.2", message, "write model.init_args.lr=0.2")
    (project / "cfg.yaml").write_text(CONFIG.replace("nets.Net}", "nets.Net, lr: 0.2}"))
    refused(hpc, "run cfg.yaml", message, "put it under model.init_args")


@pytest.mark.parametrize("option", ["--run x", "--run=x", "--run-id x", "--run_id x"])
@pytest.mark.parametrize("command", ["validate", "test", "predict", "resume", "status", "logs"])
def test_a_run_behind_an_option_is_a_word_by_itself(
    hpc, run: RunDir, command: str, option: str
) -> None:
    fix = f"the run is a word by itself: hpc-train {command} x"
    assert refused(hpc, f"{command} {option}", "No such option", fix).endswith(fix)
    if command in ("test", "status"):
        assert hpc(command, "x").code == 0


@pytest.mark.parametrize(
    "typed",
    ["x --config cfg.yaml", "--config cfg.yaml x", "--config=cfg.yaml x", "x -c cfg.yaml"],
)
@pytest.mark.parametrize("command", ["test", "resume"])
def test_a_run_has_its_config(hpc, run: RunDir, command: str, typed: str) -> None:
    fix = f"the run has its config, and KEY=VALUE changes it: hpc-train {command} x KEY=VALUE"
    refused(hpc, f"{command} {typed}", "No such option", fix)
    nothing = shlex.split(typed.replace("x ", "").replace(" x", ""))
    assert f"changes it: hpc-train {command} RUN KEY=VALUE" in hpc(command, *nothing).err
