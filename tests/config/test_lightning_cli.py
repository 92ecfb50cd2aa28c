"""The samples of a step that a config of LightningCLI has, by its own numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.errors import ConfigError
from tests.config.files import write

CLI = """\
seed_everything: 1
model: {class_path: nets.Net}
data:
  class_path: nets.Data
  init_args: {batch_size: 32}
trainer: {accelerator: gpu, devices: 1}
"""


@pytest.mark.parametrize(
    ("old", "new", "size"),
    [
        ("devices: 1", "devices: 1", "32 (data.init_args.batch_size of the file, over all ranks)"),
        ("devices: 1", "devices: 4", "128 (data.init_args.batch_size 32 x trainer.devices 4, over"),
        ("devices: 1", "devices: [0, 1]", "64 (data.init_args.batch_size 32 x trainer.devices 2,"),
        ("devices: 1", "devices: '0,1'", "64 (data"),
        ("devices: 1", "devices: '2'", "64 (data"),
        (
            "devices: 1",
            "devices: 4, num_nodes: 2, accumulate_grad_batches: 3",
            (
                "768 (data.init_args.batch_size 32 x trainer.devices 4 x trainer.num_nodes 2 x"
                " trainer.accumulate_grad_batches 3, over all ranks)"
            ),
        ),
        ("gpu, devices: 1", "cpu, devices: auto", "32 (data"),
        ("devices: 1", "devices: auto", "32 (data.init_args.batch_size of the file, for one rank:"),
        (
            "devices: 1",
            "devices: -1",
            "32 (data.init_args.batch_size of the file, for one rank: with",
        ),
        (", devices: 1", "", "32 (data.init_args.batch_size of the file, for one rank: with"),
        ("batch_size: 32", "size: 32", "64 (samples an optimizer step, over all ranks)"),
        ("batch_size: 32", "batch_size: null", "64 (samples"),
        (
            "  class_path: nets.Data\n  init_args: {batch_size: 32}",
            "  batch_size: 16",
            "16 (data.batch_size of the file",
        ),
    ],
)
def test_the_global_batch_size_is_that_of_the_file(
    tmp_path: Path, old: str, new: str, size: str
) -> None:
    assert old in CLI
    with pytest.raises(ConfigError, match="a config of LightningCLI") as caught:
        load(write(tmp_path, CLI.replace(old, new)))
    assert f"global_batch_size: {size}" in (caught.value.hint or "")
