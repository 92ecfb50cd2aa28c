"""What a newcomer types wrong: two lines that say what, where and what instead; nothing is left."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.config.own_modules import NEEDED
from hpc_train.errors import ConfigError, HpcTrainError
from hpc_train.sweeps import submit_sweep

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
class Forms(LightningModule):
    def __init__(
        self,
        pair: tuple[float, float] = (0.9, 0.99),
        words: list[str] | None = None,
        table: Optional[dict[str, int]] = None,
        either: list[int] | int = 3,
        mixed: list[int] | dict[str, int] | None = None,
        many: tuple[int, ...] = (),
        encoder: nn.Module | None = None,
    ): ...
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
    (tmp_path / "sub" / "net.py").write_text("class Net(LightningModule): ...\n")
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
        ("submit cfg.yaml --nodes 2-4", 2, "'2-4' is not a valid integer", "bench --nodes 2,3,4"),
        ("submit cfg.yaml --nodes", 2, "'--nodes' requires an argument", "--help"),
        ("submit cfg.yaml --cluster pbs", 2, "'pbs' is not one of", "--help"),
        ("submit cfg.yaml --gpus-per-node 2", 2, "'--gpus-per-node'", "write --gpus"),
        ("submit cfg.yaml --nproc_per_node=2", 2, "'--nproc_per_node'", "write --gpus"),
        ("submit cfg.yaml --num_processes 2", 2, "'--num_processes'", "--nodes and --gpus"),
        ("submit cfg.yaml --ntasks=8", 2, "'--ntasks'", "--nodes and --gpus: a rank a GPU"),
        ("submit -N 2 cfg.yaml", 2, "No such option '-N'", "write --nodes"),
        ("submit cfg.yaml -J big", 2, "No such option '-J'", "write --name"),
        ("resume x --mem 64G", 2, "No such option '--mem'", "slurm.mem=..."),
        ("render cfg.yaml --cpus-per-task 4", 2, "'--cpus-per-task'", "slurm.cpus_per_gpu=..."),
        ("submit cfg.yaml --array=0-3", 2, "No such option '--array'", "--sweep KEY=VALUES"),
        ("submit cfg.yaml --output=x.log", 2, "No such option '--output'", "hpc-train logs RUN"),
        ("run cfg.yaml --max_epochs=3", 2, "'--max_epochs'", "trainer.max_epochs=..."),
        ("run cfg.yaml --seed 3", 2, "No such option '--seed'", "no dashes: seed=..."),
        ("run cfg.yaml --lr 0.1", 2, "No such option '--lr'", "model.init_args.lr=..."),
        ("run none.py --lr 0.1", 2, "'--lr'", "of none.py come behind --: none.py -- --lr"),
        ("run none.py --gpus-per-node 2", 2, "'--gpus-per-node'", "write --gpus"),
        ("list --gpus 2", 2, "No such option '--gpus'", "it is of hpc-train submit, run"),
        ("run cfg.yaml --epochs 3", 2, "No such option '--epochs'", "trainer.max_epochs=..."),
        ("submit --config cfg.yaml", 2, "'--config'", "by itself: hpc-train submit FILE"),
        ("render -c cfg.yaml", 2, "No such option '-c'", "by itself: hpc-train render FILE"),
        ("logs x --tail 5", 2, "No such option '--tail'.", "write -n LINES"),
        ("logs x -r 1", 2, "No such option '-r'", "write --rank or --runs-dir"),
        ("status x --watch", 2, "No such option '--watch'", "logs RUN -f"),
        ("list --user me", 2, "No such option '--user'", "your own runs"),
        ("cancel --all", 2, "No such option '--all'", "hpc-train list --active"),
        ("resume x --ckpt last", 2, "No such option '--ckpt'", "init_from=PATH"),
        ("logs x rank=0", 2, "unexpected extra argument (rank=0)", "write --rank 0"),
        ("status x runs_dir=a", 2, "unexpected extra argument", "write --runs-dir a"),
        ("version", 2, "no such command: 'version'. Did you mean '--version'?", "--help"),
        ("logs", 2, "Missing argument 'RUN'", "`hpc-train list` names the runs"),
        ("run cfg.yaml name=${NAME}", 3, "names the key NAME, which is not", "${oc.env:NAME}"),
        ("run cfg.yaml name=${seed", 3, "name has a broken ${...}", "close its brace"),
        (
            "run cfg.yaml model.init_args.lr=$LR",
            3,
            "is '$LR', and nets.Net",
            "${oc.decode:${oc.env:LR}}",
        ),
        ("run cfg.yaml model.init_args.lr=0,05", 3, "is '0,05', and nets.Net", "with a point"),
        ("run cfg.yaml model.init_args.lr='0.1'", 3, "is '0.1', and nets.Net", "without quotes"),
        ("submit cfg.yaml trainer.max_epochs=", 3, "trainer.max_epochs is empty", "=null, or a"),
        ("submit cfg.yaml slurm.partition=", 3, "slurm.partition is empty", "=null, or a value"),
        ("submit cfg.yaml --sweep seed --dry-run", 3, "--sweep seed has no values", "seed=A,B"),
        ("submit cfg.yaml --sweep seeds.yaml", 3, "has no values", "write --sweep KEY=A,B; or in"),
        ("submit cfg.yaml --sweep seed=[1,2", 3, "seed: '[1,2' is not YAML", "close its brackets"),
        ("submit cfg.yaml cluster_profile=no", 3, "command line: cluster_profile names clu", ""),
        ("submit cfg.yaml --cluster-profile x", 2, "'--cluster-profile'", "cluster_profile=..."),
        ("submit cfg.yaml profile=x", 3, "profile is no key", "write cluster_profile"),
        ("submit cfg.yaml --sweep seed 1 2", 2, "1 2 stands behind seed", "--sweep seed=1,2"),
        ("submit cfg.yaml --sweep seed=1 2", 2, "2 stands behind seed=1", "--sweep seed=1,2"),
        ("submit cfg.yaml --partition a b", 2, "--partition takes one word", "--partition a,b"),
        ("submit cfg.yaml --nodes 1 2 3", 2, "2 3 stands behind 1", "bench --nodes 1,2,3 CFG"),
        ("run --devices 0 1 cfg.yaml", 2, "1 stands behind 0", "write --devices 0,1"),
        ("submit \u2014nodes 2 cfg.yaml", 2, "\u2014nodes begins with a long", "type --nodes"),
        ("submit cfg.yaml \u2013nodes=2", 2, "begins with a long dash", "type --nodes=2"),
        ("submit cfg.yaml \u2014-nodes 2", 2, "begins with a long dash", "type --nodes"),
        ("logs x \u2013n 5", 2, "\u2013n begins with a long dash", "type -n"),
        ("submit cfg.yaml runs_dir=~nobody-here/x", 3, "that home is not known", "whole path"),
        ("submit cfg.yaml slurm.ntasks=8", 3, "slurm.ntasks is no key", "slurm.nodes and slurm.g"),
        ("submit cfg.yaml name=${nope.x}", 3, "names the key nope.x", "a key in full"),
        ("submit cfg.yaml name=${now:%Y}", 3, "name calls now, which there is not", "oc.env:NAME"),
        ("submit cfg.yaml name=${name}", 3, "name takes its value from itself", "write the value"),
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
        ("submit cfg.yaml --time 2h", 3, "'2h' is not a Slurm time", '"2:00:00"'),
        ("submit cfg.yaml --time 99999999999999-0", 3, "slurm.time is 9999", "UNLIMITED"),
        ("submit cfg.yaml --name=", 3, "name is empty", "write a value"),
        ("submit cfg.yaml model=nets.Net", 3, "model is 'nets.Net'", "{class_path: nets.Net}"),
        ("submit cfg.yaml model.class_path=nets/Net", 3, "is 'nets/Net'", "write nets.Net"),
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
        ("submit cfg.yaml loggers=wandb", 3, "loggers is no list", "write [wandb]"),
        ("submit cfg.yaml loggers=csv,wandb", 3, "loggers is no list", "[...]"),
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
        (
            "submit cfg.yaml optimizer=Adam",
            3,
            "optimizer is no key",
            "your model's configure_optim",
        ),
        ("submit cfg.yaml lr_scheduler=x", 3, "is no key", "configure_optimizers makes the sched"),
        ("submit cfg.yaml lr=0.1", 3, "lr is no key", "of your model: model.init_args.lr"),
        ("submit cfg.yaml learning_rate=1", 3, "is no key", "write model.init_args.lr"),
        ("submit cfg.yaml width=1", 3, "width is no key", "of your model: model.init_args.width"),
        ("submit cfg.yaml widht=1", 3, "widht is no key", "known: name"),
        ("submit cfg.yaml weight_decay=1", 3, "is no key", "nets.Net takes width, lr: let it"),
        ("submit cfg.yaml data_dir=x", 3, "is no key", "nets.Data takes batch_size: let it"),
        ("submit cfg.yaml max-epochs=3", 3, "max-epochs is no key", "write trainer.max_epochs"),
        ("submit cfg.yaml slurm.ntasks-per-node=4", 3, "is no key", "write slurm.gpus_per_node"),
        ("submit cfg.yaml slurm.gpus-per-task=1", 3, "is no key", "it follows from slurm.nodes"),
        ("submit cfg.yaml slurm.signal=B:9", 3, "is no key", "write slurm.signal_lead_s"),
        ("submit cfg.yaml slurm.time-min=9", 3, "is no key", "slurm.extra: {time-min: ...}"),
        ("submit cfg.yaml model.class_path=sub/net.py", 3, "is 'sub/net.py'", "write sub.net.Net"),
        ("submit cfg.yaml -f -g", 2, "No such option '-g'", "write --gpus"),
        ("submit cfg.yaml preflight.enabled=false", 3, "preflight.enabled is no", "preflight: off"),
        ("submit cfg.yaml trainer.precision=fp16", 3, "precision is 'fp16'", "write bf16-mixed"),
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
            "rename configure_optimizr to configure_optimizers",
        ),
        ("run cfg.yaml data.class_path=nets.NoLoader", 3, "has no train_dataloader", "write it"),
        ("submit cfg.yaml model.class_path=os.path.join", 3, "Python's own and no Lightning", ""),
        ("submit cfg.yaml trainer.accelerator=gpu --cluster local", 3, "has no GPU, and", "=cpu"),
        ("submit cfg.yaml runs_dir=nets.py --dry-run", 3, "nets.py: Not a directory", "runs_dir"),
        ("submit cfg.yaml env.setup=[if]", 3, "no shell that bash can read", "correct it"),
        ("render cfg.yaml env.setup=['\"']", 3, "no shell that bash can read", "correct it"),
        ("run cfg.yaml model.class_path=nets.Nt", 3, "nets has no class 'Nt'", "'nets.Net'"),
        ("config show cfg.yaml seed=x", 3, "seed is 'x'", "whole number"),
        ("config cfg.yaml", 2, "No such command 'cfg.yaml'", "hpc-train config show CFG"),
        ("sweep cfg.yaml", 2, "Did you mean 'submit CFG --sweep KEY=VALUES'?", "--help"),
        ("squeue", 2, "no such command: 'squeue'. Did you mean 'list'?", "--help"),
        ("submit cfg.yaml --gpus a100:4", 2, "'a100:4'", "--gpus 4 slurm.gpu_type=a100"),
        ("submit cfg.yaml --gpus four", 2, "'four' is not a valid integer", "write a whole"),
        ("list -n all", 2, "'all' is not a valid", "write --all"),
        ("cfg.yaml", 2, "no such command: 'cfg.yaml'. Did you mean 'submit cfg.yaml'?", "--help"),
        ("submit cfg.yaml SLURM={nodes: 1}", 3, "SLURM is no key", "'slurm'"),
        ("submit cfg.yaml requeue=off", 3, "requeue is false", "requeue: {enabled: false}"),
        ("submit cfg.yaml watchdog=on", 3, "watchdog is true", "watchdog: {enabled: true}"),
        ("resume", 2, "Missing argument 'RUN'", "hpc-train resume --help"),
        ("resume cfg.yaml", 5, "no run answers to 'cfg.yaml'", "that is a file"),
        ("status a b", 2, "extra argument (b)", "one RUN at a time: hpc-train status RUN"),
        ("cancel a b", 2, "extra argument (b)", "one RUN at a time: hpc-train cancel RUN"),
        ("top a", 2, "extra argument (a)", "write --filter a"),
        ("list a b", 2, "extra arguments (a b)", "write --name a"),
        ("du x", 2, "extra argument (x)", "--runs-dir PATH names a folder of runs"),
        ("report x --html", 2, "'--html' requires an argument", "`hpc-train report --help`"),
        ("status nope --best loss", 5, "no run answers to 'nope'", "looked in"),
        ("submit cfg.yaml --dry-run --after nope", 5, "no run answers to 'nope'", "looked in"),
        ("submit cfg.yaml --dry-run --smoke --bench-first", 2, "exclude one another", "one of"),
        ("submit cfg.yaml --dry-run --smoke --cluster local", 2, "--smoke is for Slurm", "run CFG"),
        ("status .", 5, "no run answers to '.'", "looked in"),
        ("status /", 5, "no run answers to '/'", "looked in"),
        ("diff ../..", 5, "no run answers to '../..'", "looked in"),
        ("resume nope --gpu 3", 2, "No such option '--gpu'", "--help"),
        ("train.py", 2, "Did you mean 'submit train.py'?", "--help"),
        ("submit -- none.py --lr 1", 2, "-- stands in front of", "submit none.py -- --lr 1"),
        ("submit -- cfg.yaml seed=3", 2, "-- stands in front", "hpc-train submit cfg.yaml seed=3"),
        ("render cfg.yaml job.sh", 2, "job.sh stands where KEY=VALUE", "write -o job.sh"),
        ("render none.py out/job -- --lr 1", 2, "out/job stands where KEY", "write -o out/job"),
        ("render cfg.yaml seed:3", 3, "'seed:3' is no key=value", "write seed=3"),
        ("doctor node1", 2, "extra argument (node1)", "srun --nodelist=node1 hpc-train doctor"),
        ("doctor -w node1", 2, "No such option '-w'", "srun --nodelist=NODE hpc-train doctor"),
        ("test sub/last.ckpt", 5, "'sub/last.ckpt'", "hpc-train test RUN --ckpt sub/last.ckpt"),
        ("predict best.pt", 5, "no run answers to 'best.pt'", "test RUN --ckpt best.pt"),
        ("submit python none.py", 2, "python stands where CFG", "hpc-train submit none.py --"),
        ("submit --nodes 2 srun none.py", 2, "srun stands where CFG", "submit none.py --"),
        ("submit torchrun --nnodes 2 a.py", 2, "torchrun stands where", "hpc-train submit a.py --"),
        ("submit -m nets", 2, "No such option '-m'", "name the module's file"),
        ("submit cfg.yaml --wrap x", 2, "No such option '--wrap'", "train.py -- ARGUMENTS"),
        ("submit --config-name cfg", 2, "'--config-name'", "by itself: hpc-train submit FILE"),
        ("submit cfg.yaml --gpus 0,1", 2, "'0,1' is not a valid", "--devices 0,1 chooses them"),
        ("launch cfg.yaml --gpus 0,1", 2, "'0,1' is not a valid", "bench --gpus 0,1"),
        ("resume x --smoke", 2, "No such option '--smoke'", "is of hpc-train submit"),
        ("resume x --name y", 2, "No such option '--name'", "is of hpc-train submit, run"),
        ("run cfg.yaml --after x", 2, "No such option '--after'", "is of hpc-train submit"),
        ("run cfg.yaml --sweep seed=1,2", 2, "'--sweep'", "is of hpc-train submit, render"),
        ("render cfg.yaml --dry-run", 2, "'--dry-run'", "is of hpc-train submit, resume"),
        ("status x --rank 3", 2, "No such option '--rank'", "is of hpc-train logs"),
        ("status x --rankk 3", 2, "No such option '--rankk'", "hpc-train status --help"),
        ("nodes n1", 2, "extra argument (n1)", "write --forget n1"),
        ("diff a b c", 2, "extra argument (c)", "two RUNs at most"),
        ("bench cfg.yaml --nodes 1-4", 2, "--nodes 1-4 is no list", "write --nodes 1,2,3,4"),
        ("bench cfg.yaml --gpus 2..3", 2, "--gpus 2..3 is no list", "write --gpus 2,3"),
        ("bench cfg.yaml --nodes 1-999", 2, "--nodes 1-999 is no", "write --nodes 1,999"),
        ("bench cfg.yaml --html -", 2, "--html - is standard output", "name a file"),
        ("report x --html sub", 2, "--html sub cannot be written", "a folder that is there"),
        ("report x --html no/p.html", 2, "--html no/p.html cannot be", "a folder that is there"),
        ("preflight --partition gpu", 2, "of the job that --nodes asks for", "add --nodes N"),
        ("preflight x --full", 2, "RUN shows a past verdict", "leave one out"),
        ("submit cfg.yaml --test-only --cluster local", 2, "asks Slurm", "leave one of them out"),
        ("submit cfg.yaml trainer.max_epochs:5", 3, "no key=value", "write trainer.max_epochs=5"),
        ("submit cfg.yaml trainer/max_epochs=5", 3, "is no key", "write trainer.max_epochs=5;"),
        ("submit cfg.yaml trainer:max_epochs=5", 3, "is no key", "write trainer.max_epochs=5;"),
        ("submit cfg.yaml ++seed=5", 3, "'++seed' is no key", "write seed=5;"),
        ("submit cfg.yaml width=64", 3, "width is no key", "model: model.init_args.width"),
        ("submit cfg.yaml datamodule=x", 3, "datamodule is no key", "data: {class_path: ...}"),
        ("submit cfg.yaml requeue.max_attempts=all", 3, "is 'all'", "number, or null for no limit"),
        ("submit cfg.yaml model.class_path=nets:Net", 3, "is 'nets:Net'", "write nets.Net"),
        ("submit https://x.org/cfg.yaml", 3, "there is no such file", "download it"),
        ("submit ~/cfg.yaml", 3, "there is no such file", "not in quotes"),
        ("submit net.py", 3, "there is no file net.py", "'nets.py'"),
        ("submit cfg.yaml --time 90minutes", 3, "'90minutes' is not a Slurm", '"1:30:00"'),
        ("submit cfg.yaml --time tomorrow", 3, "'tomorrow' is not a Slurm", '"1:30:00"'),
        ("submit cfg.yaml data.init_args.batch_size=0", 3, "batch_size is 0", "write 1 or more"),
        ("diagnose /dev/zero", 2, "/dev/zero is a device", "name a log"),
        ("submit cfg.yaml slurm.begin=whenever", 3, "slurm.begin is 'whenever'", "now+1hour"),
        ("submit cfg.yaml slurm.begin=now+1h", 3, "slurm.begin is 'now+1h'", "now+1hour"),
        ("render cfg.yaml slurm.mail_type=ALWAYS", 3, "mail_type is 'ALWAYS'", "write END,FAIL"),
        ("submit cfg.yaml slurm.mail_type=END;FAIL", 3, "is 'END;FAIL'", "write END,FAIL"),
        ("submit cfg.yaml slurm.dependency=afterok:mk", 3, "is 'afterok:mk'", "or --after RUN"),
        ("submit cfg.yaml env.venv=no/such/venv", 3, "no/such/venv, and there is no", "makes one"),
        ("submit cfg.yaml --sweep seed=1..5", 3, "seed=1..5 is no list", "seed='range(1,6)'"),
        ("submit cfg.yaml --sweep seed=0:4", 3, "seed=0:4 is no list", "seed='range(0,5)'"),
        ("submit cfg.yaml --sweep x.y=1e-3:0.1", 3, "is no list", "value: x.y=1e-3,...,0.1"),
        ("submit cfg.yaml --sweep seed=1 --sweep seed=2", 3, "to vary twice", "seed=A,B,C"),
        ("submit cfg.yaml --sweep seed=1;3", 3, "seed=1;3 is no list", "each value: seed=1,...,3"),
        (
            "submit cfg.yaml data.init_args.d=$HOME/d",
            3,
            "a variable of the shell",
            "${oc.env:NAME}",
        ),
        ("submit cfg.yaml env.variables.P=~/b:$PATH", 3, "a variable of the shell", "nothing rep"),
        ("submit cfg.yaml model.init_args.lr=.nan", 3, "lr is nan", "write a number"),
        ("submit cfg.yaml model={a:[1", 3, "is not YAML", "close its brackets"),
        ("submit cfg.yaml trainer.callbacks=[a.B]", 3, "is 'a.B'", "{class_path: a.B, init_args"),
        ("submit ddp.py --launcher torchrun", 2, "'--launcher'", "script.launcher=torchrun"),
        ("--nodes 2 submit cfg.yaml", 2, "No such option '--nodes'", "behind the command"),
        ("validate cfg.yaml", 5, "no run answers to 'cfg.yaml'", "submit --dry-run cfg.yaml"),
        ("render cfg.yaml -o cfg.yaml --force", 2, "cfg.yaml is the config itself", "another name"),
        ("submit cfg.yaml runs_dir=s3://b/runs", 3, "s3://b/runs, which is no folder", "shared"),
        (
            "submit cfg.yaml init_from=https://x.org/a.ckpt",
            5,
            "neither a checkpoint",
            "download it",
        ),
        ("submit cfg.yaml container.image=a/torch:2", 3, "there is no", "docker://a/torch:2"),
        ("submit cfg.yaml cluster_profile=clusters/me.yaml", 3, "no such file", "name alone: me"),
        ("submit cfg.yaml model.init_args,lr=1", 3, "is no key", "write model.init_args.lr=1"),
        ("submit cfg.yaml model.init_args.lr==0.1", 3, "is '=0.1'", "write a number: 0.1"),
        ("submit cfg.yaml model.init_args.WIDTH=1", 3, "no such argument", "did you mean 'width'"),
        ("submit cfg.yaml model.class_path=NETS.Net", 3, "no module 'NETS'", "'nets'"),
        ("submit cfg.yaml trainer.max_epochs=1e3", 3, "is 1000.0", "whole number: 1000"),
        ("submit cfg.yaml trainer.max_epochs=3,", 3, "is '3,'", "whole number: 3"),
        ("submit cfg.yaml trainer.limit_val_batches=10%", 3, "is '10%'", "a number: 0.1"),
        ("submit cfg.yaml trainer.accelerator=GPU", 3, "is 'GPU'", "did you mean 'gpu'"),
        ("submit cfg.yaml trainer.strategy=zero3", 3, "is 'zero3'", "deepspeed_stage_3"),
        ("submit cfg.yaml trainer.ckpt_path=last", 3, "no argument of", "hpc-train resume RUN"),
        ("submit cfg.yaml trainer.init_args={a}", 3, "no argument of", "indent init_args"),
        ("submit cfg.yaml data.class_path=nets.Plain", 3, "is no LightningDataModule", "nets has"),
        ("submit cfg.yaml checkpoint.monitor=loss", 3, "is no key", "of a ModelCheckpoint"),
        ("submit cfg.yaml cluster=slurm", 3, "cluster is no key", "--cluster slurm"),
        ("submit cfg.yaml notify=slack", 3, "notify is 'slack'", "notify: {urls_from: ...}"),
        ("submit cfg.yaml notify.events=all", 3, "is no list", "[...]"),
        ("submit cfg.yaml preflight.thresholds.min_gbs=3", 3, "no such threshold", "'min_gbps'"),
        ("submit cfg.yaml model.class_path=Net", 3, "no class with its module", "write nets.Net"),
        ("submit cfg.yaml model.class_path=nets.Net()", 3, "is 'nets.Net()'", "write nets.Net"),
        ("submit cfg.yaml model.class_path=./nets.py", 3, "is './nets.py'", "write nets.Net"),
        (
            "submit cfg.yaml slurm.begin=2020-01-01",
            3,
            "2020-01-01, which has passed",
            "leave it out",
        ),
        ("submit - --dry-run", 3, "-: there is no such file", "/dev/stdin"),
        ("report x --html x.pdf", 2, "what is written is a page of HTML", "--html x.html"),
        ("status a,b", 5, "no run answers to 'a,b'", "one RUN at a time"),
        ("submit cfg.yaml slurm.strategy=ddp", 3, "slurm.strategy is no key", "trainer.strategy"),
        ("submit cfg.yaml slurm_partition=x", 3, "slurm_partition is no key", "slurm.partition"),
        ("submit cfg.yaml trainer_max_epochs=3", 3, "is no key", "write trainer.max_epochs"),
        ("submit cfg.yaml seed_everything=3", 3, "seed_everything is no key", "write seed"),
        ("submit cfg.yaml fit.x=3", 3, "fit is no key", "the keys below fit without it"),
        ("submit cfg.yaml mixed_precision=bf16", 3, "is no key", "write trainer.precision"),
        ("submit cfg.yaml trainer.checkpoint={a}", 3, "no argument of", "checkpoint at the top"),
        ("submit cfg.yaml trainer.max_time=30", 3, "max_time is 30", "is 30 minutes"),
        ("submit cfg.yaml global_batch_size=1,024", 3, "is '1,024'", "whole number: 1024"),
        ("submit cfg.yaml watchdog.floor_s=10min", 3, "is '10min'", "a number of seconds"),
        ("submit cfg.yaml loggers=-csv", 3, "loggers is no list", "space behind each dash: - csv"),
        ("submit cfg.yaml model.class_path=my-nets.Net", 3, "no class with", "write my_nets.Net"),
        (
            "submit cfg.yaml slurm.nodelist=a,b",
            3,
            "names 2 nodes, and slurm.nodes is 1",
            "--nodes 2",
        ),
        (
            "submit cfg.yaml slurm.nodelist=a slurm.exclude=a",
            3,
            "slurm.exclude names a, which slurm.nodelist asks for",
            "take it from one",
        ),
        ("submit cfg.yaml slurm.extra.array=0-3", 3, "sets --array itself", "--sweep KEY=VALUES"),
        ("submit cfg.yaml slurm.partition=None", 3, "is None, which is Python's", "write null"),
        ("submit cfg.yaml model.init_args.lr=0.1.", 3, "is '0.1.', and", "write a number"),
        ("submit cfg.yaml resume=true", 3, "resume is no key", "`hpc-train resume RUN` goes on"),
        ("submit cfg.yaml ckpt_path=a.ckpt", 3, "ckpt_path is no key", "init_from: PATH"),
        ("submit cfg.yaml wandb.project=x", 3, "wandb is no key", "write loggers: [wandb]"),
        ("submit cfg.yaml hydra.run=x", 3, "hydra is no key", "leave it out"),
        ("submit cfg.yaml hydra/launcher=x", 3, "'hydra/launcher' is no key", "leave it out"),
        ("submit cfg.yaml -m seed=1,2", 2, "No such option '-m'", "--sweep KEY=VALUES"),
        ("submit cfg.yaml slurm.email=a@b", 3, "slurm.email is no key", "slurm.mail_user"),
        (
            "submit cfg.yaml env.python=/usr/bin/python",
            3,
            "env.python is no",
            "env.venv or env.conda",
        ),
        ("submit cfg.yaml env.PYTHONPATH=/x", 3, "is no key", "env.variables.PYTHONPATH"),
        (
            "submit cfg.yaml notify.email=a@b",
            3,
            "notify.email is no key",
            "notify.urls_from: ~/FILE",
        ),
        ("submit cfg.yaml snapshot=true", 3, "snapshot is True", "write snapshot: git"),
        (r"submit cfg.yaml runs_dir=C:\me\runs", 3, "a path of Windows", "/scratch/me/runs"),
        (
            "submit nets.py",
            3,
            "nets.py defines classes and functions, and starts",
            "class_path: ...",
        ),
        ("submit cfg.yaml --time 1:00:00:00", 3, "is not a Slurm time", '"1-00:00:00"'),
        ("submit cfg.yaml slurm.mem=1.5G", 3, "'1.5G' is not a memory", '"1536M"'),
        ("submit cfg.yaml slurm.mem=64GiB", 3, "'64GiB' is not a memory", '"64G"'),
        (
            "submit cfg.yaml slurm.gpu_type=a100:4 trainer.accelerator=gpu",
            3,
            "is 'a100:4'",
            "alone: a100",
        ),
        (
            "submit cfg.yaml slurm.extra.deadline=2020-01-01",
            3,
            "2020-01-01, which has",
            "leave it out",
        ),
        ("submit cfg.yaml trainer..max_epochs=3", 3, "is no key", "write trainer.max_epochs=3;"),
        ('submit cfg.yaml "seed=3"', 3, "is no key", "write seed=3;"),
        ("submit cfg.yaml model.max_epochs=3", 3, "beside class_path", "write trainer.max_epochs"),
        ("submit cfg.yaml --gpus all", 2, "not a valid integer", "write how many GPUs"),
        ("preflight --budget fast", 2, "not a valid float", "write a number"),
        ("submit cfg.yaml trainer.profiler=true", 3, "profiler is True", "write simple, advanced"),
        (
            "submit cfg.yaml trainer.callbacks=Timer",
            3,
            "callbacks is 'Timer'",
            "write [{class_path:",
        ),
        ("submit cfg.yaml loggers=none", 3, "loggers is no list", "write [] for none"),
        ("submit cfg.yaml loggers=false", 3, "loggers is no list", "write [] for none"),
        ("submit cfg.yaml env.venv=cfg.yaml", 3, "is cfg.yaml, and there", "and not a file in it"),
        ("submit a.py b.py", 3, "'b.py' is nothing that hpc-train", "name one script"),
        ("submit cfg.yaml -g 2", 2, "No such option '-g'", "write --gpus"),
        ("submit cfg.yaml --cpus 4", 2, "No such option '--cpus'", "slurm.cpus_per_gpu=..."),
        ("submit cfg.yaml --resume", 2, "No such option '--resume'", "`hpc-train resume RUN`"),
        ("run cfg.yaml --ckpt_path last", 2, "'--ckpt_path'", "`hpc-train resume RUN`"),
        ("-V", 2, "No such option '-V'", "write --version"),
        ("check cfg.yaml", 2, "mean 'submit --dry-run CFG'?", "--help"),
        ("watch x", 2, "mean 'logs RUN -f'?", "--help"),
        ("delete x", 2, "mean 'rm RUN'?", "--help"),
        ("report --csv", 2, "No such option '--csv'", "--json"),
        ("preflight cfg.yaml", 2, "is a file and no RUN", "submit --dry-run cfg.yaml checks"),
        ("doctor cfg.yaml", 2, "extra argument (cfg.yaml)", "submit --dry-run cfg.yaml checks"),
        ("init a b", 2, "extra argument (b)", "leave it out"),
        ("resume last", 5, "no run answers to 'last'", "looked in"),
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
        ("{limit_val_batches: 1.5}", "trainer.limit_val_batches is 1.5", "a share is at most 1.0"),
        ("{overfit_batches: 2.5}", "trainer.overfit_batches is 2.5", "batches whole"),
        ("{val_check_interval: 0}", "trainer.val_check_interval is 0", "0.001 or more"),
        ("{check_val_every_n_epoch: 0}", "trainer.check_val_every_n_epoch is 0", "1 or more"),
        ("{log_every_n_steps: -1}", "trainer.log_every_n_steps is -1", "0 or more"),
        ("{max_epochs: .inf}", "trainer.max_epochs is inf", "whole number"),
        ("{gradient_clip_val: .nan}", "trainer.gradient_clip_val is nan", "0 or more"),
        ("{profiler: fastest}", "trainer.profiler is 'fastest'", "simple, advanced"),
        ("{max_time: 3 hours}", "trainer.max_time is '3 hours'", 'write "00:03:00:00"'),
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
        ("{callbacks: [Timer]}", "0 is 'Timer'", "{class_path: pytorch_lightning.callbacks.Timer,"),
        (
            "{callbacks: [{class_path: nets.Plain}, {init_args: {a: 1}}]}",
            "trainer.callbacks.1 is {'init_args'",
            "below the class_path above it, without a dash",
        ),
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
        (CONFIG + "env: *shell\n", "cfg.yaml:7:6: not YAML: found undefined alias", "put &shell"),
        (CONFIG.replace("name: x", 'name: "x'), "not YAML: did not find", "a quote or bracket may"),
        ("class_path: nets.Net\n" + CONFIG, "cfg.yaml:1: class_path is no", "indent class_path"),
        ("- name: x\n", "cfg.yaml:1: not a mapping", "key: value"),
        (CONFIG.replace("size: 8", "size = 8"), "cfg.yaml:2:1: not YAML", "global_batch_size: 8"),
        (CONFIG.replace("global", " global"), "cfg.yaml:2:19: not YAML", "begin global_batch"),
        (CONFIG.replace("name: x", "name"), "cfg.yaml:2:18: not YAML", "the key: name:"),
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
        (CONFIG + "loggers: [{class_path: nets.Plain}]\n", "nets.Plain is no Logger", "derive"),
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
        (CONFIG + "seed\uff1a 1\n", "cfg.yaml:7:1: not YAML", "in place of the FULLWIDTH COLON"),
        (CONFIG.replace('"0:10:00"', "“0:10:00”"), "quotes that YAML does not", '"0:10:00"'),
        (CONFIG.replace("nodes: 1", "nodelist: n[1-3]"), "not YAML", 'in quotes: "n[1-3]"'),
        (CONFIG + "trainer.precision: 16\n", "one key with a point", "trainer: {precision: ...}"),
        (CONFIG.replace("nodes: 1", "account: 0123"), "account is 0123, which YAML", '"0123"'),
        (CONFIG.replace("nodes: 1", "partition: 1e3"), "as the number 1000.0", '"1e3"'),
        (CONFIG + "env: {variables: {V: 3.10}}\n", "env.variables.V is 3.10", '"3.10"'),
        (CONFIG.replace("nodes: 1", "exclude: [a, b]"), "is ['a', 'b']", 'in quotes: "a,b"'),
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
        ("words=[1]", "words is [1], and nets.Forms takes list[str]", 'it: "1" for 1'),
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
        ("ModelCheckpoint(save_top_k: 3)", "save_top_k is 3", "init_args: line"),
        ("ModelCheckpoint(save_top_k: -2)", "Must be >= -1", "init_args: line"),
        ("ModelCheckpoint(every_n_train_steps: -1)", "Must be >= 0", "init_args: line"),
        (
            "ModelCheckpoint(every_n_train_steps: 2, every_n_epochs: 1)",
            "every_n_epochs is 1",
            "init_args: line",
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


def test_an_override_and_a_cluster_of_python_that_are_none(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    with pytest.raises(ConfigError, match=r"\{'seed': 3\} is no text .*write each override as"):
        api.load(project / "cfg.yaml", {"seed": 3})  # type: ignore[arg-type]
    before = sorted(project.rglob("*"))
    with pytest.raises(ConfigError, match=r"cluster is 'pbs' \(write 'slurm' or 'local'\)"):
        api.submit(api.load(project / "cfg.yaml"), cluster="pbs")
    assert sorted(project.rglob("*")) == before


def test_a_variable_that_names_a_file_in_place_of_a_folder_of_runs_is_told(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPC_TRAIN_RUNS_DIR", "cfg.yaml")
    for words in (["list"], ["status", "x"], ["top"]):
        refused(hpc, project, words, 5, "HPC_TRAIN_RUNS_DIR=cfg.yaml: that is no", "unset HPC_")


def test_a_folder_is_no_file_and_a_file_of_hosts_no_host(hpc, project: Path) -> None:
    for name, said in (("a.toml", "is TOML"), ("a.ckpt", "is a checkpoint")):
        (project / name).write_bytes(b"PK\x03\x04\xff")
        refused(hpc, project, ["submit", name], 3, said, "write" if "toml" in name else "resume")
    (project / "hosts").write_text("a\nb\n")
    words = ["launch", "cfg.yaml", "--hosts", "hosts"]
    refused(hpc, project, words, 3, "hosts names the file hosts", '$(paste -sd, hosts)"')


def test_a_variable_that_names_no_folder_of_runs_is_told(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPC_TRAIN_RUNS_DIR", "/no/such")
    said = hpc("list").err
    assert "no runs in /no/such (HPC_TRAIN_RUNS_DIR), which does not exist" in said


def test_a_file_in_another_encoding_is_told_with_its_line(hpc, project: Path) -> None:
    (project / "cfg.yaml").write_bytes(b"seed: 1\nname: gr\xf6\xdfe\n")
    message = "cfg.yaml:2: not text in UTF-8, for its byte 0xf6"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, "save the file as UTF-8")


def test_a_file_that_hides_a_package_is_named(hpc, project: Path) -> None:
    (project / "torch.py").touch()
    (project / "nets.py").write_text(f"import torch.nn\n{NETS}")
    refused(hpc, project, ["submit", "cfg.yaml"], 3, "torch.py hides that package", "rename")
    (project / "pytorch_lightning.py").touch()
    (project / "torch.py").unlink()
    words = ["submit", "cfg.yaml"]
    refused(hpc, project, words, 3, "pytorch_lightning.py hides that package", "rename")


@pytest.mark.parametrize(
    ("method", "message", "fix"),
    [
        ("def training_step(batch, i): ...", "begins with batch, and not", "(self, batch, i)"),
        ("def training_step(): return self.x", "begins with nothing", "training_step(self)"),
        ("def training_step(self, b, i, opt): ...", "needs b, i, opt, and", "(self, batch, batch_"),
        ("def configure_optimizers(self, lr): ...", "needs lr, and Lightning", "optimizers(self)"),
        ("def __int__(self, width): ...", "its __int__ (line 6) is called by nobody", "__init__"),
        (
            "def setup(self): ...",
            "its setup (line 6) does not take stage",
            "def setup(self, stage)",
        ),
        ("def training_step(self, b, i=0, opt=None): ...", "", ""),
        ("def training_step(self, *args): ...", "", ""),
        ("@staticmethod\n    def loss(x): ...", "", ""),
        ("@property\n    def loss(self): ...", "", ""),
    ],
)
def test_a_method_that_cannot_be_called_is_told_by_its_text(
    hpc, project: Path, method: str, message: str, fix: str
) -> None:
    text = f"""\
from pytorch_lightning import LightningModule
class Net(LightningModule):
    def training_step(self, batch): ...
    def configure_optimizers(self): ...
    def forward(self, x): ...
    {method}
"""
    (project / "more.py").write_text(text)
    words = ["submit", "cfg.yaml", "--dry-run", "model.class_path=more.Net"]
    if message:
        refused(hpc, project, words, 3, message, fix)
    else:
        assert hpc(*words).code == 0


@pytest.mark.parametrize(
    ("module", "message", "fix"),
    [
        (
            "from .util import x\n",
            "more.py:1: a relative import, and more is in no",
            "from util im",
        ),
        (
            "from circle import y\n",
            "circle.py:1: imports 'Net' from more, which imports",
            "move one",
        ),
        ("import numpi\n", "more.py:1: imports 'numpi', which is not", "'numpy'? Else pip install"),
        (
            "def make():\n    class Net: ...\n",
            "more has no class 'Net' at its top",
            "inside of make",
        ),
        ("from nets import Net as Base\nNet = Base\n", "", ""),
        ("class A: ...\nNet = A()\n", "more.Net is a value, not a class", "the name of a class"),
        (
            "from pytorch_lightning import LightningModule\n\n\nclass A(LightningModule): ...\n",
            "more has no class 'Net'",
            "it has A",
        ),
    ],
)
def test_a_module_that_cannot_give_the_class_is_told_by_its_text(
    hpc, project: Path, module: str, message: str, fix: str
) -> None:
    ends = "" if "Net" in module or "A" in module else "from nets import Net\n"
    ends = "class Net: ...\n" if "circle" in module else ends
    (project / "more.py").write_text(module + ends)
    (project / "circle.py").write_text("from more import Net\ny = 1\n")
    (project / "inner").mkdir()
    (project / "inner" / "more.py").write_text("class Net: ...\n")
    words = ["submit", "cfg.yaml", "--dry-run", "model.class_path=more.Net"]
    if message:
        refused(hpc, project, words, 3, message, fix)
    else:
        assert "is a value" not in hpc(*words).err


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
    assert "hpc-train status RUN --json" in hpc("logs", "x", "--json").out


def test_a_script_that_imports_what_is_not_there_is_refused(hpc, project: Path) -> None:
    script = project / "train.py"
    script.write_text("import pytorch_lightnin\n")
    said = "train.py:1: imports 'pytorch_lightnin', which is not installed"
    refused(hpc, project, ["submit", "train.py"], 3, said, "did you mean 'pytorch_lightning'?")
    script.write_text("import hydra\n")
    said = "train.py:1: imports 'hydra', which is not installed"
    refused(hpc, project, ["submit", "train.py"], 3, said, "pip install hydra-core, or")
    script.write_text("from nets import Nett\n")
    said = "train.py:1: imports 'Nett' from nets, which has no such name"
    refused(hpc, project, ["submit", "train.py"], 3, said, "did you mean 'Net'")


@pytest.mark.parametrize(
    "lines",
    [
        "import sys\nsys.path.insert(0, '..')\nimport shared\n",
        "import os\ntry:\n    import apex\nexcept ImportError:\n    apex = None\n",
        "import nets\n",
    ],
)
def test_a_script_whose_imports_may_be_found_is_taken(hpc, project: Path, lines: str) -> None:
    (project / "train.py").write_text(lines)
    assert hpc("submit", "train.py").code == 0


def test_a_file_of_env_setup_that_is_not_there_is_refused(hpc, project: Path) -> None:
    words = ["submit", "cfg.yaml", "env.setup=['ulimit -c 0', 'source no.sh']"]
    message = f"env.setup.1: {project}/no.sh is not there"
    refused(hpc, project, words, 3, message, "what only the nodes have")


@pytest.mark.parametrize(
    "line", ["source ok.sh", "cd sub && . no.sh", ". $HOME/no.sh", ". /no/such/folder/no.sh"]
)
def test_a_file_of_env_setup_that_may_be_there_is_taken(hpc, project: Path, line: str) -> None:
    (project / "ok.sh").touch()
    assert hpc("submit", "cfg.yaml", f"env.setup=['{line}']").code == 0


def test_a_site_profile_that_is_not_there_is_told_where_to_write_it(hpc, project: Path) -> None:
    words = ["submit", "cfg.yaml", "cluster_profile=mysite"]
    refused(hpc, project, words, 3, "clusters/mysite", "write the file clusters/mysite.yaml, or")
    words = ["submit", "cfg.yaml", "cluster_profile=exampl"]
    refused(hpc, project, words, 3, "clusters/exampl", "did you mean 'clusters/example'?")


def test_a_folder_of_runs_that_links_to_nothing_is_named(hpc, project: Path) -> None:
    (project / "runs").symlink_to("/no/such")
    message = f"{project}/runs is a link to /no/such, which is not there"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, "set runs_dir to a folder")


def test_a_gpu_type_without_gpus_is_told(hpc, project: Path) -> None:
    assert "slurm.gpu_type is not used" in hpc("submit", "cfg.yaml", "slurm.gpu_type=a100").err


def test_a_damaged_plan_is_named_with_its_path(hpc, project: Path) -> None:
    assert hpc("submit", "cfg.yaml").code == 0
    plan = next(project.glob("runs/x/*/plan.json"))
    plan.write_text("{")
    refused(hpc, project, ["diff", "x"], 1, f"{plan} cannot be read", "submit again")


def test_a_rank_that_is_none_and_weights_that_are_none_are_told(hpc, project: Path) -> None:
    assert hpc("submit", "cfg.yaml").code == 0
    refused(hpc, project, ["logs", "x", "--rank", "all"], 2, "--rank is one", "--all shows all")
    nets = NETS.replace("0.1): ...", "0.1): ...\n    def test_step(self, batch): ...")
    (project / "nets.py").write_text(nets + "    def test_dataloader(self): ...\n")
    refused(hpc, project, ["test", "x", "--ckpt", "bset"], 3, "--ckpt bset", "best, last or a path")


def test_what_was_not_loaded_is_refused(project: Path) -> None:
    for call in (api.submit, api.render, api.plan, api.test_only, api.run_here):
        with pytest.raises(ConfigError, match=r"'cfg.yaml' is no loaded config .*load\('cfg.y"):
            call("cfg.yaml")  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "message", "fix"),
    [
        ("n.ipynb", "n.ipynb is a notebook, and no config", "hpc_train.submit(...)"),
        ("job.sh", "job.sh is a shell script, and no config", "name the .py"),
        ("link.yaml", "link.yaml is a link to /no/such, which is not there", "the file itself"),
    ],
)
def test_a_file_that_is_no_config(hpc, project: Path, name: str, message: str, fix: str) -> None:
    if name.startswith("link"):
        (project / name).symlink_to("/no/such")
    else:
        (project / name).write_text("echo\n")
    refused(hpc, project, ["submit", name], 3, message, fix)


@pytest.mark.parametrize(
    ("typed", "fix"),
    [
        ("train.py --lr 0.1", "hpc-train run train.py -- --lr 0.1"),
        ("train.py -- --lr 0.1", "hpc-train run train.py -- --lr 0.1"),
        ("python train.py --lr 0.1", "hpc-train run train.py -- --lr 0.1"),
        ("cfg.yaml seed=3", "hpc-train run cfg.yaml seed=3"),
    ],
)
def test_several_words_in_quotes_are_told_without_them(
    hpc, project: Path, typed: str, fix: str
) -> None:
    message = f"'{typed}' is one word, and no file is called that"
    refused(hpc, project, ["run", typed], 2, message, f"leave the quotes out: {fix}")


def test_lists_are_values_of_a_sweep(hpc, project: Path) -> None:
    words = ["submit", "cfg.yaml", "--dry-run", "model={class_path: nets.Forms}", "--sweep"]
    both = [
        hpc(*words, f"model.init_args.words={values}") for values in ("[a],[a, b]", "[[a],[a, b]]")
    ]
    assert [said.code for said in both] == [0, 0]
    assert both[0].out == both[1].out


def test_the_site_profile_of_a_file_is_emptied_as_it_is_said(hpc, project: Path) -> None:
    (project / "cfg.yaml").write_text(f"{CONFIG}cluster_profile: nope\n")
    refused(hpc, project, ["submit", "cfg.yaml"], 3, "cfg.yaml:7: cluster_profile names", "write")
    words = ["submit", "cfg.yaml", "cluster_profile="]
    refused(hpc, project, words, 3, "cluster_profile is empty", "write cluster_profile=null")
    assert hpc("submit", "cfg.yaml", "--dry-run", "cluster_profile=null").code == 0


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (["cfg.yaml", "env.variables.D=~/d"], "env.variables.D is ~/d, and nothing replaces its ~"),
        (["cfg.yaml", "model={class_path: nets.Forms, init_args: {words: [~/d]}}"], "words.0 is"),
        (["any.py", "--", "--data=~/d"], "script.args.0 is --data=~/d, and nothing"),
        (["cfg.yaml", "env.setup=['D=\"~/d\"']"], "bash replaces no ~ in quotes"),
        (["cfg.yaml", "env.setup=['cd ~']", "runs_dir=~/d"], ""),
        (["any.py", "--", "a~/d"], ""),
    ],
)
def test_a_home_that_nothing_puts_in_the_place_of_its_tilde_is_noted(
    hpc, project: Path, words: list[str], note: str
) -> None:
    (project / "any.py").write_text("print(1)\n")
    said = hpc("submit", "--dry-run", *words)
    assert said.code == 0, said
    assert note in said.err
    assert (f"write {Path.home()}/d" in said.err.replace('D="', "").replace("--data=", "")) == (
        bool(note)
    )


def test_a_package_in_src_is_told_with_what_finds_it(hpc, project: Path) -> None:
    (project / "src" / "parts").mkdir(parents=True)
    (project / "src" / "parts" / "__init__.py").write_text(NETS)
    (project / "train.py").write_text("import parts\n")
    fix = "env.variables.PYTHONPATH=src"
    named = ["submit", "cfg.yaml", "model.class_path=parts.Net", "model.init_args.width=3"]
    refused(hpc, project, named, 3, "there is no module 'parts'", f"src: write {fix}")
    refused(hpc, project, ["submit", "train.py"], 3, "imports 'parts', which", f"write {fix}")
    (project / "setup.py").touch()
    refused(hpc, project, named, 3, "there is no", f"{fix}, or pip install -e {project}")
    assert hpc(*named, "--dry-run", fix).code == 0
    assert hpc("submit", "train.py", "--dry-run", fix).code == 0


def test_a_module_in_a_folder_above_the_script_is_told(hpc, project: Path) -> None:
    (project / "sub" / "train.py").write_text("import nets\n")
    message, fix = "train.py:1: imports 'nets'", f"env.variables.PYTHONPATH={project}"
    refused(hpc, project, ["submit", "sub/train.py"], 3, message, fix)
    assert hpc("submit", "sub/train.py", fix.partition("write ")[2] or fix).code == 0


def test_files_that_may_not_be_read_are_told(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: Path, *_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", closed)  # root may read every file
    message = "nets.py cannot be read: Permission denied"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, "check its permissions")
    monkeypatch.setattr(Path, "read_text", closed)
    message = "cfg.yaml cannot be read: Permission denied"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, "check its permissions")


def test_a_working_folder_that_is_gone_is_told(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert "the folder that you are in is not there any more" in hpc("list").err
    monkeypatch.chdir(project)


def test_a_number_of_the_environment_is_read_as_one(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOW_MUCH", "3")
    for key in ("model.init_args.width", "trainer.max_epochs"):
        words = ["submit", "cfg.yaml", "--dry-run", f"{key}=${{oc.env:HOW_MUCH}}"]
        hint = "without quotes; of a variable: ${oc.decode:${oc.env:NAME}}"
        refused(hpc, project, words, 3, f"{key} is '3', and", hint)
        words[-1] = f"{key}=${{oc.decode:${{oc.env:HOW_MUCH}}}}"
        assert hpc(*words).code == 0


def test_a_class_that_never_begins_its_base_is_refused(hpc, project: Path) -> None:
    body = "self.width = width\n    def training_step(self, batch): ..."
    (project / "nets.py").write_text(NETS.replace("lr: float = 0.1): ...", f"lr=1): {body}"))
    message = "nets.Net has an __init__ (line 4) without super().__init__()"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, "its first line")


def test_model_and_data_in_one_anothers_place_are_told(hpc, project: Path) -> None:
    (project / "sets.py").write_text("from nets import Data as D\nclass Set(D): ...\n")
    words = ["submit", "cfg.yaml", "model.class_path=sets.Set", "model.init_args=null"]
    refused(hpc, project, words, 3, "sets.Set is no LightningModule", "it belongs to data")


@pytest.mark.parametrize("file", ["random.py", "random/__init__.py"])
def test_a_file_in_the_place_of_a_module_of_pythons_is_told(hpc, project: Path, file: str) -> None:
    (project / file).parent.mkdir(exist_ok=True)
    (project / file).touch()
    (project / "test.py").touch()  # a name that hides nothing anybody needs
    message = "hides Python's own module random, which every rank imports"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, "rename it")


def test_a_file_in_the_place_of_a_module_that_few_import_is_refused_where_it_is_meant(
    hpc, project: Path
) -> None:
    (project / "code.py").write_text(NETS)
    (project / "more.py").write_text("from code import Net\nclass More(Net): ...\n")
    (project / "train.py").write_text("import code\n")
    said = hpc("submit", "cfg.yaml", "--dry-run")
    assert (said.code, "note: " in said.err) == (0, True)
    message = f"{project}/code.py hides Python's own module code"
    assert message in said.err
    for words in (["cfg.yaml", "model.class_path=code.Net"], ["train.py"]):
        refused(hpc, project, ["submit", *words], 3, message, "rename it")
    refused(
        hpc, project, ["submit", "cfg.yaml", "model.class_path=more.More"], 3, message, "rename"
    )


@pytest.mark.torch
def test_every_module_of_pythons_that_torch_and_lightning_import_is_kept_free() -> None:
    code = "import sys; at_start = {*sys.modules}; import torch, pytorch_lightning"
    code += "; print(*({*sys.modules} - at_start & sys.stdlib_module_names))"
    said = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    )
    names = {it for it in said.stdout.split() if it[0] != "_"} - {*sys.builtin_module_names}
    assert "random" in names
    assert names <= {*NEEDED}


def test_an_output_that_is_full_or_closed_is_told_or_left_alone(project: Path) -> None:
    command = f"{sys.executable} -m hpc_train.cli render cfg.yaml"
    full = subprocess.run(
        ["bash", "-c", f"{command} > /dev/full"], capture_output=True, cwd=project
    )
    assert full.returncode == 1
    said = "error: the output cannot be written: No space left on device\n  fix: make room there"
    assert full.stderr.decode().startswith(said)
    closed = subprocess.run(["bash", "-c", f"{command} >&-"], capture_output=True, cwd=project)
    assert (closed.returncode, closed.stderr) == (0, b"")


def test_a_variable_of_sbatchs_in_the_shell_is_told_where_slurm_refuses(
    hpc, slurm, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm.has("sbatch", "echo 'sbatch: error: no --hint of that kind' >&2; exit 1")
    monkeypatch.setenv("SBATCH_PARTITION", "gone")
    message = "Slurm refused the job: no --hint of that kind"
    refused(hpc, project, ["submit", "cfg.yaml"], 4, message, "your shell sets SBATCH_PARTITION")


PARSED = """\
import argparse
parser = argparse.ArgumentParser(description="x")
group = parser.add_argument_group("model")
group.add_argument("-w", "--width", type=int, required=True)
parser.add_argument("--act", choices=["relu", "gelu"], default="relu")
parser.add_argument("--fast", action="store_true")
parser.add_argument("--betas", nargs=2, type=float)
args = parser.parse_args()
"""


@pytest.mark.parametrize(
    ("typed", "message", "fix"),
    [
        ("--widht 3", "refuses: the following arguments are required: -w/--width", "behind --"),
        ("-w 3 --wdith 4", "refuses: unrecognized arguments: --wdith 4", "did you mean '--width'?"),
        ("-w 3 --epochs 4", "unrecognized arguments: --epochs 4", "it takes -w, --width, --act"),
        ("--width wide", "argument -w/--width: invalid int value: 'wide'", "correct it"),
        ("-w 3 --act tanh", "argument --act: invalid choice: 'tanh'", "correct it"),
        ("-w 3 --betas 1", "argument --betas: expected 2 arguments", "correct it"),
        ("--wid 3 --fast --betas 0.9 0.99 --act=gelu", "", ""),
        ("--help", "", ""),
    ],
)
def test_what_a_scripts_own_parser_would_refuse_is_refused(
    hpc, project: Path, typed: str, message: str, fix: str
) -> None:
    (project / "train.py").write_text(PARSED)
    words = ["submit", "train.py", "--dry-run", "--", *typed.split()]
    if message:
        refused(hpc, project, words, 3, message, fix)
    else:
        assert hpc(*words).code == 0


@pytest.mark.parametrize(
    "more",
    [
        "args, rest = parser.parse_known_args()",
        "add_options(parser)",
        "for name in names: parser.add_argument(name)",
        "parser.add_subparsers()",
        "if big: parser.add_argument('--big', required=True)",
        "sys.argv.remove('--odd')",
        "other = argparse.ArgumentParser()",
        "parser.parse_args(['--width', '3'])",
    ],
)
def test_a_parser_whose_text_does_not_tell_all_refuses_nothing(
    hpc, project: Path, more: str
) -> None:
    (project / "train.py").write_text(f"{PARSED}{more}\n")
    assert hpc("submit", "train.py", "--dry-run", "--", "--odd").code == 0


def test_latest_is_the_newest_run_unless_one_is_called_that(hpc, project: Path) -> None:
    assert hpc("submit", "cfg.yaml", "seed=1").code == 0
    first = set(project.glob("runs/x/*"))
    assert hpc("submit", "cfg.yaml", "seed=2").code == 0
    (newest,) = set(project.glob("runs/x/*")) - first
    for word in ("latest", "last"):
        assert newest.name in hpc("status", word).out
    assert hpc("submit", "cfg.yaml", "name=latest").code == 0
    assert hpc("submit", "cfg.yaml").code == 0
    assert hpc("status", "latest").out.startswith("latest")


def test_the_python_interface_refuses_what_is_of_another_kind(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    loaded = api.load("cfg.yaml")
    refused_calls: list[tuple[Callable[[], object], str]] = [
        (lambda: api.load({"seed": 1}), r"\{'seed': 1\} is none .*YAML file"),  # type: ignore[arg-type]
        (lambda: api.load("cfg.yaml", sweep="seed=1,2"), r"no list \(write sweep=\['seed=1,2"),
        (lambda: api.load("cfg.yaml", arguments="--lr 1"), "no list .write arguments="),
        (lambda: api.render("cfg.yaml"), "write hpc_train.load"),  # type: ignore[arg-type]
        (lambda: api.Run("x"), r"no run directory .write hpc_train.Run.find\('x'\)"),  # type: ignore[arg-type]
        (lambda: api.Run.find("7", "nope"), "--runs-dir nope: there is no such folder"),
        (lambda: submit_sweep(loaded), "no key varies"),
        (lambda: api.submit(loaded, nodes=2), "write hpc_train.load.PATH, nodes=2"),
        (lambda: api.load("cfg.yaml", **{"slurm.nodes": 2}), "PATH, 'slurm.nodes=2'"),  # type: ignore[arg-type]
        (lambda: api.load("cfg.yaml", lr=0.1), "PATH, 'model.init_args.lr=0.1'"),
        (lambda: api.load("cfg.yaml", max_epochs=3), "PATH, 'trainer.max_epochs=3'"),
        (lambda: api.load("cfg.yaml", node=3), "did you mean 'nodes'"),
        (lambda: api.load("cfg.yaml", odd=3), "keys of the config are texts: 'model.init_args"),
        (lambda: submit_sweep("cfg.yaml"), "write hpc_train.load"),  # type: ignore[arg-type]
        (lambda: api.prepare(loaded).wait("x"), "timeout_s is 'x' .write seconds"),  # type: ignore[arg-type]
        (lambda: api.prepare(loaded).evaluate("tset"), "'tset' is no evaluation"),  # type: ignore[arg-type]
    ]
    for call, message in refused_calls:
        with pytest.raises(HpcTrainError, match=message):
            call()


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("[WANDB_API_KEY=s3cr3t]", "[WANDB_API_KEY]"),
        ("WANDB_API_KEY=s3cr3t", "[WANDB_API_KEY]"),
        ("{WANDB_API_KEY: s3cr3t}", "[WANDB_API_KEY]"),
        ("[HOME, {WANDB_API_KEY: s3cr3t}]", "[HOME, WANDB_API_KEY]"),
        ("[$HF_TOKEN]", "[HF_TOKEN]"),
        ("['${oc.env:HF_TOKEN}']", "[HF_TOKEN]"),
        ("[s3cr3t-of-mine]", "[WANDB_API_KEY]"),
        ("[s3cr3t7f40cfb3b3e90c1d2]", "[WANDB_API_KEY]"),
    ],
)
def test_a_value_among_the_names_that_are_handed_on_is_never_repeated(
    hpc, project: Path, monkeypatch: pytest.MonkeyPatch, typed: str, names: str
) -> None:
    """Neither where it is typed nor where a file has it; what the fix says is taken."""
    monkeypatch.setenv("WANDB_API_KEY", "other")
    monkeypatch.setenv("HF_TOKEN", "other")
    message, fix = "env.passthrough holds more than names", f"names only: {names}; the values"
    words = ["submit", "cfg.yaml", "--dry-run", f"env.passthrough={typed}"]
    refused(hpc, project, words, 3, message, fix)
    assert "s3cr3t" not in hpc(*words).err
    (project / "cfg.yaml").write_text(f"{CONFIG}env: {{passthrough: {typed}}}\n")
    refused(hpc, project, words[:3], 3, message, fix)
    assert "s3cr3t" not in hpc(*words[:3]).err
    assert hpc(*words[:3], f"env.passthrough={names}").code == 0


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("1:00:00", "00:01:00:00"),
        ("36:00:00", "01:12:00:00"),
        ("2-00:30:00", "02:00:30:00"),
        ("90m", "00:01:30:00"),
        ("1.5 hours", "00:01:30:00"),
        ("3:00", "00:00:30:00"),
    ],
)
def test_a_time_of_slurms_form_is_told_as_lightning_reads_it(
    hpc, project: Path, typed: str, meant: str
) -> None:
    """The fix is right at once, where YAML reads a number as well, and needs no quotes if typed."""
    words = ["submit", "cfg.yaml", "--dry-run", f"trainer.max_time={typed}"]
    refused(hpc, project, words, 3, f"trainer.max_time is '{typed}'", meant)
    assert hpc(*words[:3], f"trainer.max_time={meant}").code == 0
    assert hpc(*words[:3], f"trainer.max_time='{meant}'").code == 0
    (project / "cfg.yaml").write_text(CONFIG.replace("epochs: 1", f"epochs: 1, max_time: {typed}"))
    refused(hpc, project, words[:3], 3, "trainer.max_time is", meant)


@pytest.mark.parametrize("count", ["--gpus=-1", "--gpus=all", "slurm.gpus_per_node=auto"])
def test_as_many_gpus_as_there_are_is_told_to_be_counted(hpc, project: Path, count: str) -> None:
    said = hpc("submit", "cfg.yaml", count)
    assert said.code in (2, 3)
    assert "how many GPUs of each node are used" in said.err
    for value in ("-1", "auto"):
        words = ["submit", "cfg.yaml", f"trainer.devices={value}"]
        refused(hpc, project, words, 3, "set by hpc-train", "write how many a node has: slurm.gpus")


KINDS = """\
import torch
from pytorch_lightning import LightningDataModule, LightningModule
class Model(LightningModule): ...
class Encoder(torch.nn.Module): ...
class Images(LightningDataModule): ...
"""


@pytest.mark.parametrize("typed", ["kinds", "kinds.py", "./kinds.py", "kinds.Nothing", "kinds.X"])
def test_only_classes_of_the_right_kind_are_proposed(hpc, project: Path, typed: str) -> None:
    (project / "kinds.py").write_text(KINDS)
    for key, right in (("model", "Model"), ("data", "Images")):
        said = hpc("submit", "cfg.yaml", f"{key}.class_path={typed}", "--dry-run")
        assert said.code == 3, said
        hint = said.err.splitlines()[-1]
        assert right in hint
        assert not any(it in hint for it in {"Model", "Encoder", "Images"} - {right}), hint
    (project / "kinds.py").write_text("import torch\nclass Encoder(torch.nn.Module): ...\n")
    assert "Encoder" not in hpc("submit", "cfg.yaml", f"model.class_path={typed}").err


@pytest.mark.parametrize(
    ("words", "message", "fix"),
    [
        ("--sweep seed=1 2 3 --nodes 1", "and 2 3 stands behind", "write --sweep seed=1,2,3"),
        ("--sweep --nodes 1", "--sweep wants KEY=VALUES, and --nodes", "--sweep KEY="),
        ("--sweep --dry-run", "--sweep wants KEY=VALUES, and --dry-run fol", "--sweep KEY=VALUES"),
        ("--name --nodes=1", "--name wants a value, and --nodes=1 follows", "write --name VALUE"),
        ("seed=3 --sweep seed=1,2", "seed=3 and --sweep seed=... are both", "leave one of"),
        ("--nodes 3 --sweep slurm.nodes=1,2", "--nodes 3 and --sweep slurm.nodes=... are", "leave"),
    ],
)  # fmt: skip
def test_a_sweep_that_is_typed_wrong_is_told(
    hpc, project: Path, words: str, message: str, fix: str
) -> None:
    said = hpc("submit", "cfg.yaml", *words.split())
    assert said.code in (2, 3)
    error, hint = said.err.splitlines()
    assert message in error
    assert fix in hint
    assert "--nodes" not in hint


def test_a_key_of_the_files_sweep_that_is_typed_is_told(hpc, project: Path) -> None:
    (project / "cfg.yaml").write_text(f"{CONFIG}sweep: {{model: {{init_args: {{lr: [1, 2]}}}}}}\n")
    words = ["submit", "cfg.yaml", "--dry-run"]
    message = "model.init_args.lr=3 and sweep.model.init_args.lr (cfg.yaml:7) are both there"
    refused(hpc, project, [*words, "model.init_args.lr=3"], 3, message, "sweep={} for all")
    assert hpc(*words, "model.init_args.lr=3", "sweep={}").code == 0
    assert hpc(*words, "model.init_args.width=5").code == 0


@pytest.mark.parametrize(
    ("sweep", "point", "message"),
    [
        ("model.init_args.lr=0.1,abc", "point 1 of the sweep (model.init_args.lr=abc)", "takes fl"),
        ("data.init_args.batch_size=8,4,0", "point 2 of the sweep (data.init_args.b", "is 0"),
        ("model.init_args.width=8,9", "point 1 of the sweep", "refuses: no multiple of 8"),
    ],
)
def test_each_point_of_a_sweep_is_held_against_the_classes(
    hpc, project: Path, sweep: str, point: str, message: str
) -> None:
    body = "\n        if width % 8: raise ValueError('no multiple of 8')\n"
    nets = NETS.replace("width: int, lr: float = 0.1): ...", f"width: int, lr: float = 0.1):{body}")
    steps = "    def training_step(self, b): ...\n    def configure_optimizers(self): ...\n"
    nets = nets.replace("class Abstract", f"        super().__init__()\n{steps}class Abstract")
    (project / "nets.py").write_text(nets)
    words = ["submit", "cfg.yaml", "--dry-run", "model.init_args.width=16", "--sweep", sweep]
    words = [*(word for word in words[:-1] if not sweep.startswith(word.split("=")[0])), sweep]
    said = hpc(*words)
    assert said.code == 3, said
    error, hint = said.err.splitlines()
    assert error.startswith(f"error: {point}")
    assert message in error
    assert hint
    few = sweep.rpartition(",")[0]
    assert hpc(*words[:-1], f"{few},{'24' if 'width' in sweep else '16'}").code == 0


@pytest.mark.parametrize(
    ("arguments", "unfilled"),
    [
        ("--lr {lr}", "{lr}"),
        ("--lr={lr}", "--lr={lr}"),
        ("lr={lr}", "lr={lr}"),
        ("{lr}", ""),
        ("--model.weight-decay {weight_decay}", "{weight_decay}"),
        ("--filename {epoch}", ""),
        ("--format=%{lr}", ""),
        ("--lr 0.1", ""),
    ],
)
def test_the_place_of_a_value_that_no_sweep_gives_is_refused(
    hpc, project: Path, arguments: str, unfilled: str
) -> None:
    (project / "train.py").write_text("import sys\nprint(sys.argv)\n")
    words = ["submit", "train.py", "--dry-run", "--gpus", "2", "--", *arguments.split()]
    if not unfilled:
        assert hpc(*words).code == 0
        return
    name = unfilled.partition("{")[2].rstrip("}")
    message, fix = f"is {unfilled}, and no sweep fills it", f"write --sweep {name}=A,B, or"
    refused(hpc, project, words, 3, message, fix)
    sweep = ["--sweep", f"{name}=1,2"]
    assert hpc(*words[:3], *sweep, *words[3:]).code == 0
    other = ["--sweep", "momentum=1,2"]
    more = ["--momentum", "{momentum}"]
    refused(hpc, project, [*words[:3], *other, *words[3:], *more], 3, message, fix)
