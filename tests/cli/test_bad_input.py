"""Each thing done wrong gets one line, the place, the fix and the exit code; nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train import Run, load
from hpc_train.errors import ConfigError, HpcTrainError
from tests.cli.conftest import DIGITS

GOOD = Path(DIGITS).read_text(encoding="utf-8")


def config(tmp_path: Path, text: str) -> str:
    path = tmp_path / "cfg.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("line", "message", "fix"),
    [
        ("slurm.time=1:30:00x", "slurm.time", "1:30:00"),
        ("slurm.nodes=0", "slurm.nodes", "1"),
        ("slurm.gpus_per_node=-1", "slurm.gpus_per_node", ""),
        ("sluurm.nodes=2", "sluurm", "slurm"),
        ("slurm.partitoin=x", "partitoin", "partition"),
        ("slurm.nodes=two", "slurm.nodes", ""),
        ("model.class_path=hpc_train.examples.digits.DigitClassifier", "DigitClassifier", "Digits"),
        ("model.class_path=no_such_package.Net", "no_such_package", ""),
        ("model.init_args.widht=3", "widht", "width"),
        ("trainer.max_epoch=3", "max_epoch", "max_epochs"),
        ("trainer.num_nodes=3", "num_nodes", "--nodes"),
        ("global_batch_size=97", "97", "96"),
        ("model.class_path=__main__.M", "a class of this notebook or script", "file in the folder"),
        (
            "trainer.callbacks=[{class_path: __main__.C}]",
            "trainer.callbacks.0.class_path",
            "my_code.C",
        ),
        ("env.variables=[A=1]", "env.variables is no mapping", "write env.variables.A=1"),
        ("env.variables={A: [1]}", "env.variables.A is [1]", "one value"),
        ("env.passthrough={A: 1}", "holds more than names of variables", "names only: [A]"),
        ("env.modules=[[gcc]]", "env.modules.0 is ['gcc']", "one value"),
        ("slurm.extra=[nice]", "slurm.extra is no mapping", "write slurm.extra.NAME=VALUE"),
        ("trainer=[1]", "trainer is no mapping", "write trainer.NAME=VALUE"),
        ("preflight.thresholds=[1]", "preflight.thresholds is no mapping", "thresholds.NAME=VALUE"),
        ("seed=[1]", "seed is [1]", "one value"),
        ("trainer.max_epochs=many", "trainer.max_epochs is 'many'", "a whole number, or null"),
        ("trainer.max_epochs=3.5", "trainer.max_epochs is 3.5", "a whole number"),
        ("trainer.max_epochs=true", "trainer.max_epochs is True", "a whole number"),
        ("trainer.max_epochs=[3]", "trainer.max_epochs is [3]", "a whole number"),
        ("trainer.max_steps=null", "trainer.max_steps is None", "a whole number"),
        ("trainer.limit_val_batches=few", "takes int or float", "a number"),
        ("trainer.max_time=7", "takes str or dict[str, int] or timedelta", "DD:HH:MM:SS"),
        ("trainer.callbacks=x", "takes Callback or list[Callback]", "class_path"),
        (f"runs_dir={'ab/' * 20000}", "runs_dir is a path of 60000 bytes", "at most 3840 bytes"),
        (f"runs_dir={'a' * 256}", "its longest name of 256", "names of at most 255"),
    ],
)
def test_a_wrong_value_is_named_with_its_fix_and_nothing_is_made(
    hpc, tmp_path: Path, line: str, message: str, fix: str
) -> None:
    said = hpc("submit", "--cluster", "local", DIGITS, line)
    assert said.code == 3, said
    assert message in said.err.splitlines()[0]
    assert fix in said.err
    assert len(said.err.splitlines()) == 2, said.err
    assert not (tmp_path / "runs").exists()


def test_a_missing_file_is_named(hpc) -> None:
    said = hpc("submit", "nowhere.yaml")
    assert said.code == 3
    assert "nowhere.yaml" in said.err


def test_text_that_is_no_yaml_is_located(hpc, tmp_path: Path) -> None:
    said = hpc("render", config(tmp_path, "name: x\nmodel: [1, 2\ndata: 3\n"))
    assert said.code == 3
    assert "cfg.yaml:2:8: not YAML: a bracket without its end" in said.err


def test_an_unquoted_time_is_refused_because_yaml_reads_it_as_seconds(hpc, tmp_path: Path) -> None:
    text = GOOD.replace('time: "0:30:00"', "time: 1:30:00")
    assert text != GOOD
    said = hpc("render", config(tmp_path, text))
    assert said.code == 3
    assert "slurm.time" in said.err
    assert '"1:30:00"' in said.err


def test_no_slurm_is_told_with_the_way_out(hpc, without_slurm: None, tmp_path: Path) -> None:
    said = hpc("submit", "--cluster", "slurm", DIGITS)
    assert said.code == 4
    assert "--cluster local" in said.err
    assert not list((tmp_path / "runs").glob("*/*"))


def test_a_runs_dir_that_is_a_file_names_the_key(hpc, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    said = hpc("submit", "--cluster", "local", DIGITS, "runs_dir=file")
    assert said.code == 3
    assert "runs_dir" in said.err
    assert (tmp_path / "file").read_text() == "mine"


def test_render_does_not_overwrite_a_file_unasked(hpc, tmp_path: Path) -> None:
    (tmp_path / "job.sbatch").write_text("mine")
    said = hpc("render", DIGITS, "-o", "job.sbatch")
    assert said.code == 2
    assert "--force" in said.err
    assert (tmp_path / "job.sbatch").read_text() == "mine"


def test_a_dry_run_touches_nothing(hpc, tmp_path: Path) -> None:
    said = hpc("submit", "--dry-run", "--nodes", "3", "--gpus", "4", DIGITS)
    assert said.code == 0
    assert '"world_size"' not in said.err
    assert "#SBATCH --nodes=3" in said.out
    assert list(tmp_path.iterdir()) == []


def test_config_show_tells_where_each_value_comes_from(hpc) -> None:
    said = hpc("config", "show", "--nodes", "3", DIGITS, "seed=7")
    assert said.code == 0
    lines = {line.split("#")[0].strip(): line for line in said.out.splitlines()}
    assert "--nodes" in lines["nodes: 3"]
    assert "command line" in lines["seed: 7"]
    assert "digits.yaml:" in lines["name: digits"]


def test_an_option_of_a_script_in_front_of_the_two_dashes_is_told(hpc, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    for command in ("submit", "run", "render"):
        said = hpc(command, "train.py", "--lr", "0.1")
        assert said.code == 2
        assert f"train.py come behind --: hpc-train {command} train.py -- --lr 0.1\n" in said.err
    shown = hpc("render", "--nodes", "2", "train.py", "--", "--nodes", "9", "--dry-run")
    assert shown.code == 0
    assert '"args": ["--nodes", "9", "--dry-run"]' in shown.out
    assert "#SBATCH --nodes=2" in shown.out


@pytest.mark.parametrize(
    "line",
    [
        "trainer.max_epochs=3",
        "trainer.max_epochs=null",
        "trainer.max_steps=-1",
        "trainer.limit_val_batches=1",
        "trainer.limit_val_batches=0.5",
        "trainer.fast_dev_run=1",
        "trainer.fast_dev_run=true",
        "trainer.max_time=00:01:00:00",
        "trainer.max_time={hours: 1}",
        "trainer.precision=32",
        "trainer.profiler=simple",
        "trainer.gradient_clip_val=1",
        f"runs_dir={'a' * 255}",
        "env.variables={A: 1}",
        "env.variables={}",
    ],
)
def test_what_the_trainer_and_the_file_system_take_is_taken(hpc, line: str) -> None:
    said = hpc("render", DIGITS, line)
    assert said.code == 0, said.err


def test_an_argument_of_load_that_there_is_not_is_an_error_of_the_config() -> None:
    with pytest.raises(ConfigError) as caught:
        load(DIGITS, nodez=3)
    assert caught.value.message == "nodez is no argument of load"
    assert caught.value.hint == "did you mean 'nodes'?"


LONG = "x" * 300
TOO_LONG = [
    *((f"{command} {LONG}", 5, "") for command in ("status", "logs", "rm", "diff", "resume")),
    (f"diagnose {LONG}.log", 5, ""),
    (f"list --runs-dir {LONG}", 5, "--runs-dir: "),
    (f"du --runs-dir={LONG}", 5, "--runs-dir: "),
    (f"submit {LONG}.yaml", 3, ""),
    (f"submit {LONG}.py", 3, ""),
    (f"preflight --explain {LONG}", 3, "--explain: "),
    (f"render {DIGITS} -o {LONG}", 3, "-o: "),
    (f"launch {DIGITS} --hosts {LONG}", 3, "--hosts: "),
    *(
        (f"submit {DIGITS} {key}={LONG}", 3, f"{key}: ")
        for key in ("env.venv", "init_from", "container.image", "cluster_profile")
    ),
]


@pytest.mark.parametrize(("typed", "code", "where"), TOO_LONG, ids=range(len(TOO_LONG)))
def test_a_name_that_no_file_system_takes_is_told_where_it_was_typed(
    hpc, tmp_path: Path, typed: str, code: int, where: str
) -> None:
    said = hpc(*typed.split())
    assert said.code == code, said
    message, fix = said.err.splitlines()
    assert message.startswith(f"error: {where}xxx"), message
    assert message.endswith(" bytes, and no file system takes that")
    assert len(message) < 150
    assert "at most 255 bytes" in fix
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_too_long_as_a_whole_and_a_nul_are_told(
    hpc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'init_from: "a\\0b"\n{GOOD}'
    said = hpc("submit", config(tmp_path, text))
    assert (said.code, "holds a NUL character" in said.err) == (3, True), said
    monkeypatch.setenv("HPC_TRAIN_RUNS_DIR", "abc/" * 1200)
    said = hpc("list")
    assert said.code == 5
    assert said.err.startswith("error: HPC_TRAIN_RUNS_DIR: abc/")
    assert "is a path of 4799 bytes" in said.err
    monkeypatch.delenv("HPC_TRAIN_RUNS_DIR")
    with pytest.raises(HpcTrainError, match="is a name of 300 bytes"):
        Run.find(LONG)
