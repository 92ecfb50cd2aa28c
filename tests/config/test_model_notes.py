"""What is noted of a model whose text shows a slip that Lightning passes over."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.config.fit.code_notes import notes_on_code
from hpc_train.config.load import load

CONFIG = """\
name: x
global_batch_size: 8
model: {class_path: nets.Net, init_args: {%s}}
data: {class_path: nets.Data}
trainer:
  accelerator: cpu
  callbacks:
    - class_path: %s
      init_args: {%s}
"""
NETS = """\
import torch
from pytorch_lightning import LightningDataModule, LightningModule; s = getattr2 = len

class Net(LightningModule):
    def __init__(self, act=lambda x: x, made=lambda x: x, known=lambda x: x):
        super().__init__()
        self.act, self.made = act, getattr2(made)
        self.known = torch.relu if known == "relu" else known
    def training_step(self, batch, batch_idx):
        return self.act(batch).sum()
    def configure_optimizers(self):
        o = torch.optim.SGD(self.parameters(), 0.1)
        return %s
class Data(LightningDataModule):
    def train_dataloader(self): return []
"""
STOPPING = "pytorch_lightning.callbacks.EarlyStopping"
SAVING = "lightning.pytorch.callbacks.ModelCheckpoint"


def notes_of(
    folder: Path, *, given: str = "", callback: str = STOPPING, words: str = "", back: str = "o"
) -> list[str]:
    (folder / "nets.py").write_text(NETS % back)
    file = folder / "cfg.yaml"
    file.write_text(CONFIG % (given, callback, words))
    return [it.removeprefix(f"{file}:") for it in notes_on_code(load(file), workdir=folder)]


@pytest.mark.parametrize("callback", [STOPPING, SAVING])
@pytest.mark.parametrize(
    "monitor",
    ["val_acc", "val/accuracy", "val_f1", "AUC", "mIoU", "val_acc_epoch", "f1_macro", "val_mAP_50"],
)
def test_the_lowest_of_what_is_to_be_high_is_noted(
    tmp_path: Path, monitor: str, callback: str
) -> None:
    (note,) = notes_of(tmp_path, callback=callback, words=f"monitor: {monitor}")
    assert note == (
        f"9: trainer.callbacks.0.init_args.monitor is {monitor} and mode is min, its default: the"
        " lowest counts as best; write mode: max beside it"
    )


@pytest.mark.parametrize(
    "monitor",
    [
        *("val_loss", "dice_loss", "f1_error", "wer", "mae", "rmse", "perplexity", "fid_score"),
        *("val_energy", "neg_acc", "map_loss", "whatever", "acceleration", "precision_at_loss"),
    ],
)
def test_of_what_is_to_be_low_or_unknown_nothing_is_noted(tmp_path: Path, monitor: str) -> None:
    assert notes_of(tmp_path, words=f"monitor: {monitor}") == []


@pytest.mark.parametrize(
    ("callback", "words"),
    [
        (STOPPING, "monitor: val_acc, mode: max"),
        (SAVING, "monitor: val_mse, mode: min"),
        (SAVING, "save_last: true"),
        ("pytorch_lightning.callbacks.LearningRateMonitor", ""),
        ("nets.ModelCheckpoint", "monitor: val_acc"),
    ],
)
def test_a_written_mode_and_other_callbacks_are_as_they_are(
    tmp_path: Path, callback: str, words: str
) -> None:
    assert notes_of(tmp_path, callback=callback, words=words) == []


@pytest.mark.parametrize(
    ("back", "key"),
    [
        ('{"optimizer": o, "scheduler": s(o)}', "scheduler"),
        ('dict(a=1), {"optimizer": o, "lr_schedulers": s(o)}', "lr_schedulers"),
        ('{"optimizer": o, "lr_scheduler": {"scheduler": s(o), "interval": "step"}}', ""),
        ('{"optimizer": o, "monitor": "val_loss"}', ""),
        ('[o], [{"scheduler": s(o), "interval": "step"}]', ""),
        ("o", ""),
    ],
)
def test_a_schedule_under_another_key_is_noted(tmp_path: Path, back: str, key: str) -> None:
    said = f"nets.Net returns {key!r} beside 'optimizer' (line 13), which Lightning leaves out, and"
    said += " trains without it: write 'lr_scheduler'"
    assert notes_of(tmp_path, callback=SAVING, back=back) == ([said] if key else [])


def test_a_text_where_a_function_goes_is_noted(tmp_path: Path) -> None:
    given = "act: torch.relu, made: torch.relu, known: relu"
    (note,) = notes_of(tmp_path, callback=SAVING, given=given)
    assert note == (
        "3: model.init_args.act is the text 'torch.relu', and nets.Net has a function there by"
        " default: no Python is worked out here: write act: relu, and the line act ="
        " getattr(torch, act) in __init__"
    )


@pytest.mark.parametrize(
    ("imported", "default", "given", "write"),
    [
        (
            "from torch import nn",
            "nn.ReLU",
            "nn.GELU",
            (
                "write act: GELU, and the line act = getattr(nn, act) in __init__, with"
                ' act="ReLU" by default'
            ),
        ),
        (
            "import torch",
            "torch.nn.ReLU",
            "nn.GELU",
            (
                "write act: GELU, and the line act = getattr(torch.nn, act) in __init__, with"
                ' act="ReLU" by default'
            ),
        ),
        (
            "import torch",
            "torch.float32",
            "torch.bfloat16",
            (
                "write act: bfloat16, and the line act = getattr(torch, act) in __init__, with"
                ' act="float32" by default'
            ),
        ),
        (
            "from torch import nn; import torch.nn.functional as F",
            "nn.ReLU",
            "F.gelu",
            "write act: gelu, and the line act = getattr(F, act) in __init__",
        ),
        (
            "",
            "lambda x: x",
            "F.gelu",
            (
                "import torch, write act: gelu, and the line act ="
                " getattr(torch.nn.functional, act) in __init__"
            ),
        ),
        (
            "from torch import nn",
            "nn.ReLU",
            "'nn.GELU(1)'",
            "have a word there, and make the object of it in the class",
        ),
    ],
)
def test_the_module_of_what_is_meant_is_named_as_the_file_has_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    imported: str,
    default: str,
    given: str,
    write: str,
) -> None:
    text = NETS.replace("import torch\n", f"{imported}\n").replace("lambda x: x", default, 1)
    monkeypatch.setattr("tests.config.test_model_notes.NETS", text)
    note = next(it for it in notes_of(tmp_path, given=f"act: {given}") if "init_args.act" in it)
    assert note.endswith(f" there by default: no Python is worked out here: {write}")


@pytest.mark.parametrize(
    ("given", "init"), [("GELU", '"ReLU"'), ("nn.GELU", "None"), ("relu", "nn.ReLU")]
)
def test_of_a_word_for_such_a_class_nothing_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, init: str
) -> None:
    text = NETS.replace("import torch\n", "import torch; from torch import nn\n")
    monkeypatch.setattr("tests.config.test_model_notes.NETS", text.replace("lambda x: x", init, 1))
    assert not any("init_args.act" in it for it in notes_of(tmp_path, given=f"act: {given}"))


TENSOR = '"torch.tensor([1.0, 5.0])"'


@pytest.mark.parametrize(
    ("given", "default", "said"),
    [
        (TENSOR, "None", ", and nets.Net has None there by default"),
        ("'np.array((1.0, 5.0))'", "None", ", and nets.Net has None there by default"),
        (TENSOR, "torch.ones", ", and nets.Net has torch.ones there by default"),
    ],
)
def test_a_tensor_in_pythons_words_is_noted_with_its_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, default: str, said: str
) -> None:
    text = NETS.replace("lambda x: x", default, 1)
    monkeypatch.setattr("tests.config.test_model_notes.NETS", text)
    (note,) = (it for it in notes_of(tmp_path, given=f"act: {given}") if "init_args.act" in it)
    assert note.endswith(
        f"{said}: no Python is worked out here: write [1.0, 5.0], and torch.tensor(...) of it in"
        " the class"
    )


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ("[1.0, 5.0]", "act=None"),
        ("[1.0, 5.0]", "act: torch.Tensor = None"),
        (TENSOR, "act: str = None"),
        (TENSOR, "act='x'"),
        (TENSOR, "act=eval('None')"),
        ("balanced", "act=None"),
        ("f(x)", "act=None"),
        ("torch.tensor(2)", "act=None"),
    ],
)
def test_of_a_list_or_another_text_there_nothing_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, argument: str
) -> None:
    text = NETS.replace("act=lambda x: x", argument, 1)
    monkeypatch.setattr("tests.config.test_model_notes.NETS", text)
    assert not any("init_args.act" in it for it in notes_of(tmp_path, given=f"act: {given}"))


MANUAL = "super().__init__()\n        self.automatic_optimization = False"
STEP = "return self.act(batch).sum()"


@pytest.mark.parametrize(
    ("old", "new", "noted"),
    [
        ("", "", True),
        (STEP, "return self(batch).sum()", True),
        (STEP, "self.manual_backward(self.act(batch))", False),
        (STEP, "self.optimizers().step()", False),
        (STEP, "return train_step(self, batch)", False),
        (STEP, "self.bank.append(batch)", False),
        ("return o", "pass", False),
        ("Net(LightningModule)", "Net(Base)", False),
        ("self.automatic_optimization = False", "self.automatic_optimization = True", False),
    ],
)
def test_a_model_that_optimizes_by_hand_and_steps_nothing_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, *, noted: bool
) -> None:
    text = (NETS % "o").replace("super().__init__()", MANUAL).replace(old or "\0", new)
    monkeypatch.setattr("tests.config.test_model_notes.NETS", text.replace("%", "%%") + "#%s")
    notes = [it for it in notes_of(tmp_path) if "automatic_optimization" in it]
    assert bool(notes) is noted
    if noted:
        said = "nets.Net sets automatic_optimization = False (line 7), and its training_step (line"
        assert notes[0].startswith(f"{said} 10) steps no optimizer, so that nothing is learned: ")


MAKE = "\n    def make(self, it): return DataLoader(it, num_workers=8)"


@pytest.mark.parametrize(
    ("loader", "cpus", "told"),
    [
        (
            "DataLoader(s, num_workers=8)",
            "1",
            "write num_workers=0, or slurm.cpus_per_gpu=9 where a node has 9 CPUs",
        ),
        (
            "DataLoader(s, 4, True, None, None, 8)",
            "4",
            "num_workers=3, or slurm.cpus_per_gpu=9 where a node has 9 CPUs",
        ),
        (
            "self.make(s)",
            "1",
            "write num_workers=0, or slurm.cpus_per_gpu=9 where a node has 9 CPUs",
        ),
        ("self.make(DataLoader(s))", "1", ""),  # which of them is given is not sure
        ("DataLoader(s, num_workers=8)", "8", ""),
        ("DataLoader(s, num_workers=8)", "null", ""),  # as many as the cluster gives
        ("DataLoader(s, num_workers=self.n)", "1", ""),
        ("DataLoader(s)", "1", ""),
    ],
)
def test_more_data_workers_than_cpus_are_noted(
    tmp_path: Path, loader: str, cpus: str, told: str
) -> None:
    """Nothing but a warning of torch's in the job's log told it."""
    (tmp_path / "nets.py").write_text((NETS % "o").replace("return []", f"return {loader}{MAKE}"))
    file = tmp_path / "cfg.yaml"
    file.write_text(CONFIG % ("", STOPPING, ""))
    loaded = load(file, [f"slurm.cpus_per_gpu={cpus}", "global_batch_size=4"])
    notes = [it for it in notes_on_code(loaded, workdir=tmp_path) if "workers a rank" in it]
    assert len(notes) == bool(told)
    says = (
        f"nets.Data has train_dataloader start 8 workers a rank, and slurm.cpus_per_gpu is {cpus}"
    )
    assert all(it.startswith(says) and it.endswith(told) for it in notes)
