"""What is said of an exception that Lightning or torch raises, from real, short fits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from hpc_train.plan.plan import Batch
from hpc_train.training.failures.failure_words import fix_of
from hpc_train.training.rank_failure import RankFailure, failure_of


class Net(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        return self.layer(batch).square().mean()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


class LogsVector(Net):
    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        out = self.layer(batch)
        self.log("out", out)
        return out.mean()


class Normed(Net):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Sequential(torch.nn.BatchNorm1d(2))  # type: ignore[assignment]


class NoHparams(Net):
    def __init__(self, lr: float = 0.1) -> None:
        super().__init__()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr)


class OtherHparams(Net):
    def __init__(self, lr: float = 0.1, width: int = 3) -> None:
        super().__init__()
        self.save_hyperparameters()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lrr)


class Opens(Net):
    def on_fit_start(self) -> None:
        Path(self.file).read_text()

    file = "data/there_is_none.csv"


class OldCallback(pl.Callback):
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx):
        pass


class OldNet(Net):
    def on_train_epoch_end(self, outputs):  # type: ignore[override]
        pass


class OldStep(Net):
    def training_step(self, batch, batch_idx, hiddens):  # type: ignore[override]
        pass


class OldData(pl.LightningDataModule):
    def setup(self):  # type: ignore[override]
        pass

    def train_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(torch.ones(4, 2), batch_size=2)  # type: ignore[arg-type]


class Calls(Net):
    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        return self.helper()  # type: ignore[call-arg]

    def helper(self, batch: torch.Tensor) -> torch.Tensor:
        return batch


class Prepares(pl.LightningDataModule):
    def prepare_data(self) -> None:
        self.train = torch.ones(4, 2)

    def train_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(self.train, batch_size=2)  # type: ignore[arg-type]


def fit(
    folder: Path, model: Any, *callbacks: pl.Callback, data: Any = None, samples: int = 40
) -> RankFailure:
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=1,
        callbacks=list(callbacks),
        default_root_dir=str(folder),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader = torch.utils.data.DataLoader(torch.ones(samples, 2), batch_size=samples)  # type: ignore[arg-type]
    with pytest.raises(BaseException) as caught:
        trainer.fit(model, **({"datamodule": data} if data else {"train_dataloaders": loader}))
    return failure_of(caught.value, Batch(4, 1, 1))


def line_of(method: Callable[..., Any]) -> str:
    return f"{__file__}:{method.__code__.co_firstlineno}"


@pytest.mark.filterwarnings("ignore")
def test_the_reason_is_kept_and_the_rows_of_a_printed_tensor_are_not(tmp_path: Path) -> None:
    said = fit(tmp_path, LogsVector()).error
    assert "`self.log(out, tensor(...))` was called, but the tensor must have a single elem" in said
    assert ".mean())`" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bad value [[1.  2.]\n [3.  nan]] of x", "bad value [...] of x"),
        (f"{torch.ones(3, 3)}\nis not symmetric", "tensor(...) is not symmetric"),
        ("shape '[2, 3]' is invalid\nfor input", "shape '[2, 3]' is invalid"),
        ("CUDA error: an assert\nkernel errors might be reported later", "CUDA error: an assert"),
        ("f(\n  x,\n) is wrong", "f( x, ) is wrong"),
        ("", ""),
    ],
)
def test_a_message_of_several_lines_is_told_by_what_it_says(text: str, said: str) -> None:
    assert failure_of(ValueError(text)).error == (f"ValueError: {said}" if said else "ValueError")


def test_of_a_long_message_below_its_first_line_the_end_is_kept() -> None:
    said = failure_of(ValueError(f"these:\n{'word ' * 400}\nare the reason")).error
    assert said.startswith("ValueError: these: word")
    assert said.endswith("are the reason")
    assert len(said) < 450


@pytest.mark.filterwarnings("ignore")
def test_a_hook_that_cannot_take_what_lightning_gives_is_named_with_its_line(
    tmp_path: Path,
) -> None:
    failure = fit(tmp_path, Net(), OldCallback())
    assert failure.where == line_of(OldCallback.on_train_batch_end)
    assert failure.error.endswith(
        "Lightning calls it with trainer, pl_module, outputs, batch, batch_idx"
    )
    failure = fit(tmp_path, OldNet())
    assert failure.where == line_of(OldNet.on_train_epoch_end)
    assert failure.error.endswith("'outputs'; Lightning calls it with nothing")
    failure = fit(tmp_path, Net(), data=OldData())
    assert failure.where == line_of(OldData.setup)
    assert failure.error.endswith("Lightning calls it with stage")


@pytest.mark.filterwarnings("ignore")
def test_a_step_of_lightning_1_is_told_what_it_gets(tmp_path: Path) -> None:
    failure = fit(tmp_path, OldStep())
    assert failure.where == line_of(OldStep.training_step)
    assert failure.error.endswith("'hiddens'; Lightning calls it with batch, batch_idx")


@pytest.mark.filterwarnings("ignore")
def test_a_method_that_the_user_calls_wrongly_is_placed_at_the_call(tmp_path: Path) -> None:
    failure = fit(tmp_path, Calls())
    assert failure.where == f"{__file__}:{Calls.training_step.__code__.co_firstlineno + 1}"
    assert "Lightning" not in failure.error


def test_what_prepare_data_alone_assigns_is_told_to_be_of_setup() -> None:
    with pytest.raises(AttributeError) as caught:
        Prepares().train_dataloader()
    said = failure_of(caught.value).error
    assert said.endswith(
        "prepare_data runs on one rank of a node alone: assign self.train in setup(self, stage)"
    )
    with pytest.raises(AttributeError) as caught:
        _ = Prepares().other
    assert ";" not in failure_of(caught.value).error


@pytest.mark.filterwarnings("ignore")
def test_batch_norm_with_one_sample_a_rank_is_told_with_the_batch(tmp_path: Path) -> None:
    said = fit(tmp_path, Normed(), samples=1).error
    assert said.endswith(
        "; global_batch_size 4 gives each of 4 ranks one sample: use fewer ranks, or submit again"
        " with global_batch_size=8"
    )
    error = ValueError("Expected more than 1 value per channel when training, got input size 1")
    assert "write micro_batch_size: 2" in failure_of(error, Batch(8, 1, 2)).error
    assert "drop_last=True" in failure_of(error).error


@pytest.mark.filterwarnings("ignore")
def test_hyperparameters_that_were_not_saved_are_told_how_to_be(tmp_path: Path) -> None:
    assert "save_hyperparameters()" in fit(tmp_path, NoHparams()).error


@pytest.mark.filterwarnings("ignore")
def test_a_name_that_hparams_has_not_is_told_with_those_that_it_has(tmp_path: Path) -> None:
    said = fit(tmp_path, OtherHparams()).error
    assert said.endswith("has no attribute 'lrr'; it has lr, width: did you mean 'lr'?")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_relative", [True, False])
def test_a_file_that_is_not_there_is_told_with_the_folder_it_was_looked_for_in(
    tmp_path: Path, is_relative: bool
) -> None:
    model = Opens()
    model.file = Opens.file if is_relative else str(tmp_path / "none.csv")
    told = f"; a relative path begins in {Path.cwd()}: write the whole path"
    assert fit(tmp_path, model).error.endswith(told) is is_relative


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(2, "No such file or directory", "/Users/me/d/train.csv"),
        FileNotFoundError("no training file at /Users/me/d/train.csv"),
        FileNotFoundError("Original Traceback (most recent call last):\nE: '/Users/me/d/x.csv'"),
    ],
)
def test_a_path_that_is_not_there_is_told_with_its_key(error: FileNotFoundError) -> None:
    texts = {"data.init_args.root": "/Users/me/d", "data.init_args.split": "train"}
    told = "the path comes from data.init_args.root"
    assert failure_of(error, None, texts).error.endswith(f"; {told}")
    assert told not in failure_of(error).error
    assert told not in failure_of(ValueError("/Users/me/d"), None, texts).error


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("import cv2_of_nobody", "pip install cv2_of_nobody (often its package has another name)"),
        ("import tiktoken", "pip install tiktoken, or name the environment that has it: env.conda"),
        ("import losses.x", "losses.py of the project is missing: copy it to "),
        ("from below import A", "write from parts.below import A, since it is in the folder parts"),
    ],
)
def test_a_package_that_a_function_imports_is_told_as_one_that_a_module_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, fix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/below.py").touch()
    (tmp_path / "own.py").write_text(f"def step():\n    {line}\n")
    for file, told in ((tmp_path / "own.py", fix), (tmp_path / "site-packages/a/own.py", "")):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text((tmp_path / "own.py").read_text())
        names: dict[str, Any] = {}
        exec(compile(file.read_text(), str(file), "exec"), names)
        with pytest.raises(ModuleNotFoundError) as caught:
            names["step"]()
        assert (fix in failure_of(caught.value).error) is bool(told)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("dynamo", "package"), [(True, "onnxscript"), (False, "onnx")])
def test_what_an_export_of_torchs_lacks_is_told_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dynamo: bool, package: str
) -> None:
    for name in ("onnx", "onnxscript"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(Exception) as caught:
        torch.onnx.export(
            torch.nn.Linear(2, 2), (torch.randn(1, 2),), str(tmp_path / "x.onnx"), dynamo=dynamo
        )
    assert failure_of(caught.value).error.endswith(f"pip install {package}")


def test_so_is_what_lightnings_own_method_lacks() -> None:
    says = "`Net.to_onnx()` requires `onnx` to be installed."
    assert failure_of(ModuleNotFoundError(says)).error.endswith("pip install onnx")
    says = "`Net.to_onnx(dynamo=True)` requires `onnxscript` and `torch>=2.5.0` to be installed."
    assert failure_of(ModuleNotFoundError(says)).error.endswith("pip install onnxscript")


class OpensImages(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Any:
        return Path("no_such_folder", f"{index}.pt").read_bytes()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_relative_path_is_told_of_a_data_worker_too(workers: int) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        list(torch.utils.data.DataLoader(OpensImages(), num_workers=workers))
    assert fix_of(caught.value) == f"a relative path begins in {Path.cwd()}: write the whole path"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("data/trian.npz", "data/train.npz"),
        ("daata/train.npz", "data/train.npz"),
        ("train.npz", "data/train.npz"),
    ],
)
@pytest.mark.parametrize("workers", [0, 1])
def test_a_file_that_is_not_there_is_told_with_the_one_that_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, meant: str, workers: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for name in ("train.npz", "img_7.png"):
        (tmp_path / "data" / name).touch()
    with pytest.raises(FileNotFoundError) as caught:
        list(torch.utils.data.DataLoader(OpensOne(typed), num_workers=workers))
    began = f"a relative path begins in {tmp_path}: did you mean {meant!r}?"
    assert fix_of(caught.value) == began
    of_key = "the path comes from data.init_args.path"
    assert fix_of(caught.value, texts={"data.init_args.path": typed}) == f"{of_key}; {began}"
    if typed != "train.npz":
        with pytest.raises(FileNotFoundError) as caught:
            (tmp_path / typed).read_bytes()
        assert fix_of(caught.value) == f"did you mean '{tmp_path / meant}'?"


@pytest.mark.parametrize(
    ("typed", "has"), [("img_8.png", "img_7.png"), ("labels.npz", "train.npz")]
)
def test_a_file_that_its_folder_lacks_is_told_with_those_that_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, has: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for name in ("train.npz", "img_7.png"):
        (tmp_path / "data" / name).touch()
    with pytest.raises(FileNotFoundError) as caught:
        Path("data", typed).read_bytes()
    lacks = "bring it there, or take it out of what names it"
    assert fix_of(caught.value) == f"data has no {typed}, and {has}: {lacks}"


class OpensOne(OpensImages):
    def __init__(self, file: str) -> None:
        self.file = file

    def __getitem__(self, index: int) -> Any:
        return Path(self.file).read_bytes()


@pytest.mark.filterwarnings("ignore")
def test_the_best_checkpoint_of_nothing_is_told_with_what_to_write(tmp_path: Path) -> None:
    one = pl.Trainer(accelerator="cpu", logger=False, default_root_dir=tmp_path)
    with pytest.raises(ValueError, match="is not configured to save") as caught:
        one.validate(Net(), torch.ones(4, 2), ckpt_path="best")
    assert fix_of(caught.value) == (
        "leave ckpt_path out, which takes the model as it is given, or name a file"
    )
