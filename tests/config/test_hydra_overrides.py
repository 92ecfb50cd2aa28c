"""Overrides of a Hydra app are held against the keys of its files before anything is queued."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.scripts.hydra_overrides import refused_override
from hpc_train.errors import ConfigError

SCRIPT = """\
import sys
try:
    import hydra
except ImportError:
    hydra = None

@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    train(cfg)

def train(cfg): ...

main()
"""
CONFIG = """\
defaults:
  - model: small
  - optional local: mine
  - experiment: null
  - extra
  - override hydra/job_logging: disabled
  - _self_
trainer:
  max_epochs: 2
  sub: {a: 1}
  callbacks: null
seed: 1
opt: ${model}
"""
EXPERIMENT = "# @package _global_\ndefaults: [override /model: big]\nmodel: {new: 3}\n"


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "conf"
    for name, text in {
        "config": CONFIG,
        "extra": "other: 3\n",
        "model/small": "lr: 0.01\nhidden: 16\n",
        "model/big": "lr: 0.02\nhidden: 32\ndepth: 3\n",
        "experiment/e1": EXPERIMENT,
    }.items():
        file = folder / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "app.py").write_text(SCRIPT)
    return folder


@pytest.mark.parametrize(
    ("word", "said", "fix"),
    [
        ("model.lrr=0.1", "conf/model/small.yaml has no model.lrr", "write model.lr=0.1"),
        (
            "trainer.max_epoch=3",
            "conf/config.yaml has no trainer.max_epoch",
            "write trainer.max_epochs=3",
        ),
        ("lr=0.3", "conf/config.yaml has no lr", "write model.lr=0.3"),
        (
            "model.depth=2",
            "conf/model/small.yaml has no model.depth",
            "it has model.lr, model.hidden; +model.depth=2 adds a key that the program reads",
        ),
        ("model=bigg", "conf/model has no bigg.yaml", "write model=big"),
        ("model=zzz", "conf/model has no zzz.yaml", "write model=big or model=small"),
    ],
)
def test_what_the_files_do_not_have_is_told_with_what_they_have(
    conf: Path, word: str, said: str, fix: str
) -> None:
    assert refused_override(conf, "config", [word]) == (f"{word}: {said}", fix)
    assert refused_override(conf, "config.yaml", ["seed=2", word])[1] == fix


def test_files_of_a_group_that_name_others_of_it_are_read_as_well(conf: Path) -> None:
    (conf / "model" / "small.yaml").write_text("defaults: [big, _self_]\nlr: 1\n")
    assert refused_override(conf, "config", ["model.depth=2"]) == ("", "")
    assert refused_override(conf, "config", ["model.dept=2"])[1] == "write model.depth=2"


@pytest.mark.parametrize(
    "words",
    [
        *(["model.lr=0.2"], ["model=big", "model.depth=2"], ["model=null"], ["+model.x=1"]),
        *(["++new=1"], ["~seed"], ["other=1"], ["trainer.sub.a=2"], ["opt.lr=1"]),
        *(["hydra.run.dir=x"], ["experiment=e1", "model.new=3"], ["model=[small,big]"]),
        *(["+experiment=e1", "model.new=3"], ["trainer.callbacks.x=3"], ["model=small.yaml"], []),
    ],
)
def test_what_hydra_takes_or_what_is_unsure_is_left_to_it(conf: Path, words: list[str]) -> None:
    assert refused_override(conf, "config", words) == ("", "")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("config.yaml", CONFIG.replace("- extra", "- extra@there")),
        ("config.yaml", CONFIG + "hydra:\n  searchpath: [pkg://more]\n"),
        ("config.yaml", CONFIG.replace("- model: small", "- model/sub: small")),
        ("model/small.yaml", "# @package other\nlr: 1\n"),
        ("model/small.yaml", "defaults: [base]\nlr: 1\n"),  # which is not there
        ("model/small.yaml", "defaults: [/extra]\nlr: 1\n"),
    ],
)
def test_files_that_do_not_tell_all_keys_refuse_nothing(conf: Path, file: str, text: str) -> None:
    (conf / file).write_text(text)
    assert refused_override(conf, "config", ["model.lrr=0.1"]) == ("", "")


def load(conf: Path, *words: str) -> None:
    api.load(conf.parent / "app.py", arguments=list(words))


def test_a_script_is_refused_by_the_line_that_was_typed(conf: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(conf, "model.lrr=0.1")
    assert "app.py refuses model.lrr=0.1: conf/model/small.yaml has no" in str(caught.value)
    assert caught.value.hint == "write model.lr=0.1"
    load(conf, "model.lr=0.1")
    load(conf, "--config-name=other", "model.lrr=0.1")


@pytest.mark.parametrize(
    "text",
    [
        SCRIPT + "hydra.core.config_store.ConfigStore.instance()\n",
        SCRIPT.replace('config_path="conf"', "config_path=sys.argv[0]"),
        SCRIPT.replace('config_name="config"', "config_name=None"),
    ],
)
def test_an_app_that_may_have_other_keys_is_left_alone(conf: Path, text: str) -> None:
    (conf.parent / "app.py").write_text(text)
    load(conf, "model.lrr=0.1")
