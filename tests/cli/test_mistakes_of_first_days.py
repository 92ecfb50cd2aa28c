"""What a newcomer meets on the first days: one message that tells all, and a fix that works."""

from __future__ import annotations

import copy
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from hpc_train import api
from hpc_train.config.load import load
from hpc_train.errors import ConfigError, HpcTrainError
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from tests.cli.mistaken import CONFIG, NETS, project, refused
from tests.training.launched import make_plan

__all__ = ["project"]

OF_LIGHTNING_CLI = """\
seed_everything: 42
trainer: {accelerator: cpu, strategy: auto, devices: auto, num_nodes: 1, precision: null,
  logger: null, callbacks: null, max_epochs: 2}
model: {class_path: nets.Net, init_args: {width: 3}}
data: {class_path: nets.Data}
ckpt_path: null
"""
OPEN = """
class Open(LightningModule):
    def __init__(self, width: int = 3, lr=0.1, n=0, flag=False, name="x", **kwargs):
        super().__init__()
    def training_step(self, batch): ...
    def configure_optimizers(self): ...
class Child(Open):
    def __init__(self, depth=2, **kwargs):
        super().__init__(**kwargs)
class Loader(LightningDataModule):
    def train_loader(self): ...
class Steps(LightningModule):
    def train_step(self, batch): ...
    def configure_optimizers(self): ...
class Tested(LightningModule):
    def training_step(self, batch): ...
    def configure_optimizers(self): ...
    def tests_step(self, batch): ...
"""


@pytest.fixture
def told(project: Path) -> Path:
    """The project with classes whose arguments have no annotations."""
    (project / "nets.py").write_text(NETS + OPEN)
    return project


def write(project: Path, text: str) -> None:
    (project / "cfg.yaml").write_text(text)


# A config of LightningCLI


def test_a_config_of_lightning_cli_is_told_at_once(hpc, project: Path) -> None:
    """It took six rounds, a key each."""
    write(project, OF_LIGHTNING_CLI)
    keys = "seed_everything, name (missing), global_batch_size (missing)"
    message = f"cfg.yaml: this is a config of LightningCLI, and not so here: {keys}"
    fix = "seed_everything -> seed: 42; name: my-run; global_batch_size: 64"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, fix)
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, "train.py -- fit --config cfg.yaml")


def test_what_it_says_is_enough(hpc, project: Path) -> None:
    own = OF_LIGHTNING_CLI.replace("seed_everything", "name: x\nglobal_batch_size: 64\nseed")
    write(project, own)
    said = hpc("submit", "cfg.yaml", "--dry-run")
    assert said.code == 0, said
    (note,) = (line for line in said.err.splitlines() if "left out" in line)
    for unchosen in ("devices: auto", "num_nodes: 1", "logger: null", "ckpt_path: null"):
        assert unchosen in note
    assert "slurm.nodes and slurm.gpus_per_node are the shape" in note


@pytest.mark.parametrize(
    ("before", "after", "fix"),
    [
        ("devices: auto", "devices: 4", "trainer.devices -> gpus_per_node: 4 below slurm, or --g"),
        ("num_nodes: 1", "num_nodes: 2", "trainer.num_nodes -> nodes: 2 below slurm, or --nodes 2"),
        ("logger: null", "gpus: 2", "trainer.gpus -> slurm.gpus_per_node"),
        ("ckpt_path: null", "ckpt_path: a.ckpt", "ckpt_path -> `hpc-train resume RUN`"),
        ("ckpt_path: null", "epochs: 5", "epochs -> below trainer: max_epochs: 5"),
        ("42", "true", "seed_everything -> seed: 0, or another number"),
        ("class_path: nets.Net, init_args: {width: 3}", "width: 3", "model -> {class_path: MOD"),
    ],
)
def test_each_key_of_it_is_told(hpc, project: Path, before: str, after: str, fix: str) -> None:
    write(project, OF_LIGHTNING_CLI.replace(before, after))
    refused(hpc, project, ["submit", "cfg.yaml"], 3, "a config of LightningCLI", fix)


def test_one_below_its_subcommand_is_told_as_well(hpc, project: Path) -> None:
    indented = "".join(f"  {line}\n" for line in OF_LIGHTNING_CLI.splitlines())
    write(project, f"fit:\n{indented}")
    fix = "fit -> its keys, one step to the left; seed_everything -> seed: 42"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, "a config of LightningCLI", fix)


def test_a_config_of_ours_is_none_of_lightning_cli(hpc, project: Path) -> None:
    words = ["submit", "cfg.yaml", "seed_everything=3"]
    refused(hpc, project, words, 3, "seed_everything is no key of hpc-train", "write seed")
    words = ["submit", "cfg.yaml", "trainer.devices=2"]
    refused(hpc, project, words, 3, "trainer.devices is set by hpc-train", "slurm.gpus_per_node")
    write(project, "name: x\n")
    missing = "global_batch_size, model, data are missing"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, missing, "global_batch_size: 64")


def test_seed_0_is_a_seed(project: Path) -> None:
    write(project, OF_LIGHTNING_CLI.replace("42", "0"))
    with pytest.raises(ConfigError, match="seed_everything -> seed: 0"):
        load(project / "cfg.yaml")


# Values


@pytest.mark.parametrize(
    ("words", "message", "fix"),
    [
        ("trainer.precision=fp16", "precision is 'fp16'", "fix: write bf16-mixed"),
        ("trainer.precision=16-mixed", "16-mixed, which does not work on a CPU", "bf16-mixed or"),
        ("trainer.precision=16", "is 16, which does not work on a CPU", "bf16-mixed or 32-true"),
        ("trainer.precision=16-true", "which does not work on a CPU", "bf16-mixed or 32-true"),
        ("trainer.precision=transformer-engine", "does not work on a CPU", "bf16-mixed"),
        ("global_batch_size=32.0", "is '32.0'", "write a whole number: 32, without a point"),
        ("slurm.nodes=1.0", "is '1.0'", "write a whole number: 1, without a point"),
        (
            "trainer.callbacks=EarlyStopping",
            "is 'EarlyStopping'",
            "write [{class_path: pytorch_lightning.callbacks.EarlyStopping, init_args: {monitor: .",
        ),
        (
            "trainer.callbacks=[{LearningRateMonitor}]",
            "trainer.callbacks.0 is {'LearningRateMonitor'",
            "{class_path: pytorch_lightning.callbacks.LearningRateMonitor",
        ),
        ("model.init_args={lr:0.05}", "has the key 'lr:0.05'", "a space behind the colon: {lr: 0"),
        ("model.init_args={lr=0.05}", "has the key 'lr=0.05'", "write a colon: {lr: 0.05}"),
        ("model.init_args={a:{b}}", "is not YAML", "write a space behind each colon"),
    ],
)
def test_a_value_typed_wrong(hpc, project: Path, words: str, message: str, fix: str) -> None:
    refused(hpc, project, ["submit", "cfg.yaml", *words.split()], 3, message, fix)


def test_16_mixed_is_for_a_gpu(hpc, project: Path) -> None:
    words = ["submit", "cfg.yaml", "trainer.accelerator=gpu", "trainer.precision=fp16"]
    refused(hpc, project, words, 3, "precision is 'fp16'", "write 16-mixed")
    assert hpc(*words[:-1], "trainer.precision=16-mixed", "--dry-run").code == 0


@pytest.mark.parametrize(
    ("written", "message", "fix"),
    [
        ("{width: 0,05}", "model.init_args.width is 0,05, which is two", "point: width: 0.05"),
        ("{width: 3, lr: 1,5}", "model.init_args.lr is 1,5", "a decimal point: lr: 1.5"),
        ("{width: 3, lr: 0,1,2}", "model.init_args.lr is 0,1,2, which is several", 'lr: "0,1,2"'),
        (
            "{width:3}",
            "model.init_args has the key 'width:3' without",
            "a space behind the colon: {width: 3}",
        ),
        ("{width: 3, lr=1}", "model.init_args has the key 'lr=1'", "write a colon: {lr: 1}"),
    ],
)
def test_a_slip_in_braces(hpc, project: Path, written: str, message: str, fix: str) -> None:
    write(project, CONFIG.replace("{width: 3}", written))
    refused(hpc, project, ["submit", "cfg.yaml"], 3, f"cfg.yaml:3: {message}", fix)


def test_keys_that_are_no_slips_stay(project: Path) -> None:
    write(project, CONFIG.replace("{width: 3}", "{width: 3, 'lr:2': , a: {'05': }, b: 1}"))
    arguments = load(project / "cfg.yaml").config.model["init_args"]
    assert arguments == {"width": 3, "lr:2": None, "a": {"05": None}, "b": 1}


@pytest.mark.parametrize(
    ("typed", "message", "fix"),
    [
        ("lr=0.1,0.01", "lr is the text '0.1,0.01', and nets.Open has 0.1 there", "--sweep"),
        ('lr="0.01"', "lr is the text '0.01'", "write a number without quotes"),
        ("lr=0,1", "lr is the text '0,1'", "write a number: 0.1"),
        ("lr=0,001", "lr is the text '0,001'", "write a number: 0.001"),
        ("lr=1,5", "lr is the text '1,5'", "with a point"),
        ("lr=10%", "lr is the text '10%'", "write a number: 0.1"),
        ('n="0.5"', "n is the text '0.5'", "write a number without quotes"),
        ('flag="false"', "flag is the text 'false'", "write false without quotes"),
        ("width=wide", "width is 'wide', and nets.Open takes int", "write a whole number"),
    ],
)
def test_a_text_for_a_number(hpc, told: Path, typed: str, message: str, fix: str) -> None:
    """Such a job died with a TypeError: its arguments have no types, and **kwargs beside them."""
    words = ["submit", "cfg.yaml", "model.class_path=nets.Open", f"model.init_args.{typed}"]
    refused(hpc, told, words, 3, f"model.init_args.{message}", fix)


def test_a_text_for_a_number_of_a_base(hpc, told: Path) -> None:
    words = ["submit", "cfg.yaml", "model.class_path=nets.Child", 'model.init_args.lr="0.1"']
    refused(hpc, told, words, 3, "lr is the text '0.1'", "without quotes")


def test_another_text_may_be_meant(hpc, told: Path) -> None:
    words = ["submit", "cfg.yaml", "--dry-run", "model.class_path=nets.Open"]
    said = hpc(*words, "model.init_args.lr=auto")
    assert said.code == 0, said
    note = "model.init_args.lr is the text 'auto', and nets.Open has 0.1 there by default"
    assert f"note: command line: {note}" in said.err
    said = hpc(*words, "model.init_args.lr=[0.1,0.01]")
    note = "model.init_args.lr is [0.1, 0.01], and nets.Open has 0.1 there by default; to try one"
    assert (said.code, f"note: command line: {note}" in said.err) == (0, True)
    said = hpc(*words, "model.init_args.name=0.1,0.2", "model.init_args.more=0.1,0.2")
    assert (said.code, "is the text" in said.err) == (0, False)


# Methods


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        ("data.class_path=nets.Loader", "fix: rename train_loader to train_dataloader"),
        ("model.class_path=nets.Steps", "fix: rename train_step to training_step"),
    ],
)
def test_a_method_is_to_be_renamed(hpc, told: Path, words: str, fix: str) -> None:
    """The fix was the wrong way round."""
    words = f"submit cfg.yaml model.init_args=null {words}"
    if "data" in words:
        words += " model.class_path=nets.Open"
    refused(hpc, told, words.split(), 3, "which a training calls", fix)


def test_a_hook_under_another_name_is_noted(hpc, told: Path) -> None:
    """Without it such a training validates nothing, and nobody says so."""
    loaders = ("train_dataloader", "val_loader", "test_data")
    text = "".join(f"    def {it}(self): ...\n" for it in loaders)
    head = "from pytorch_lightning import LightningDataModule\nclass Own(LightningDataModule):\n"
    (told / "own.py").write_text(head + text)
    words = ("submit", "cfg.yaml", "--dry-run", "data.class_path=own.Own")
    note = "note: own.Own has a val_loader (own.py:4), which nothing calls: val_dataloader may"
    assert note in hpc(*words).err
    more = "    def val_dataloader(self): return self.val_loader()\n"
    (told / "own.py").write_text(f"{(told / 'own.py').read_text()}{more}")
    assert "may be meant" not in hpc(*words).err


@pytest.mark.parametrize("name", ["val_step", "valid_step", "evaluation_step"])
def test_a_step_under_a_short_name_is_noted(hpc, told: Path, name: str) -> None:
    hooks = "".join(f"    def {it}(self, batch, at): ...\n" for it in ("training_step", name))
    text = f"from pytorch_lightning import LightningModule\nclass Own(LightningModule):\n{hooks}"
    (told / "own.py").write_text(f"{text}    def configure_optimizers(self): ...\n")
    words = ("submit", "cfg.yaml", "--dry-run", "model.class_path=own.Own", "model.init_args=null")
    assert f" {name} (own.py:4), which nothing calls: validation_step may be" in hpc(*words).err
    (told / "own.py").write_text(f"{text}    def configure_optimizers(self): self.{name}()\n")
    assert "may be meant" not in hpc(*words).err


# Runs


@pytest.fixture
def run(hpc, project: Path) -> RunDir:
    said = hpc("submit", "cfg.yaml", "--json")
    assert said.code == 0, said
    return RunDir(Path(json.loads(said.out)["run_dir"]))


def end(run: RunDir, state: str, reason: str) -> None:
    data = {"state": state, "reason": reason}
    append_event(run.events, Event(time.time(), EventKind.RUN_ENDED, data))


@pytest.fixture
def waiting(hpc, slurm, tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "runs" / "x" / "20261121-000000-0001")
    run.attempts.mkdir(parents=True)
    run.plan.write_text(make_plan(tmp_path, ranks_per_node=2).to_json())
    data = {"job_id": "7", "backend": "slurm"}
    append_event(run.events, Event(time.time(), EventKind.SUBMITTED, data))
    slurm.says("7|PENDING|Resources|N/A")
    return run


@pytest.mark.parametrize("words", [[], ["--all"], ["--supervisor"]])
def test_logs_of_a_run_that_waits_say_for_what(hpc, waiting: RunDir, words: list[str]) -> None:
    """Exit code 10 is that of a run that failed."""
    said = hpc("logs", "x", *words)
    assert said.code == 1
    assert "has no log yet: it is pending: Resources" in said.err
    with pytest.raises(HpcTrainError, match="no log yet: it is pending: Resources") as caught:
        api.Run(waiting).logs()
    assert caught.value.exit_code == 1


def test_logs_that_are_waited_for_say_it_once_and_when_it_changes(
    hpc, slurm, waiting: RunDir
) -> None:
    def go_on() -> None:
        slurm.says("7|RUNNING|None|N/A")
        data = {"attempt": 0, "job_id": "7"}
        append_event(waiting.events, Event(time.time(), EventKind.ATTEMPT_STARTED, data))

    timers = [
        threading.Timer(5, go_on),
        threading.Timer(15, end, (waiting, "cancelled", "somebody cancelled it")),
    ]
    for timer in timers:
        timer.start()
    said = hpc("logs", "x", "-f")
    for timer in timers:
        timer.join()
    lines = [line for line in said.err.splitlines() if line.startswith(("it is ", "attempt "))]
    assert lines[0] == "it is pending: Resources (nodes that it could have are taken by other jobs)"
    assert lines[1:] == ["attempt 0 is starting, and rank 0 has written nothing yet"]


def test_logs_of_a_cancelled_run_are_no_failure(hpc, waiting: RunDir) -> None:
    end(waiting, "cancelled", "somebody cancelled it")
    said = hpc("logs", "x")
    assert (said.code, "has left no log" in said.err) == (1, True)


def test_a_metric_that_is_not_there_tells_why(run: RunDir) -> None:
    """It was a bare KeyError: 'val_acc', of the line that the README shows."""
    end(run, "failed", "rank 0 on node1 failed: it broke")
    metrics = api.Run(run).wait().metrics
    with pytest.raises(KeyError) as caught:
        metrics["val_acc"]
    said = f"there is no metric 'val_acc'; x ({run.run_id}) is failed: rank 0 on node1 failed"
    assert said in str(caught.value)
    assert isinstance(caught.value, HpcTrainError)
    assert metrics.get("val_acc") is None
    assert "val_acc" not in metrics
    assert copy.deepcopy(metrics) == {}


def test_a_metric_that_is_near_is_proposed(run: RunDir) -> None:
    run.final_metrics.write_text('{"val/acc": 0.5, "loss": 1.0}')
    end(run, "completed", "all ranks finished")
    metrics = api.Run(run).status().metrics
    assert metrics["val/acc"] == 0.5
    with pytest.raises(KeyError, match="did you mean 'val/acc'"):
        metrics["val_acc"]
    with pytest.raises(KeyError, match="it has logged val/acc, loss"):
        metrics["throughput"]


@pytest.mark.parametrize(
    ("call", "flags", "fix"),
    [
        ("resume", {"cluser": "local"}, "did you mean 'cluster'"),
        ("resume", {"new_snapshots": True}, "did you mean 'new_snapshot'"),
        ("resume", {"ckpt": "best"}, "from the newest valid checkpoint"),
        ("resume", {"node": 2}, "did you mean 'nodes'"),
        ("resume", {"lr": 0.1}, "run.resume('model.init_args.lr=0.1')"),
        ("next_plan", {"new_snapshots": True}, "did you mean 'new_snapshot'"),
        ("evaluate", {"cluser": "local"}, "did you mean 'cluster'"),
        ("evaluate", {"ckp": "best"}, "did you mean 'ckpt'"),
        ("evaluate", {"qux": 1}, "it takes verb, ckpt, cluster, nodes"),
    ],
)
def test_a_flag_of_a_method_knows_its_own(
    run: RunDir, call: str, flags: dict[str, Any], fix: str
) -> None:
    """Hints knew the options of the command alone."""
    words = ("test",) if call == "evaluate" else ()
    with pytest.raises(ConfigError, match=f"{next(iter(flags))} is no argument of Run") as caught:
        getattr(api.Run(run), call)(*words, **flags)
    assert fix in caught.value.hint


def test_a_method_of_an_evaluation_is_to_be_renamed(hpc, told: Path) -> None:
    words = ("submit", "cfg.yaml", "model.class_path=nets.Tested", "model.init_args=null", "--json")
    made = RunDir(Path(json.loads(hpc(*words).out)["run_dir"]))
    (made.checkpoints / "step-000000012").mkdir()
    end(made, "cancelled", "")
    said = hpc("test", "x", "--ckpt", "cfg.yaml")
    assert "rename tests_step to test_step" in said.err, said


def test_what_is_left_out_is_not_in_the_config_that_is_kept(hpc, project: Path) -> None:
    write(project, CONFIG.replace("max_epochs: 1", "max_epochs: 1, num_nodes: 1"))
    said = hpc("submit", "cfg.yaml", "--json")
    kept = RunDir(Path(json.loads(said.out)["run_dir"])).config
    assert "num_nodes" not in OmegaConf.load(kept).trainer
