"""What cannot be meant is refused as a config is loaded: the place, the key, the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.errors import ConfigError
from tests.config.files import MINIMAL, loaded, refusal, refused, write

# Files


def test_a_config_without_its_ending_is_proposed_with_it(tmp_path: Path) -> None:
    for name in ("ok.yaml", *(f"c{number}.yaml" for number in range(6))):
        (tmp_path / name).write_text("name: x\n")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "ok")
    assert caught.value.hint == f"did you mean '{tmp_path / 'ok.yaml'}'?"


def test_a_missing_file_names_one_that_is_there(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL, "digits.yaml")
    error = refusal(tmp_path / "digit.yaml")
    assert error.message == "digit.yaml: there is no such file"
    assert error.hint == "did you mean 'digits.yaml'?"
    assert "no folder" in refusal(tmp_path / "no" / "x.yaml").hint


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("slurm.exclusive", "write slurm.exclusive=true"),
        ("reproducible", "write reproducible=true"),
        ("snapshot.untracked", "write snapshot.untracked=true"),
        ("trainer.fast_dev_run", "write trainer.fast_dev_run=true"),
        ("slurm.nodes", "write its value behind it: slurm.nodes=..."),
        ("trainer.max_epochs", "write its value behind it: trainer.max_epochs=..."),
    ],
)
def test_a_switch_without_its_value_is_told_with_true(word: str, fix: str, tmp_path: Path) -> None:
    for words in ((word,), (word, "seed=3"), ("seed=3", word)):
        assert refused(tmp_path, "", *words).hint == fix


def test_switches_behind_each_other_are_told_together(tmp_path: Path) -> None:
    """One was taken for the other's value: `slurm.exclusive=snapshot.untracked`."""
    words = ("slurm.exclusive", "snapshot.untracked")
    fix = "write slurm.exclusive=true snapshot.untracked=true"
    assert refused(tmp_path, "", *words).hint == fix
    assert refused(tmp_path, "", *words, "seed=3").hint == fix
    assert refused(tmp_path, "", "slurm.exclusive", "x").hint.endswith("slurm.exclusive=x")


def test_a_folder_is_no_config(tmp_path: Path) -> None:
    error = refusal(tmp_path)
    assert error.message.endswith("is a folder")
    assert error.hint.endswith("ends in .yaml")


def test_of_a_folder_its_configs_are_named_and_a_project_is_gone_into(tmp_path: Path) -> None:
    """The ranks import the model from the folder that the command is typed in."""
    configs = tmp_path / "my configs"
    configs.mkdir()
    for name in ("b.yaml", "a.yml", "notes.txt"):
        write(configs, MINIMAL, name)
    assert refusal(configs).hint == "name a config: 'my configs/a.yml', 'my configs/b.yaml'"
    (configs / "nets.py").touch()
    assert refusal(configs).hint == "cd 'my configs', and name a config there: a.yml, b.yaml"


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cfg.yaml"
    path.write_bytes(b"\xff\xfe\x00\x81")
    assert "not text in UTF-8" in refusal(path).message


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("a: [1, 2\nb: 3\n", "cfg.yaml:1:4: not YAML: a bracket without its end", "close the"),
        ("a:\n\tb: 1\n", "cfg.yaml:2:1: not YAML: found character that cannot start", "indent"),
        ("a: b: c\n", "cfg.yaml:1:5: not YAML: mapping values are not allowed", '"b: c"'),
        ("- a\n", "cfg.yaml:1: not a mapping", "key: value"),
        ("just text\n", "cfg.yaml:1: not a mapping", "key: value"),
        ("a: !!python/object:os.system x\n", "cfg.yaml:1:4: not YAML: could not determine", ""),
        ("a: 1\n1: 2\n", "cfg.yaml:2: the key 1 is no text", '"1":'),
        ("a: 1\non: 2\n", "cfg.yaml:2: the key on is no text", '"on":'),
        ("? [a]\n: 1\n", "cfg.yaml:1: a key that is no plain word", "key: value"),
        ("name: x\nseed: 1\nname: y\n", "cfg.yaml:3: name is here for the second time", "one of"),
        ("slurm:\n  nodes: 1\n  nodes: 2\n", "slurm.nodes is here for the second time", "one of"),
        ("defaults: [nope]\n", "cfg.yaml:1: defaults names nope, and there is no such", ""),
        ("a: 1\ndefaults: [3]\n", "cfg.yaml:2: defaults holds 3", "base.yaml"),
        ("defaults: [cfg.yaml]\n", "cfg.yaml builds on itself", "defaults"),
        ("cluster_profile: exampel\n", "names clusters/exampel", "'example'"),
        ("cluster_profile: [a]\n", "cfg.yaml:1: cluster_profile is ['a']", "configs/clusters"),
        ("", "cfg.yaml: no key is in it", "name: my-run; global_batch_size: 64"),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_why(
    text: str, message: str, hint: str, tmp_path: Path
) -> None:
    error = refusal(write(tmp_path, text))
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize("key", ["name", "global_batch_size", "model", "data"])
def test_a_key_without_a_default_must_be_there(key: str, tmp_path: Path) -> None:
    lines = [line for line in MINIMAL.splitlines() if not line.startswith(f"{key}:")]
    error = refusal(write(tmp_path, "\n".join(lines)))
    assert error.message == f"cfg.yaml: {key} is missing"
    assert error.hint.startswith(f"write {key}: ")


def test_a_model_with_its_own_loader_and_no_data_is_told_what_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "from pytorch_lightning import LightningModule, LightningDataModule\n"
    text += "class Base(LightningModule):\n    def train_dataloader(self): return 1\n"
    write(tmp_path, f"{text}class Net(Base): ...\nclass Other(LightningModule): ...\n", "nets.py")
    config = "\n".join(it for it in MINIMAL.splitlines() if not it.startswith("data:"))
    said = "nets.Net has its own train_dataloader (nets.py:3), which a config does not call"
    hint = "move it into a LightningDataModule and name that: data: {class_path: nets.NetData};"
    for more in ("", "\ndata:"):
        error = refusal(write(tmp_path, config + more))
        assert error.message == f"cfg.yaml: data is missing: {said}"
        assert error.hint == f"{hint} or submit a script that calls Trainer(...).fit(Net(...))"

    plain = config.replace("nets.Net", "nets.Other")
    error = refusal(write(tmp_path, plain))
    assert error.message == "cfg.yaml: data is missing"
    assert error.hint == "write data: {class_path: my_package.MyData, init_args: {...}}"
    write(tmp_path, f"{text}class Set(LightningDataModule): ...\n", "sets.py")
    assert refusal(write(tmp_path, plain)).hint == "write data: {class_path: sets.Set}"


@pytest.mark.parametrize(
    ("model", "files", "meant"),
    [
        ("nets.Net", ["cls", "nets", "tab"], "nets.Data"),
        ("nets.Net", ["cls", "tab"], "cls.Data"),
        ("b.nets.Net", ["a/nets", "a/sets", "b/sets", "c"], "b.sets.Data"),
        ("b.nets.Net", ["a/nets", "b/a", "b/nets"], "b.nets.Data"),
        ("nets.Net", ["a/sets", "a/nets"], "a.nets.Data"),
    ],
)
def test_of_several_classes_of_data_the_one_beside_the_model_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, files: list[str], meant: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "from pytorch_lightning import LightningModule, LightningDataModule\n"
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        write(tmp_path, f"{text}class Data(LightningDataModule): ...\n", f"{file}.py")
    config = "\n".join(it for it in MINIMAL.splitlines() if not it.startswith("data:"))
    error = refusal(write(tmp_path, config.replace("nets.Net", model)))
    assert error.hint == f"write data: {{class_path: {meant}}}"


# Values


@pytest.mark.parametrize(
    ("more", "message", "hint"),
    [
        ("slrum: {}\n", "cfg.yaml:5: slrum is no key of hpc-train", "did you mean 'slurm'?"),
        ("slurm: {node: 3}\n", "cfg.yaml:5: slurm.node is no key", "did you mean 'slurm.nodes'"),
        ("nodes: 3\n", "cfg.yaml:5: nodes is no key", "write slurm: {nodes: 3}"),
        ("slurm: {array: 1-3}\n", "slurm.array is no key", "write sweep: {KEY: [VALUES]}"),
        ("slurm: {output: a.log}\n", "slurm.output is no key", "hpc-train logs RUN"),
        ("slurm: fast\n", "cfg.yaml:5: slurm is 'fast'", "it is a section"),
        ("slurm:\n  nodes: 0\n", "cfg.yaml:6: slurm.nodes is 0", "write 1 or more"),
        ("slurm: {nodes: two}\n", "cfg.yaml:5: slurm.nodes is 'two'", "write a whole number"),
        ("slurm: {nodes: 1.5}\n", "cfg.yaml:5: slurm.nodes is '1.5'", "write a whole number"),
        ("slurm: {gpus_per_node: 0}\n", "slurm.gpus_per_node is 0", "trainer.accelerator: cpu"),
        ("slurm: {spares: -1}\n", "slurm.spares is -1", "write 0 or more"),
        ("slurm: {signal_lead_s: 0}\n", "slurm.signal_lead_s is 0", "write 1 or more"),
        ("slurm: {qos: no}\n", "slurm.qos is false in YAML", "put the word in quotes"),
        ("slurm: {mem_per_gpu: 1.5}\n", "slurm.mem_per_gpu is 1.5 without", '"1.5G"'),
        ("slurm: {mem: 64}\n", "slurm.mem is 64 without a unit", '"64G"'),
        (
            "slurm: {exclusive: usr}\n",
            "slurm.exclusive is 'usr'",
            "write one of true, false, 'user', 'mcs', 'topo'",
        ),
        ("slurm: {exclusive: 1}\n", "slurm.exclusive is '1'", "write one of true, false"),
        ("slurm: {licenses: [a]}\n", "slurm.licenses", ""),
        ("reproducible: maybe\n", "cfg.yaml:5: reproducible is 'maybe'", "write true or false"),
        ("preflight: {mode: fast}\n", "preflight.mode is 'fast'", "'off', 'quick', 'full'"),
        ("checkpoint: {keep_last: 0}\n", "checkpoint.keep_last is 0", "resumes from"),
        ("checkpoint: {every_n_minutes: soon}\n", "every_n_minutes is 'soon'", "write a number"),
        ("loggers: csv\n", "cfg.yaml:5: loggers is no list", "write [csv]"),
        ("loggers: [wadb]\n", "cfg.yaml:5: loggers.0 is 'wadb'", "did you mean 'wandb'?"),
        ("loggers: [neat]\n", "loggers.0 is 'neat'", "write csv, tensorboard, wandb, mlflow, or {"),
        ("loggers: [3]\n", "loggers.0 is 3", "write csv"),
        ("loggers: [csv, {a: 1}]\n", "loggers.1 is {'a': 1}", "class_path"),
        ("loggers: [null]\n", "loggers.0 is None", "write csv"),
        ("trainer: 3\n", "cfg.yaml:5: trainer is no mapping", "key: value"),
        ("env: {modules: cuda}\n", "env.modules is no list", "write [cuda]"),
        ("env: {modules: cuda gcc}\n", "env.modules is no list", "write [cuda, gcc]"),
        ("env: {passthrough: 'A_B,C'}\n", "env.passthrough is no list", "write [A_B, C]"),
        ("env: {setup: ls -l}\n", "env.setup is no list of lines", 'write a list: ["ls -l"]'),
        ("env:\n  setup:\n    a\n    b\n", "env.setup is no list", "or setup: | and each line"),
        ("env: {setup: [ls, 'a': b]}\n", "env.setup.1 is {'a': 'b'} in YAML", "in quotes"),
        ("env: {variables: {DEBUG: yes}}\n", "env.variables.DEBUG is true in YAML", "quotes"),
        ("env: {variables: {HF_TOKEN: x}}\n", "HF_TOKEN looks like a secret", "passthrough: [HF_T"),
        ("runs_dir: '${oc.env:A_KEY}'\n", "takes the value of A_KEY", "env.passthrough: [A_KEY]"),
        (
            "runs_dir: '${oc.env:NO_SUCH}'\n",
            "needs the variable NO_SUCH, not set",
            "export NO_SUCH=",
        ),
        ("runs_dir: '${nope}'\n", "names the key nope, which is not there", "\\${...}"),
        ("runs_dir: '${a'\n", "has a broken ${...}", "\\${...}"),
        ("env: {venv: '???'}\n", "env.venv is ???, to be given", "write env.venv=... on the com"),
        ("slurm: {time: '???'}\n", "slurm.time is ???, to be given", "write slurm.time=..."),
        ("trainer:\n  max_epochs: ???\n", "trainer.max_epochs is ???", "trainer.max_epochs=..."),
        ("trainer: {max_time: 1:30:00}\n", "which YAML reads as the number 5400", '"00:01:30:00"'),
        ("trainer: {val_check_interval: 1:30:00}\n", "as the number 5400", '"00:01:30:00"'),
        ("seed: -1\n", "cfg.yaml:5: seed is -1", "0 or more"),
    ],
)
def test_a_value_that_cannot_be_meant_names_its_line_its_key_and_the_fix(
    more: str, message: str, hint: str, tmp_path: Path
) -> None:
    error = refused(tmp_path, more)
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize("key", ["mem", "mem_per_gpu"])
def test_no_memory_is_all_of_a_nodes_to_slurm_and_needs_no_unit(key: str, tmp_path: Path) -> None:
    # sbatch(1), --mem: "a memory size specification of zero is treated as a special case".
    config = loaded(tmp_path, f"slurm: {{{key}: 0}}\n").config
    assert getattr(config.slurm, key) == "0"


def test_an_unquoted_time_is_refused_and_the_message_says_what_yaml_made_of_it(
    tmp_path: Path,
) -> None:
    error = refused(tmp_path, "slurm:\n  time: 1:30:00\n")
    assert error.message == (
        "cfg.yaml:6: slurm.time is 1:30:00 without quotes, which YAML reads as the number 5400,"
        " and Slurm would take as 5400 minutes"
    )
    assert error.hint == 'write slurm.time: "1:30:00"'


@pytest.mark.parametrize("number", ["90", "5400", "1.5"])
def test_a_bare_number_is_no_time(number: str, tmp_path: Path) -> None:
    error = refused(tmp_path, f"slurm: {{time: {number}}}\n")
    assert f"slurm.time is the bare number {number}" in error.message
    assert f'"{number}" is minutes' in error.hint


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed", "command line: 'seed' is no key=value"),
        ("=3", "command line: '' is no key"),
        ("+seed=3", "command line: '+seed' is no key"),
        ("se ed=3", "command line: 'se ed' is no key"),
        ("seed=[1", "seed: '[1' is not YAML"),
        ("trainer.max_epochs=1:30", "command line: trainer.max_epochs is 1:30"),
        ("slurm.nodes=0", "command line: slurm.nodes is 0"),
        ("sead=0", "command line: sead is no key"),
        ("loggers.1=csv", "loggers.1: loggers has no element '1'"),
        ("loggers.-1=csv", "loggers.-1: loggers has no element '-1'"),
        ("loggers.last=csv", "loggers.last: loggers has no element 'last'"),
        ("loggers.0.x=csv", "loggers.0.x: loggers.0 is 'csv', and has no keys"),
        ("name=null", "name is null"),
        ("name=", "command line: name is empty"),
        ("slurm.qos=", "command line: slurm.qos is empty"),
        ("trainer.max_epochs= ", "command line: trainer.max_epochs is empty"),
        ("env={variables: {HF_TOKEN: x}}", "command line: env.variables.HF_TOKEN looks like"),
    ],
)
def test_an_override_that_cannot_be_meant_is_refused(
    override: str, message: str, tmp_path: Path
) -> None:
    assert message in refused(tmp_path, "loggers: [csv]\n", override).message


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("word", ["accelerator", "Accelerator"])
def test_a_word_of_the_trainer_is_the_trainers_where_no_script_trains(
    tmp_path: Path, typed: bool, word: str
) -> None:
    more = [f"{word}=cpu"] if typed else []
    error = refused(tmp_path, "" if typed else f"{word}: cpu\n", *more)
    in_file = "write trainer: {accelerator: cpu}"
    assert error.hint == ("write trainer.accelerator" if typed else in_file)
    loaded(tmp_path, "", "trainer.accelerator=cpu")


def test_a_script_has_a_word_of_its_own_for_the_accelerator(tmp_path: Path) -> None:
    path = write(tmp_path, "script: {path: train.py}\naccelerator: cpu\n")
    assert refusal(path).hint == "did you mean 'script.accelerator'?"
    for name, key in (("cfg.yaml", "trainer"), ("train.py", "script")):
        write(tmp_path, MINIMAL if key == "trainer" else "", name)
        with pytest.raises(ConfigError, match=rf"'{key}\.accelerator=cpu'"):
            load(tmp_path / name, flags={"accelerator": "cpu"})
