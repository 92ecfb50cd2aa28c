"""Words that are typed beside a config: torn apart by spaces, of Hydra, of other trainers."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from hpc_train.runs.layout import RunDir
from tests.cli.conftest import Slurm
from tests.cli.mistaken import project, refused

__all__ = ["project"]


@pytest.mark.parametrize(
    ("words", "message", "fix"),
    [
        ("trainer.max_epochs = 3", "'trainer.max_epochs' is no key=value", "trainer.max_epochs=3"),
        ("trainer.max_epochs =3", "'trainer.max_epochs' is no key=value", "trainer.max_epochs=3"),
        ("trainer.max_epochs= 3", "'3' is no key=value", "trainer.max_epochs=3"),
        ("seed = 3 name=y", "'seed' is no key=value", "seed=3"),
        ("name= my run", "'my' is no key=value", "name='my run'"),
        ("name = my run seed=3", "'name' is no key=value", "name='my run'"),
    ],
)
def test_spaces_around_the_equals_sign(hpc, project, words, message, fix) -> None:
    refused(hpc, project, ["submit", "cfg.yaml", *words.split()], 3, message, "")
    hint = hpc("submit", "cfg.yaml", *words.split()).err.splitlines()[1]
    assert hint == f"  fix: write it without spaces: {fix}"


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("~loggers", "to empty it write loggers=[]"),
        ("~loggers=csv", "to empty it write loggers=[]"),
        ("~trainer.callbacks", "to empty it write trainer.callbacks=[]"),
        ("~trainer.max_epochs", "to empty it write trainer.max_epochs=null"),
        ("~slurm.partition", "to empty it write slurm.partition=null"),
        ("~env.variables", "to empty it write env.variables={}"),
        ("~slurm", "to empty it write slurm={}"),
        ("~checkpoint.keep_last", "to have its default write checkpoint.keep_last=3"),
        ("~checkpoint.asynchronous", "to have its default write checkpoint.asynchronous=true"),
        ("~model", "a training needs model: write model=VALUE"),
        (
            "~model.init_args.width",
            "only the file can leave out model.init_args.width: remove it there, or write model.i",
        ),
        ("~trainer.accelerator=cpu", "only the file can leave out trainer.accelerator: remove it"),
        ("+seed=3", "write seed=3"),
        ("++trainer.max_epochs=3", "write trainer.max_epochs=3"),
    ],
)
def test_the_marks_of_hydra(hpc, project: Path, word: str, fix: str) -> None:
    refused(hpc, project, ["submit", "cfg.yaml", word], 3, word.partition("=")[0], f"  fix: {fix}")


@pytest.mark.parametrize("word", ["loggers=[]", "trainer.callbacks=[]", "slurm={}", "seed=3"])
def test_what_is_proposed_for_them_is_taken(hpc, project: Path, word: str) -> None:
    said = hpc("submit", "--dry-run", "--cluster", "local", "cfg.yaml", word)
    assert "key" not in said.err, said.err


@pytest.mark.parametrize("command", ["run", "submit"])
def test_a_name_with_a_space_is_to_be_quoted(hpc, project: Path, command: str) -> None:
    (project / "my first net.yaml").write_text((project / "cfg.yaml").read_text())
    words = [command, "my", "first", "net.yaml", "seed=3"]
    refused(hpc, project, words, 3, "'my first net.yaml' is one", "quotes: 'my first net.yaml'")
    said = hpc("submit", "cfg.yaml", "net.yaml")
    assert "one file begins the line" in said.err


@pytest.mark.parametrize("typed", ["sub/cfg.yml", "sub/cgf.yaml"])
def test_a_file_that_may_be_meant_is_named_with_its_folder(hpc, project: Path, typed: str) -> None:
    (project / "sub" / "cfg.yaml").write_text("name: x\n")
    refused(hpc, project, ["submit", typed], 3, "no such file", "did you mean 'sub/cfg.yaml'?")


@pytest.mark.parametrize(
    ("typed", "form"),
    [
        ("num_train_epochs=3", "trainer.max_epochs"),
        ("epochs=3", "trainer.max_epochs"),
        ("max_steps=10", "trainer.max_steps"),
        ("max_train_steps=10", "trainer.max_steps"),
        ("per_device_train_batch_size=8", "micro_batch_size"),
        ("gradient_accumulation_steps=2", "global_batch_size and micro_batch_size"),
        ("learning_rate=0.1", "model.init_args.lr"),
        ("weight_decay=0.1", "nets.Net takes width, lr: let it take weight_decay, too"),
        ("warmup_steps=100", "nets.Net takes width, lr: let it take warmup_steps, too"),
        ("optim=adamw", "your model's configure_optimizers makes the optimizer"),
        ("lr_scheduler_type=cosine", "your model's configure_optimizers makes the scheduler"),
        ("output_dir=x", "runs_dir"),
        ("logging_dir=x", "runs_dir"),
        ("run_name=x", "name"),
        ("logging_steps=5", "trainer.log_every_n_steps"),
        ("save_steps=5", "checkpoint.every_n_steps"),
        ("checkpoint_every=10", "checkpoint.every_n_steps"),
        ("checkpoint_dir=x", "leave it out: they lie in the run's folder, under checkpoints/"),
        ("save_strategy=steps", "checkpoint.every_n_steps or checkpoint.every_n_minutes"),
        ("save_total_limit=2", "checkpoint.keep_last"),
        ("eval_steps=5", "trainer.val_check_interval, which counts batches"),
        ("eval_strategy=epoch", "trainer.check_val_every_n_epoch, or trainer."),
        ("max_grad_norm=1", "trainer.gradient_clip_val"),
        ("nproc_per_node=2", "slurm.gpus_per_node"),
        ("nnodes=2", "slurm.nodes"),
        ("max_restarts=2", "requeue.budget"),
        ("node_rank=0", "leave it out: hpc-train tells each rank its place"),
        ("rdzv_endpoint=a:1", "leave it out: hpc-train tells each rank its place"),
        ("dataloader_num_workers=2", "nets.Data takes batch_size: let it take num_workers, too"),
        ("per_device_eval_batch_size=2", "your DataModule's val_dataloader decides it"),
        ("do_train=true", "leave it out: submit trains"),
        ("overwrite_output_dir=true", "leave it out: each run has a folder of its own"),
        ("metric_for_best_model=acc", "monitor under init_args of a ModelCheckpoint"),
        ("early_stopping_patience=3", "patience under init_args of an EarlyStopping"),
    ],
)
def test_words_of_other_trainers_have_a_home_here(hpc, project, typed: str, form: str) -> None:
    word, _, value = typed.partition("=")
    refused(hpc, project, ["submit", "cfg.yaml", typed], 3, f"{word} is no key", form)
    (project / "in.yaml").write_text(f"base: cfg.yaml\n{word}: {value}\n")
    if re.fullmatch(r"[a-z]+\.\w+", form):  # one word with a point is for the command line
        section, name = form.split(".")
        form = f"write {section}: {{{name}: {value}}}"
    form = form.replace("model.init_args.lr", f"write model: {{init_args: {{lr: {value}}}}}")
    refused(hpc, project, ["submit", "in.yaml"], 3, f"in.yaml:2: {word} is no key", form)


@pytest.mark.parametrize(
    ("typed", "typed_fix", "written_fix"),
    [
        ("fp16=true", "write trainer.precision=16-mixed", "trainer: {precision: 16-mixed}"),
        ("bf16=true", "write trainer.precision=bf16-mixed", "trainer: {precision: bf16-mixed}"),
        ("bf16=false", "fix: leave it out", "fix: leave it out"),
        ("no_cuda=true", "write trainer.accelerator=cpu", "trainer: {accelerator: cpu}"),
        ("wandb=true", "write loggers=[wandb]", "write loggers: [wandb]"),
        ("report_to=wandb", "write loggers=[wandb]", "write loggers: [wandb]"),
        ("report_to=none", "write loggers=[]", "write loggers: []"),
        ("report_to=all", "write loggers=[csv,wandb]", "write loggers: [csv, wandb]"),
    ],
)
def test_switches_of_other_trainers_have_a_value_here(
    hpc, project: Path, typed: str, typed_fix: str, written_fix: str
) -> None:
    word, _, value = typed.partition("=")
    refused(hpc, project, ["submit", "cfg.yaml", typed], 3, "is no key", typed_fix)
    (project / "in.yaml").write_text(f"base: cfg.yaml\n{word}: {value}\n")
    refused(hpc, project, ["submit", "in.yaml"], 3, "is no key", written_fix)


def test_a_sweep_without_slurm_is_told_how_to_train_a_point(hpc, project: Path) -> None:
    vary = shlex.split("--sweep model.init_args.lr=0.1,0.2 --sweep name=a,b --cluster local")
    one = "hpc-train run cfg.yaml model.init_args.lr=0.1 name=a"
    refused(hpc, project, ["submit", "cfg.yaml", *vary], 2, "is for one training", one)


def test_a_config_that_is_started_from_its_own_folder_is_told_the_one_above(
    hpc, project: Path, monkeypatch
) -> None:
    (project / "sub" / "deep").mkdir()
    (project / "sub" / "cfg 1.yaml").write_text((project / "cfg.yaml").read_text())
    monkeypatch.chdir(project / "sub")
    fix = f"it is in {project}: cd .. && hpc-train submit 'sub/cfg 1.yaml'"
    refused(hpc, project, ["submit", "cfg 1.yaml"], 3, "there is no module 'nets'", fix)
    monkeypatch.chdir(project / "sub" / "deep")
    fix = "cd ../.. && hpc-train submit cfg.yaml"
    refused(hpc, project, ["submit", "../../cfg.yaml"], 3, "lies in ../..", fix)
    (project / "sub" / "deep" / "cfg.yaml").write_text((project / "cfg.yaml").read_text())
    fix = f"it is in {project}: cd ../.. && hpc-train submit sub/deep/cfg.yaml"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, "there is no module 'nets'", fix)


def test_the_line_to_type_in_another_folder_has_the_command_and_all_that_was_typed(
    hpc, project: Path, monkeypatch
) -> None:
    (project / "cfg.yaml").rename(project / "sub" / "my cfg.yaml")
    monkeypatch.chdir(project / "sub")
    up = "cd .. && hpc-train"
    no_module = "there is no module 'nets'"
    for typed, told in (
        (
            "run './my cfg.yaml' model.init_args.lr=0.3",
            "run 'sub/my cfg.yaml' model.init_args.lr=0",
        ),
        ("submit --nodes 1 'my cfg.yaml' name='a b'", "submit --nodes 1 'sub/my cfg.yaml' 'name=a"),
        ("render 'my cfg.yaml' seed=3", "render 'sub/my cfg.yaml' seed=3"),
    ):
        told = f"{up} {told}"
        refused(hpc, project, shlex.split(typed), 3, no_module, told)


@pytest.mark.parametrize(
    ("more", "message", "fix"),
    [
        (
            ".common: &c {lr: 1}",
            "cfg.yaml:7: .common is one key with a point in it",
            "what only holds an anchor begins with x-: x-common: ...",
        ),
        ("env:\n  <<: [*c, *c]", "7:8: not YAML", "no &c stands above: put it before the keys"),
        ("env:\n  <<: *c", "8:7: not YAML", "no &c stands above: put it before the keys that *c"),
        ("x-a: &a {venv: v}\nenv:\n  <<: [*a, *b]", "9:12: not YAML", "no &b stands above: put"),
        ("init_from: *best", "7:12: not YAML", 'a text with a * needs quotes: "*best"'),
        (
            "env: {variables: {COLORS: red, blue }}",
            "env.variables.COLORS is red,blue, and a comma ends a value in braces",
            'put it in quotes: COLORS: "red,blue"',
        ),
        ("env: {variables: {C: red, B: }}", "env.variables.B is null", "write a value, or leave"),
        ("env: {variables: {C: a,b,c, B: d}}", "env.variables.C is a,b,c, and", '"a,b,c"'),
        ("env: {variables: {CUDA_VISIBLE_DEVICES: [0, 1]}}", "is set by Slurm", "--devices 0,1"),
        ("env: {variables: {CUDA_VISIBLE_DEVICES: 0,1}}", "is 0,1, which is two", "--devices 0,1"),
    ],
)
def test_slips_in_the_file(hpc, project: Path, more: str, message: str, fix: str) -> None:
    (project / "cfg.yaml").write_text(f"{(project / 'cfg.yaml').read_text()}{more}\n")
    message = message.replace("7:8:", "8:8:")
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, fix)


@pytest.mark.parametrize(
    ("logger", "fix"),
    [
        ("WandbLoger", "did you mean 'WandbLogger'? write loggers=[wandb]"),
        ("csvv", "did you mean 'csv'? write loggers=[csv]"),
        ("WandbLogger", "fix: write loggers=[wandb]"),
        ("MyLogger", "fix: write loggers=[MyLogger]"),
        ("false", "fix: write loggers=[]"),
    ],
)
def test_a_logger_of_the_trainers_that_may_be_meant(hpc, project, logger: str, fix: str) -> None:
    words = ["submit", "cfg.yaml", f"trainer.logger={logger}"]
    refused(hpc, project, words, 3, "trainer.logger is set by hpc-train", fix)


OPEN = """\
from pytorch_lightning import LightningModule
class Open(LightningModule):
    def __init__(self, lr=0.1, width=64, flag=False, many=(8, 16), bare: tuple = (1, 2), one=1): ...
    def training_step(self, batch): return 0
    def configure_optimizers(self): ...
"""


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("lr=true", "lr is True, and open.Open has 0.1 there by default"),
        ("lr={a: 1}", "lr is {'a': 1}, and open.Open has 0.1 there by default"),
        ("width=64.5", "width is 64.5, and open.Open has 64 there by default"),
        ("width=true", "width is True, and open.Open has 64 there by default"),
        ("flag=3", "flag is 3, and open.Open has False there by default"),
        ("many=16", "many is 16, and open.Open has (8, 16) there by default; a list has brackets"),
        # None is often no limit, and a whole number does for one with a point
        *(
            (it, "")
            for it in ("lr=null", "width=null", "flag=null", "many=null", "lr=1", "one=0.5")
        ),
        *((it, "") for it in ("flag=1", "flag=true", "many=[3]", "many=[8, 8]", "width=65")),
    ],
)
def test_a_value_unlike_its_default_is_noted(hpc, project, argument: str, said: str) -> None:
    (project / "opened.py").write_text(OPEN)
    text = "base: cfg.yaml\nmodel: {class_path: opened.Open, init_args: {%s}}\n"
    name, _, value = argument.partition("=")
    (project / "in.yaml").write_text(text % f"{name}: {value}")
    notes = [it for it in hpc("submit", "--dry-run", "in.yaml").err.splitlines() if "note" in it]
    told = said.replace("open.Open", "opened.Open")
    found = [it for it in notes if told and f"note: in.yaml:2: model.init_args.{told}" in it]
    assert bool(found) == bool(said), notes
    assert said or not any("init_args" in it for it in notes), notes


@pytest.mark.parametrize("argument", ["many=[1 2]", "bare=[1 2]"])
def test_a_list_without_commas_is_refused(hpc, project: Path, argument: str) -> None:
    (project / "opened.py").write_text(OPEN)
    words = ["submit", "cfg.yaml", "model.class_path=opened.Open", "model.init_args={}"]
    fix = "write numbers, with commas: [1, 2]"
    words = [*words, f"model.init_args.{argument}"]
    refused(hpc, project, words, 3, "is ['1 2'], and opened.Open has", fix)


@pytest.mark.parametrize(
    ("word", "message", "fix"),
    [
        ("slurm.partition=[a,b]", "slurm.partition is '[a,b]'", "write slurm.partition=a,b"),
        ("slurm.exclude=n2 n3", "slurm.exclude is 'n2 n3'", "write slurm.exclude=n2,n3"),
        ("slurm.requeue=false", "slurm.requeue is no key", "write requeue.enabled=false"),
        ("requeue=false", "requeue is false", "write requeue.enabled=false"),
        ("trainer.batch_size=8", "is no argument of", "write global_batch_size=..."),
        ("trainer.limit_train_batches=150%", "is '150%', and", "write 1.0, which is all of them"),
        ("trainer.limit_train_batches=50%", "is '50%', and", "write a number: 0.5"),
        ("name=", "name is empty", "write name=my-run"),
    ],
)
def test_what_is_written_instead_is_taken(hpc, project: Path, word, message, fix) -> None:
    refused(hpc, project, ["submit", "cfg.yaml", word], 3, message, fix)


@pytest.mark.parametrize("word", ["slurm.partition=a,b", "slurm.constraint=[a|b]", "slurm.qos=a"])
def test_what_slurm_reads_in_brackets_is_left_to_it(hpc, project: Path, word: str) -> None:
    assert hpc("submit", "--dry-run", "--cluster", "slurm", "cfg.yaml", word).code == 0


@pytest.mark.parametrize(
    ("name", "other"), [("latest", "the newest run"), ("last", "the newest run"), ("7", "job 7")]
)
def test_a_name_that_is_a_word_of_the_commands_is_noted(hpc, project, name, other) -> None:
    for word in (f"--name={name}", f"name={name}"):
        said = hpc("submit", "--dry-run", "--cluster", "local", "cfg.yaml", word)
        note = f"name is {name}: `hpc-train status {name}` then means this run, and not {other}\n"
        assert (said.code, note in said.err) == (0, True), said
    said = hpc("submit", "--dry-run", "--cluster", "local", "cfg.yaml", "--name=run-7")
    assert "then means this run" not in said.err


@pytest.mark.parametrize("typed", ["name: first", 'name: "first"  # mine'])
def test_the_run_of_a_config_is_named_where_the_config_is_typed(
    hpc, project: Path, typed: str
) -> None:
    text = (project / "cfg.yaml").read_text()
    (project / "first.yaml").write_text(re.sub("^name: .*", typed, text, flags=re.M))
    (project / "runs").mkdir()
    where = ["--runs-dir", str(project / "runs")]
    none = "no run has its name, first: first hpc-train run first.yaml, or hpc-train submit first"
    for command in ("test", "resume", "logs", "status", "cancel", "validate", "predict"):
        refused(hpc, project, [command, "first.yaml", *where], 5, "'first.yaml'", none)
    refused(hpc, project, ["diagnose", "first.yaml", *where], 2, "is a config, and no log", none)
    run = RunDir(project / "runs" / "first" / "20261121-000000-0001")
    run.path.mkdir(parents=True)
    run.plan.write_text("{}")
    fix = f"for RUN write first (its newest run: {run.run_id})"
    for command in ("test", "resume", "logs", "status", "cancel"):
        refused(hpc, project, [command, "first.yaml", *where], 5, "'first.yaml'", fix)
    refused(hpc, project, ["diagnose", "first.yaml", *where], 2, "is a config, and no log", fix)


def test_the_run_of_a_script_is_named_where_the_script_is_typed(hpc, project: Path) -> None:
    (project / "my train.py").write_text("print(1)\n")
    (project / "other.py").write_text("print(1)\n")
    where = ["--runs-dir", str(project / "runs")]
    run = RunDir(project / "runs" / "my train" / "20261121-000000-0001")
    run.path.mkdir(parents=True)
    run.plan.write_text("{}")
    fix = f"that is a script: for RUN write 'my train' (its newest run: {run.run_id})"
    for command in ("test", "resume", "logs", "status", "cancel"):
        refused(hpc, project, [command, "my train.py", *where], 5, "'my train.py'", fix)
        refused(hpc, project, [command, "other.py", *where], 5, "'other.py'", "that is a file")
    refused(hpc, project, ["diagnose", "my train.py", *where], 2, "is code, and no log", fix)


def test_a_config_and_code_are_no_logs(hpc, project: Path) -> None:
    fix = "that is a config, and no run has its name"
    refused(hpc, project, ["diagnose", "cfg.yaml"], 2, "cfg.yaml is a config, and no log", fix)
    refused(hpc, project, ["diagnose", "nets.py"], 2, "nets.py is code, and no log", "name a run")
    (project / "a.log").write_text("all is well\n")
    assert hpc("diagnose", "cfg.yaml", "a.log").code == 0


@pytest.mark.parametrize(
    ("option", "state"),
    [("--failed", "failed"), ("--completed", "completed"), ("--cancelled", "cancelled")],
)
def test_a_state_as_an_option_of_list(hpc, project: Path, option: str, state: str) -> None:
    refused(hpc, project, ["list", option], 2, option, f"--state {state}")
    assert hpc("list", "--state", state).code == 0


def test_a_point_of_a_sweep_as_one_guesses_it(hpc, taken: Slurm, project: Path) -> None:
    answer = "--parsable*) echo 7 ;; *) echo Submitted batch job 7 ;; esac"
    taken.has("sbatch", f'case "$*" in {answer}')
    words = ("submit", "cfg.yaml", "--name", "sw", "--sweep", "seed=1,2", "--json")
    sweep = json.loads(hpc(*words).out)["sweep"]
    known = f"the points of sw are {sweep}-0 to {sweep}-1"
    for command in ("cancel", "status", "resume", "logs"):
        for word in ("sw/1", "sw:1", "sw[1]", "sw_1", f"{sweep}/1"):
            said = hpc(command, word)
            told = [f"error: no run answers to '{word}'", f"  fix: write {sweep}-1; {known}"]
            assert (said.code, said.err.splitlines()) == (5, told)
    assert hpc("cancel", "sw/5").err.splitlines()[1] == f"  fix: {known}"
    for tasks in ("7_[0-1]", "7_[0,1%1]"):
        said = hpc("cancel", tasks).err
        assert said.endswith(f"fix: 7 is all of them: write 7; one of them is {sweep}-0\n")
    hpc("submit", "cfg.yaml", "--name", "sw_1")
    assert "sw_1  pending" in hpc("status", "sw_1").out


def test_a_switch_in_a_file_is_told_as_a_file_has_it(hpc, project: Path) -> None:
    with (project / "cfg.yaml").open("a") as stream:
        stream.write("requeue: off\n")
    fix = "write requeue: {enabled: false}"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, "cfg.yaml:7: requeue is false", fix)
