"""A script in place of model, data and trainer: taken as it is, or refused at once."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.backends.plan_evaluation import plan_evaluation
from hpc_train.backends.replan import plan_again
from hpc_train.backends.smoke import smoke_config
from hpc_train.config.load import load
from hpc_train.config.show import to_yaml
from hpc_train.errors import ConfigError, HpcTrainError, UsageError
from hpc_train.plan.plan import Plan, ScriptPlan
from hpc_train.plan.states import RunState
from hpc_train.sweeps import plan_sweep
from tests.config.files import MINIMAL, refusal, write

NASTY = (
    *("--lr", "0.1", "", "a b", "it's", '"quoted"', "$(touch owned)", "`x`", "${HOME}", "\\${x}"),
    *("new\nline", "tab\t", "päth ✓", "HPC_TRAIN_PLAN", "*", "-", "--", "key=value", "true", "010"),
)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write(tmp_path, "print(1)\n", "train.py")


FOR_TWO = "devices=2, num_nodes=1"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (f"import pytorch_lightning as pl\npl.Trainer({FOR_TWO})", "Trainer(devices=2)"),
        ("import lightning\nlightning.Trainer(devices='2')", "Trainer(devices=2)"),
        ("import lightning.pytorch as L\nL.Trainer(devices=[0, 1, 3])", "Trainer(devices=3)"),
        ("from lightning.pytorch import Trainer as T\nT(num_nodes=4)", "Trainer(num_nodes=4)"),
        ("from lightning import pytorch as pl\npl.Trainer(devices=8)", "Trainer(devices=8)"),
        ("from lightning.fabric import Fabric\nFabric(devices=2)", "Fabric(devices=2)"),
        ("import lightning as L\nL.Fabric(devices='4')", "Fabric(devices=4)"),
        ("import lightning_fabric\nlightning_fabric.Fabric(num_nodes=2)", "Fabric(num_nodes=2)"),
        ("from lightning import fabric as F\nF.Fabric(devices=[0, 1])", "Fabric(devices=2)"),
        # One that is in order, or that the text does not tell, may be the one that is made.
        ("import lightning as L\nL.Trainer(devices=2)\nL.Trainer()", ""),
        ("import lightning as L\nL.Trainer(devices=2)\nL.Trainer(devices=1)", ""),
        ("import lightning as L\nL.Trainer(devices=n, num_nodes=-1)", ""),
        ("import lightning as L\nL.Trainer(devices='0,1')", ""),
        ("from mine import Trainer\nTrainer(devices=2)", ""),
        ("from mine import Fabric\nFabric(devices=2)", ""),
        ("from lightning.fabric import Fabric\nFabric(devices=n)", ""),
        ("import lightning as L\nL.Fabric(devices=2)\nL.Trainer()", ""),
    ],
)
def test_a_trainer_that_asks_for_more_than_there_is_is_refused_before_the_queue(
    script: Path, text: str, refused: str
) -> None:
    script.write_text(f"{text}\ngo()\n")
    script.with_name("mine.py").write_text("class Trainer: ...\nclass Fabric: ...\n")
    if not refused:
        api.load("train.py")
        return
    with pytest.raises(ConfigError) as caught:
        api.load("train.py")
    assert f"train.py:2 asks for {refused}, and this run has 1" in caught.value.message
    assert "leave" in caught.value.hint
    api.load("train.py", nodes=4, gpus=8)


@pytest.mark.parametrize(
    ("text", "word", "fix"),
    [
        ("pl.Trainer(gpus=args.gpus)", "Trainer(gpus=...)", "--gpus N"),
        ("def main():\n  pl.Trainer(gpus=4)\nmain()", "Trainer(gpus=...)", "--gpus N"),
        ("pl.Trainer(progress_bar_refresh_rate=0)", "Trainer(progress", "write enable_pro"),
        ("pl.Trainer(auto_lr_find=True)", "Trainer(auto_lr_find=...)", "tuner.Tuner"),
        ("pl.Trainer(weights_save_path='x')", "Trainer(weights_save_path=...)", "run directory"),
        ("pl.Trainer(strategy='ddp_spawn')", 'strategy="ddp_spawn"', 'write strategy="ddp"'),
        ("pl.Trainer(accelerator='ddp')", 'accelerator="ddp"', 'write strategy="ddp", or leave'),
        ("pl.Trainer(accelerator='dp')", 'accelerator="dp"', 'write strategy="ddp", or leave'),
        ("pl.Trainer(accelerator='ddp_cpu')", 'accelerator="ddp_cpu"', "script.accelerator=cpu"),
        ("pl.Trainer(accelerator='mps')", 'accelerator="mps"', 'write accelerator="auto"'),
        ("pl.Trainer(strategy='dp')", 'strategy="dp"', 'write strategy="ddp"'),
        ("pl.Trainer.add_argparse_args(p)", "Trainer.add_argparse_args", "LightningCLI"),
        ("T.from_argparse_args(a)", "Trainer.from_argparse_args", "Trainer(max_epochs=args"),
        # what another version, package or choice may make right
        ("if old:\n  pl.Trainer(gpus=1)", "", ""),
        ("pl.Trainer(gpus=1)\npl.Trainer()", "", ""),
        ("try:\n  pl.Trainer.add_argparse_args(p)\nexcept: pass", "", ""),
        ("pl.Trainer(strategy='hivemind')", "", ""),
        ("pl.Trainer(strategy='ddp', max_epochs=3, logger=None)", "", ""),
        ("pl.Trainer(**options)", "", ""),
        ("pl.Trainer(accelerator='GPU')\npl.Trainer(accelerator=kind)", "", ""),
        ("pl.Trainer(accelerator='ddp')\npl.Trainer(accelerator='cpu')", "", ""),
    ],
)  # fmt: skip
def test_what_lightning_2_dropped_is_refused_in_a_script_before_the_queue(
    script: Path, text: str, word: str, fix: str
) -> None:
    both = "import pytorch_lightning as pl\nfrom pytorch_lightning import Trainer as T\n"
    script.write_text(f"{both}{text}\ngo()\n")
    if not word:
        api.load("train.py")
        return
    with pytest.raises(ConfigError) as caught:
        api.load("train.py")
    assert "script.path: train.py:" in caught.value.message
    assert word in caught.value.message
    assert fix in caught.value.hint
    api.load("train.py", "script.launcher=none")


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        ("progress_bar_refresh_rate=20", "leave it out, or write callbacks=[TQDMProgressBar(ref"),
        ("progress_bar_refresh_rate=n", "TQDMProgressBar(refresh_rate=n)], of Lightning's"),
        ("progress_bar_refresh_rate=2, gpus=1", "Lightning's callbacks; gpus: leave it out, and"),
        ("resume_from_checkpoint=None", "leave it out: a stopped run goes on with hpc-train"),
        ("resume_from_checkpoint=p", "to begin with it: trainer.fit(..., ckpt_path=p)"),
        ("weights_summary=None", "write enable_model_summary=False"),
        ("reload_dataloaders_every_epoch=True", "write reload_dataloaders_every_n_epochs=1"),
        ("progress_bar_refresh_rate=0", "write enable_progress_bar=False"),
        ("reload_dataloaders_every_epoch=None", "write reload_dataloaders_every_n_epochs="),
        ("reload_dataloaders_every_epoch=x", "write reload_dataloaders_every_n_epochs="),
    ],
)
def test_all_that_lightning_2_dropped_of_a_trainer_is_told_at_once(
    script: Path, given: str, fix: str
) -> None:
    script.write_text(f"import pytorch_lightning as pl\npl.Trainer(logger=False, {given})\n")
    with pytest.raises(ConfigError) as caught:
        api.load("train.py")
    words = ", ".join(f"{it.partition('=')[0]}=..." for it in given.split(", "))
    assert f"train.py:2 has Trainer({words}), which cannot be here" in caught.value.message
    assert fix in caught.value.hint


def test_both_ends_of_the_options_of_lightning_1_are_told_at_once(script: Path) -> None:
    text = "T.add_argparse_args(p)\nif 1 < 2:\n  pass\ntrainer = T.from_argparse_args(a)\n"
    script.write_text(f"from pytorch_lightning import Trainer as T\n{text}go()\n")
    with pytest.raises(ConfigError) as caught:
        api.load("train.py")
    said = "train.py:2 has Trainer.add_argparse_args, and line 5 Trainer.from_argparse_args, which"
    assert said in caught.value.message
    assert caught.value.hint == (
        'write parser.add_argument("--max_epochs", type=int),'
        " and Trainer(max_epochs=args.max_epochs, ...), or use LightningCLI"
    )


@pytest.mark.parametrize("arguments", [None, (), ("fit",), NASTY])
def test_arguments_come_through_config_plan_and_rendered_script_unharmed(
    script: Path, tmp_path: Path, arguments: tuple[str, ...] | None
) -> None:
    loaded = api.load("train.py", arguments=arguments, nodes=3, gpus=4)
    wanted = list(arguments or ())
    assert loaded.config.name == "train"
    assert loaded.config.script.args == wanted
    again = load(write(tmp_path, to_yaml(loaded.config), "again.yaml"))
    assert again.config == loaded.config, "what a resume in another shape reads"
    plan = api.plan(loaded)
    assert plan.script == ScriptPlan("train.py", wanted)
    assert Plan.from_json(plan.to_json()) == plan
    text = api.render(loaded)
    (command,) = [line for line in text.splitlines() if "--plan /dev/stdin" in line]
    text = text.replace(command, "  cat >plan <<'HPC_TRAIN_PLAN'")
    subprocess.run(["bash", "-c", text], cwd=tmp_path, check=True, timeout=60)
    sent = Plan.from_json((tmp_path / "plan").read_text(encoding="utf-8"))
    assert sent.script == plan.script
    assert not (tmp_path / "owned").exists()


def test_a_config_may_name_a_script_beside_the_other_sections(script: Path, tmp_path: Path) -> None:
    text = "script: {path: train.py, args: [--lr, 0.1, --n, 3]}\nslurm: {nodes: 2}\nseed: 3\n"
    path = write(tmp_path, text)
    loaded = api.load(path)
    assert (loaded.config.name, loaded.config.seed) == ("train", 3)
    assert loaded.config.script.args == ["--lr", "0.1", "--n", "3"]
    assert api.load(path, arguments=["x"]).config.script.args == ["x"], "the command line wins"
    assert api.load(path, name="mine").config.name == "mine"
    cpu = api.plan(api.load(path, "script.accelerator=cpu", gpus=2))
    assert (cpu.shape.gpus_per_node, cpu.shape.ranks_per_node) == (0, 2)


def test_another_argument_is_another_training_and_another_shape_is_not(script: Path) -> None:
    def identity(*arguments: str, nodes: int = 1, name: str = "train.py") -> str:
        return api.plan(api.load(name, arguments=arguments, nodes=nodes)).config_hash

    first = identity("--lr", "0.1")
    assert identity("--lr", "0.1", nodes=3) == first
    write(script.parent, "print(2)\n", "other.py")
    assert len({first, identity("--lr", "0.2"), identity(), identity(name="other.py")}) == 4


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.py", None, "there is no file none.py"),
        ("folder.py", "folder", "folder.py is a folder"),
        ("shell.py", b"#!/bin/sh\necho $1\n", "shell.py:2 is no Python"),
        ("torn.py", b"x = 1\nif x:\n", "torn.py:2 is no Python"),
        ("binary.py", b"\x7fELF\x00\x01", "binary.py is no Python"),
    ],
)
def test_what_cannot_be_a_script_is_refused_before_anything_is_made(
    script: Path, name: str, content: bytes | str | None, said: str
) -> None:
    if content == "folder":
        Path(name).mkdir()
    elif isinstance(content, bytes):
        Path(name).write_bytes(content)
    with pytest.raises(ConfigError, match=said) as caught:
        api.load(name)
    assert caught.value.hint
    assert not Path("runs").exists()


@pytest.mark.parametrize("word", ["fit", "lr=3", "trainer.max_epochs=3", "model=resnet"])
def test_a_word_of_the_script_in_front_of_the_two_dashes_is_told(script: Path, word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        api.load("train.py", word)
    assert caught.value.hint == f"arguments of train.py come behind --: train.py -- {word}"


@pytest.mark.parametrize(
    "line", ["model: {class_path: nets.Net}", "global_batch_size: 8", "trainer: {max_epochs: 2}"]
)
def test_what_the_script_decides_cannot_stand_beside_it(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, f"script: {{path: train.py}}\n{line}\n")
    error = refusal(path)
    assert error.message.startswith("cfg.yaml:2: ")
    assert "beside script.path (train.py)" in error.message


@pytest.mark.parametrize(
    ("arguments", "said"),
    [("--lr", "no list"), ("[on]", "True in YAML"), ("[null]", "None"), ("[[1]]", "in YAML")],
)
def test_an_argument_that_yaml_changes_is_refused(
    tmp_path: Path, arguments: str, said: str
) -> None:
    error = refusal(write(tmp_path, f"script: {{path: train.py, args: {arguments}}}\n"))
    assert "script.args" in error.message
    assert said in error.message


def test_arguments_for_a_config_without_a_script_are_refused(tmp_path: Path) -> None:
    error = refusal(write(tmp_path, MINIMAL), arguments=["--lr", "0.1"])
    assert "names none" in error.message


def test_weights_beside_a_script_are_refused(tmp_path: Path) -> None:
    error = refusal(write(tmp_path, "script: {path: train.py}\ninit_from: other\n"))
    assert "cfg.yaml:2: init_from stands beside script.path (train.py)" in error.message


def test_a_sweep_of_a_script_puts_its_values_into_the_arguments(script: Path) -> None:
    words = ["--lr={lr}", "{name}", "{seed}", "{kept}", "${HOME} $(x)", "{lr}{name}"]
    sweep = ["lr=1e-3,0.5", "name=['a b','\\${HOME}']", "seed=range(2)"]
    plan, configs = plan_sweep(api.load("train.py", arguments=words, sweep=sweep))
    last = plan.plan_of(7).script
    assert (len(plan.points), len(configs)) == (8, 8)
    assert plan.plan_of(0).script == ScriptPlan(
        "train.py", ["--lr=0.001", "a b", "0", "{kept}", "${HOME} $(x)", "0.001a b"]
    )
    assert last is not None
    assert last.args == ["--lr=0.5", "${HOME}", "1", "{kept}", "${HOME} $(x)", "0.5${HOME}"]
    assert len({plan.plan_of(number).config_hash for number in range(8)}) == 8

    seeds = plan_sweep(api.load("train.py", arguments=["x"], sweep=["seed=4,5"]))[0]
    assert [seeds.plan_of(number).training.seed for number in (0, 1)] == [4, 5]


@pytest.mark.parametrize(
    ("sweep", "said", "hint"),
    [
        ("lr=0.1,0.2", "sweep.lr has no place in the arguments of train.py", "--lr {lr}"),
        ("n=true,false", "script.args.0 is True in YAML", "quotes"),
        ("slurm.nodes=1,2", "differs from the first point in the shape", "for each"),
        ("model.lr=1,2", "sweep.model.lr has no place", "{model.lr}"),
    ],
)
def test_a_sweep_of_a_script_that_cannot_be_meant_is_refused(
    script: Path, sweep: str, said: str, hint: str
) -> None:
    with pytest.raises(HpcTrainError) as caught:
        plan_sweep(api.load("train.py", arguments=["{n}"], sweep=[sweep]))
    assert said in caught.value.message
    assert hint in caught.value.hint


def test_a_smoke_test_of_a_script_is_refused(script: Path) -> None:
    loaded = api.load("train.py")
    with pytest.raises(ConfigError, match=r"that of train\.py is its own"):
        smoke_config(loaded, api.plan(loaded))


def test_a_run_of_a_script_is_neither_evaluated_nor_made_longer(
    script: Path,
) -> None:
    run = api.prepare(api.load("train.py"))
    with pytest.raises(UsageError, match="is a script, which makes the model") as caught:
        plan_evaluation(run.directory, "test", "", (), {})
    assert caught.value.hint == "call trainer.test in train.py"
    ended = dataclasses.replace(run.status(), state=RunState.FAILED)
    with pytest.raises(ConfigError, match=r"trainer stands beside script.path \(train.py\)"):
        plan_again(ended, run.directory, ("trainer.max_epochs=9",), {})
    done = dataclasses.replace(ended, state=RunState.COMPLETED)
    with pytest.raises(HpcTrainError) as refused:
        plan_again(done, run.directory, (), {})
    assert "the script's" in refused.value.hint
    again = plan_again(ended, run.directory, (), {"nodes": 2})
    assert again.plan.script == ScriptPlan("train.py", [])


@pytest.mark.parametrize(
    ("script_keys", "said"),
    [
        ("resume: {args: [--resume]}", "script.resume.when names no checkpoint"),
        ("resume: {when: out/ckpt.pt, arguments: [x]}", "script.resume is {"),
        ("resume: out/ckpt.pt", "script.resume is "),
        ("resume: {when: out/ckpt.pt, args: --resume}", "script.resume.args is no list"),
        ("args: [--local_rank=0]", "and each rank has another one"),
        ("launcher: mpirun", "launcher"),
    ],
)
def test_how_a_script_is_started_and_goes_on_is_checked(
    script: Path, tmp_path: Path, script_keys: str, said: str
) -> None:
    error = refusal(write(tmp_path, f"script: {{path: train.py, {script_keys}}}\n"))
    assert said in error.message
    assert error.hint


def test_a_script_tells_how_it_is_stopped_and_goes_on(script: Path, tmp_path: Path) -> None:
    own = 'resume: {when: "out/*.pt", args: [--from, "{newest}"]}, on_stop: exit, stop_grace_s: 5'
    plan = api.plan(api.load(write(tmp_path, f"script: {{path: train.py, {own}}}\n")))
    assert plan.script == ScriptPlan(
        "train.py",
        [],
        on_stop="exit",
        stop_grace_s=5,
        resume_when="out/*.pt",
        resume_args=["--from", "{newest}"],
    )
    assert Plan.from_json(plan.to_json()) == plan


PARSED = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--lr", type=float)
args = parser.parse_args()
"""


@pytest.mark.parametrize(
    ("more", "words", "hint"),
    [
        ("", ["trainer.max_epochs=9"], "it is train.py's own: hpc-train submit train.py -- --epoc"),
        ("", ["trainer.accelerator=cpu"], "write script.accelerator=cpu in its place"),
        ("trainer: {accelerator: cpu}\n", [], "write accelerator: cpu below script in its place"),
        ("", ["trainer.precision=16"], "leave it out: train.py makes its own, and its arguments"),
        ("", ["model.init_args.lr=1"], "leave it out: train.py makes its own, and its arguments"),
        ("trainer: {max_epochs: 9}\n", [], "keep one of them"),
    ],
)
def test_what_a_script_decides_is_told_with_its_own_argument(
    script: Path, more: str, words: list[str], hint: str
) -> None:
    script.write_text(PARSED)
    error = refusal(write(script.parent, f"script: {{path: train.py}}\n{more}"), *words)
    assert error.hint.startswith(hint)
