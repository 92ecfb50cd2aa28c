"""Several mistakes of one config are told in one go, the first as if it were alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.cli.main import main
from hpc_train.errors import ConfigError
from tests.config.checking import nets, refusal_in
from tests.config.files import MINIMAL, write

__all__ = ["nets"]
NETT, FIX = "nets has no class 'Nett'", "did you mean 'nets.Net'?"


@pytest.mark.parametrize(
    ("data", "trainer", "first", "others"),
    [
        ("{class_path: nets.Data}", "", NETT, []),
        ("{class_path: nets.Dat}", "", NETT, ["cfg.yaml:4: data.class_path: nets has no class"]),
        ("{class_path: nowhere.Data}", "", NETT, ["data.class_path: there is no module 'nowhere'"]),
        (
            "{class_path: nets.Data, init_args: {nam: 1}}",
            "trainer: {max_epoch: 1, callbacks: [{class_path: nets.Call}]}",
            NETT,
            [
                "data.init_args.nam: nets.Data takes no",
                "cfg.yaml:5: trainer.max_epoch is no argument",
                "trainer.callbacks.0.class_path: nets",
            ],
        ),
    ],
)
def test_the_other_wrong_classes_are_told_beside_the_first(
    nets: Path,
    data: str,
    trainer: str,
    first: str,
    others: list[str],
) -> None:
    error = refusal_in(nets, "{class_path: nets.Nett}", data, trainer)
    assert first in error.message
    assert error.hint.startswith("did you mean")
    also = [it.message for it in error.others]
    assert len(also) == len(others)
    assert all(part in said for part, said in zip(others, also, strict=True)), also


def test_what_two_keys_want_mended_is_told_once(
    nets: Path,
) -> None:
    error = refusal_in(nets, "{class_path: net.Net}", "{class_path: net.Data}")
    assert error.hint == "did you mean 'nets.Net'?"


def told(folder: Path, text: str) -> list[str]:
    """What `load` says of a config whose model and data are in nets.py, the first in front."""
    with pytest.raises(ConfigError) as caught:
        api.load(write(folder, text))
    error = caught.value
    assert str(error) == "; also ".join(
        f"{it.message} ({it.hint})" for it in [error, *error.others]
    )
    return [it.message.replace(f"{folder}/cfg.yaml", "cfg") for it in (error, *error.others)]


ALL = (
    "slurm: {node: 3, nodes: two, time: 90}\n"
    "sed: 1\n"
    "checkpoint: {keep_last: 0, every_n_steps: -1}\n"
    "trainer: {max_epoch: 1, accelerator: gpuu}\n"
)


def test_keys_values_arguments_and_classes_are_told_in_one_go(
    nets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(nets)
    text = MINIMAL.replace("nets.Net}", "nets.Net, init_args: {width: 1, lrr: 1, dept: 2}}")
    said = told(nets, text + ALL)
    starts = [  # as they stand in the file
        "cfg:3: model.init_args.lrr: nets.Net takes no such argument",
        "cfg:3: model.init_args.dept: nets.Net takes no such argument",
        "cfg:5: slurm.node is no key",
        "cfg:5: slurm.time is the bare number 90",
        "cfg:5: slurm.nodes is 'two'",
        "cfg:6: sed is no key",
        "cfg:7: checkpoint.every_n_steps is -1",
        "cfg:7: checkpoint.keep_last is 0",
        "cfg:8: trainer.max_epoch is no argument",
        "cfg:8: trainer.accelerator is 'gpuu'",
    ]
    assert len(said) == len(starts), said
    assert all(it.startswith(start) for it, start in zip(said, starts, strict=True)), said


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (MINIMAL.replace("model:", "modell:"), 1),  # and not that model is missing
        (MINIMAL.replace("model:", "modell:") + "sed: 1\n", 2),
        (MINIMAL.replace("name: x", "sed: 1"), 1),  # `sed` may have been meant for the name
        (MINIMAL.replace("name: x\n", "") + "slurm: {node: 3}\n", 2),
        (MINIMAL.replace("8", "eight") + "slurm: {node: 3}\ntrainer: {max_epoch: 1}\n", 3),
        (MINIMAL.replace("{class_path: nets.Net}", "nets.Net") + "sed: 1\n", 2),
        # the environment that a key was to name may have the modules that are not here
        (MINIMAL.replace("nets.", "elsewhere.") + "env: {vnv: x}\n", 1),
        (MINIMAL.replace("nets.", "elsewhere.") + "container: {imag: x}\nsed: 1\n", 2),
        # an argument that is missing for the one that was misspelt
        (MINIMAL.replace("nets.Net}", "nets.Net, init_args: {widht: 1}}"), 1),
        (MINIMAL + "loggers: [csvv, csv]\n", 1),
        (MINIMAL + "slurm: {node: 3}\nsweep: {seed: [1, 2]}\nsed: 1\n", 2),
        ("slurm: {node: 3}\nscript: {path: x.py}\nsed: 3\n", 2),
    ],
)
def test_what_follows_from_a_mistake_is_not_told_as_another(
    nets: Path, monkeypatch: pytest.MonkeyPatch, text: str, count: int
) -> None:
    monkeypatch.chdir(nets)
    text = text.replace("nets.Net}", "nets.Net, init_args: {width: 1}}")
    assert len(told(nets, text)) == count


def test_the_command_says_each_on_a_line_of_its_own(
    nets: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(nets)
    minimal = MINIMAL.replace("nets.Net}", "nets.Net, init_args: {width: 1}}")
    write(nets, f"{minimal}slurm: {{node: 3}}\nsed: 1\n")

    def run(*words: str) -> tuple[str, str]:
        with pytest.raises(SystemExit) as caught:
            main(["submit", "cfg.yaml", *words])
        assert caught.value.code == 3
        return capsys.readouterr()

    said = run("--dry-run").err.splitlines()
    assert said[0] == "error: cfg.yaml:5: slurm.node is no key of hpc-train"
    assert said[1].startswith("  fix: did you mean 'slurm.nodes'")
    assert said[2] == "error: cfg.yaml:6: sed is no key of hpc-train"
    assert said[3] == "  fix: did you mean 'seed'?"
    document = json.loads(run("--dry-run", "--json").out)
    assert document["error"] == "cfg.yaml:5: slurm.node is no key of hpc-train"
    assert document["others"][0] == {
        "error": "cfg.yaml:6: sed is no key of hpc-train",
        "hint": "did you mean 'seed'?",
    }


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (
            "trainer: {callbacks: [EarlyStopping, nets.Open]}\n",
            ["trainer.callbacks.0", "trainer.callbacks.1"],
        ),
        (
            "trainer: {callbacks: [Timer, {class_path: nets.Nothing}, Open, Timer]}\n",
            [*(f"trainer.callbacks.{it}" for it in (0, 1, 2, 3))],
        ),
        ("trainer: {callbacks: [Timer]}\n", ["trainer.callbacks.0"]),
        ("loggers: [csvv, csv, wandbb]\nsed: 1\n", ["loggers.0", "loggers.2", "sed"]),
        ("notify: {events: [startd, endd]}\n", ["notify.events.0", "notify.events.1"]),
        ("env: {setup: [1, module load x, 2]}\n", ["env.setup.0", "env.setup.2"]),
    ],
)
def test_each_wrong_element_of_a_list_is_told_in_one_go(
    nets: Path, monkeypatch: pytest.MonkeyPatch, text: str, wrong: list[str]
) -> None:
    monkeypatch.chdir(nets)
    minimal = MINIMAL.replace("nets.Net}", "nets.Net, init_args: {width: 1}}")
    every = told(nets, minimal + text)
    assert all(any(f" {it}" in one for one in every) for it in wrong)
    assert len(every) == len(wrong)


def test_each_wrong_argument_of_a_script_is_told(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    text = "name: x\nscript: {path: train.py, args: [--a, true, --local_rank=0, [1]]}\n"
    said = [it.split(" ")[1] for it in told(tmp_path, text)]
    assert said == ["script.args.1", "script.args.2", "script.args.3"]
