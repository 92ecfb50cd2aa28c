"""What people write wrong into a config, for Lightning's Trainer and for classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.mistaken import CONFIG, project, refused

__all__ = ["project"]


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
        ("{limit_val_batches: 1.5}", "trainer.limit_val_batches is 1.5", "a share is at most 1.0"),
        ("{overfit_batches: 2.5}", "trainer.overfit_batches is 2.5", "batches whole"),
        ("{val_check_interval: 0}", "trainer.val_check_interval is 0", "0.001 or more"),
        ("{check_val_every_n_epoch: 0}", "trainer.check_val_every_n_epoch is 0", "1 or more"),
        ("{log_every_n_steps: -1}", "trainer.log_every_n_steps is -1", "0 or more"),
        ("{max_epochs: .inf}", "trainer.max_epochs is inf", "whole number"),
        ("{gradient_clip_val: .nan}", "trainer.gradient_clip_val is nan", "0 or more"),
        ("{profiler: fastest}", "trainer.profiler is 'fastest'", "simple, advanced"),
        ("{max_time: 3 hours}", "trainer.max_time is '3 hours'", 'write "00:03:00:00"'),
        ("{max_time: {a: 1}}", "trainer.max_time is {'a': 1}, which is no time", "DD:HH:MM:SS"),
        ("{max_time: [1, 2]}", "trainer.max_time is [1, 2], which is no time", "DD:HH:MM:SS"),
        ("{max_time: {hours: 0}}", "trainer.max_time is {'hours': 0}: nothing", "write more"),
        ("{val_check_interval: often}", "trainer.val_check_interval is 'often'", "DD:HH:MM:SS"),
        ("{val_check_interval: 30m}", "trainer.val_check_interval is '30m'", '"00:00:30:00"'),
        ("{val_check_interval: '0.25'}", "is the text '0.25'", "write 0.25, without quotes"),
        ("{val_check_interval: '00:00:00:00'}", "a validation after each batch", "write 1 for"),
        ("{val_check_interval: {hour: 1}}", "is {'hour': 1}, which is no time", "DD:HH:MM:SS"),
        ("{fast_dev_run: -1}", "trainer.fast_dev_run is -1", "write 0 or more"),
        ("{callbacks: [EarlyStopping]}", "trainer.callbacks.0 is 'EarlyStopping'", "{class_path:"),
        (
            "{min_epochs: 5, max_epochs: 3}",
            "min_epochs is 5, more than trainer.max_epochs, 3",
            "3 or",
        ),
        (
            "{min_steps: 5, max_steps: 3}",
            "min_steps is 5, more than trainer.max_steps",
            "3 or less",
        ),
        (
            "{callbacks: [{class_path: EarlyStoping}]}",
            "is 'EarlyStoping', which is no class with its module",
            "did you mean 'pytorch_lightning.callbacks.EarlyStopping'?",
        ),
        (
            "{callbacks: [{class_path: from pytorch_lightning.callbacks import Timer}]}",
            "is 'from pytorch_lightning.callbacks import Timer'",
            "write pytorch_lightning.callbacks.Timer",
        ),
        (
            "{callbacks: [{class_path: pl.callbacks.Timer}]}",
            "no module 'pl'",
            "write pytorch_lightning.callbacks.Timer",
        ),
        (
            "{callbacks: [{class_path: pytorch_lightning.Timer}]}",
            "pytorch_lightning has no class 'Timer'",
            "write pytorch_lightning.callbacks.Timer",
        ),
        ("{callbacks: [Timer]}", "0 is 'Timer'", "{class_path: pytorch_lightning.callbacks.Timer}"),
        (
            (
                "{callbacks: [{class_path: pytorch_lightning.callbacks.ModelCheckpoint},"
                " {init_args: {a: 1}}]}"
            ),
            "trainer.callbacks.1 is {'init_args'",
            "below the class_path above it, without a dash",
        ),
        ("{callbacks: [3]}", "trainer.callbacks.0 is 3", "{class_path:"),
        ("{callbacks: [null]}", "trainer.callbacks.0 is None", "{class_path:"),
        ("{callbacks: [{class_path: nets.Plain}]}", ") is no Callback", "derive it from"),
        ("{callbacks: {class_path: nets.Plain}}", ") is no Callback", "derive it from"),
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
        (CONFIG + "seed 3\n", "cfg.yaml:7: 'seed 3' has no colon", "write seed: 3"),
        (CONFIG + "name: y\n", "cfg.yaml:7: name is here for the second time", "keep one"),
        (CONFIG + "\0", "cfg.yaml is not YAML: unacceptable character", "no text"),
        ("<<<<<<< HEAD\n" + CONFIG, "cfg.yaml:1: not YAML", "a merge of git left its marks"),
        (CONFIG + "x: !!python/name:os.x\n", "could not determine a constructor", "class_path"),
        (CONFIG + "env: *shell\n", "cfg.yaml:7:6: not YAML: found undefined alias", "no &shell"),
        (CONFIG.replace("name: x", 'name: "x'), "not YAML: did not find", "a quote or bracket may"),
        ("class_path: nets.Net\n" + CONFIG, "cfg.yaml:1: class_path is no", "indent class_path"),
        ("- name: x\n", "cfg.yaml:1: not a mapping", "key: value"),
        (CONFIG.replace("size: 8", "size = 8"), "cfg.yaml:2:1: not YAML", "global_batch_size: 8"),
        (CONFIG.replace("global", " global"), "cfg.yaml:2:19: not YAML", "begin global_batch"),
        (CONFIG.replace("name: x", "name"), "cfg.yaml:1: 'name' has no colon", "write name: VALUE"),
        (CONFIG.replace("name: x", "name:\nx"), "cfg.yaml:2:1: not YAML", "its key: name: x"),
        (CONFIG.replace("name: x", "name: 'x"), "cfg.yaml:1:7: not YAML: a quote", "close the"),
        (CONFIG.replace("Data}", "Data"), "cfg.yaml:4:7: not YAML: a bracket", "close the"),
        (CONFIG.replace("name: x", "name: 'a's'"), "cfg.yaml:1:10: not YAML", "in double quotes"),
        ('runs_dir: "C:\\users"\n' + CONFIG, "not YAML", "a backslash is special"),
        ("x: !env HOME\n" + CONFIG, "constructor for the tag '!env'", "${oc.env:NAME}"),
        ("!include base.yaml\n", "cfg.yaml:1: not a mapping", "write base: FILE"),
        (CONFIG.replace("{width: 3}", "{width: (3, 3)}"), "'3)' is the end of", "[8, 8] in pl"),
        ("// mine\n" + CONFIG, "not YAML", "a comment begins with #: # mine"),
        (CONFIG.replace("name: x", "name: @x"), "cfg.yaml:1:7: not YAML", 'in quotes: "@x"'),
        (CONFIG.replace("nodes: 1", "comment: a: b"), "not YAML", 'put it in quotes: "a: b"'),
        (CONFIG.replace("name: x", "name: {{ x }}"), "cfg.yaml:1: a key that is", "a template's"),
        ("seed: &a\n" + CONFIG + "env:\n  <<: *a\n", "expected a mapping or list", "put them bel"),
        (CONFIG.replace("name: x", "name:"), "cfg.yaml:1: name is null", "write name: my-run"),
        ("# name: x\n", "cfg.yaml: no key is in it", "name: my-run; global"),
        (CONFIG.replace("nets.Net, init_args: {width: 3}", "nets.NoInit, init_args: {a: 1}"),
         "model.init_args.a: nets.NoInit takes no such argument", "it takes none"),
        (CONFIG.replace("nets.Net, init_args: {width: 3}", "nets.Abstract"),
         "nets.Abstract is abstract: it lacks go", "can be made"),
        (CONFIG + "loggers: [{class_path: nets.Plain}]\n", ") is no Logger", "derive"),
        (CONFIG.replace("nets.Net, init_args: {width: 3}", "builtins.int"),
         "builtins.int is no LightningModule", "a class that fits"),
        (CONFIG.replace("nets.Net, init_args: {width: 3}", "sys.exit"),
         "sys.exit is a builtin_function_or_method, not a class", "a class"),
        (CONFIG.replace("{width: 3}", "&a {width: *a}"), "nested without end", "an anchor (&name)"),
        (CONFIG + "x: " + "[" * 900 + "]" * 900 + "\n", "or too deeply", "an anchor"),
        (CONFIG + "env: [a]\n", "cfg.yaml:7: env is ['a']", "it is a section"),
        (CONFIG + "---\nseed: 1\n", "another document", "the line ---; two trainings,"),
        (CONFIG.replace("name: x", "name: x // mine"), "cfg.yaml:1: name is 'x // mine'",
         "a comment begins with #: x # mine; or put the text in quotes"),
        (CONFIG + "loggers:\n  - csv // b\n", "cfg.yaml:8: loggers.0 is", "csv # b; or put"),
        (CONFIG + "seed: 1\n// a: b\n", "the key '// a'", "a comment begins with #: # a"),
        (CONFIG + "/* end */\n", "not YAML", "a comment begins with #: # end"),
        (CONFIG.replace('"0:10:00"}', '"0:10:00"} // b'), "not YAML", "with #: # b"),
        (CONFIG.replace("init_args", "init_arg"), "model.init_arg stands beside class_path",
         "write init_args for 'init_arg'"),
        (CONFIG.replace("init_args", "params"), "model.params stands", "init_args for 'params'"),
        (CONFIG.replace("init_args: {width: 3}", "size: 3"), "model.size", "model.init_args"),
        (CONFIG.replace("init_args", "_partial_: true, init_args"), "model._partial_ stands",
         "make it in configure_optimizers"),
        (CONFIG.replace("class_path: nets.Net, init_args: {", "_partial_: true, _target_: nets.Net,"
         " {").replace(" {width: 3}}", " width: 3}"), "only _target_", "in configure_opt"),
        (CONFIG.replace("class_path: nets.Net", "target: nets.Net, seed: 1"),
         "model names no class", "write class_path for 'target'"),
        (CONFIG.replace("max_epochs: 1}", "max_epochs: 1, callbacks: [{class_path:"
         " pytorch_lightning.callbacks.LearningRateMonitor}]}\nloggers: []"),
         "LearningRateMonitor refuses to train without a logger", "write loggers: [csv]"),
        (CONFIG + "seed:1\n", "cfg.yaml:7:1: not YAML", "space behind the colon: seed: 1"),
        (CONFIG + "seed\uff1a 1\n", "cfg.yaml:7:5: not YAML", "in place of the FULLWIDTH COLON"),
        (CONFIG.replace('"0:10:00"', "“0:10:00”"), "quotes that YAML does not", '"0:10:00"'),
        (CONFIG.replace("nodes: 1", "nodelist: n[1-3]"), "not YAML", 'in quotes: "n[1-3]"'),
        (CONFIG + "trainer.precision: 16\n", "one key with a point", "its braces precision: 16;"),
        (CONFIG.replace("nodes: 1", "account: 0123"), "account is 0123, which YAML", '"0123"'),
        (CONFIG.replace("nodes: 1", "partition: 1e3"), "as the number 1000.0", '"1e3"'),
        (CONFIG + "env: {variables: {V: 3.10}}\n", "env.variables.V is 3.10", '"3.10"'),
        (CONFIG.replace("nodes: 1", "exclude: [a, b]"), "is ['a', 'b']", 'in quotes: "a,b"'),
        (CONFIG.replace("nodes: 1", "mem: 64"), "slurm.mem is 64 without", 'slurm.mem: "64G"'),
        (CONFIG.replace("nodes: 1", "mem: 4000"), "slurm.mem is 4000 with", 'slurm.mem: "4000M"'),
        (CONFIG.replace("nodes: 1", "mem: -1"), "slurm.mem is -1", 'write it like "64G"'),
    ],
)  # fmt: skip
def test_a_file_written_wrong(hpc, project: Path, text: str, message: str, fix: str) -> None:
    (project / "cfg.yaml").write_text(text)
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, fix)


@pytest.mark.parametrize(
    ("argument", "message", "fix"),
    [
        ("pair=0.9", "pair is 0.9, and nets.Forms takes tuple[float, float]", "write a list"),
        ("pair=[1,2,3]", "pair is [1, 2, 3], and nets.Forms takes", "write 2 values"),
        ("words={a: 1}", "words is {'a': 1}, and nets.Forms takes list[str]", "write a list"),
        ("table=[a]", "table is ['a'], and nets.Forms takes", "write a mapping: {key: value}"),
        ("many=3", "many is 3, and nets.Forms takes tuple[int, ...]", "write a list"),
        ("encoder=nets.Plain", "encoder is 'nets.Plain', and nets.Forms", "write {class_path:"),
        ("words=[1]", "words has 1, which is no text to YAML, and nets.Forms takes", 'words=["1"]'),
        ("pair=[a,1]", "pair is ['a', 1], and nets.Forms takes", "write a number for 'a'"),
        ("many=[1,2.5]", "many is [1, 2.5], and nets.Forms takes", "whole number for 2.5"),
        ("pair=[1,2]", "", ""),
        ("words=null", "", ""),
        ("words=[]", "", ""),
        ("table={a: 1}", "", ""),
        ("either=4", "", ""),
        ("mixed={a: 1}", "", ""),
        ("many=[1,2,3]", "", ""),
        ("encoder={class_path: nets.Plain}", "", ""),
    ],
)
def test_an_argument_of_another_form(
    hpc, project: Path, argument: str, message: str, fix: str
) -> None:
    (project / "cfg.yaml").write_text(
        CONFIG.replace("nets.Net, init_args: {width: 3}", "nets.Forms")
    )
    words = ["submit", "cfg.yaml", "--dry-run", f"model.init_args.{argument}"]
    if message:
        refused(hpc, project, words, 3, f"model.init_args.{message}", fix)
    else:
        assert hpc(*words).code == 0


TYPED = """\
from typing import Literal, Optional, Protocol
import torch
from torch import nn
from torch.optim import Optimizer
from pytorch_lightning import LightningDataModule, LightningModule
class Steps(Protocol): ...
class Net(LightningModule):
    def __init__(
        self,
        net: nn.Module | None = None,
        rule: Optional["Optimizer"] = None,
        either: nn.Module | Optimizer | None = None,
        steps: Steps | None = None,
        act: Literal["relu", "gelu"] = "relu",
        size: Optional[Literal[8, 16]] = None,
        width: int = 8,
        depth: int = 1,
    ):
        super().__init__()
        if width % 8:
            raise ValueError(f"width {width} is no multiple of 8")
        if not 0 < depth < 100:
            raise ValueError("depth has to be in 1 to 99")
        depth = min(depth, 3)
        if depth > 2:
            raise ValueError("never")
        if some_function(width) and width > 8:
            raise ValueError("not known")
        if some_function(depth):
            return
        if width == 16:
            raise ValueError("perhaps not reached")
    def training_step(self, batch): ...
    def configure_optimizers(self): ...
class Data(LightningDataModule):
    def __init__(self, batch_size: int = 8, num_workers: int = 0, prefetch_factor=None): ...
    def train_dataloader(self): ...
class AllWorkers(LightningDataModule):
    def __init__(self, batch_size: int = 8, num_workers: int = 0, prefetch_factor=None):
        super().__init__()
        self.workers = 8 if num_workers < 0 else num_workers
        self.ahead = prefetch_factor if self.workers else None
    def train_dataloader(self): ...
"""


@pytest.mark.parametrize(
    ("typed", "message", "fix"),
    [
        ("net.class_path=torch.optim.Adam", "net is a torch.optim.Adam, and", "is a nn.Module"),
        ("rule.class_path=torch.nn.Linear", "rule is a torch.nn.Linear", "Optimizer"),
        ("either.class_path=torch.utils.data.DataLoader", "either is a torch", "nn.Module"),
        ("act=swish", "act is 'swish', and typed.Net takes Literal", "relu or gelu"),
        ("act=rellu", "act is 'rellu'", "did you mean 'relu'"),
        ("size=9", "size is 9", "write 8 or 16"),
        ("width=9", "refuses: width 9 is no multiple of 8", "line 20 of typed"),
        ("depth=100", "refuses: depth has to be in 1 to 99", "line 22 of typed"),
        ("data.init_args.num_workers=-2", "num_workers is -2", "write 0 or more"),
        ("data.init_args.batch_size=-1", "batch_size is -1", "write 1 or more"),
        ("data.init_args={prefetch_factor: 2, num_workers: 0}", "no worker that", "write null"),
        ("net={class_path: torch.nn.ReLU}", "", ""),
        ("steps={class_path: torch.nn.ReLU}", "", ""),
        ("model.init_args={act: gelu, size: 16, width: 16, depth: 9}", "", ""),
        ("size=null", "", ""),
        ("data={class_path: typed.AllWorkers, init_args: {num_workers: -1}}", "", ""),
        (
            "data={class_path: typed.AllWorkers, init_args: {num_workers: 0, prefetch_factor: 2}}",
            "",
            "",
        ),
    ],
)  # fmt: skip
def test_a_value_that_the_text_of_a_class_refuses(
    hpc, project: Path, typed: str, message: str, fix: str
) -> None:
    (project / "typed.py").write_text(TYPED)
    text = CONFIG.replace("nets.Net, init_args: {width: 3}", "typed.Net").replace("nets", "typed")
    (project / "cfg.yaml").write_text(text)
    key = typed if typed.startswith(("data", "model")) else f"model.init_args.{typed}"
    words = ["submit", "cfg.yaml", "--dry-run", key]
    if message:
        refused(hpc, project, words, 3, message, fix)
    else:
        said = hpc(*words)
        assert said.code == 0, said.err


@pytest.mark.parametrize(
    ("callback", "message", "fix"),
    [
        ("ModelCheckpoint(monitor: a, mode: lowest)", "mode is 'lowest'", "min or max"),
        ("EarlyStopping(monitor: a, mode: minimum)", "mode is 'minimum'", "'min'"),
        ("EarlyStopping(monitor: a, patience: -1)", "patience is -1", "0 or more"),
        ("ModelCheckpoint(save_top_k: 3)", "save_top_k is 3", "monitor: ..., or save_top_k: -1, 0"),
        ("ModelCheckpoint(save_top_k: -2)", "Must be >= -1", "save_top_k: -1 or more"),
        ("ModelCheckpoint(every_n_train_steps: -1)", "Must be >= 0", "0 or more"),
        (
            "ModelCheckpoint(every_n_train_steps: 2, every_n_epochs: 1)",
            "every_n_epochs is 1",
            "one of every_n_train_steps, every_n_epochs, and",
        ),
        ("ModelCheckpoint(save_last: always)", "save_last is 'always'", "link or true or false"),
        ("LearningRateMonitor(logging_interval: batch)", "is 'batch'", "step or epoch"),
        ("ModelCheckpoint(monitor: a, save_top_k: 3, mode: max)", "", ""),
        ("ModelCheckpoint(save_top_k: -1, every_n_train_steps: 5)", "", ""),
        ("ModelCheckpoint", "", ""),
        ("LearningRateMonitor(logging_interval: null)", "", ""),
        ("EarlyStopping(monitor: a, patience: 0, check_on_train_epoch_end: true)", "", ""),
    ],
)  # fmt: skip
def test_a_value_that_a_callback_of_lightnings_refuses(
    hpc, project: Path, callback: str, message: str, fix: str
) -> None:
    name, _, arguments = callback.rstrip(")").partition("(")
    path = f"class_path: pytorch_lightning.callbacks.{name}"
    added = f"callbacks: [{{{path}, init_args: {{{arguments}}}}}]"
    text = CONFIG.replace("max_epochs: 1}", f"max_epochs: 1, {added}}}")
    (project / "cfg.yaml").write_text(text)
    words = ["submit", "cfg.yaml", "--dry-run"]
    if message:
        refused(hpc, project, words, 3, "cfg.yaml:5: trainer.callbacks.0.init_args.", fix)
        assert message in hpc(*words).err
    else:
        said = hpc(*words)
        assert said.code == 0, said.err
