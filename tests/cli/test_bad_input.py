"""Each thing done wrong gets one line, the place, the fix and the exit code; nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    assert "cfg.yaml:3" in said.err


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
    assert '"ranks_per_node": 4' in said.out
    assert list(tmp_path.iterdir()) == []


def test_config_show_tells_where_each_value_comes_from(hpc) -> None:
    said = hpc("config", "show", "--nodes", "3", DIGITS, "seed=7")
    assert said.code == 0
    lines = {line.split("#")[0].strip(): line for line in said.out.splitlines()}
    assert "--nodes" in lines["nodes: 3"]
    assert "command line" in lines["seed: 7"]
    assert "digits.yaml:" in lines["name: digits"]
