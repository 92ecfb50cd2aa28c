"""Classes that a config names: found without an import, and refused with the nearest."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from hpc_train.config.load import load
from hpc_train.config.validate import check
from tests.config.checking import check_in, nets, refusal_in
from tests.config.files import write

__all__ = ["nets"]


@pytest.mark.parametrize(
    "model",
    [
        "{class_path: nets.Net, init_args: {width: 3, depth: 4}}",
        "{_target_: nets.Net, width: 3}",
        "{class_path: nets.Child, init_args: {width: 3}}",
        "{class_path: nets.Open, init_args: {anything: 3}}",
        "{class_path: nets.Foreign, init_args: {anything: 3}}",
        "{class_path: nets.Imported, init_args: {anything: 3}}",
        "{class_path: nets.make, init_args: {width: 3}}",
        "{class_path: nets.Hidden}",
    ],
)
def test_a_class_is_found_without_importing_its_module(model: str, nets: Path) -> None:
    check_in(nets, model)


@pytest.mark.parametrize(
    ("model", "message", "hint"),
    [
        (
            "{class_path: net.Net}",
            "cfg.yaml:3: model.class_path: there is no module 'net' in",
            "did you mean 'nets.Net'?",
        ),
        (
            "{class_path: nets.Nett}",
            "cfg.yaml:3: model.class_path: nets has no class 'Nett'",
            "did you mean 'nets.Net'",
        ),
        (
            "{class_path: nets.Transformer}",
            "nets has no class 'Transformer'",
            "it has Net, Child, Open, Foreign, Hidden",
        ),
        ("{class_path: pkg.sub.Net}", "pkg has no module 'sub'", "did you mean 'pkg.subs.Net'?"),
        ("{class_path: nets.nets.Net}", "nets has no module 'nets'", "write nets.Net"),
        ("{class_path: pkg.subs}", "pkg.subs is a module, not a class", "'pkg.subs.Deep'"),
        (
            "{class_path: nets.Net, init_args: {width: 1, dept: 2}}",
            "cfg.yaml:3: model.init_args.dept: nets.Net takes no such argument",
            "did you mean 'depth'?",
        ),
        (
            "{_target_: nets.Child, width: 1, x: 2}",
            "model.x: nets.Child takes no such",
            "it takes width",
        ),
        ("{class_path: nets.Net}", "nets.Net needs the argument 'width'", "width: ... below"),
        ("{class_path: broken.Net}", "broken.py:2: ", "correct that line: "),
        (
            "{class_path: needy.Net}",
            "model.class_path: needy.py:3: imports 'not_here', which is not installed",
            "pip install not_here",
        ),
    ],
)
def test_a_class_that_is_not_there_is_refused_with_the_nearest(
    model: str, message: str, hint: str, nets: Path
) -> None:
    write(nets, "", "pkg/__init__.py")
    write(nets, "from nets import Net\nclass Deep(Net): ...\nclass No: ...\n", "pkg/subs.py")
    write(nets, "class Net:\n    def f(:\n", "broken.py")
    write(nets, "import os, json.decoder\n\nfrom not_here.x import Net\n", "needy.py")
    error = refusal_in(nets, model)
    assert message in error.message
    assert hint in error.hint


KINDS = """\
import abc, os.path as paths
from typing import Generic, TypeVar
import torch
import torch.nn as nn
from torch.utils.data import Dataset
from lightning.pytorch import LightningModule as Base
from .deep import Inner, Plain as Renamed, Data
try:
    from .deep import nothing_there
    from unknown_package import Strange
except ImportError:
    pass

T = TypeVar("T")
Alias = Base
RATE = 0.1

class Bare:
    def __init__(self, width): ...
class Module(nn.Module): ...
class Long(torch.nn.Module): ...
class Twice(Module): ...
class Abstract(abc.ABC): ...
class Set(Dataset): ...
class Own(Base): ...
class Mixed(Generic[T], Bare, Base): ...
class Imported(Inner): ...
class FromAlias(Alias): ...
class FromStrange(Strange): ...
class FromNothing(nothing_there): ...
class Loop(Loop): ...
@torch.no_grad
class Decorated: ...
"""

DEEP = """\
import pytorch_lightning as pl
class Inner(pl.LightningModule):
    def __init__(self, width): ...
class Plain(object): ...
class Data(pl.LightningDataModule): ...
"""


@pytest.fixture
def kinds(nets: Path) -> Path:
    write(nets, "from .kinds import Own as Shown, Imported, Renamed\n", "pkg/__init__.py")
    write(nets, KINDS, "pkg/kinds.py")
    write(nets, DEEP, "pkg/deep.py")
    return nets


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("kinds.Bare", "pkg.kinds has Own, Mixed, Imported"),
        ("kinds.Module", "pkg.kinds has Own"),
        ("kinds.Long", ""),
        ("kinds.Twice", ""),
        ("kinds.Abstract", ""),
        ("kinds.Set", ""),
        ("kinds.Renamed", "pkg.deep has Inner"),
        ("kinds.Data", "pkg.deep has Inner"),
        ("deep.Plain", "pkg.deep has Inner"),
        ("Renamed", "pkg.deep has Inner"),
    ],
)
def test_a_class_that_is_no_lightning_module_is_told_so_before_its_arguments(
    name: str, hint: str, kinds: Path
) -> None:
    error = refusal_in(kinds, f"{{class_path: pkg.{name}, init_args: {{x: 1}}}}")
    place = r"pkg/\w+\.py:\d+"
    said = rf"cfg\.yaml:3: model\.class_path: pkg\.{name} \({place}\) is no LightningModule"
    assert re.fullmatch(said, error.message), error.message
    assert hint in error.hint
    assert error.hint


@pytest.mark.parametrize(
    "name",
    ["Own", "Mixed", "FromAlias", "FromStrange", "FromNothing", "Loop", "Decorated"],
)
def test_a_class_that_is_one_or_may_be_one_passes(name: str, kinds: Path) -> None:
    arguments = ", init_args: {width: 1}" if name == "Mixed" else ""
    check_in(kinds, f"{{class_path: pkg.kinds.{name}{arguments}}}")


def test_a_model_in_place_of_the_data_is_told(kinds: Path) -> None:
    error = refusal_in(kinds, "{class_path: pkg.Shown}", "{class_path: pkg.deep.Inner}")
    place = r"pkg/deep\.py:\d+"
    said = rf"cfg\.yaml:4: data\.class_path: pkg\.deep\.Inner \({place}\) is no LightningDataModule"
    assert re.fullmatch(said, error.message), error.message
    assert error.hint == "pkg.deep has Data, and Inner belongs to model"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("os.path", "os.path is a module, not a class"),
        ("pkg.kinds.paths", "pkg.kinds.paths is a module, not a class"),
        ("pkg.kinds.RATE", "pkg.kinds.RATE is a value, not a class"),
        ("math.pi", "math.pi is a float, not a class"),
    ],
)
def test_what_is_no_class_at_all_is_refused(name: str, message: str, kinds: Path) -> None:
    assert message in refusal_in(kinds, f"{{class_path: {name}}}").message


def test_the_arguments_of_a_class_that_a_package_only_passes_on_are_checked(kinds: Path) -> None:
    check_in(kinds, "{class_path: pkg.Imported, init_args: {width: 3}}")
    write(kinds, "from .deep import Inner\n", "pkg/__init__.py")
    error = refusal_in(kinds, "{class_path: pkg.Inner, init_args: {widht: 3}}")
    assert "model.init_args.widht: pkg.Inner takes no such argument" in error.message


IMPORTING = """\
import os, json.decoder
from pytorch_lightning import LightningModule
try:
    import not_here
except ImportError: ...
{line}
class Net(LightningModule): ...
"""


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("from .inner import f", "", ""),
        ("from . import inner, other", "", ""),
        ("from .inner import *", "", ""),
        ("import own.inner", "", ""),
        ("from .lazy import anything", "", ""),
        ("import own.iner", "use.py:6: imports 'own.iner', and own has no module 'iner'", "inner"),
        ("from .inner import ff", "use.py:6: imports 'ff' from own.inner, which has no", "'f'"),
        ("from .other import x", "own/other.py:2: imports 'gone', which is not installed", "pip"),
        ("from own import other2", "imports 'other2' from own, which has no such name", "'other'"),
        ("from .bad import x", "own/bad.py:1: ", "correct that line: "),
        ("from .circle import x", "circle.py:1: imports 'Net' from own.use, which", "move one of"),
    ],
)
def test_what_the_users_own_modules_import_is_looked_at_in_each_of_them(
    line: str, message: str, hint: str, nets: Path
) -> None:
    write(nets, "", "own/__init__.py")
    write(nets, IMPORTING.format(line=line), "own/use.py")
    write(nets, "def f(): ...\n", "own/inner.py")
    write(nets, "x = 1\nimport gone\n", "own/other.py")
    write(nets, "def x(:\n", "own/bad.py")
    write(nets, "from .use import Net\nx = 1\n", "own/circle.py")
    write(nets, "def __getattr__(name): ...\n", "own/lazy.py")
    if line == "from . import inner, other":
        write(nets, "", "own/other.py")
    if not message:
        check_in(nets, "{class_path: own.use.Net}")
        return
    error = refusal_in(nets, "{class_path: own.use.Net}")
    assert message in error.message
    assert hint in error.hint


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("class Net(pl.LightningModule): ...", "", ""),
        (
            "class Net(pl.LightningModul): ...",
            "use.py:3: class Net derives from pl.LightningModul, and pytorch_lightning has no",
            "did you mean 'LightningModule'",
        ),
        (
            "class Net(LightningModule): ...",
            "use.py:3: class Net derives from LightningModule, and use has no such name",
            "import it",
        ),
        (
            "from torch.nn import Lineer",
            "use.py:3: imports 'torch.nn.Lineer', and torch.nn has no 'Lineer'",
            "did you mean 'Linear'",
        ),
        # Lightning puts old names into its modules as it is imported; no text of theirs has them.
        ("from pytorch_lightning.plugins import MixedPrecisionPlugin", "", ""),
        ("from torch import nn, special_of_a_later_torch", "", ""),  # torch hides its names
    ],
)
def test_a_name_of_lightning_or_torch_that_is_typed_wrong_is_told(
    line: str, message: str, hint: str, nets: Path
) -> None:
    rest = "" if line.startswith("class") else "class Net(pl.LightningModule): ...\n"
    write(nets, f"import pytorch_lightning as pl\nfrom torch import nn\n{line}\n{rest}", "use.py")
    if not message:
        check_in(nets, "{class_path: use.Net}")
        return
    error = refusal_in(nets, "{class_path: use.Net}")
    assert message in error.message
    assert hint in error.hint


def test_packages_in_a_venv_beside_the_code_are_not_the_users(nets: Path) -> None:
    write(nets, "import no_such_package\nclass Thing: ...\n", "site-packages/thing.py")
    path = [str(nets), str(nets / "site-packages"), *sys.path]
    text = "name: x\nglobal_batch_size: 8\ndata: {class_path: nets.Data}\n"
    text += "model: {class_path: nets.Open, init_args: {a: {class_path: thing.Thing}}}\n"
    check(load(write(nets, text)), workdir=nets, search_path=path)


CALLBACKS = """\
import pytorch_lightning as pl
from pytorch_lightning.callbacks import Callback, LearningRateFinder

class Finds(LearningRateFinder):
    pass

class FindsLater(Finds):
    pass

class Sizes(pl.callbacks.BatchSizeFinder):
    pass

class BatchSizeFinder(Callback):
    pass
"""


@pytest.mark.parametrize(
    ("callback", "said"),
    [
        (
            "pytorch_lightning.callbacks.LearningRateFinder",
            ": pytorch_lightning.callbacks.LearningRateFinder takes trial steps within the fit",
        ),
        ("lightning.pytorch.callbacks.BatchSizeFinder", "BatchSizeFinder takes trial steps"),
        (
            "pytorch_lightning.callbacks.GradientAccumulationScheduler",
            "changes how many samples a step has",
        ),
        ("cbs.FindsLater", "cbs.FindsLater, a LearningRateFinder, takes trial steps"),
        ("cbs.Sizes", "cbs.Sizes, a BatchSizeFinder, takes trial steps"),
    ],
)
def test_a_callback_with_which_a_fit_cannot_go_on_exactly_is_refused(
    callback: str, said: str, nets: Path
) -> None:
    write(nets, CALLBACKS, "cbs.py")
    more = f"trainer: {{callbacks: [{{class_path: {callback}}}]}}\n"
    if callback.startswith("lightning.") and not find_spec("lightning"):
        pytest.skip("the package lightning is not installed")
    model = "{class_path: nets.Net, init_args: {width: 3}}"
    error = refusal_in(nets, model, "{class_path: nets.Data}", more)
    assert error.message.startswith("cfg.yaml:5: trainer.callbacks.0: ")
    assert said in error.message
    assert error.hint.startswith("leave it out")


def test_a_callback_of_ones_own_may_have_the_name_of_one_that_is_refused(nets: Path) -> None:
    write(nets, CALLBACKS, "cbs.py")
    model = "{class_path: nets.Net, init_args: {width: 3}}"
    more = "trainer: {callbacks: [{class_path: cbs.BatchSizeFinder}]}\n"
    check_in(nets, model, "{class_path: nets.Data}", more)


TRAINS = """\
import pytorch_lightning as pl
from pytorch_lightning import Trainer

class Net(pl.LightningModule):
    pass

def main(epochs=1):
    trainer = Trainer(max_epochs=epochs)
    trainer.fit(Net())

class Scaler:
    def fit(self, x):
        return self

Scaler().fit([1])
scaler = Scaler()
scaler.fit([2])
"""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("trainer = pl.Trainer()\ntrainer.fit(Net())", "train.py:19: trainer.fit(...) runs"),
        ("Trainer(max_epochs=2).fit(Net())", "train.py:18: Trainer(max_epochs=2).fit(...) runs"),
        ("main(3)", "train.py:9: trainer.fit(...) runs as it is imported, which each rank does"),
        ("for n in range(3):\n    main(n)", "train.py:9: trainer.fit(...) runs as it is imported"),
        ("if __name__ == '__main__':\n    main()", ""),
        ("import sys\nif len(sys.argv) > 7:\n    main()", ""),
        ("trainer = pl.Trainer", ""),
        ("def later():\n    main()", ""),
    ],
)
def test_a_module_that_trains_as_it_is_imported_is_refused(
    more: str, said: str, nets: Path
) -> None:
    write(nets, f"{TRAINS}{more}\n", "train.py")
    write(nets, "from train import Net\n\nclass Wider(Net):\n    pass\n", "wider.py")
    for model in ("train.Net", "wider.Wider"):
        if said:
            error = refusal_in(nets, f"{{class_path: {model}}}")
            assert error.message.startswith("cfg.yaml:3: model.class_path: train.py:")
            assert said in error.message
            assert "hpc-train submit train.py" in error.hint
        else:
            check_in(nets, f"{{class_path: {model}}}")
