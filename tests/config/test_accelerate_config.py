"""A config of accelerate's where one of hpc-train's belongs."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.errors import ConfigError

# As `accelerate config` writes it (accelerate 1.0, default_config.yaml).
WRITTEN = """\
compute_environment: LOCAL_MACHINE
debug: false
distributed_type: MULTI_GPU
downcast_bf16: 'no'
gpu_ids: all
machine_rank: 0
main_training_function: main
mixed_precision: %s
num_machines: %s
num_processes: %s
rdzv_backend: static
same_network: true
use_cpu: %s
"""


def told(folder: Path, text: str) -> str:
    file = folder / "default_config.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert caught.value.message.startswith(f"{file}: this is a config of accelerate, and hpc-train")
    assert not caught.value.others
    assert caught.value.hint.startswith("submit the script without it: ")
    return caught.value.hint.removeprefix("submit the script without it: ")


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (("'no'", 1, 2, "false"), "--nodes 1 --gpus 2 train.py"),
        (("no", 2, 8, "false"), "--nodes 2 --gpus 4 train.py"),
        (("bf16", 1, 1, "false"),
         "--nodes 1 --gpus 1 train.py env.variables.ACCELERATE_MIXED_PRECISION=bf16"),
        (("fp16", 1, 4, "true"), ("--nodes 1 --gpus 4 train.py env.variables."
         "ACCELERATE_MIXED_PRECISION=fp16 script.accelerator=cpu")),
        (("no", 2, 3, "false"), "--nodes 2 --gpus N train.py"),
        (("no", "null", "null", "false"), "--nodes 1 --gpus N train.py"),
    ],
)  # fmt: skip
def test_it_is_told_once_with_the_line_that_trains_so(
    tmp_path: Path, given: tuple[object, ...], line: str
) -> None:
    assert told(tmp_path, WRITTEN % given) == f"hpc-train submit {line}"


def test_the_script_beside_it_is_named_and_the_line_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text("class Net: ...\n")
    (tmp_path / "my run.py").write_text("from accelerate import Accelerator\nAccelerator()\n")
    line = told(Path(), WRITTEN % ("bf16", 1, 2, "true"))
    assert " 'my run.py' " in line
    _, _, nodes, count, gpus, number, script, *overrides = shlex.split(line)
    loaded = load(script, overrides, flags={nodes[2:]: int(count), gpus[2:]: int(number)})
    config = loaded.config
    assert (config.slurm.nodes, config.slurm.gpus_per_node) == (1, 2)
    assert config.env.variables["ACCELERATE_MIXED_PRECISION"] == "bf16"
    assert config.script.accelerator == "cpu"
    (tmp_path / "other.py").write_text("Accelerator()\n")
    assert " train.py " in told(Path(), WRITTEN % ("bf16", 1, 2, "true"))


def test_a_plugin_is_left_to_the_script(tmp_path: Path) -> None:
    text = WRITTEN % ("no", 1, 2, "false") + "fsdp_config: {fsdp_offload_params: false}\n"
    line = told(tmp_path, text)
    beside = "write Accelerator(fsdp_plugin=...) in it, with what default_config.yaml has"
    assert line.endswith(f"; {beside}")
    assert "plugin" not in told(tmp_path, WRITTEN % ("no", 1, 2, "false") + "fsdp_config: {}\n")


@pytest.mark.parametrize(
    "text", ["machine_rank: 0\nmodel: {}\n", "distributed_type: NO\n", "name: x\n", ""]
)
def test_another_file_is_told_as_what_it_is(tmp_path: Path, text: str) -> None:
    (tmp_path / "cfg.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "cfg.yaml")
    assert "accelerate" not in caught.value.message
