"""Lines of a config at the wrong place, or in another form: what to write there is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.mistaken import project, refused

__all__ = ["project"]

_MODEL = "model: {class_path: nets.Net, init_args: {width: 3}}"
_DATA = "data: {class_path: nets.Data}"
_TRAINER = "trainer: {accelerator: cpu, max_epochs: 1}"
_SLURM = "slurm: {nodes: 1, gpus_per_node: 2"
_WANDB = "{class_path: pytorch_lightning.loggers.WandbLogger, init_args: {project: x}}"


@pytest.mark.parametrize(
    ("old", "new", "message", "fix"),
    [
        # pairs with dashes
        (_MODEL, "model:\n  class_path: nets.Net\n  init_args:\n    - width: 3\n    - lr: 0.1",
         "init_args is [", "write the pairs without dashes: width: 3; lr: 0.1"),
        (_MODEL, "model:\n  - class_path: nets.Net", "model is no mapping",
         "write the pairs without dashes: class_path: nets.Net"),
        (_TRAINER, "trainer:\n  - max_epochs: 1\n  - callbacks: []", "trainer is no mapping",
         "write the pairs without dashes: max_epochs: 1; callbacks: []"),
        (f'{_SLURM}, time: "0:10:00"}}', "slurm: [nodes: 1]", "slurm is [", "dashes: nodes: 1"),
        (_DATA, f"{_DATA}\nenv: {{variables: [A: 1]}}", "is no mapping", "without dashes: A: 1"),
        # a list without dashes, and its elements
        (_DATA, f"{_DATA}\nloggers:\n  wandb:\n    project: x", "loggers is no list",
         f"write [{_WANDB}]; in lines of its own, each has a dash in front"),
        (_DATA, f"{_DATA}\nloggers: {{class_path: a.L, init_args: {{x: 1}}}}", "is no list",
         "write [{class_path: a.L, init_args: {x: 1}}]; in lines of its own"),
        (_DATA, f"{_DATA}\nloggers: {{csv: , wandb: }}", "is no list", "write [csv, wandb]"),
        (_DATA, f"{_DATA}\nloggers: {{a: 1}}", "is no list", "a dash in front of each: - class_pa"),
        (_DATA, f"{_DATA}\nloggers: [csv, wandb: {{project: x}}]", "loggers.1", f"write {_WANDB}"),
        (_DATA, f"{_DATA}\nloggers: [WandbLogger: {{project: x}}]", "loggers.0", f"write {_WANDB}"),
        (_DATA, f"{_DATA}\nloggers:\n  - csv:", "loggers.0", "fix: write csv"),
        (_DATA, f"{_DATA}\nloggers:\n - csv\n  - wandb", "loggers.0 is 'csv - wandb'",
         "begin each dash in one column, or write [csv, wandb]"),
        (_DATA, f"{_DATA}\nlogger: wandb", "logger is no key", "write loggers: [wandb]"),
        (_DATA, f"{_DATA}\nlogger: {{wandb: {{project: x}}}}", "is no key", f"loggers: [{_WANDB}]"),
        # an argument that fell out of its class
        (_MODEL, "model:\n  class_path: nets.Net\n  init_args:\nwidth: 3", "width is no key",
         "indent width below model.init_args, which has nothing below it"),
        (_DATA, f"{_DATA}\nlr: 0.1", "lr is no key", "write below model.init_args: lr: 0.1"),
        # a section by another name
        (_SLURM, "sbatch: {nodes: 1", "sbatch is no key", "fix: write slurm"),
        (_SLURM, "resources: {partition: x, cpus-per-task: 2", "is no key", "fix: write slurm"),
        (_DATA, f"{_DATA}\njob: {{nodes: 1}}", "job is no key", "put its keys below slurm"),
        (_DATA, f"{_DATA}\ndocker: {{image: a.sif}}", "is no key", "fix: write container"),
        (_DATA, f"{_DATA}\nother: {{enabled: true}}", "other is no key", "known: name, "),
        # a key of a section, as a file has it
        (_DATA, f"{_DATA}\ncheckpoint_every: 9", "is no key", "checkpoint: {every_n_steps: 9}"),
        (_DATA, f"{_DATA}\nepochs: 9", "is no key", "write below trainer: max_epochs: 9"),
        (_DATA, f"{_DATA}\nwalltime: 60", "is no key", "write below slurm: time: ..."),
        (_DATA, f"{_DATA}\namp: true", "is no key", "write below trainer: precision: ..."),
    ],
)  # fmt: skip
def test_what_stands_elsewhere(
    hpc, project: Path, old: str, new: str, message: str, fix: str
) -> None:
    text = (project / "cfg.yaml").read_text()
    assert old in text
    (project / "cfg.yaml").write_text(text.replace(old, new))
    said = hpc("submit", "--dry-run", "cfg.yaml").err.splitlines()
    at = next(number for number, it in enumerate(said) if message in it)
    assert (said[at].startswith("error: cfg.yaml:"), fix in said[at + 1]) == (True, True), said


def test_what_is_told_is_taken(hpc, project: Path) -> None:
    config = (project / "cfg.yaml").read_text()
    csv = "{class_path: pytorch_lightning.loggers.CSVLogger, init_args: {save_dir: logs}}"
    more = f"loggers: [csv, {csv}]\ncheckpoint: {{every_n_steps: 9}}\n"
    (project / "cfg.yaml").write_text(config + more)
    said = hpc("submit", "--dry-run", "--cluster", "local", "cfg.yaml")
    assert said.code == 0, said
    refused(hpc, project, ["submit", "cfg.yaml", "walltime=60"], 3, "is no key", "write slurm.time")
