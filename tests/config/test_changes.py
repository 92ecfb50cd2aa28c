"""What Python code sets in a config that is loaded, and names that are not there."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hpc_train
from hpc_train.errors import ConfigError
from tests.cli.mistaken import CONFIG, NETS

ANY: Any = hpc_train


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return hpc_train.load("cfg.yaml", "model={class_path: nets.Net, init_args: {width: 3}}")


def _set(config: Any, key: str, value: object) -> None:
    *above, last = key.split(".")
    for name in above:
        config = config[name] if isinstance(config, dict) else getattr(config, name)
    if isinstance(config, dict):
        config[last] = value
    else:
        setattr(config, last, value)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("trainr", "Config has no 'trainr': did you mean 'trainer' or 'container'?"),
        ("checkpoint.every_n_step", "CheckpointConfig has no 'every_n_step': did you mean 'every"),
        ("slurm.gpus", "SlurmConfig has no 'gpus': write loaded.config.slurm.gpus_per_node"),
        ("lr", "Config has no 'lr': write loaded.config.model['init_args']['lr']"),
        ("max_epochs", "Config has no 'max_epochs': write loaded.config.trainer['max_epochs']"),
    ],
)
def test_a_misspelled_key_is_neither_set_nor_read(loaded: Any, key: str, said: str) -> None:
    with pytest.raises(AttributeError) as caught:
        _set(loaded.config, key, 5)
    assert str(caught.value).startswith(said)
    with pytest.raises(AttributeError) as caught:
        eval(f"loaded.config.{key}")
    assert str(caught.value).startswith(said)


def test_names_that_tools_ask_for_are_answered_plainly(loaded: Any) -> None:
    for holder in (loaded.config, loaded.config.slurm, hpc_train):
        for name in ("_repr_html_", "__wrapped__", "_ipython_display_"):
            assert getattr(holder, name, None) is None
            with pytest.raises(AttributeError) as caught:
                getattr(holder, name)
            assert ":" not in str(caught.value)
    assert copy.deepcopy(loaded.config) == loaded.config
    assert pickle.loads(pickle.dumps(loaded.config)) == loaded.config


@pytest.mark.parametrize(
    ("key", "value", "message", "hint"),
    [
        ("trainer.max_epochs", "many", "trainer.max_epochs is 'many'", "a whole number"),
        ("trainer.max_epoch", 2, "trainer.max_epoch is no argument", "'trainer.max_epochs'"),
        ("slurm.gpus_per_node", "four", "slurm.gpus_per_node is 'four'", "write a whole number"),
        ("slurm.nodes", -1, "slurm.nodes is -1", ""),
        ("slurm.time", 90, "slurm.time is the bare number 90", "in quotes"),
        ("model.init_args.widht", 2, "nets.Net takes no such argument", "'width'"),
        ("model.init_args.width", object(), "model.init_args.width", ""),
        ("slurm", None, "slurm is None", "it is a section"),
        ("env", {"venvv": "x"}, "env.venvv is no key", "did you mean 'env.venv'?"),
    ],
)
def test_a_value_is_refused_where_the_command_line_would(
    loaded: Any, key: str, value: object, message: str, hint: str
) -> None:
    _set(loaded.config, key, value)
    with pytest.raises(ConfigError) as caught:
        hpc_train.submit(loaded, cluster="local")
    assert caught.value.message.startswith("loaded.config: ")
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_a_value_that_can_be_meant_is_what_the_job_gets(loaded: Any) -> None:
    _set(loaded.config, "slurm.gpus_per_node", "4")
    _set(loaded.config, "model.init_args.width", 7)
    _set(loaded.config, "name", "a ${b}")
    assert "#SBATCH --gpus-per-node" not in hpc_train.render(loaded)  # on CPUs, 4 ranks
    assert "# 4 ranks" in hpc_train.render(loaded)
    assert loaded.config.slurm.gpus_per_node == 4
    assert loaded.config.name == "a ${b}"
    assert loaded.origins.of("model.init_args.width") == "loaded.config"
    assert loaded.origins.of("slurm.nodes") == f"{loaded.files[-1]}:6"
    assert hpc_train.render(loaded) == hpc_train.render(loaded)


def test_a_sweep_is_made_of_what_was_loaded(loaded: Any) -> None:
    swept = hpc_train.load("cfg.yaml", sweep=["seed=1,2"])
    swept.config.trainer["max_epochs"] = 5
    with pytest.raises(ConfigError) as caught:
        hpc_train.submit_sweep(swept)
    assert caught.value.hint.startswith("give it to load: hpc_train.load(PATH, 'trainer.max_epoc")


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: ANY.load("cfg.yaml", "--gpus 2"), "write hpc_train.load(PATH, gpus=2)"),
        (lambda: ANY.load("cfg.yaml", "--gpus", "2"), "write hpc_train.load(PATH, gpus=2)"),
        (lambda: ANY.load("cfg.yaml", "--gpus=2"), "write hpc_train.load(PATH, gpus=2)"),
        (lambda: ANY.load("cfg.yaml", "--time 1:00:00"), "hpc_train.load(PATH, time='1:00:00')"),
        (lambda: ANY.load("cfg.yaml", "--cluster local"), "write hpc_train.submit(loaded, cluste"),
        (lambda: ANY.load("cfg.yaml", "--lr", "0.1"), "load('train.py', arguments=['--lr', ...])"),
        (lambda: ANY.load("cfg.yaml", bf16=True), "(PATH, 'trainer.precision=bf16-mixed')"),
        (
            lambda: ANY.submit("cfg.yaml", "seed=3", "name=x"),
            "write hpc_train.submit(hpc_train.load('cfg.yaml', 'seed=3', 'name=x'))",
        ),
        (
            lambda: ANY.run_here(hpc_train.load("cfg.yaml"), "seed=3"),
            "run_here takes what load gives, and no overrides (write hpc_train.run_here(hpc_train.",
        ),
    ],
)
def test_words_of_the_command_line_in_a_call(
    loaded: Any, call: Callable[[], object], hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        call()
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Config", ": write hpc_train.load(PATH).config"),
        ("sumbit", ": did you mean 'submit'?"),
        ("status", ": write hpc_train.Run.find('latest').status()"),
        ("nothing_like_it", "; it has Run, Session"),
    ],
)
def test_a_name_that_is_not_there_is_told_in_an_import_too(name: str, said: str) -> None:
    with pytest.raises(ImportError) as caught:
        exec(f"from hpc_train import {name}")
    assert str(caught.value).startswith(f"cannot import name {name!r} from 'hpc_train'{said}")
    with pytest.raises(AttributeError) as used:
        getattr(hpc_train, name)
    assert str(used.value).startswith(f"module 'hpc_train' has no attribute {name!r}{said}")
    assert not hasattr(hpc_train, name)


def test_packages_of_ours_are_imported_all_the_same() -> None:
    from hpc_train import doctor, plan, report

    assert [it.__name__ for it in (doctor, plan, report)] == [
        "hpc_train.doctor",
        "hpc_train.plan",
        "hpc_train.report",
    ]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("['trainer']", "a Config has no keys in brackets: write loaded.config.trainer"),
        ("['trainer.max_epochs']", "brackets: write loaded.config.trainer['max_epochs']"),
        (".slurm['nodes']", "a SlurmConfig has no keys in brackets: write loaded.config.slurm.no"),
        ("['slurm.nodes']", "a Config has no keys in brackets: write loaded.config.slurm.nodes"),
        ("['trainr']", "a Config has no keys in brackets: did you mean 'trainer' or 'container'?"),
        ("['max_epochs']", "brackets: write loaded.config.trainer['max_epochs']"),
        ("[0]", "a Config has no keys in brackets"),
    ],
)
def test_a_key_in_brackets_is_told_as_it_is_written(loaded: Any, key: str, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        eval(f"loaded.config{key}")
    assert said in str(caught.value)
    with pytest.raises(TypeError) as caught:
        exec(f"loaded.config{key} = 5")
    assert said in str(caught.value)


def test_a_config_is_still_no_list_of_keys(loaded: Any) -> None:
    for use in (list, dict, lambda it: "name" in it):
        with pytest.raises(TypeError):
            use(loaded.config)
