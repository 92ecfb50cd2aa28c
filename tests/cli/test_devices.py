"""`--devices 0,2`: which GPUs the ranks see, and what is refused before anything is started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpc_train import api
from hpc_train.backends import local_devices
from hpc_train.backends.local_devices import (
    check_devices,
    check_gpus_here,
    flags_for_devices,
    notes_here,
    read_devices,
)
from hpc_train.errors import CheckError, ConfigError, UsageError
from hpc_train.preflight.inventory.inventory import Gpu
from tests.cli.conftest import DIGITS

FOUR = tuple(Gpu(index=number, uuid=f"GPU-{number}f") for number in range(4))


@pytest.mark.parametrize(
    ("devices", "visible", "wanted"),
    [
        ([0, 2], None, "GPU-0f,GPU-2f"),
        ([3], "", "GPU-3f"),
        ([2, 0], None, "GPU-2f,GPU-0f"),
        # Numbers are places in what the shell shows, as torch counts.
        ([0, 2], "1,2,3", "1,3"),
        ([1], "GPU-3f, GPU-1f", "GPU-1f"),
    ],
)
def test_devices_are_numbers_of_nvidia_smi_or_places_in_the_shells_own(devices, visible, wanted):
    assert check_devices(devices, FOUR, visible) == wanted


@pytest.mark.parametrize(
    ("devices", "visible", "words"),
    [([0, 4], None, "no GPU 4"), ([7, 9], None, "7, 9"), ([1], "3", "CUDA_VISIBLE_DEVICES=3")],
)
def test_a_gpu_that_is_not_there_is_named(devices, visible, words) -> None:
    with pytest.raises(CheckError, match=words) as caught:
        check_devices(devices, FOUR, visible)
    assert caught.value.hint.startswith("it has 0")


@pytest.mark.parametrize("text", ["", "a", "0,,2", "0-2", "-1", "0,0", "1.5", "²"])
def test_what_is_no_list_of_numbers_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_devices(text)


@pytest.mark.parametrize(
    ("devices", "flags", "shape"),
    [
        ("0,2", {}, (1, 2)),
        ("1", {"gpus": None, "nodes": None}, (1, 1)),
        ("0,1,2,3", {"nodes": 2}, (2, 2)),
        ("0,1,2,3", {"gpus": 2, "nodes": 2}, (2, 2)),
        ("0,1,2", {"nodes": 2}, None),
        ("0,1", {"gpus": 4}, None),
        ("0", {"nodes": 2}, None),
    ],
)
def test_the_shape_follows_from_the_devices(devices, flags, shape) -> None:
    if shape is None:
        with pytest.raises(UsageError):
            flags_for_devices(devices, flags)
        return
    made = flags_for_devices(devices, flags)
    assert (made["nodes"], made["gpus"]) == shape


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["submit", "--devices", "0,1", "--cluster", "slurm"], 2, "on Slurm each job is given"),
        (["submit", "--devices", "0,1", "--test-only"], 2, "on Slurm each job is given"),
        (["submit", "--devices", "0,x", "--cluster", "local"], 2, "no list of numbers"),
        (["run", "--devices", "0", "trainer.accelerator=cpu"], 3, "trainer.accelerator is cpu"),
        (["run", "--devices", "0,1"], 3, "--devices: "),  # no GPU here
    ],
)
def test_devices_are_refused_where_they_cannot_be(hpc, tmp_path, monkeypatch, words, code, said):
    monkeypatch.setattr(local_devices, "load_nvml", lambda: (None, "absent"))
    answer = hpc(words[0], DIGITS, *words[1:])
    assert answer.code == code
    assert said in answer.err
    assert "fix:" in answer.err
    assert not (tmp_path / "runs").exists()


def test_what_is_started_sees_the_chosen_gpus_alone(hpc, monkeypatch) -> None:
    monkeypatch.setattr(local_devices, "load_nvml", lambda: (object(), "ok"))
    monkeypatch.setattr(local_devices, "read_gpus", lambda nvml, environ: FOUR)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # so that it is put back
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    seen: list[tuple[str, int, int]] = []

    def start(loaded, **_):
        shape = api.plan(loaded).shape
        seen.append((os.environ["CUDA_VISIBLE_DEVICES"], shape.nodes, shape.gpus_per_node))
        raise CheckError("far enough")

    monkeypatch.setattr(api, "submit", start)
    assert hpc("submit", DIGITS, "--cluster", "local", "--devices", "1,3").code == 3
    assert seen == [("GPU-1f,GPU-3f", 1, 2)]
    assert not Path("runs").exists()


@pytest.mark.parametrize(("accelerator", "noted"), [("auto", True), ("gpu", False), ("cpu", False)])
def test_a_config_that_takes_cpus_where_no_gpu_is_is_noted(
    tmp_path: Path, accelerator: str, noted: bool
) -> None:
    plan = api.plan(api.load(DIGITS, f"trainer.accelerator={accelerator}"))
    said = "this machine has no GPU: trains on its CPUs (trainer.accelerator: auto)"
    assert notes_here(plan, {}, dev=tmp_path) == [said] * noted
    assert notes_here(plan, {}, dev=tmp_path, is_followed=True) == []
    (tmp_path / "nvidia0").touch()
    assert notes_here(plan, {}, dev=tmp_path) == []


@pytest.mark.parametrize(("gpus", "noted"), [(2, True), (1, False)])
def test_a_script_for_gpus_that_are_not_there_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpus: int, noted: bool
) -> None:
    monkeypatch.setattr(local_devices, "gpus_here", lambda environ: ())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)\n")
    plan = api.plan(api.load("train.py", gpus=gpus))
    told = notes_here(plan, {}, dev=tmp_path)
    assert told == (["this machine has no GPU: the script's 2 ranks are on its CPUs"] * noted)
    (tmp_path / "nvidia0").touch()
    assert notes_here(plan, {}, dev=tmp_path) == []


def test_a_script_that_starts_a_rank_for_each_gpu_is_noted_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_devices, "gpus_here", lambda environ: ())
    monkeypatch.chdir(tmp_path)
    text = (
        "import torch, torch.multiprocessing as mp\nmp.spawn(go, nprocs=torch.cuda.device_count())"
    )
    (tmp_path / "train.py").write_text(f"{text}\n")
    plan = api.plan(api.load("train.py", "script.launcher=none", gpus=2))
    said = "train.py:2 starts no process: torch.cuda.device_count() is 0 (this machine has no GPU)"
    assert notes_here(plan, {}, dev=tmp_path)[1:] == [f"{said}: write nprocs=2 there"]
    (tmp_path / "nvidia0").touch()
    assert notes_here(plan, {}, dev=tmp_path) == []


FABRIC = "import lightning as L\nt = L.Fabric(%s)\nt.launch()\n"
TRAINER = "import pytorch_lightning as pl\nt = pl.Trainer(%s)\nt.fit(1)\n"


@pytest.mark.parametrize(
    ("text", "gpus", "words", "ranks"),
    [
        (TRAINER % "accelerator='gpu', devices=4", 4, [], "4 ranks"),
        (TRAINER % "accelerator='cuda'", 1, [], "1 rank"),
        (FABRIC % "accelerator='cuda'", 2, [], "2 ranks"),
        (FABRIC % "accelerator='auto'", 2, [], ""),
        (TRAINER % "accelerator='gpu', devices=4", 4, ["script.accelerator=cpu"], ""),
        (TRAINER % "accelerator='auto'", 2, [], ""),
        (TRAINER % "", 2, [], ""),
        (TRAINER % "accelerator=kind", 2, [], ""),
        (TRAINER % "accelerator='gpu'" + "if 0: t = pl.Trainer()\n", 2, [], ""),
        ("import lightning as L\nif 0:\n    L.Trainer(accelerator='gpu')\ngo()\n", 2, [], ""),
    ],
)
def test_a_script_for_gpus_alone_is_refused_at_once_where_there_are_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    gpus: int,
    words: list[str],
    ranks: str,
) -> None:
    monkeypatch.setattr(local_devices, "gpus_here", lambda environ: ())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(text)
    plan = api.plan(api.load("train.py", *words, gpus=gpus))
    if not ranks:
        check_gpus_here(plan, dev=tmp_path)
        return
    with pytest.raises(CheckError) as refused:
        check_gpus_here(plan, dev=tmp_path)
    assert refused.value.message == (
        f"train.py:2 asks for a {'Fabric' if 'Fabric' in text else 'Trainer'} on GPUs, and this"
        " machine has none"
    )
    assert f"add script.accelerator=cpu to the command to train {ranks} on" in refused.value.hint
    assert notes_here(plan, {}, dev=tmp_path) == []
    (tmp_path / "nvidia0").touch()
    check_gpus_here(plan, dev=tmp_path)


def test_too_few_ranks_for_a_script_are_told_with_the_words_for_cpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAINER % "accelerator='gpu', devices=4")
    with pytest.raises(ConfigError) as refused:
        api.load("train.py")
    assert refused.value.hint.startswith(
        "submit it with --gpus 4, or leave devices out of the Trainer; without GPUs add"
        " script.accelerator=cpu"
    )
    with pytest.raises(ConfigError) as refused:
        api.load("train.py", "script.accelerator=cpu")
    assert refused.value.hint.startswith("submit it with --gpus 4, or leave devices")


GPU_CONFIG = """\
name: n
global_batch_size: 8
model: {class_path: hpc_train.examples.digits.DigitsClassifier}
data: {class_path: hpc_train.examples.digits.DigitsData}
"""


@pytest.mark.parametrize(
    ("accelerator", "gpus", "here", "said"),
    [
        ("gpu", 2, 1, "2 ranks on this machine and 1 GPU"),
        ("gpu", 4, 3, "4 ranks on this machine and 3 GPUs"),
        ("gpu", 2, 2, ""),
        ("gpu", 1, 1, ""),
        ("gpu", 2, 0, ""),  # not known: NVML is absent
        ("auto", 2, 1, ""),  # on the CPU, which a rank says
        ("cpu", 2, 1, ""),
    ],
)
def test_more_ranks_than_gpus_are_refused_before_they_start(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    accelerator: str,
    gpus: int,
    here: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nvidia0").touch()
    (tmp_path / "cfg.yaml").write_text(GPU_CONFIG)
    plan = api.plan(api.load("cfg.yaml", f"trainer.accelerator={accelerator}", gpus=gpus))
    names = [f"GPU-{it}" for it in range(here)]
    if not said:
        check_gpus_here(plan, tmp_path, names)
        return
    with pytest.raises(CheckError) as refused:
        check_gpus_here(plan, tmp_path, names)
    assert refused.value.message == said
    cpu = f"trainer.accelerator: cpu trains all {gpus} on the CPU"
    assert refused.value.hint == f"--nodes 1 --gpus {here} trains on GPUs; {cpu}"


def test_a_script_with_more_ranks_than_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    (tmp_path / "nvidia0").touch()
    (tmp_path / "train.py").write_text(TRAINER % "accelerator='gpu'")
    (tmp_path / "open.py").write_text("import torch\nprint(torch)\n")
    with pytest.raises(CheckError) as refused:
        check_gpus_here(api.plan(api.load("train.py", gpus=2)), tmp_path)
    said = "2 ranks on this machine and 1 GPU"
    fix = "--nodes 1 --gpus 1 trains on GPUs; script.accelerator: cpu trains all 2 on the CPU"
    assert (refused.value.message, refused.value.hint) == (said, fix)
    opened = api.plan(api.load("open.py", gpus=2))
    check_gpus_here(opened, tmp_path)
    assert notes_here(opened, {}, dev=tmp_path) == [f"{said}: {fix}"]
    on_cpu = api.plan(api.load("open.py", "script.accelerator=cpu", gpus=2))
    assert notes_here(on_cpu, {}, dev=tmp_path) == []
    alone = api.plan(api.load("open.py", gpus=1))
    assert notes_here(alone, {}, dev=tmp_path) == []
