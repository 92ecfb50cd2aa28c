"""Keys that people write by habit, in the many forms that they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import MINIMAL, refusal, write

FILE = f"{MINIMAL}trainer: {{accelerator: cpu}}\n"
NETS = """class Net:
    def __init__(self, lr=0.1): ...


class Data:
    def __init__(self, path=""): ...
"""


def hint_of(folder: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / "nets.py").write_text(NETS)
    monkeypatch.chdir(folder)
    error = refusal(write(folder, f"{FILE}{line}\n"))
    assert error.message == f"cfg.yaml:6: {line.partition(':')[0]} is no key of hpc-train"
    return error.hint


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("batch: 8", "write global_batch_size"),
        ("batchsize: 8", "write global_batch_size"),
        ("batchSize: 8", "write global_batch_size"),
        ("max_epoch: 8", "write below trainer: max_epochs: 8"),
        ("maxEpochs: 8", "write below trainer: max_epochs: 8"),
        ("epoch: 8", "write below trainer: max_epochs: 8"),
        ("node: 3", "write slurm: {nodes: 3}"),
        ("world_size: 4", "write slurm.nodes and slurm.gpus_per_node"),
        ("loss: mse", "nets.Net takes lr: let it take loss, too"),
        ("optimiser: adam", "your model's configure_optimizers makes the optimizer"),
        ("learningRate: 0.1", "write below model: init_args: {lr: 0.1}"),
        ("workers: 4", "let it take num_workers, too, and write data.init_args.num_workers"),
        ("dataloader: {}", "write data: {class_path: ...}"),
        ("architecture: nets.Net", "write model: {class_path: ...}"),
        ("command: python train.py", "write script: {path: train.py, args: [...]}"),
        ("early_stopping: true", "write below trainer: callbacks: [{class_path: pytorch_"),
        ("validation: {}", "write val_dataloader into your DataModule"),
        ("retries: 3", "write requeue: {budget: 3}"),
        ("ckpt: {every_n_steps: 5}", "write checkpoint"),
        ("training: {max_epochs: 3}", "put its keys below trainer"),
        ("resources: {partition: gpu}", "write slurm"),
        ("gradient_clip: 1", "write below trainer: gradient_clip_val: 1"),
        ("hparams: {lr: 0.1}", "model: {class_path: ..., init_args: {...}}"),
        ("workdir: /scratch", "the job starts in the folder where you type the command"),
        ("environment: {A: 1}", "write env: {variables: {NAME: VALUE}}"),
        ("project: mine", "write slurm.account for Slurm's; for wandb's: loggers:"),
    ],
)
def test_a_habit_is_told_with_the_key_that_stands_for_it(
    tmp_path: Path, line: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fix in hint_of(tmp_path, line, monkeypatch)


@pytest.mark.parametrize("word", ["code", "version", "root_cause", "hots"])
def test_a_word_that_is_near_to_nothing_is_told_what_there_is(
    tmp_path: Path, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hint = hint_of(tmp_path, f"{word}: 8", monkeypatch)
    assert hint == "did you mean 'hosts'?" if word == "hots" else hint.startswith("known: name, ")


def test_a_seed_by_another_name_is_told_with_its_value(tmp_path: Path) -> None:
    path = write(tmp_path, f"{MINIMAL}seed_everything: 42\n")
    assert refusal(path).hint == "write seed: 42"
    assert refusal(write(tmp_path, MINIMAL), "random_seed=7").hint == "write seed=7"


@pytest.mark.parametrize(
    ("own", "base", "fix"),
    [
        (
            "seed_everything: 42",
            "seed: 7",
            "write seed: 42, which goes before seed: 7 (base.yaml:1)",
        ),
        ("seed_everything: 7", "seed: 7", "leave it out: seed: 7 is there"),
        ("seed_everything: true", "seed: 7", "leave it out: seed: 7 is there"),
        ("seed_everything: true", "reproducible: true", "write seed: 0, or another number"),
        ("random_seed: false", "seed: 7", "leave it out: each run has a seed, 7"),
        ("random_seed: false", "reproducible: true", "leave it out: each run has a seed, 0"),
        (
            "seed_everything: 42\nseed: 3",
            "seed: 7",
            "leave it out: seed: 3 is there (cfg.yaml:7), or write seed: 42 in the place of both",
        ),
    ],
)
def test_a_seed_by_another_name_beside_one_is_told_with_both_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, base: str, fix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.yaml").write_text(f"{base}\n")
    text = f"base: base.yaml\n{MINIMAL}{own}\n"
    (tmp_path / "cfg.yaml").write_text(text)
    assert refusal(Path("cfg.yaml")).hint == fix
    typed = refusal(Path("base.yaml"), "random_seed=9").hint
    assert typed == (
        "write seed=9, which goes before seed: 7 (base.yaml:1)" if "7" in base else "write seed=9"
    )
