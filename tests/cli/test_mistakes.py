"""What a newcomer types wrong: two lines that say what, where and what instead; nothing is left."""

from __future__ import annotations

from pathlib import Path

import pytest

NETS = """\
import abc
from pytorch_lightning import LightningDataModule, LightningModule
class Net(LightningModule):
    def __init__(self, width: int, lr: float = 0.1): ...
class Abstract(LightningModule, abc.ABC):
    @abc.abstractmethod
    def go(self): ...
class NoInit(LightningModule): ...
class NoOptimizer(LightningModule):
    def training_step(self, batch): ...
    def configure_optimizr(self): ...
class NoLoader(LightningDataModule):
    def test_dataloader(self): ...
class Plain: ...
def train(cfg): print(cfg)
class Data(LightningDataModule):
    def __init__(self, batch_size: int = 8): ...
"""
CONFIG = """\
name: x
global_batch_size: 8
model: {class_path: nets.Net, init_args: {width: 3}}
data: {class_path: nets.Data}
trainer: {accelerator: cpu, max_epochs: 1}
slurm: {nodes: 1, gpus_per_node: 2, time: "0:10:00"}
"""


@pytest.fixture
def project(taken, tmp_path: Path) -> Path:
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    (tmp_path / "sub").mkdir()
    return tmp_path


def refused(hpc, project: Path, words: list[str], code: int, message: str, fix: str) -> None:
    before = sorted(project.rglob("*"))
    said = hpc(*words)
    assert said.code == code, said
    error, hint = said.err.splitlines()
    assert error.startswith("error: ")
    assert message in error
    assert hint.startswith("  fix: ")
    assert fix in hint
    assert sorted(project.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "code", "message", "fix"),
    [
        ("submit", 2, "Missing argument 'CFG'", "hpc-train submit --help"),
        ("submit seed=3 cfg.yaml", 2, "seed=3 stands where CFG belongs", "file comes first"),
        ("submit cfg.yaml cfg.yaml", 3, "'cfg.yaml' is no key=value", "defaults: [other.yaml]"),
        ("submit none.py", 3, "there is no file none.py", "looked in"),
        ("submit .", 3, ". is a folder", "cfg.yaml"),
        ("submit cfg.yml", 3, "cfg.yml: there is no such file", "'cfg.yaml'"),
        ("submit cfg.yaml --node 3", 2, "No such option '--node'", "--help"),
        ("submit cfg.yaml --nodes 2-4", 2, "'2-4' is not a valid integer", "--help"),
        ("submit cfg.yaml --nodes", 2, "'--nodes' requires an argument", "--help"),
        ("submit cfg.yaml --cluster pbs", 2, "'pbs' is not one of", "--help"),
        ("submit cfg.yaml --trainer.max_epochs=3", 2, "No such option", "trainer.max_epochs=..."),
        ("submit cfg.yaml seed = 3", 3, "'seed' is no key=value", "without spaces"),
        ("submit cfg.yaml --nodes 1 slurm.nodes=2", 3, "--nodes 1 and slurm.nodes=2", "keep one"),
        ("submit cfg.yaml trainer.sync_batchnorm=2", 3, "is 2, and Lightning's", "true or false"),
        (
            "submit cfg.yaml trainer.gradient_clip_algorithm=max",
            3,
            "trainer.gradient_clip_algorithm is 'max'",
            "norm, value",
        ),
        ("submit cfg.yaml --gpus 0", 3, "--gpus: slurm.gpus_per_node is 0", "accelerator: cpu"),
        ("submit cfg.yaml --time 2h", 3, "'2h' is not a Slurm time", '"1:30:00"'),
        ("submit cfg.yaml --time 99999999999999-0", 3, "slurm.time is 9999", "UNLIMITED"),
        ("submit cfg.yaml --name=", 3, "name is empty", "write a value"),
        ("submit cfg.yaml model=nets.Net", 3, "model is 'nets.Net'", "{class_path: nets.Net}"),
        ("submit cfg.yaml model.class_path=nets/Net", 3, "is 'nets/Net'", "package.module.Class"),
        ("submit cfg.yaml model.class_path=nets.py.Net", 3, "no module 'py'", "without .py"),
        ("submit cfg.yaml model.class_path=nets.train", 3, "a function that returns nothing", ""),
        ("submit cfg.yaml model.class_path=nets.Data", 3, "is no LightningModule", "nets has Net"),
        ("submit cfg.yaml model.init_args.width=wide", 3, "is 'wide', and nets.Net takes int", ""),
        ("submit cfg.yaml model.init_args=null", 3, "needs the argument 'width'", "width: ..."),
        ("submit cfg.yaml model.init_args.width=null", 3, "width is None, and nets.Net takes", ""),
        ("submit cfg.yaml loggers[0]=csv", 3, "'loggers[0]' is no key", "loggers.0=..."),
        ("submit sub/cfg.yaml", 3, "sub/cfg.yaml: there is no such file", "no file in sub ends in"),
        ("submit cfg.yaml reproducible=2", 3, "reproducible is 2", "true or false"),
        ("submit cfg.yaml trainer=[]", 3, "trainer is no mapping", "key: value"),
        ("submit cfg.yaml trainer.callbacks.0.x=5", 3, "give no list trainer.callbacks", "=[...]"),
        ("submit cfg.yaml loggers.5=csv", 3, "the files give no list loggers", "=[...]"),
        ("submit cfg.yaml loggers={csv: 1}", 3, "loggers is no list", "[...]"),
        ("submit cfg.yaml runs_dir=$HOME/runs", 3, "with a variable of the shell", "oc.env:NAME"),
        ("submit cfg.yaml slurm.gres=gpu:2", 3, "slurm.gres is no key", "slurm.gpus_per_node"),
        ("submit cfg.yaml slurm.walltime=2", 3, "slurm.walltime is no key", "slurm.time"),
        ("submit cfg.yaml batch_size=2", 3, "batch_size is no key", "global_batch_size"),
        ("submit cfg.yaml max_epochs=2", 3, "max_epochs is no key", "trainer.max_epochs"),
        ("submit cfg.yaml defaults=[a]", 3, "defaults is no key", "a file builds on others"),
        ("submit cfg.yaml slurm.mem=lots", 3, "'lots' is not a memory size", '"64G"'),
        ("submit cfg.yaml env.modules=[null]", 3, "env.modules.0 is null", "leave it out"),
        ('submit cfg.yaml env.modules=[""]', 3, "env.modules.0 is empty", "leave it out"),
        ("submit cfg.yaml env.variables={A: null}", 3, "env.variables.A is null", "write a value"),
        ("render cfg.yaml -o no/job.sh", 2, "no/job.sh cannot be written", "a folder that is"),
        ("render cfg.yaml -o sub", 2, "sub is there already", "name a file in it"),
        ("submit cfg.yaml trainer.lr=0.1", 3, "no argument of Lightning's", "model.init_args"),
        ("submit cfg.yaml optimizer=Adam", 3, "optimizer is no key", "argument of your model"),
        ("submit cfg.yaml preflight.enabled=false", 3, "preflight.enabled is no", "preflight: off"),
        ("submit cfg.yaml trainer.precision=fp16", 3, "precision is 'fp16'", "write 16-mixed"),
        ("submit cfg.yaml env.passthrough=[A=1]", 3, "'A=1' cannot be", "write A alone"),
        ("submit cfg.yaml name=${oc.env:NOPE}", 3, "the variable NOPE, not set", "export NOPE="),
        ("submit cfg.yaml ~trainer.max_epochs", 3, "no key=value", "trainer.max_epochs=null"),
        ("submit cfg.yaml model.init_args.lr=1,2", 3, "takes float", "--sweep KEY=VALUES"),
        ("submit cfg.yaml model.class_path=src.nets.Net", 3, "no module 'src'", "'nets.Net'"),
        ("submit cfg.yaml model.class_path=torch.nn.Linear", 3, "no LightningModule", "derive it"),
        ("submit cfg.yaml init_from=nets.py", 3, "init_from: /", "name a .ckpt"),
        ("submit cfg.yaml init_from=nope", 5, "init_from: 'nope' is neither", "RUNS_DIR"),
        ("nodes --forget n9", 2, "n9 is not left out", "no node is"),
        (
            "submit cfg.yaml model.init_args=null model.class_path=nets.NoOptimizer",
            3,
            "nets.NoOptimizer has no configure_optimizers, which a training calls",
            "did you mean 'configure_optimizr'",
        ),
        ("run cfg.yaml data.class_path=nets.NoLoader", 3, "has no train_dataloader", "write it"),
        ("submit cfg.yaml model.class_path=os.path.join", 3, "Python's own and no Lightning", ""),
        ("submit cfg.yaml trainer.accelerator=gpu --cluster local", 3, "has no GPU, and", "=cpu"),
        ("submit cfg.yaml runs_dir=nets.py --dry-run", 3, "nets.py: Not a directory", "runs_dir"),
        ("submit cfg.yaml env.setup=[if]", 3, "no shell that bash can read", "correct it"),
        ("render cfg.yaml env.setup=['\"']", 3, "no shell that bash can read", "correct it"),
        ("run cfg.yaml model.class_path=nets.Nt", 3, "nets has no class 'Nt'", "'nets.Net'"),
        ("config show cfg.yaml seed=x", 3, "seed is 'x'", "whole number"),
        ("config cfg.yaml", 2, "No such command 'cfg.yaml'", "hpc-train config --help"),
        ("cfg.yaml", 2, "no such command: 'cfg.yaml'. Did you mean 'submit cfg.yaml'?", "--help"),
        ("submit cfg.yaml SLURM={nodes: 1}", 3, "SLURM is no key", "'slurm'"),
        ("submit cfg.yaml requeue=off", 3, "requeue is false", "requeue: {enabled: false}"),
        ("submit cfg.yaml watchdog=on", 3, "watchdog is true", "watchdog: {enabled: true}"),
        ("resume", 2, "Missing argument 'RUN'", "hpc-train resume --help"),
        ("resume cfg.yaml", 5, "no run answers to 'cfg.yaml'", "that is a file"),
        ("resume nope --gpu 3", 2, "No such option '--gpu'", "--help"),
    ],
)
def test_a_command_line_typed_wrong(
    hpc, project: Path, words: str, code: int, message: str, fix: str
) -> None:
    typed = words.split(" ", 2 if ": " in words else -1)
    refused(hpc, project, typed, code, message, fix)


@pytest.mark.parametrize(
    ("trainer", "message", "fix"),
    [
        ("{max_epochs: -5}", "trainer.max_epochs is -5", "-1 or more"),
        (
            "{max_epochs: 0}",
            "trainer.max_epochs is 0: nothing would be trained",
            "1 or more, or -1",
        ),
        ("{max_steps: 0}", "trainer.max_steps is 0: nothing would be trained", "1 or more, or -1"),
        ("{limit_train_batches: 0.0}", "nothing would be trained", "a share above 0"),
        ("{max_time: '00:00:00:00'}", "nothing would be trained", "write more"),
        ("{max_steps: -2}", "trainer.max_steps is -2", "-1 or more"),
        ("{limit_val_batches: -1}", "trainer.limit_val_batches is -1", "0 or more"),
        ("{limit_val_batches: 1.5}", "trainer.limit_val_batches is 1.5", "a share as 1.0 or less"),
        ("{overfit_batches: 2.5}", "trainer.overfit_batches is 2.5", "1.0 or less"),
        ("{val_check_interval: 0}", "trainer.val_check_interval is 0", "0.001 or more"),
        ("{check_val_every_n_epoch: 0}", "trainer.check_val_every_n_epoch is 0", "1 or more"),
        ("{log_every_n_steps: -1}", "trainer.log_every_n_steps is -1", "0 or more"),
        ("{max_epochs: .inf}", "trainer.max_epochs is inf", "whole number"),
        ("{gradient_clip_val: .nan}", "trainer.gradient_clip_val is nan", "0 or more"),
        ("{profiler: fastest}", "trainer.profiler is 'fastest'", "simple, advanced"),
        ("{max_time: 3 hours}", "trainer.max_time is '3 hours'", "DD:HH:MM:SS"),
        ("{callbacks: [EarlyStopping]}", "trainer.callbacks.0 is 'EarlyStopping'", "{class_path:"),
        ("{callbacks: [3]}", "trainer.callbacks.0 is 3", "{class_path:"),
        ("{callbacks: [null]}", "trainer.callbacks.0 is None", "{class_path:"),
        ("{callbacks: [{class_path: nets.Plain}]}", "nets.Plain is no Callback", "derive it from"),
        ("{callbacks: {class_path: nets.Plain}}", "nets.Plain is no Callback", "derive it from"),
        ("{strategy: deepspeed}", "deepspeed is not installed", "ddp or fsdp"),
        (
            "{callbacks: [{class_path: pytorch_lightning.callbacks.EarlyStoping}]}",
            "has no class 'EarlyStoping'",
            "did you mean 'pytorch_lightning.callbacks.EarlyStopping'",
        ),
    ],
)
def test_an_argument_of_the_trainer_that_lightning_cannot_work_with(
    hpc, project: Path, trainer: str, message: str, fix: str
) -> None:
    text = CONFIG.replace("{accelerator: cpu, max_epochs: 1}", trainer)
    (project / "cfg.yaml").write_text(text)
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, fix)


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        ("name: x\nslurm:\n\tnodes: 1\n", "cfg.yaml:3:1: not YAML", "YAML takes no tabs"),
        (CONFIG + "---\nname: y\n", "another document", "remove the line ---"),
        (CONFIG + "seed 3\n", "cfg.yaml:7:1: not YAML: could not find expected ':'", "colons"),
        (CONFIG + "name: y\n", "cfg.yaml:7: name is here for the second time", "keep one"),
        (CONFIG + "\0", "cfg.yaml is not YAML: unacceptable character", "no text"),
        ("<<<<<<< HEAD\n" + CONFIG, "cfg.yaml:1: not YAML", "a merge of git left its marks"),
        (CONFIG + "x: !!python/name:os.x\n", "could not determine a constructor", "class_path"),
        ("- name: x\n", "cfg.yaml:1: not a mapping", "key: value"),
        ("", "cfg.yaml: name is missing", "name: my-run"),
        (CONFIG.replace("nets.Net, init_args: {width: 3}", "nets.NoInit, init_args: {a: 1}"),
         "model.init_args.a: nets.NoInit takes no such argument", "it takes none"),
        (CONFIG.replace("nets.Net, init_args: {width: 3}", "nets.Abstract"),
         "nets.Abstract is abstract: it lacks go", "can be made"),
        (CONFIG + "loggers: [{class_path: nets.Plain}]\n", "nets.Plain is no Logger", "derive"),
        (CONFIG.replace("nets.Net, init_args: {width: 3}", "builtins.int"),
         "builtins.int is no LightningModule", "a class that fits"),
        (CONFIG.replace("nets.Net, init_args: {width: 3}", "sys.exit"),
         "sys.exit is a builtin_function_or_method, not a class", "a class"),
        (CONFIG.replace("{width: 3}", "&a {width: *a}"), "nested without end", "an anchor (&name)"),
        (CONFIG + "x: " + "[" * 900 + "]" * 900 + "\n", "or too deeply", "an anchor"),
        (CONFIG + "env: [a]\n", "cfg.yaml:7: env is ['a']", "it is a section"),
    ],
)  # fmt: skip
def test_a_file_written_wrong(hpc, project: Path, text: str, message: str, fix: str) -> None:
    (project / "cfg.yaml").write_text(text)
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, fix)


def test_a_file_in_another_encoding_is_told_with_its_line(hpc, project: Path) -> None:
    (project / "cfg.yaml").write_bytes(b"seed: 1\nname: gr\xf6\xdfe\n")
    message = "cfg.yaml:2: not text in UTF-8, for its byte 0xf6"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, "save the file as UTF-8")


def test_a_file_that_hides_a_package_is_named(hpc, project: Path) -> None:
    (project / "torch.py").touch()
    (project / "nets.py").write_text(f"import torch.nn\n{NETS}")
    refused(hpc, project, ["submit", "cfg.yaml"], 3, "torch.py hides that package", "rename")


@pytest.mark.parametrize("text", ["\ufeff" + CONFIG, CONFIG.replace("\n", "\r\n")])
def test_a_file_of_another_system_is_read(hpc, project: Path, text: str) -> None:
    (project / "cfg.yaml").write_bytes(text.encode())
    assert hpc("submit", "cfg.yaml").code == 0


def test_a_tilde_in_runs_dir_is_the_home(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project / "home"))
    assert hpc("submit", "cfg.yaml", "runs_dir=~/all runs").code == 0
    assert list((project / "home" / "all runs" / "x").iterdir())
    assert not (project / "~").exists()


def test_a_command_without_its_words_shows_its_help(hpc) -> None:
    said = hpc("config")
    assert said.code == 2
    assert said.err.startswith("Usage: hpc-train config")


def test_a_usage_error_as_json_is_one_document(hpc, project: Path) -> None:
    said = hpc("submit", "cfg.yaml", "--nodes", "x", "--json")
    assert '"exit_code": 2' in said.out
    assert said.err == ""
