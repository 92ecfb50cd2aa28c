"""`hpc-train init`: what it finds out, and into which folders it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.cli import init_command
from hpc_train.config.load import load

FILES = {".gitignore", "config.yaml", "test_training.py", "training.py"}


def made(folder: Path):
    return load(folder / "config.yaml").config


def test_without_slurm_it_is_this_machine(hpc, without_slurm, tmp_path) -> None:
    said = hpc("init", "my project")
    folder = tmp_path / "my project"
    assert (said.code, said.err) == (0, "")
    assert {path.name for path in folder.iterdir()} == FILES
    assert "cd 'my project'" in said.out
    config = made(folder)
    assert (config.slurm.partition, config.slurm.nodes) == (None, 1)
    assert "# no Slurm here; this machine has" in (folder / "config.yaml").read_text()
    assert hpc("config", "show", str(folder / "config.yaml")).code == 3  # not from its folder
    assert "\\" not in config.name
    assert config.name


@pytest.mark.parametrize("is_there", [True, False])
def test_pytest_where_it_is_missing_is_told_with_how_to_get_it(
    hpc, without_slurm, monkeypatch, is_there: bool
) -> None:
    monkeypatch.setattr(init_command, "find_spec", lambda _: object() if is_there else None)
    (line,) = [it for it in hpc("init", "p").out.splitlines() if it.startswith("test ")]
    first = "" if is_there else "; before it: pip install pytest"
    assert line == f"test       python -m pytest{first}"


def test_a_folder_that_is_named_as_a_file_or_from_the_home_is_told(
    hpc, without_slurm, tmp_path, monkeypatch
) -> None:
    said = hpc("init", "my.yaml")
    assert (said.code, (tmp_path / "my.yaml/config.yaml").is_file()) == (0, True)
    assert said.err == "note: my.yaml is a folder now: its config is my.yaml/config.yaml\n"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert (hpc("init", "~/p").err, made(tmp_path / "home/p").name) == ("", "p")
    assert not (tmp_path / "~").exists()


@pytest.mark.parametrize(
    ("rows", "partition", "gpus", "time"),
    [
        (["gpu*|up|gpu:a100:4(S:0-1)|2-00:00:00"], "gpu", 4, "0:30:00"),
        (["cpu*|up|(null)|infinite", "gpu|up|gpu:8|10:00"], "gpu", 8, "0:10:00"),
        (["a|up|gpu:2|infinite", "b*|up|gpu:4|infinite"], "b", 4, "0:30:00"),
        # Nodes of one partition that differ: what each of them has.
        (["gpu*|up|gpu:8|1:00:00", "gpu*|up|gpu:4|1:00:00"], "gpu", 4, "0:30:00"),
        (["gpu*|up|(null)|1:00:00", "gpu*|up|gpu:4|1:00:00"], "gpu", 4, "0:30:00"),
        (["down*|down|gpu:8|1:00:00", "small|up|gpu:1,nvme:2|1:00:00"], "small", 1, "0:30:00"),
        (["cpu*|up|(null)|5:00"], "cpu", 2, "0:05:00"),  # ranks on CPUs
    ],
)
def test_partition_gpus_and_time_are_slurms(hpc, slurm, tmp_path, rows, partition, gpus, time):
    slurm.has("sinfo", f"cat <<'END'\n{chr(10).join(rows)}\nEND")
    assert hpc("init", "p").code == 0
    config = made(tmp_path / "p")
    assert (config.slurm.partition, config.slurm.gpus_per_node) == (partition, gpus)
    assert config.slurm.time == time
    assert config.trainer["accelerator"] == ("cpu" if "gpu:" not in "".join(rows) else "gpu")


@pytest.mark.parametrize("answer", ["exec sleep 60", "echo 'sinfo: down' >&2; exit 1", "exit 0"])
def test_a_slurm_that_says_nothing_useful_is_told_in_the_config(
    hpc, slurm, tmp_path, monkeypatch, answer
) -> None:
    monkeypatch.setattr("hpc_train.backends.new_project.SLURM_LIMIT_S", 0.3)
    slurm.has("sinfo", answer)
    said = hpc("init", "p")
    assert said.code == 0
    text = (tmp_path / "p" / "config.yaml").read_text()
    assert "  # Slurm " in text
    assert "this machine has" in text
    assert made(tmp_path / "p").slurm.partition is None


def test_a_folder_that_is_not_empty_is_left_as_it_is(hpc, without_slurm, tmp_path) -> None:
    (tmp_path / "train.py").write_text("mine")
    said = hpc("init")
    assert said.code == 2
    assert "is not empty: train.py" in said.err
    assert "fix: name a new folder" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
    assert hpc("init", "train.py").code == 2


def test_a_second_init_is_refused_and_git_is_no_content(hpc, without_slurm, tmp_path) -> None:
    (tmp_path / "p" / ".git").mkdir(parents=True)
    assert hpc("init", "p").code == 0
    assert hpc("init", "p").code == 2


def test_in_a_project_of_ones_own_its_config_is_told(hpc, without_slurm, tmp_path) -> None:
    (tmp_path / "nets.py").touch()
    alone = "a project of your own needs a config alone, such as the config.yaml in there"
    assert f"fix: name a new folder: hpc-train init my-training; {alone}" in hpc("init").err
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "a b.yaml").write_text("name: x\nmodel: {class_path: nets.Net}\n")
    (tmp_path / "conda.yaml").write_text("dependencies: [torch]\n")
    has = "fix: this project has a config: hpc-train run 'configs/a b.yaml'; else name a new folder"
    assert has in hpc("init").err
