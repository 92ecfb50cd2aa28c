"""Classes in another tool's words, and the Trainer's logger: what to write holds what was asked."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cli.mistaken import CONFIG, project, refused

__all__ = ["project"]

CALLBACK = "{class_path: pytorch_lightning.callbacks.EarlyStopping, init_args: {monitor: loss}}"


@pytest.mark.parametrize(
    ("spec", "form"),
    [
        ("{name: resnet18, width: 3}", "{class_path: nets.Net, init_args: {width: 3}}"),
        ("{width: 3}", "{class_path: nets.Net, init_args: {width: 3}}"),
        ("{type: Forms, words: [a]}", "{class_path: nets.Forms, init_args: {words: [a]}}"),
        (
            "{class: nets.Net, params: {lr: 0.1}, width: 3}",
            "{class_path: nets.Net, init_args: {lr: 0.1, width: 3}}",
        ),
    ],
)
def test_a_model_without_class_path_is_told_the_whole_form_and_that_is_taken(
    hpc, project: Path, spec: str, form: str
) -> None:
    (project / "cfg.yaml").write_text(
        CONFIG.replace("{class_path: nets.Net, init_args: {width: 3}}", spec)
    )
    refused(hpc, project, ["submit", "cfg.yaml"], 3, "model names no class", f"model: {form}")
    (project / "cfg.yaml").write_text(
        CONFIG.replace("{class_path: nets.Net, init_args: {width: 3}}", form)
    )
    assert hpc("submit", "cfg.yaml", "--dry-run").code == 0


def test_where_no_model_is_at_hand_none_of_lightnings_own_is_proposed(hpc, project: Path) -> None:
    """Its bare base was the example, and trained nothing."""
    for file in project.rglob("*.py"):
        file.unlink()
    (project / "cfg.yaml").write_text(
        CONFIG.replace("{class_path: nets.Net, init_args: {width: 3}}", "{name: resnet18}").replace(
            "nets.Data", "hpc_train.examples.digits.DigitsData"
        )
    )
    form = "model: {class_path: my_package.MyModule}"
    refused(hpc, project, ["submit", "cfg.yaml"], 3, "model names no class", form)


@pytest.mark.parametrize(
    ("section", "message", "form"),
    [
        ("data: {name: cifar, batch_size: 8}", "data names no class",
         "data: {class_path: nets.NoLoader, init_args: {batch_size: 8}}"),
        ("trainer: {callbacks: [{name: EarlyStopping, monitor: loss}]}", "callbacks.0", CALLBACK),
        ("trainer: {callbacks: [{EarlyStopping: {monitor: loss}}]}", "callbacks.0", CALLBACK),
        ("loggers: [{name: wandb, project: p}]", "loggers.0 is",
         "{class_path: pytorch_lightning.loggers.WandbLogger, init_args: {project: p}}"),
        ("loggers: [{type: csv}]", "loggers.0 is", "write csv"),
    ],
)  # fmt: skip
def test_an_object_in_other_words_is_told_with_its_arguments(
    hpc, project: Path, section: str, message: str, form: str
) -> None:
    values = {**yaml.safe_load(CONFIG), **yaml.safe_load(section)}
    (project / "cfg.yaml").write_text(yaml.safe_dump(values))
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, form)


OWN_FOLDER = "{class_path: pytorch_lightning.loggers.CSVLogger, init_args: {save_dir: logs}}"


@pytest.mark.parametrize(
    ("asked", "typed", "written"),
    [
        ("wandb", "loggers=[wandb]", "loggers: [wandb]"),
        ("false", "loggers=[]", "loggers: []"),
        ("None", "loggers=[]", "loggers: []"),
        ("true", "loggers=[csv,tensorboard]", "loggers: [csv, tensorboard]"),
        ("[WandbLogger, csv]", "loggers=[wandb,csv]", "loggers: [wandb, csv]"),
        (
            OWN_FOLDER,
            f"loggers='[{OWN_FOLDER}]'",
            f"loggers: [{OWN_FOLDER}]",
        ),
        ("{class_path: pytorch_lightning.loggers.CSVLogger}", "loggers=[csv]", "loggers: [csv]"),
        (
            "{class_path: my.Logger, init_args: {a: 1}}",
            "loggers='[{class_path: my.Logger, init_args: {a: 1}}]'",
            "loggers: [{class_path: my.Logger, init_args: {a: 1}}]",
        ),
    ],
)
def test_the_trainers_logger_is_told_as_loggers_with_what_was_asked(
    hpc, project: Path, asked: str, typed: str, written: str
) -> None:
    message = "trainer.logger is set by hpc-train"
    words = ["submit", "cfg.yaml", f"trainer.logger={asked}"]
    refused(hpc, project, words, 3, f"command line: {message}", f"fix: write {typed}")
    (project / "cfg.yaml").write_text(CONFIG.replace("max_epochs: 1", f"logger: {asked}"))
    refused(
        hpc, project, ["submit", "cfg.yaml"], 3, f"cfg.yaml:5: {message}", f"write {written} at"
    )


@pytest.mark.parametrize(
    ("batch", "words", "fix"),
    [
        ("init_args: {batch_size: 32}", [], "global_batch_size: 64 (your batch_size, 32, times 2"),
        (
            "init_args: {batch_size: 32}",
            ["--nodes", "2", "--gpus", "3"],
            "global_batch_size: 192 (your batch_size, 32, times 6 ranks)",
        ),
        ("init_args: {}", [], "global_batch_size: 64 (samples an optimizer step"),
    ],
)
def test_a_missing_global_batch_size_is_made_of_the_batch_size_that_is_there(
    hpc, project: Path, batch: str, words: list[str], fix: str
) -> None:
    text = CONFIG.replace("global_batch_size: 8\n", "")
    (project / "cfg.yaml").write_text(text.replace("nets.Data", f"nets.Data, {batch}"))
    typed = ["submit", "cfg.yaml", *words]
    refused(hpc, project, typed, 3, "global_batch_size is missing", f"fix: write {fix}")


def test_an_override_behind_o_is_told_as_a_word_by_itself(hpc, project: Path) -> None:
    words = ["submit", "cfg.yaml", "-o", "trainer.max_epochs=1"]
    refused(hpc, project, words, 2, "No such option '-o'", "a word by itself, without -o: trainer")


LIT = "from pytorch_lightning import LightningModule\nclass {}(LightningModule): ...\n"


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("model=resnet50", "write model: {class_path: backbones.resnet50.ResNet50}"),
        ("model.class_path=resnet50", "write backbones.resnet50.ResNet50"),
        ("model.class_path=resnet", "did you mean 'backbones.resnet50.ResNet50'?"),
        ("model.class_path=vit", "write backbones.vit.LitTransformer"),
        ("model=vit", "write model: {class_path: backbones.vit.LitTransformer}"),
        ("model.class_path=unet3d", "did you mean 'backbones.unet.Lit'?"),
        ("model.class_path=vit.LitTransformer", "write backbones.vit.LitTransformer"),
        ("model.class_path=vit.ViT", "write backbones.vit.LitTransformer"),
        ("model.class_path=transformer", "did you mean 'backbones.vit.LitTransformer'?"),
        ("model.class_path=zzz", "write it as in package.module.ClassName"),
    ],
)
def test_a_model_without_its_module_is_found_in_the_project(
    hpc, project: Path, written: str, fix: str
) -> None:
    folder = project / "backbones"
    folder.mkdir()
    (folder / "resnet50.py").write_text(f"raise SystemExit(1)\n{LIT.format('ResNet50')}")
    (folder / "vit.py").write_text(f"{LIT.format('LitTransformer')}class Block: ...\n")
    (folder / "unet.py").write_text(LIT.format("Lit"))
    refused(hpc, project, ["submit", "cfg.yaml", written], 3, "model", f"  fix: {fix}")


def test_the_class_below_the_named_package_comes_first_and_none_of_a_name_with_a_dash(
    hpc, project: Path
) -> None:
    (project / "models").mkdir()
    for file in ("models/net.py", "my-net.py", "annex.py"):
        (project / file).write_text(LIT.format("Lit"))
    words = ["submit", "cfg.yaml", "model.class_path=models.Lit"]
    refused(hpc, project, words, 3, "models has no class 'Lit'", "write models.net.Lit")
    said = hpc(*words).err
    assert "my-net" not in said
    assert "annex" not in said


@pytest.mark.parametrize(
    ("word", "fix"),
    [
        ("data=/data/x", "a path is an argument of it: data.init_args.NAME=/data/x"),
        ("data=~/x.h5", "a path is an argument of it: data.init_args.NAME=~/x.h5"),
        ("data=../sets", "data names the class (class_path: nets."),
        ("data=nets.Data", "write data: {class_path: nets.Data}"),
        ("data=/code/sets.py", "name the class with its module, as in data: {class_path: nets."),
        ("model=/data/x.pt", "model names the class (class_path: nets.Net)"),
    ],
)
def test_a_path_in_the_place_of_a_class_is_an_argument_of_it(
    hpc, project: Path, word: str, fix: str
) -> None:
    refused(hpc, project, ["submit", "cfg.yaml", word], 3, " is '", fix)


@pytest.mark.parametrize(
    ("lines", "message", "fix"),
    [
        (
            "trainer.max_epochs: 2\ntrainer.accelerator: cpu\n",
            "trainer.max_epochs is one key with a point in it, as trainer.accelerator is",
            "write trainer: {max_epochs: 2, accelerator: cpu}; keys with points",
        ),
        ("trainer.max_epochs: 2\n", "point in it", "write trainer: {max_epochs: 2};"),
        (
            "trainer.max_epochs: 2\ntrainer.accelerator: cpu\ntrainer.precision: 32\n",
            "point in it, as 2 more of trainer are",
            "write trainer: {max_epochs: 2, accelerator: cpu, precision: 32};",
        ),
        (
            "slurm.extra.hint: x\n",
            "point in it",
            "there is slurm on line 6: write in its braces extra: {hint: x};",
        ),
        ("watchdog.a.b.c: x\n", "point in it", "write watchdog: {a: {b: {c: x}}};"),
    ],
)
def test_keys_with_points_in_a_file_are_told_as_the_section_they_belong_to(
    hpc, project: Path, lines: str, message: str, fix: str
) -> None:
    text = CONFIG.splitlines(keepends=True)
    if "trainer" in lines:
        text = [it for it in text if not it.startswith("trainer")]
    (project / "cfg.yaml").write_text("".join(text) + lines)
    refused(hpc, project, ["submit", "cfg.yaml"], 3, message, fix)


def test_a_variable_of_the_shell_is_left_to_the_code_that_replaces_it(hpc, project: Path) -> None:
    code = """
import os
from pytorch_lightning import LightningDataModule
class Data(LightningDataModule):
    def __init__(self, root: str, batch_size: int = 8):
        super().__init__()
        self.root = {}(root)
    def train_dataloader(self): return [1]
"""
    words = ["submit", "cfg.yaml", "--dry-run", "--cluster", "local"]
    words += ["data.class_path=sets.Data", "data.init_args.root=$HOME/sets"]
    (project / "sets.py").write_text(code.format("str"))
    fix = "write 'data.init_args.root=${oc.env:HOME}/sets';"
    refused(hpc, project, words, 3, "data.init_args.root is $HOME/sets", fix)
    (project / "sets.py").write_text(code.format("os.path.expandvars"))
    said = hpc(*words)
    assert (said.code, "a variable of the shell" in said.err) == (0, False), said
