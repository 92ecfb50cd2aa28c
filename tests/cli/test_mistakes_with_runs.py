"""What is typed wrong on the second day, of runs that are there: what is said, and that it works.

A fix that a message names is typed as well, and is not refused.
"""

from __future__ import annotations

import json
import re
import time
import traceback
from pathlib import Path

import pytest

import hpc_train
from hpc_train import api
from hpc_train.backends.find_weights import find_weights
from hpc_train.errors import ConfigError, NoSuchRunError
from hpc_train.runs.events import Event, EventKind, append_event
from hpc_train.runs.layout import RunDir
from tests.cli.run_of_yesterday import CONFIG, NETS, ended, project, refused, run, saved, sweep

__all__ = ["project", "run", "sweep"]


def test_a_command_without_its_run_is_told_with_the_newest_of_this_folder(
    hpc, run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in ("resume", "test", "checkpoints", "predict"):
        said = hpc(command)
        assert (said.code, "Missing argument 'RUN'" in said.err) == (2, True)
        kind = "training" if command in ("test", "predict") else "run"
        assert f"fix: hpc-train {command} x takes the newest {kind} here; `hpc-train" in said.err
    assert "fix: `hpc-train list` names the runs" in hpc("cancel").err
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert "fix: `hpc-train list` names the runs" in hpc("resume").err


def test_a_run_in_the_place_of_a_config_is_told_with_what_goes_on_with_it(hpc, run: RunDir) -> None:
    fix = f"hpc-train resume {run.run_id} goes on with it; hpc-train submit cfg.yaml begins anew"
    for command in ("run", "submit", "render"):
        for word in ("latest", f"runs/x/{run.run_id}"):
            refused(hpc, f"{command} {word}", f"{word} is a run (x), and no config", fix)
    refused(hpc, "run runs/x", "runs/x is a folder", "")
    refused(hpc, "run nothing", "nothing: there is no such file", "cfg.yaml")


def test_arguments_of_a_script_behind_a_run_are_told_as_another_run(hpc, run: RunDir) -> None:
    message = "--lr stands behind --, and a run keeps what it was submitted with"
    refused(hpc, "resume x -- --lr 0.1", message, "a key of the config has no dashes: KEY=VALUE")
    plan = json.loads(run.plan.read_text())
    run.plan.write_text(json.dumps({**plan, "script": {"path": "train.py"}}))
    document = json.loads(run.environment.read_text())
    document["config"]["words"] = ["train.py", "slurm.nodes=1", "--", "--lr", "0.2"]
    document["config"]["file"] = ""
    run.environment.write_text(json.dumps(document))
    other = "other arguments are of a run of its own: hpc-train submit train.py slurm.nodes=1 -- "
    refused(hpc, "resume x -- --lr 0.1", message, f"{other}--lr 0.1")


@pytest.mark.parametrize(
    "command", ["logs", "test", "checkpoints", "diff", "diagnose", "preflight"]
)
def test_the_name_of_a_sweep_is_no_run_and_the_best_point_is_asked_for(
    hpc, sweep: str, command: str
) -> None:
    """It meant the last point, and nothing said so."""
    fix = f"name one of them: {sweep}-0; `hpc-train status {sweep} --best METRIC` tells the best"
    for reference in ("sw", sweep):
        message = f"{reference} is a sweep of 2 points, and not one run"
        refused(hpc, f"{command} {reference}", message, fix)
    assert f"sw  sweep {sweep}  2 points" in hpc("status", "sw").out


def test_the_name_of_a_sweep_begins_no_model(hpc, sweep: str, tmp_path: Path) -> None:
    for reference in ("sw", sweep):
        with pytest.raises(NoSuchRunError, match="is a sweep of 2 points"):
            find_weights(reference, [tmp_path / "runs"], tmp_path)


def test_the_name_of_a_sweep_of_one_point_means_that(hpc, slurm, project: Path) -> None:
    slurm.has("sbatch", "echo 7")
    slurm.has("scontrol", "printf 'MaxArraySize            = 9\\nMaxJobCount = 10000\\n'")
    words = ("submit", "cfg.yaml", "name=sw", "--sweep", "model.init_args.lr=0.1", "--json")
    name = json.loads(hpc(*words).out)["sweep"]
    assert hpc("status", f"{name}-0").code == 0
    assert api.Run.find("sw").directory.run_id == f"{name}-0"


def test_only_the_keys_that_make_another_training_are_named(hpc, run: RunDir) -> None:
    words = "resume x model.init_args.lr=0.5 trainer.max_epochs=6 trainer.accelerator=cpu"
    message = "error: model.init_args.lr makes another training: "
    fix = refused(hpc, words, message, f"with these weights: init_from={run.run_id}")
    weights = re.search(r"init_from=\S+", fix)
    assert weights is not None
    own = ("submit", "cfg.yaml", "--dry-run", "model.init_args.lr=0.5", weights[0])
    assert hpc(*own).code == 0
    message = "error: model.init_args.lr, seed make another training: "
    refused(
        hpc,
        "resume x model.init_args.lr=0.5 seed=7",
        message,
        "as a run of its own: hpc-train submit cfg.yaml model",
    )


def test_a_key_of_no_name_whose_fix_would_be_refused_is_told_as_a_run_of_its_own(
    hpc, run: RunDir
) -> None:
    makes = "makes another training: model, data, trainer (but for its length), seed"
    for word, key in (("lr=0.5", "model.init_args.lr"), ("batch_size=64", "global_batch_size")):
        message = f"{word.partition('=')[0]} is no key of hpc-train; {key} {makes}"
        own = f"as a run of its own: hpc-train submit cfg.yaml {key}={word.partition('=')[2]}"
        refused(hpc, f"resume x {word}", message, own)
    refused(hpc, "resume x max_epochs=9", "max_epochs is no key", "fix: write trainer.max_epochs")
    refused(hpc, "resume x node=2", "node is no key of hpc-train", "fix: write slurm.nodes")
    value = re.search(r"global_batch_size: (\d+)", run.config.read_text())
    assert value  # as it is, it makes no other training
    as_it_is, message = f"resume x batch_size={value[1]}", "batch_size is no key of hpc-train"
    refused(hpc, as_it_is, message, "fix: write global_batch_size")
    assert makes not in hpc(*as_it_is.split()).err


def test_a_class_that_was_renamed_gets_its_name_back(hpc, project: Path, run: RunDir) -> None:
    """The name that is nearest was refused by the next command."""
    (project / "nets.py").write_text(NETS.replace("class Net(", "class MyNet("))
    message = "model.class_path: nets has no class 'Net'"
    fix = "a run keeps its model, so that the code has to fit: write `Net = MyNet` in nets"
    refused(hpc, "resume x --dry-run", message, fix)
    refused(hpc, "resume x --dry-run trainer.max_epochs=4", message, fix)
    (project / "nets.py").write_text(NETS.replace("class Net(", "class MyNet(") + "Net = MyNet\n")
    assert hpc("resume", "x", "--dry-run").code == 0


def test_an_argument_that_is_gone_is_no_key_to_change(hpc, project: Path) -> None:
    submitted = hpc("submit", "cfg.yaml", "model.init_args.lr=0.5", "--json")
    ended(RunDir(Path(json.loads(submitted.out)["run_dir"])), "cancelled")
    (project / "nets.py").write_text(NETS.replace("lr: float", "rate: float"))
    message = "model.init_args.lr"
    refused(hpc, "resume x --dry-run", message, "a run keeps its model, so that the code has to")


def test_a_typed_value_that_does_not_fit_a_kept_key_is_left_out(hpc, run: RunDir) -> None:
    words = "resume x model.init_args.lr=wide"
    refused(hpc, words, "is 'wide', and nets.Net takes", "leave it out: a run keeps its model")


def test_what_may_change_in_a_run_keeps_its_own_fix(hpc, run: RunDir) -> None:
    refused(hpc, "resume x trainer.max_epochs=wide", "trainer.max_epochs is 'wide'", "write")
    refused(hpc, "resume x slurm.mem=lots", "'lots' is not a memory size", "slurm.mem=64G")


@pytest.mark.parametrize("named", ["epoch=3.ckpt", "old/epoch=3.ckpt", "/old/epoch=3.ckpt"])
def test_a_checkpoint_that_is_not_there_is_answered_with_those_that_are(
    hpc, run: RunDir, named: str
) -> None:
    state = run.checkpoints / "step-000000012"
    message = f"--ckpt {named}: there is no /"
    there = state.relative_to(Path.cwd())
    hint = refused(hpc, f"test x --ckpt {named}", message, f"write --ckpt last or --ckpt {there}")
    starts = "a relative path starts in this folder" in hpc("test", "x", "--ckpt", named).err
    assert starts is not named.startswith("/")
    assert hpc("test", "x", *hint.split()[-2:]).code == 0
    elsewhere = refused(hpc, "test x --ckpt step-000000012", "there is no", "--ckpt runs/x/")
    assert hpc("test", "x", *elsewhere.split()[-2:]).code == 0


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("model.init_args.deep=3", "model.init_args.deep=2 (its default), here 3"),
        ("model.init_args.sizes=[8,8]", "model.init_args.sizes=[4,4], here [8,8]"),
        ("model.init_args.deep=2", ""),
        ("model.init_args.lr=0.5", ""),
        ("model.init_args.sizes=[4,4]", ""),
        ("model={class_path: nets.Other, init_args: {deep: 3}}", ""),
    ],
)
def test_weights_of_a_model_that_was_made_otherwise_are_noted(
    hpc, project: Path, typed: str, told: str
) -> None:
    takes = "lr: float = 0.1, deep: int = 2, sizes: tuple = (1,)"
    nets = NETS.replace("lr: float = 0.1", takes)
    (project / "nets.py").write_text(f"{nets}class Other(Net): ...\n")
    (project / "cfg.yaml").write_text(
        CONFIG.replace("nets.Net}", "nets.Net, init_args: {sizes: [4, 4]}}")
    )
    made = RunDir(Path(json.loads(hpc("submit", "cfg.yaml", "--json").out)["run_dir"]))
    state = saved(ended(made, "cancelled"), 12)
    for weights in ("x", state, state / "model.ckpt"):
        for how in (["--dry-run"], ["name=y"]):
            said = hpc("submit", "cfg.yaml", f"init_from={weights}", typed, *how)
            assert said.code == 0, said
            noted = [line for line in said.err.splitlines() if "another shape" in line]
            had = f"note: x ({made.run_id}) had {told}: weights of another shape are refused"
            assert [it[: len(had)] for it in noted] == ([had] if told else [])


def test_a_part_of_a_run_is_told_to_be_one(hpc, run: RunDir) -> None:
    state = run.checkpoints / "step-000000012"
    message = f"no run answers to '{state}'"
    fix = f"that is a checkpoint of x: write its run, {run.run_id}; a run goes on from its newest"
    begins = re.search(r"init_from=\S+", refused(hpc, f"resume {state}", message, fix))
    assert begins is not None
    assert hpc("submit", "cfg.yaml", "--dry-run", begins[0]).code == 0
    assert f"hpc-train test {run.run_id} --ckpt {state} takes" in hpc("test", str(state)).err
    for part in (run.config, run.checkpoints):
        fix = f"that is within a run of x: write its run, {run.run_id}"
        refused(hpc, f"resume {part}", f"no run answers to '{part}'", fix)


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        ("validate x --ckpt_path last", "write --ckpt best, --ckpt last or --ckpt PATH"),
        ("test x --checkpoint last", "write --ckpt best, --ckpt last or --ckpt PATH"),
        ("predict x --weights a.ckpt", "write --ckpt best, --ckpt last or --ckpt PATH"),
        ("test x --best", "write --ckpt best, --ckpt last or --ckpt PATH"),
        ("resume x --weights a.ckpt", "submit CFG init_from=$(hpc-train checkpoints x --best)"),
        ("predict x -o a.csv", "predictions come as predictions/predictions.pt in the folder of"),
        ("predict x --output a.csv", "torch.load reads them"),
        ("predict x --out a.csv", "torch.load reads them"),
        ("test x --output a.json", "hpc-train status RUN --json"),
        ("report x -o page.html", "write --html PAGE, or --json > FILE"),
        ("submit cfg.yaml --multirun a=1,2", "write hpc-train submit cfg.yaml --sweep a=1,2"),
        (
            "submit cfg.yaml -m a=1,2 b=x --cluster local",
            "here, the first is: hpc-train submit cfg.yaml a=1 b=x --cluster local",
        ),
        ("run cfg.yaml --multirun a=1,2", "the first is: hpc-train run cfg.yaml a=1"),
        ("submit cfg.yaml --ckpt_path x", "`hpc-train resume RUN` goes on with a run"),
    ],
)
def test_an_option_of_other_tools(hpc, project: Path, words: str, fix: str) -> None:
    refused(hpc, words, "No such option", fix)


def test_a_run_without_a_best_model_is_told_what_helps_it_now(hpc, run: RunDir) -> None:
    message, fix = "has saved no best model", "write --ckpt last, or leave --ckpt out"
    refused(hpc, "test x --ckpt best", message, fix)
    assert hpc("test", "x", "--ckpt", "last").code == 0
    assert hpc("test", "x").code == 0
    refused(hpc, "checkpoints x --best", message, "add a pytorch_lightning.callbacks.ModelCheck")


@pytest.mark.parametrize(
    ("hosts", "fix"),
    [("a b", "--hosts a,me@b,c (commas, no spaces)"), ("[a, b]", "--hosts a,me@b,c (commas")],
)
def test_hosts_are_told_in_the_form_of_their_place(
    hpc, project: Path, hosts: str, fix: str
) -> None:
    refused(hpc, f"launch --hosts '{hosts}' cfg.yaml", "is no host", f"write as in {fix}")
    (project / "cfg.yaml").write_text(f"{CONFIG}hosts: ['{hosts}']\n")
    refused(hpc, "launch cfg.yaml", "is no host", "write as in hosts: [a, me@b, c]")


def test_a_rendered_script_is_submitted_with_sbatch(hpc, project: Path) -> None:
    assert hpc("render", "cfg.yaml", "-o", "job.sbatch").code == 0
    refused(hpc, "submit job.sbatch", "is a shell script, and no config", "sbatch job.sbatch")


def test_a_run_that_runs_needs_nothing(hpc, slurm, project: Path) -> None:
    slurm.says("7|RUNNING|None|N/A")
    assert hpc("submit", "cfg.yaml").code == 0
    refused(hpc, "resume x", "is running as job 7", "it needs nothing: hpc-train status 2")


def test_a_sweep_in_the_place_of_one_training_names_what_takes_it(project: Path) -> None:
    loaded = hpc_train.load("cfg.yaml", sweep=["seed=range(2)"])
    with pytest.raises(ConfigError, match=r"hpc_train\.submit_sweep\(loaded\); for one training"):
        hpc_train.submit(loaded)


def test_a_sweep_of_a_file_is_left_out_as_it_is_said(hpc, project: Path) -> None:
    (project / "cfg.yaml").write_text(f"{CONFIG}sweep: {{seed: [1, 2]}}\n")
    refused(hpc, "run cfg.yaml", "makes many trainings", "write sweep={} where a file has it")
    said = hpc("submit", "cfg.yaml", "--dry-run", "sweep={}")
    assert (said.code, "--array" in said.out) == (0, False)


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("lr", 0.1, "hpc_train.load(PATH, 'model.init_args.lr=0.1')"),
        ("max_epochs", 1, "hpc_train.load(PATH, 'trainer.max_epochs=1')"),
        ("epochs", 1, "hpc_train.load(PATH, 'trainer.max_epochs=1')"),
        ("strategy", "ddp", "hpc_train.load(PATH, 'trainer.strategy=ddp')"),
        ("mem", "64G", "hpc_train.load(PATH, 'slurm.mem=64G')"),
        ("overrides", ["seed=3"], "write each as a text: hpc_train.load(PATH, 'seed=3'"),
        ("cluster", "local", "write hpc_train.submit(loaded, cluster='local')"),
        ("ckpt_path", "x", "init_from: PATH"),
        ("ndes", 2, "did you mean 'nodes'?"),
        ("whatever", 2, "keys of the config are texts: 'model.init_args.whatever=...'"),
    ],
)
def test_a_keyword_of_python_for_a_key_is_told_as_a_text(
    project: Path, name: str, value: object, fix: str
) -> None:
    with pytest.raises(ConfigError, match=f"{name} is no argument of load") as caught:
        hpc_train.load("cfg.yaml", **{name: value})  # type: ignore[arg-type]
    assert fix in caught.value.hint


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("wait", True, "write hpc_train.submit(loaded).wait()"),
        ("follow", True, "hpc_train.submit(loaded).follow()"),
        ("dry_run", True, "hpc_train.render(loaded)"),
        ("sweep", ["seed=1,2"], "hpc_train.submit_sweep(hpc_train.load(PATH, sweep=['seed=1,2']))"),
        ("nodes", 3, "hpc_train.load(PATH, nodes=3)"),
        ("seed", 3, "hpc_train.load(PATH, 'seed=3')"),
    ],
)
def test_an_option_of_the_command_is_told_as_python_has_it(
    project: Path, name: str, value: object, fix: str
) -> None:
    loaded = hpc_train.load("cfg.yaml")
    with pytest.raises(ConfigError, match=f"{name} is no argument of submit") as caught:
        hpc_train.submit(loaded, **{name: value})
    assert fix in caught.value.hint


def test_an_attribute_of_another_object_is_told(run: RunDir) -> None:
    loaded, known = hpc_train.load("cfg.yaml"), hpc_train.Run.find("x")
    for holder, name, place in (
        (loaded, "slurm", "loaded.config.slurm"),
        (loaded, "nodes", "loaded.config.slurm.nodes"),
        (known, "step", "run.status().step"),
        (known, "run_id", "run.directory.run_id"),
    ):
        with pytest.raises(AttributeError, match=re.escape(f"has no '{name}': write {place}")):
            getattr(holder, name)
        owner = {"loaded": loaded, "run": known}
        assert eval(place, owner) is not None, "what is told is there"
    for verb in ("test", "validate", "predict"):
        with pytest.raises(AttributeError, match=re.escape(f"write run.evaluate('{verb}')")):
            getattr(known, verb)
    with pytest.raises(AttributeError, match=r"has no 'nothing'$"):
        known.nothing  # noqa: B018
    assert not hasattr(loaded, "__nothing__")


def test_what_is_looked_for_on_a_run_or_a_config_is_told_with_where_it_is(run: RunDir) -> None:
    loaded, known = hpc_train.load("cfg.yaml"), hpc_train.Run.find("x")
    for holder, name, place in (
        (loaded, "submit", "hpc_train.submit(loaded)"),
        (loaded, "run", "hpc_train.run_here(loaded)"),
        (loaded, "trainer", "loaded.config.trainer, a dict; hpc_train.load(PATH, 'trainer.NAME=V"),
        (loaded, "model", "loaded.config.model, a dict; hpc_train.load(PATH, 'model.init_args.NA"),
        (known, "metrics", "run.wait().metrics (it waits for the end; run.status().metrics are"),
        (known, "result", "run.wait().metrics (it waits for the end; run.status().metrics are"),
        (known, "loss", "run.wait().metrics, which has what was logged; of now: run.status()."),
        (known, "kill", "run.cancel()"),
        (known, "done", "run.status().state.ended"),
    ):
        with pytest.raises(AttributeError, match=re.escape(f"'{name}': write {place}")) as caught:
            getattr(holder, name)
        shown = "".join(traceback.format_exception(caught.value))
        assert "Did you mean" not in shown, "Python proposes a name that is near, such as resume"
    with pytest.raises(TypeError, match=re.escape("in brackets: write loaded.config.trainer")):
        loaded["trainer"]
    with pytest.raises(TypeError, match="not iterable"):
        list(loaded)  # type: ignore[call-overload]
    assert repr(known) == f"Run({run.run_id}, '{run.path}')"
    shape = "nodes=2, gpus_per_node=2"
    assert repr(loaded) == f"LoadedConfig('cfg.yaml', name='x', nets.Net, {shape})"


@pytest.mark.parametrize(("is_asked", "code"), [(True, 12), (False, 130)])
def test_a_run_in_the_foreground_tells_by_its_code_who_ended_it(
    hpc, run: RunDir, monkeypatch: pytest.MonkeyPatch, is_asked: bool, code: int
) -> None:
    """`hpc-train cancel` in another terminal, or a Ctrl-C in this one."""
    if is_asked:
        append_event(run.events, Event(time.time(), EventKind.CANCEL_REQUESTED, {"by": "me"}))
    ended(run, "cancelled")
    monkeypatch.setattr(api, "run_here", lambda *_: (api.Run(run), 1))
    assert hpc("run", "cfg.yaml").code == code


def test_a_monitor_that_was_never_logged_is_told(hpc, project: Path) -> None:
    kept = (
        "{class_path: pytorch_lightning.callbacks.ModelCheckpoint, init_args: {monitor: val_los}}"
    )
    text = CONFIG.replace("epochs: 1", f"epochs: 1, callbacks: [{kept}]")
    (project / "cfg.yaml").write_text(text)
    made = RunDir(Path(json.loads(hpc("submit", "cfg.yaml", "--json").out)["run_dir"]))
    saved(made, 12)
    assert "never logged" not in hpc("checkpoints", "x").err, "it may still be"
    made.final_metrics.write_text(json.dumps({"loss": 0.5, "val_loss": 0.25}))
    ended(made, "completed")
    message = "monitors val_los, never logged; logged: loss, val_loss"
    refused(hpc, "checkpoints x --best", message, "did you mean 'val_loss'?")
    assert message in hpc("checkpoints", "x").err
    made.final_metrics.write_text(json.dumps({"loss": 0.5}))
    refused(hpc, "checkpoints x --best", "logged: loss", 'write self.log("val_los", ...)')
