from __future__ import annotations

import inspect
import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from hpc_train.config.load import load
from hpc_train.config.trainer_args import OWNED, trainer_parameters
from hpc_train.config.validate import check
from hpc_train.errors import ConfigError
from tests.config.files import write

NETS = """\
import pytorch_lightning as pl
from torch import Tensor as Imported
from pytorch_lightning import LightningDataModule
try:
    import a_package_that_may_be_missing
except ImportError:
    pass

raise RuntimeError("this module must not be imported")

class Net(pl.LightningModule):
    def __init__(self, width, lr=0.1, *, depth: int = 2):
        pass

class Child(Net):
    pass

class Open(pl.LightningModule):
    def __init__(self, **kwargs):
        pass

class Foreign(Imported):
    pass

class Data(LightningDataModule):
    def __init__(self, batch_size, path="x"):
        pass

def make(width):
    return Net(width)

if True:
    class Hidden(pl.LightningModule):
        pass

class OpenData(LightningDataModule):
    def __init__(self, **kwargs):
        pass

class OwnStrategy(pl.strategies.Strategy):
    def __init__(self, **kwargs):
        pass
"""


@pytest.fixture
def nets(tmp_path: Path) -> Path:
    write(tmp_path, NETS, "nets.py")
    return tmp_path


def check_in(
    folder: Path, model: str, data: str = "{class_path: nets.Data}", more: str = ""
) -> None:
    text = f"name: x\nglobal_batch_size: 8\nmodel: {model}\ndata: {data}\n{more}"
    check(load(write(folder, text)), workdir=folder)


def refusal_in(folder: Path, *arguments: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        check_in(folder, *arguments)
    error = caught.value
    assert "\n" not in str(error)
    return ConfigError(error.message.replace(f"{folder}/", ""), error.hint)


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
            "did you mean 'nets'?",
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
        ("{class_path: pkg.sub.Net}", "pkg has no module 'sub'", "did you mean 'pkg.subs'?"),
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
        ("{class_path: nets.Net}", "nets.Net needs the argument 'width'", "init_args.width"),
        ("{class_path: broken.Net}", "broken.py:2: ", "fix that line"),
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
    assert error.message == f"cfg.yaml:3: model.class_path: pkg.{name} is no LightningModule"
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
    assert error.message == "cfg.yaml:4: data.class_path: pkg.deep.Inner is no LightningDataModule"
    assert error.hint == "pkg.deep has Data"


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


IMPORTED = "from pytorch_lightning import LightningDataModule, LightningModule\n"
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
        ("from .bad import x", "own/bad.py:1: ", "fix that line"),
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


TYPED = """\
import abc
from typing import Optional
from pytorch_lightning import LightningModule
class Net(LightningModule):
    def __init__(self, width: int = 1, lr: float = 0.1, deep: bool = True, kind: str = "a",
                 some: Optional[int] = None, other: "int | None" = None, free=None,
                 many: list[int] = None, new: float | None = None):
        super().__init__()
class Bare(LightningModule): ...
class Abstract(LightningModule, abc.ABC):
    @abc.abstractmethod
    def go(self): ...
class Whole(Abstract):
    def go(self): ...
def nothing(): print("hi")
def made():
    return Net()
"""


@pytest.mark.parametrize(
    ("argument", "message", "hint"),
    [
        ("width: wide", "is 'wide', and typed.Net takes int", "write a whole number"),
        ("width: 1.5", "is 1.5, and", "write a whole number"),
        ("width: true", "is True, and", "write a whole number"),
        ("width: [1]", "is [1], and", "write a whole number"),
        ("lr: fast", "is 'fast', and typed.Net takes float", "write a number"),
        ("lr: {a: 1}", "is {'a': 1}, and", "write a number"),
        ("deep: 1", "is 1, and typed.Net takes bool", "write true or false"),
        ("kind: 1.10", "is 1.1, and typed.Net takes str", 'in quotes where YAML sees another'),
        ("some: x", "is 'x', and typed.Net takes int", "write a whole number"),
        ("new: x", "is 'x', and typed.Net takes float", "write a number"),
        ("width: 3", "", ""),
        ("width: null", "", ""),
        ("lr: 3", "", ""),
        ("lr: 1e-3", "", ""),
        ("deep: false", "", ""),
        ("kind: b", "", ""),
        ("some: 3", "", ""),
        ("free: [1]", "", ""),
        ("many: [1]", "", ""),
    ],
)  # fmt: skip
def test_an_argument_of_another_type_than_the_class_says_is_refused(
    argument: str, message: str, hint: str, nets: Path
) -> None:
    write(nets, TYPED, "typed.py")
    model = f"{{class_path: typed.Net, init_args: {{{argument}}}}}"
    if not message:
        check_in(nets, model)
        return
    error = refusal_in(nets, model)
    assert f"cfg.yaml:3: model.init_args.{argument.partition(':')[0]} {message}" in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("{class_path: typed.Abstract}", "typed.Abstract is abstract: it lacks go"),
        ("{class_path: typed.nothing}", "typed.nothing is a function that returns nothing"),
        ("{class_path: typed.Bare, init_args: {a: 1}}", "init_args.a: typed.Bare takes no such"),
        ("{class_path: typed.py}", "typed has no class 'py'"),
        ("typed.Net", "model is 'typed.Net'"),
    ],
)
def test_what_can_make_no_model_is_refused(model: str, message: str, nets: Path) -> None:
    write(nets, TYPED, "typed.py")
    error = refusal_in(nets, model)
    assert message in error.message
    assert error.hint
    for good in ("Bare", "Whole", "made"):
        check_in(nets, f"{{class_path: typed.{good}}}")


@pytest.mark.parametrize(
    ("logger", "package"),
    [
        ("wandb", "wandb"),
        ("mlflow", "mlflow"),
        ("{class_path: pytorch_lightning.loggers.WandbLogger}", "wandb"),
        ("{class_path: lightning.pytorch.loggers.MLFlowLogger}", "mlflow"),
        ("{class_path: pytorch_lightning.loggers.CometLogger}", "comet_ml"),
    ],
)
def test_a_logger_whose_package_is_missing_is_told_at_submission(
    logger: str, package: str, nets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = f"loggers: [csv, {logger}]\n"
    both = ("{class_path: nets.Open}", "{class_path: nets.OpenData}")
    error = refusal_in(nets, *both, more)
    assert f"cfg.yaml:5: loggers.1: {package} is not installed" in error.message
    assert error.hint == f"pip install {package}"
    check_in(nets, *both, more + "env: {conda: train}\n")  # another environment may have it
    write(nets, "", f"{package}.py")
    check_in(nets, *both, more)


@pytest.mark.parametrize(
    ("version", "more", "is_refused"),
    [
        ("3.17.2", "", True),
        ("3.13.0", "", True),
        ("3.12.9", "", False),
        ("2.22.0", "", False),
        ("4.0.0rc1", "", True),
        ("3.17.2", 'env: {variables: {MLFLOW_ALLOW_FILE_STORE: "true"}}\n', False),
        ("3.17.2", "env: {passthrough: [MLFLOW_TRACKING_URI]}\n", False),
        ("3.17.2", "env: {setup: [source mlflow.sh]}\n", False),
    ],
)
def test_an_mlflow_that_writes_into_no_files_is_told_at_submission(
    version: str, more: str, is_refused: bool, nets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MLFLOW_ALLOW_FILE_STORE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    write(nets, "", "mlflow.py")
    write(nets, "", f"mlflow_skinny-{version}.dist-info/METADATA")
    metadata = nets / f"mlflow_skinny-{version}.dist-info" / "METADATA"
    metadata.write_text(f"Metadata-Version: 2.1\nName: mlflow-skinny\nVersion: {version}\n")
    both = ("{class_path: nets.Open}", "{class_path: nets.OpenData}")
    if not is_refused:
        check_in(nets, *both, f"loggers: [csv, mlflow]\n{more}")
        return
    error = refusal_in(nets, *both, f"loggers: [csv, mlflow]\n{more}")
    assert f"cfg.yaml:5: loggers.1: MLflow {version} writes into no files" in error.message
    assert 'MLFLOW_ALLOW_FILE_STORE: "true"' in error.hint
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://server")
    check_in(nets, *both, "loggers: [csv, mlflow]\n")


def test_an_argument_that_the_rank_gives_by_itself_may_be_left_out(nets: Path) -> None:
    check_in(nets, "{class_path: nets.Hidden}", "{class_path: nets.Data, init_args: {path: a}}")


def test_a_name_that_the_text_does_not_show_is_looked_up_by_importing_elsewhere(
    tmp_path: Path,
) -> None:
    write(tmp_path, IMPORTED + "class Data(LightningDataModule): ...\n", "nets.py")
    write(
        tmp_path,
        "def __getattr__(n):\n    if n == 'Lazy': return type('LightningModule', (), {})\n"
        "    raise AttributeError(n)\n",
        "lazy.py",
    )
    check_in(tmp_path, "{class_path: lazy.Lazy}")
    error = refusal_in(tmp_path, "{class_path: lazy.Nope}")
    assert "lazy.Nope cannot be imported: AttributeError: Nope" in error.message
    assert "lazy" not in sys.modules


def test_a_package_that_only_a_finder_of_its_own_knows_is_found(
    nets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # setuptools' editable installs put such a finder into sys.meta_path.
    hidden = write(
        nets, IMPORTED + "class Net(LightningModule): ...\n", "elsewhere/editable_one/__init__.py"
    )

    class Finder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
            if name != "editable_one":
                return None
            return spec_from_file_location(
                name, hidden, submodule_search_locations=[str(hidden.parent)]
            )

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    check_in(nets, "{class_path: editable_one.Net}")
    assert "has no class 'Nat'" in refusal_in(nets, "{class_path: editable_one.Nat}").message


@pytest.mark.parametrize(
    "path",
    [
        "collections.OrderedDict",
        "numpy.ndarray",
        pytest.param("torch.nn.Linear", marks=pytest.mark.torch),
    ],
)
def test_installed_classes_are_found(path: str, nets: Path) -> None:
    inner = f"{{class_path: {path}, init_args: {{in_features: 1, out_features: 1}}}}"
    check_in(nets, f"{{class_path: nets.Open, init_args: {{inner: {inner}}}}}")


def test_classes_among_arguments_callbacks_and_loggers_are_looked_at_too(nets: Path) -> None:
    model = "{class_path: nets.Open, init_args: {net: {class_path: nets.Nat}}}"
    assert "model.init_args.net.class_path: nets has no" in refusal_in(nets, model).message
    more = "trainer: {callbacks: [{class_path: nets.Nat}]}\n"
    error = refusal_in(nets, "{class_path: nets.Open}", "{class_path: nets.OpenData}", more)
    assert "cfg.yaml:5: trainer.callbacks.0.class_path: nets has no class 'Nat'" in error.message
    more = "loggers: [csv, {class_path: nets.Nat}]\n"
    error = refusal_in(nets, "{class_path: nets.Open}", "{class_path: nets.OpenData}", more)
    assert "loggers.1.class_path" in error.message


def test_in_another_environment_only_what_is_found_is_judged(nets: Path) -> None:
    more = "env: {conda: train}\n"
    check_in(nets, "{class_path: only_in_conda.Net}", "{class_path: nets.Data}", more)
    error = refusal_in(nets, "{class_path: nets.Nett}", "{class_path: nets.Data}", more)
    assert "nets has no class 'Nett'" in error.message


def test_a_venv_is_searched_for_the_class(nets: Path) -> None:
    write(
        nets, "class Net(LightningModule): ...\n", "my venv/lib/python3.11/site-packages/inside.py"
    )
    more = "env: {venv: my venv}\n"
    check_in(nets, "{class_path: inside.Net}", "{class_path: nets.Data}", more)
    error = refusal_in(nets, "{class_path: inside.Nat}", "{class_path: nets.Data}", more)
    assert "did you mean 'inside.Net'?" in error.hint


def test_a_pythonpath_of_the_config_is_searched_for_the_class(nets: Path) -> None:
    write(nets, IMPORTED + "class Net(LightningModule): ...\n", "src/inner.py")
    more = "env: {variables: {PYTHONPATH: src}}\n"
    check_in(nets, "{class_path: inner.Net}", "{class_path: nets.Data}", more)
    assert "no module 'inner'" in refusal_in(nets, "{class_path: inner.Net}").message


# Trainer arguments


def trainer_refusal(folder: Path, trainer: str) -> ConfigError:
    more = f"trainer: {trainer}\n"
    return refusal_in(folder, "{class_path: nets.Open}", "{class_path: nets.OpenData}", more)


@pytest.mark.parametrize(
    ("trainer", "message", "hint"),
    [
        (
            "{max_epoch: 3}",
            "cfg.yaml:5: trainer.max_epoch is no argument of Lightning's Trainer",
            "did you mean 'trainer.max_epochs'",
        ),
        ("{gpus: 4}", "trainer.gpus is no argument", "write slurm.gpus_per_node"),
        ("{resume_from_checkpoint: x}", "is no argument", "hpc-train resume RUN"),
        ("{auto_lr_find: true}", "is no argument", "tuner.Tuner"),
        ("{amp_backend: apex}", "is no argument", "trainer.precision: 16-mixed"),
        ("{weights_summary: top}", "is no argument", "trainer.enable_model_summary"),
        ("{quite_unlike_any: 1}", "is no argument", "model.init_args"),
        ("{num_nodes: 2}", "trainer.num_nodes is set by hpc-train", "--nodes"),
        ("{devices: 2}", "trainer.devices is set by hpc-train", "--gpus"),
        ("{accumulate_grad_batches: 2}", "is set by hpc-train", "micro_batch_size"),
        ("{logger: true}", "is set by hpc-train", "loggers: [csv, tensorboard]"),
        ("{deterministic: true}", "is set by hpc-train", "reproducible: true"),
        ("{accelerator: gpus}", "trainer.accelerator is 'gpus'", "did you mean 'gpu'?"),
        ("{accelerator: tpu}", "trainer.accelerator is 'tpu'", ""),
        ("{precision: bf16-mixd}", "trainer.precision is 'bf16-mixd'", "'bf16-mixed'"),
        ("{precision: 8}", "trainer.precision is 8", "16-mixed"),
        ("{strategy: dpp}", "trainer.strategy is 'dpp'", "did you mean 'ddp'"),
        ("{strategy: ddp_spawn}", "is ddp_spawn", "write ddp: hpc-train starts the ranks"),
        ("{strategy: my_spawn}", "starts processes of its own", "write ddp"),
        ("{strategy: dp}", "is dp", "global_batch_size"),
        ("{strategy: modelparallel}", "is 'modelparallel'", "strategies.ModelParallelStrategy"),
        ("{strategy: DDPStrategy}", "is 'DDPStrategy'", "write ddp"),
        ("{strategy: {class_path: nets.Open}}", "nets.Open is no Strategy", "has OwnStrategy"),
        ("{strategy: colossalai}", "is colossalai", "fsdp"),
    ],
)
def test_a_trainer_argument_that_cannot_be_is_refused_with_what_to_write(
    trainer: str, message: str, hint: str, nets: Path
) -> None:
    error = trainer_refusal(nets, trainer)
    assert message in error.message
    assert hint in error.hint


def test_lightnings_own_arguments_pass(nets: Path) -> None:
    more = (
        "trainer: {accelerator: cpu, strategy: my_registered_one, precision: bf16-mixed,"
        " max_steps: 3, limit_val_batches: 0.5, gradient_clip_val: 1.0, profiler: simple}\n"
    )
    check_in(nets, "{class_path: nets.Open}", "{class_path: nets.OpenData}", more)
    more = "trainer: {precision: 32, strategy: {class_path: nets.OwnStrategy}}\n"
    check_in(nets, "{class_path: nets.Open}", "{class_path: nets.OpenData}", more)


@pytest.mark.torch
def test_the_arguments_read_from_the_text_are_those_of_the_installed_trainer() -> None:
    from pytorch_lightning import Trainer

    wanted = list(inspect.signature(Trainer.__init__).parameters)[1:]
    assert list(trainer_parameters(sys.path)) == wanted
    assert set(OWNED) <= set(wanted)


def test_checking_imports_neither_torch_nor_lightning_nor_the_users_modules() -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from hpc_train.config.load import load; from hpc_train.config.validate import check\n"
        "check(load('configs/digits.yaml'), workdir=Path.cwd())\n"
        "print([m for m in ('torch', 'pytorch_lightning', 'submitit', 'jinja2', 'rich',"
        " 'subprocess', 'hpc_train.examples') if m in sys.modules])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "[]\n"
