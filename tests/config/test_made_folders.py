"""Folders of callbacks and loggers that cannot be made are told before the first step."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.config.fit.made_folders import (
    check_made_folders,
    make_folders,
    notes_on_made_folders,
)
from hpc_train.errors import ConfigError
from tests.config.files import loaded

FIX = "name a folder that you may write into, or leave it out: it is then in the run's own"
KEY = "trainer.callbacks.0.init_args.dirpath"


def checkpoint(path: object, more: str = "") -> str:
    spec = "class_path: pytorch_lightning.callbacks.ModelCheckpoint"
    return f"trainer:\n  callbacks:\n  - {spec}\n    init_args: {{dirpath: {path}{more}}}\n"


def refused(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        check_made_folders(loaded(folder, text), workdir=folder)
    assert caught.value.hint == FIX
    return caught.value.message.replace(f"{folder}/", "")


def noted(folder: Path, text: str) -> list[str]:
    config = loaded(folder, text)
    check_made_folders(config, workdir=folder)
    said = notes_on_made_folders(config, workdir=folder)
    return [it.replace(f"{folder}/", "") for it in said]


def test_what_no_machine_can_make_is_refused_with_the_reason(tmp_path: Path) -> None:
    said = refused(tmp_path, checkpoint("/proc/models"))
    why = "/proc holds the kernel's own files alone"
    assert said == f"cfg.yaml:8: {KEY}: /proc/models cannot be made ({why})"
    for path in ("cfg.yaml/models", tmp_path / "cfg.yaml" / "a" / "b"):
        said = refused(tmp_path, checkpoint(path))
        assert said.endswith(" cannot be made (cfg.yaml is a file)")
    (tmp_path / "gone").symlink_to("nowhere")
    said = refused(tmp_path, checkpoint("gone/models"))
    assert said.endswith("(gone is a link to nowhere, which is not there)")


@pytest.mark.parametrize("name", ["CSVLogger", "TensorBoardLogger"])
def test_the_folder_of_a_logger_is_looked_at_as_well(name: str, tmp_path: Path) -> None:
    spec = f"class_path: pytorch_lightning.loggers.{name}, init_args: {{save_dir: /proc/x}}"
    said = refused(tmp_path, f"loggers: [csv, {{{spec}}}]\n")
    assert said.startswith("cfg.yaml:5: loggers.1.init_args.save_dir: /proc/x cannot be made")


def test_what_a_node_may_be_able_to_make_is_noted_alone(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "file"
    elsewhere.write_text("")
    (said,) = noted(tmp_path, checkpoint(elsewhere / "models"))
    start = f"cfg.yaml:8: {KEY}: {elsewhere}/models cannot, on this machine, be made"
    assert said == f"{start} ({elsewhere} is a file): {FIX}"
    (said,) = noted(tmp_path, f"{checkpoint('cfg.yaml/models')}snapshot: git\n")
    assert "cannot, on this machine, be made" in said
    (said,) = noted(tmp_path, f"{checkpoint('cfg.yaml/models')}hosts: [a]\n")
    assert "cannot, on this machine, be made" in said


@pytest.mark.parametrize(
    "text",
    [
        checkpoint("models"),
        checkpoint("a/b/c"),
        checkpoint("."),
        checkpoint("null"),
        checkpoint("s3://bucket/models"),
        checkpoint("/proc/models", ", save_top_k: 0"),
        checkpoint("~/models"),
        checkpoint("/proc/models") + "container: {image: x.sif}\n",
        checkpoint("/proc/models").replace("pytorch_lightning.callbacks", "mine"),
        "loggers: [csv, tensorboard]\n",
        "trainer: {callbacks: null}\n",
        "",
    ],
)
def test_what_can_be_made_or_is_never_made_is_not_spoken_of(text: str, tmp_path: Path) -> None:
    assert noted(tmp_path, text) == []


def test_a_folder_without_the_right_to_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o555)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == (tmp_path / "closed").owner() and "pytest-" in str(folder):
            folder.chmod(0o755)
    code = (
        "import os\nfrom pathlib import Path\n"
        "from hpc_train.config.fit.made_folders import blocked\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        f"print(blocked(Path({str(tmp_path / 'closed' / 'models')!r})).why)\n"
    )
    if os.geteuid() != 0:
        code = code.replace("os.setgroups([]); os.setgid(65534); os.setuid(65534)\n", "")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}/closed may not be written: permission denied\n"


def test_the_rank_makes_them_or_says_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = loaded(tmp_path, checkpoint("a/b")).config
    make_folders(config.trainer, config.loggers)
    assert (tmp_path / "a" / "b").is_dir()
    config = loaded(tmp_path, checkpoint("/proc/models")).config
    with pytest.raises(ConfigError) as caught:
        make_folders(config.trainer, config.loggers)
    why = "/proc holds the kernel's own files alone"
    assert caught.value.message == f"{KEY}: /proc/models cannot be made ({why})"
