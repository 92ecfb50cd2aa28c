"""A config of a Hydra app is told at once, with what works in its place."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.trainer_args import check_trainer
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, loaded, refusal, refused, write

REST = "name: mine\nglobal_batch_size: 32\ntrainer: {max_epochs: 2, accelerator: cpu}\n"
TARGETS = "model: {_target_: nets.Net}\ndata: {_target_: nets.Data}\n"


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "_target_: nets.Net\nlr: 0.01\n", "conf/model/small.yaml")
    write(tmp_path, "_target_: nets.Data\n", "conf/data/toy.yaml")
    return tmp_path / "conf"


def test_groups_are_told_with_what_their_files_hold(conf: Path) -> None:
    defaults = "defaults:\n  - model: small\n  - data: toy\n  - _self_\n"
    error = refusal(write(conf, f"{defaults}{REST}"))
    assert error.message == (
        "cfg.yaml:1: this is a config of a Hydra app, and not so here: defaults (groups: model,"
        " data)"
    )
    model, data = "model: {_target_: nets.Net, lr: 0.01}", "data: {_target_: nets.Data}"
    assert error.hint == f"defaults -> {model}, and {data}"
    config = load(write(conf, f"{model}\n{data}\n{REST}")).config
    assert config.model == {"_target_": "nets.Net", "lr": 0.01}


@pytest.mark.parametrize(
    ("defaults", "fix"),
    [
        ("[{model: small}, base.yaml]", "defaults -> defaults: [base.yaml], and model: {_tar"),
        ("[{override /model: small}]", "defaults -> model: {_target_: nets.Net, lr: 0.01}"),
        ("[{hydra: default}, {experiment: null}]", "defaults -> leave it out"),
        ("[{callbacks: [a, b]}]", "defaults -> below trainer callbacks: [...], with the objects"),
        ("[{model: gone}]", "defaults -> model: with the lines of model/gone.yaml below it"),
        ("[{model: gone}]", "below it (there is no model/gone.yaml)"),
        ("[{model: smal}]", "(there is no model/smal.yaml: did you mean 'small'?)"),
        ("[{net: big}, {data: toy}]", "defaults -> model: {_target_: nets.Net, lr: 1}, and data"),
        ("[{net: big}, {model: small}]", "model: {_target_: nets.Net, lr: 0.01}"),
        ("[{net: sizes}]", "x-net: {hidden: 3}"),
        ("{model: small, data: toy}", "nets.Net, lr: 0.01}, and data: {_target_: nets.Data}"),
    ],
)
def test_each_form_of_a_group_is_told(conf: Path, defaults: str, fix: str) -> None:
    write(conf, "seed: 3\n", "base.yaml")
    write(conf, "_target_: nets.Net\nlr: 1\n", "net/big.yaml")
    write(conf, "hidden: 3\n", "net/sizes.yaml")
    path = write(conf, f"defaults: {defaults}\n{REST}")
    assert fix in refusal(path).hint


def test_a_group_of_values_becomes_a_key_that_holds_them(conf: Path) -> None:
    write(conf, "root: data\n", "paths/default.yaml")
    write(conf, "_target_: nets.Data\npath: ${paths.root}/a\n", "data/toy.yaml")
    error = refusal(write(conf, f"defaults: [{{data: toy}}, {{paths: default}}]\n{REST}"))
    data, paths = "data: {_target_: nets.Data, path: '${x-paths.root}/a'}", "x-paths: {root: data}"
    assert f"defaults -> {data}, and {paths}" in error.hint
    text = f"model: {{_target_: nets.Net}}\n{data}\n{paths}\n{REST}"
    assert load(write(conf, text)).config.data["path"] == "data/a"


def test_files_of_defaults_that_are_an_object_are_to_be_indented(conf: Path) -> None:
    path = write(conf, f"defaults: [model/small.yaml, data/toy.yaml]\n{REST}")
    error = refusal(path)
    assert error.message == (
        "model/small.yaml:1: _target_ stands at the top, and nothing says what object it is of;"
        " in data/toy.yaml as well"
    )
    assert error.hint == (
        "indent the lines of model/small.yaml below model:, those of data/toy.yaml below data:"
    )
    write(conf, "model:\n  _target_: nets.Net\n  lr: 0.01\n", "model/small.yaml")
    assert "of data/toy.yaml below data:" in refusal(path).hint
    write(conf, "data:\n  _target_: nets.Data\n", "data/toy.yaml")
    assert load(path).config.model["lr"] == 0.01


def test_the_keys_of_the_template_are_told_at_once(tmp_path: Path) -> None:
    text = "task_name: train\ntags: [dev]\ntrain: True\ntest: True\n"
    trainer = "{_target_: lightning.pytorch.trainer.Trainer, max_epochs: 2, devices: 1}"
    path = write(tmp_path, f"{text}name: x\nglobal_batch_size: 8\n{TARGETS}trainer: {trainer}\n")
    error = refusal(path)
    keys = "task_name, tags, train, test, trainer._target_, trainer.devices"
    said = f"cfg.yaml: this is a config of a Hydra app, and not so here: {keys}"
    assert error.message == said
    assert error.hint.startswith("task_name -> leave it out: name is there; tags -> leave it out: ")
    for fix in (
        "train -> leave it out: hpc-train submit trains",
        "test -> leave it out: once it has trained, `hpc-train test RUN` does that",
        "trainer._target_ -> leave it out: hpc-train makes Lightning's Trainer",
        "trainer.devices -> leave it out",
    ):
        assert fix in error.hint
    nameless = path.read_text().replace("name: x\n", "")
    assert "task_name -> name: train" in refusal(write(tmp_path, nameless)).hint
    (tmp_path / "app.py").write_text("import hydra\n@hydra.main()\ndef main(cfg): ...\n")
    assert "with its script: hpc-train submit " in refusal(path).hint


@pytest.mark.parametrize(
    ("more", "fix"),
    [
        ("train: True\n", "leave it out: hpc-train submit trains"),
        ("test: False\n", "leave it out: once it has trained, `hpc-train test RUN` does that"),
        ("task_name: a\n", "leave it out: name is there"),
        ("compile: false\n", "leave it out"),
        ("hydra: {run: {dir: a}}\n", "leave it out: of Hydra's keys defaults and _target_ are"),
        ("logger:\n  csv: {_target_: lightning.CSVLogger, save_dir: a}\n", "write loggers: [csv]"),
        (
            "logger: {any: {_target_: my.Logger, save_dir: '${paths.a}', b: 1}}\n",
            "write loggers: [{_target_: my.Logger, b: 1}]",
        ),
        (
            "callbacks: {a: {_target_: my.A}, b: null, c: {_target_: my.C, d: 1}}\n",
            "write trainer: {callbacks: [{_target_: my.A}, {_target_: my.C, d: 1}]}",
        ),
    ],
)
def test_a_single_key_of_it_is_told_at_its_line(tmp_path: Path, more: str, fix: str) -> None:
    error = refused(tmp_path, more)
    assert error.message.startswith("cfg.yaml:5: ")
    assert error.hint.startswith(fix)


STOPS = "{_target_: lightning.pytorch.callbacks.EarlyStopping, monitor: val_acc}"
TIMER = "{_target_: lightning.pytorch.callbacks.Timer, duration: '00:01:00:00'}"


@pytest.mark.parametrize("objects", [[STOPS], [STOPS, TIMER]])
def test_callbacks_below_names_are_told_as_the_list_that_the_trainer_takes(
    tmp_path: Path, objects: list[str]
) -> None:
    names = ["early_stopping", "timer"][: len(objects)]
    below = "".join(f"    {name}: {it}\n" for name, it in zip(names, objects, strict=True))

    def check(more: str) -> None:
        made = loaded(tmp_path, more)
        config, path = made.config, [str(tmp_path), *sys.path]
        check_trainer(config.trainer, made.origins, search_path=path, config=config)

    with pytest.raises(ConfigError) as caught:
        check(f"trainer:\n  callbacks:\n{below}")
    said = f"cfg.yaml:6: trainer.callbacks has names for its objects: {', '.join(names)}"
    assert said in caught.value.message
    form = f"callbacks: [{', '.join(objects)}]"
    assert caught.value.hint == f"write {form}"
    check(f"trainer: {{{form}}}\n")


def test_an_argument_of_a_target_stands_beside_it(tmp_path: Path) -> None:
    text = f"name: x\nglobal_batch_size: 8\n{TARGETS.replace('nets', 'gone')}width: 3\n"
    assert refusal(write(tmp_path, text)).hint.endswith("of your model: model.width")


def test_a_section_that_others_take_values_of_holds_them(tmp_path: Path) -> None:
    data = "data: {class_path: nets.Data, init_args: {path: '${paths.root}/a', n: '${paths.n}'}}"
    text = f"paths: {{root: /data, n: 3}}\n{MINIMAL.replace('data: {class_path: nets.Data}', data)}"
    error = refusal(write(tmp_path, text))
    assert error.message == "cfg.yaml:1: paths is no key of hpc-train"
    assert error.hint == (
        "write x-paths for it, and path: ${x-paths.root}/a (cfg.yaml:5), n: ${x-paths.n}"
        " (cfg.yaml:5)"
    )
    fixed = write(tmp_path, text.replace("paths:", "x-paths:").replace("${paths", "${x-paths"))
    assert load(fixed).config.data["init_args"] == {"path": "/data/a", "n": 3}
    typed = load(fixed, ["x-paths.root=/scratch"]).config
    assert typed.data["init_args"]["path"] == "/scratch/a"


def test_what_is_held_may_be_of_another_file_and_nested(tmp_path: Path) -> None:
    write(tmp_path, "x-a: {b: {lr: 0.1}, list: [1, 2], to: '${x-a.list.1}'}\n", "base.yaml")
    more = "defaults: base\ntrainer: {max_epochs: '${x-a.to}', profiler: '${x-a.b}'}\n"
    config = loaded(tmp_path, more).config
    assert config.trainer == {"max_epochs": 2, "profiler": {"lr": 0.1}}
    error = refused(tmp_path, "defaults: base\ntrainer: {max_epochs: '${x-a.no}'}\n")
    assert "names the key x-a.no, which is not there" in error.message
    with pytest.raises(ConfigError, match="x-a is no key"):
        loaded(tmp_path, "defaults: base\n", "x-a=1")


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ("${hydra:runtime.cwd}/data", "write path: data (a relative path begins in the folder"),
        ("${hydra:runtime.cwd}", "write path: . (a relative path"),
        ("${hydra:runtime.output_dir}/a", "leave it out: each run has a folder of its own"),
        ("${hydra:job.name}-a", "write path: ${name}-a"),
        ("a/${now:%Y-%m-%d}", "write a text of your own: each run's folder has the time in"),
        ("${hydra:job.num}", "write the value here; ${oc.env:NAME} is a variable"),
    ],
)
def test_a_word_of_hydra_in_a_value_is_told(tmp_path: Path, value: str, fix: str) -> None:
    error = refused(tmp_path, f"trainer:\n  path: '{value}'\n")
    assert error.message.startswith("cfg.yaml:6: trainer.path calls ")
    assert error.message.endswith(", which is Hydra's")
    assert error.hint.startswith(fix)


def test_a_value_of_a_script_may_have_them_in_plain_text(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import app\napp.main()\n")
    text = "name: x\nscript: {path: train.py, args: ['a=\\${now:%Y}', '\\${hydra:runtime.cwd}']}\n"
    assert load(write(tmp_path, text)).config.script.args == ["a=${now:%Y}", "${hydra:runtime.cwd}"]
