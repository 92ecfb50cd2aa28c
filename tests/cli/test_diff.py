"""`hpc-train diff`: what is named, between a run and now, two attempts, two runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.plan.plan import Plan
from hpc_train.runs.layout import RunDir
from hpc_train.runs.provenance import attempt_environment, code_state, edited_files
from hpc_train.training.environment_record import write_environment
from tests.cli.conftest import ROOT
from tests.cli.test_resume import CONFIG, NETS

# What was typed over the file is no change of it, and is told.
TYPED = "typed     seed: 3 (by the file: 0)\ntyped     slurm.nodes: 1 (by the file: 2)\n"


@pytest.fixture
def run(hpc, taken, tmp_path: Path) -> RunDir:
    """A run whose attempts 0 and 1 have begun."""
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "cfg.yaml").write_text(CONFIG)
    said = hpc("submit", "cfg.yaml", "seed=3", "--nodes", 1, "--json")
    made = RunDir(Path(json.loads(said.out)["run_dir"]))
    for number in (0, 1):
        begin(made, number)
    return made


def begin(run: RunDir, number: int) -> None:
    """As the supervisor and rank 0 do it."""
    run.attempt(number).path.mkdir()
    plan = Plan.from_json(run.plan.read_text())
    attempt_environment(run, plan, number, slurm="slurm 22.05")
    write_environment(run.attempt(number))


def test_a_run_that_is_as_now_differs_in_nothing_also_not_in_what_was_typed(hpc, run) -> None:
    said = hpc("diff", "x")
    assert (said.code, said.out, said.err) == (0, f"nothing differs\n{TYPED}", "")


def test_one_run_under_two_words_is_told_with_the_others_of_its_name(hpc, run: RunDir) -> None:
    """`diff x x` compared the newest with itself, and said that nothing differs."""
    assert hpc("diff", "x", run.run_id).err == f"note: both are {run.run_id}\n"
    newer = json.loads(hpc("submit", "cfg.yaml", "seed=4", "--json").out)["run"]
    told = hpc("diff", "x", "x").err.splitlines()
    assert told[0] == f"note: both are {newer}"
    assert told[1].startswith(f"note: 2 runs are named x, and this is the newest, {newer}")
    assert run.run_id in told[1]
    assert "both are" not in hpc("diff", run.run_id, newer).err
    assert "both are" not in hpc("diff", f"{run.run_id}@0", f"{run.run_id}@1").err


def test_code_config_and_packages_that_have_changed_since_are_named(
    hpc, run: RunDir, tmp_path: Path
) -> None:
    (tmp_path / "nets.py").write_text(NETS + "# 2\n")
    (tmp_path / "cfg.yaml").write_text(CONFIG.replace("batch_size: 8", "batch_size: 16"))
    file = run.attempt(1).environment
    known = json.loads(file.read_text())
    known["packages"] |= {"numpy": "1.0", "gone": "2"}
    file.write_text(json.dumps(known))
    said = hpc("diff", "x").out
    assert said.endswith(TYPED)
    told = said.removesuffix(TYPED).splitlines()
    assert told[0] == "code      nets.py"
    assert "config    global_batch_size: 8 -> 16" in told
    assert "package   gone: 2 -> (absent)" in told
    assert sum(line.startswith("package   numpy: 1.0 -> ") for line in told) == 1
    assert told[-1].startswith("attempt   1 differs from attempt 0: numpy ")
    assert len(told) == 5
    between = json.loads(hpc("diff", "x@0", "x@1", "--json").out)
    assert between["packages"]["gone"] == [None, "2"]
    assert (between["code"], between["config"]) == ({"files": [], "commit": None}, {})


def test_two_runs_are_compared_by_their_configs(hpc, run: RunDir, tmp_path: Path) -> None:
    other = json.loads(hpc("submit", "cfg.yaml", "seed=4", "--json").out)["run"]
    said = hpc("diff", run.run_id, other)
    assert said.out.splitlines() == [
        "config    seed: 3 -> 4",
        "config    slurm.nodes: 1 -> 2",
    ]
    assert said.err == "not compared: packages: no attempt has begun to train\n"


def test_an_attempt_that_never_was_is_refused(hpc, run: RunDir) -> None:
    said = hpc("diff", "x@7")
    assert said.code == 1
    assert "no record of an attempt 7" in said.err
    assert "hpc-train status" in said.err


def test_a_record_names_no_secret_and_holds_the_diff_beside_it(
    hpc, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "WARN")
    for name in ("WANDB_API_KEY", "NCCL_AUTH_TOKEN", "MY_PASSWORD"):
        monkeypatch.setenv(name, "s3cr3t")
    begin(run, 2)
    text = run.attempt(2).environment.read_text()
    assert "s3cr3t" not in text
    known = json.loads(text)
    assert known["variables"]["NCCL_DEBUG"] == "WARN"
    assert known["slurm"] == "slurm 22.05"
    assert {"torch", "pytorch-lightning", "hpc-train"} <= known["packages"].keys()
    assert known["kernel"]


def test_what_an_attempt_had_otherwise_than_the_one_before_is_named(
    hpc, run: RunDir, tmp_path: Path
) -> None:
    (tmp_path / "nets.py").write_text(NETS + "# 2\n")
    begin(run, 2)
    begin(run, 3)
    said = hpc("diff", "x")
    assert said.out.splitlines() == [
        "nothing differs from now, but among the attempts:",
        "attempt   2 differs from attempt 1: nets.py",
        *TYPED.splitlines(),
    ]
    among = json.loads(hpc("diff", "x", "--json").out)["attempts"]
    assert among == {"2": {"before": 1, "files": ["nets.py"], "place": {}, "packages": {}}}
    assert hpc("diff", "x@1").out == f"code      nets.py\n{TYPED}"


def test_a_commit_of_what_was_there_and_other_files_are_no_edit_of_the_code(
    tmp_path: Path,
) -> None:
    def git(*words: str) -> None:
        argv = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(tmp_path), *words]
        subprocess.run(argv, check=True, capture_output=True)

    (tmp_path / "lib").mkdir()
    files = [tmp_path / name for name in ("nets.py", "lib/help.py", "cfg.yaml")]
    for file in files:
        file.write_text("1\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "1")
    files[1].write_text("2\n")
    before = code_state(tmp_path)
    files[2].write_text("lr: 2\n")
    assert edited_files(before, code_state(tmp_path)) == []
    git("commit", "-qam", "2")
    assert edited_files(before, code_state(tmp_path)) == []
    files[1].write_text("3\n")
    assert edited_files(before, code_state(tmp_path)) == ["lib/help.py"]
    files[0].write_text("3\n")
    git("commit", "-qam", "3")
    assert edited_files(before, code_state(tmp_path)) == ["nets.py", "lib/help.py"]
    shutil.rmtree(tmp_path / ".git")
    assert edited_files(before, code_state(tmp_path)) == ["nets.py"]


@pytest.mark.parametrize("ending", ["", "\\ No newline at end of file\n"])
def test_a_diff_is_the_same_as_it_is_kept_and_as_git_says_it(
    hpc, taken, tmp_path: Path, ending: str
) -> None:
    """With edits that are not committed the last file was told as changed, at each resume."""

    def git(*words: str) -> None:
        person = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *person, *words], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "train.py").write_text("from pkg.util import one\n")
    (tmp_path / "pkg").mkdir()
    util = tmp_path / "pkg" / "util.py"
    util.write_text("def one():\n    return 1\n\n\ndef two():\n    return 2" + "\n" * (not ending))
    git("init")
    git("add", "train.py", "pkg")
    git("commit", "-m", "one")
    util.write_text(util.read_text().replace("return 1", "return 3"))
    said = hpc("submit", "train.py", "script.launcher=none", "script.resume={}", "--json")
    made = RunDir(Path(json.loads(said.out)["run_dir"]))
    begin(made, 0)
    # Neither the script's path, which is written from its folder, nor what is empty differs.
    assert hpc("diff", "train").out == (
        "nothing differs\ntyped     script.launcher: none (by the file: srun)\n"
    )
    util.write_text(util.read_text().replace("return 3", "return 4"))
    assert hpc("diff", "train").out.startswith("code      pkg/util.py\n")


def test_a_script_that_was_typed_differs_in_nothing(hpc, taken, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nprint(1)\n")
    resume = "script.resume={when: a.pt, args: [--resume]}"
    said = hpc("submit", "train.py", resume, "seed=3", "--json")
    assert said.code == 0, said
    told = hpc("diff", json.loads(said.out)["run"]).out
    assert "typed     seed: 3" in told
    assert "script.path" not in told
    assert "script.resume:" not in told


def test_two_configs_are_told_with_what_compares_them(hpc, run: RunDir, tmp_path: Path) -> None:
    """`for RUN write x` was said of the first of them, and then of the second."""
    bash = shutil.which("bash", path="/usr/bin:/bin")
    text = (tmp_path / "cfg.yaml").read_text()
    (tmp_path / "other one.yaml").write_text(text.replace("nodes: 2", "nodes: 3"))
    both = "diff compares runs, and cfg.yaml and other one.yaml are configs"
    one = "diff compares runs, and other one.yaml is a config"
    for words, what, own in (
        (("cfg.yaml", "other one.yaml"), both, 2),
        (("x", "other one.yaml"), one, 1),
        (("other one.yaml", "x"), one, 1),
    ):
        said = hpc("diff", *words)
        assert (said.code, said.err.splitlines()[0]) == (2, f"error: {what}")
        line = said.err.splitlines()[1].removeprefix("  fix: ")
        ours = f'hpc-train() {{ {sys.executable} -m hpc_train.cli "$@"; }}; {line}'
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        shown = subprocess.run([str(bash), "-c", ours], env=env, capture_output=True, text=True)
        lines = [it.split() for it in shown.stdout.splitlines() if "nodes" in it]
        assert lines == [["<", "nodes:", str(own)], [">", "nodes:", "3"]], shown
        assert ("seed" in shown.stdout) is (what == one)


def test_the_own_config_beside_a_run_is_left_out(hpc, run: RunDir) -> None:
    said = hpc("diff", "x", "cfg.yaml")
    assert said.code == 2
    assert f"cfg.yaml is the config that x ({run.run_id}) was submitted with" in said.err
    assert f"fix: hpc-train diff {run.run_id} compares the run with it" in said.err
    assert hpc("diff", run.run_id).code == 0


STYLES = """
name: x
global_batch_size: 8
model: {_target_: nets.Net, lr: 1.0e-1}
data:
  _target_: nets.Data
trainer:
  max_epochs: 1
  callbacks:
    - _target_: nets.Note
      names:
        - a
        - b
    - {class_path: nets.Note, init_args: {}}
slurm: {nodes: 1, gpus_per_node: 1, time: "00:10:00", mem: 2048M, exclude: "n1,n2"}
"""
FORMS = """
name: x
global_batch_size: 8
model: {class_path: nets.Net, init_args: {lr: 0.1}}
data: {class_path: nets.Data, init_args: {}}
trainer:
  max_epochs: 1
  callbacks: [{class_path: nets.Note, init_args: {names: [a, b]}}, {class_path: nets.Note}]
slurm: {nodes: 1, gpus_per_node: 1, time: "10:00", mem: 2G, exclude: "n[1-2]"}
"""
CLASSES = """
import pytorch_lightning as pl


class Net(pl.LightningModule):
    def __init__(self, lr=0.1):
        super().__init__()

    def training_step(self, batch, index):
        return batch.sum()

    def configure_optimizers(self):
        return None


class Data(pl.LightningDataModule):
    def train_dataloader(self):
        return []


class Note(pl.Callback):
    def __init__(self, names=()):
        pass
"""


@pytest.mark.parametrize("first", [STYLES, FORMS])
def test_a_config_that_is_written_otherwise_differs_in_nothing(
    hpc, taken, tmp_path: Path, first: str
) -> None:
    (tmp_path / "nets.py").write_text(CLASSES)
    (tmp_path / "cfg.yaml").write_text(first)
    said = hpc("submit", "cfg.yaml", "--json")
    assert said.code == 0, said
    second = FORMS if first is STYLES else STYLES
    (tmp_path / "cfg.yaml").write_text(second)
    assert hpc("diff", "x").out == "nothing differs\n"
    (tmp_path / "cfg.yaml").write_text(second.replace("b]", "c]").replace("- b", "- c"))
    assert hpc("diff", "x").out.startswith("config    trainer.callbacks: [")
    (tmp_path / "cfg.yaml").write_text(
        second.replace("1.0e-1", "0.2").replace("lr: 0.1", "lr: 0.2")
    )
    assert hpc("diff", "x").out == "config    model.init_args.lr: 0.1 -> 0.2\n"


def test_the_line_that_compares_a_run_with_another_file_compares_what_is_meant(
    hpc, taken, tmp_path: Path
) -> None:
    (tmp_path / "nets.py").write_text(CLASSES)
    (tmp_path / "cfg.yaml").write_text(FORMS)
    hpc("submit", "cfg.yaml", "--json")
    same = STYLES.replace("00:10:00", "10:00").replace("2048M", "2G").replace("n1,n2", "n[1-2]")
    (tmp_path / "other.yaml").write_text(same)
    (run,) = (tmp_path / "runs" / "x").iterdir()
    fix = hpc("diff", "x", "other.yaml").err.splitlines()[1]
    own = f"runs/x/{run.name}/config.yaml"
    assert fix == (
        f"  fix: diff <(hpc-train config show {own} --plain)"
        " <(hpc-train config show other.yaml --plain)"
    )
    shown = [hpc("config", "show", file, "--plain") for file in (own, "other.yaml")]
    assert shown[0].out == shown[1].out
    assert " # " not in shown[0].out
    (tmp_path / "again.yaml").write_text(shown[0].out)  # it loads, to the same
    assert hpc("config", "show", "again.yaml", "--plain").out == shown[0].out
