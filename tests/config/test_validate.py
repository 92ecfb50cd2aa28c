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
from torch import Tensor as Imported
try:
    import a_package_that_may_be_missing
except ImportError:
    pass

raise RuntimeError("this module must not be imported")

class Net:
    def __init__(self, width, lr=0.1, *, depth: int = 2):
        pass

class Child(Net):
    pass

class Open:
    def __init__(self, **kwargs):
        pass

class Foreign(Imported):
    pass

class Data:
    def __init__(self, batch_size, path="x"):
        pass

def make(width):
    return Net(width)

if True:
    class Hidden:
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
            "it has Net, Child, Open, Foreign, Data, Hidden",
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
    write(nets, "class Deep: ...\n", "pkg/subs.py")
    write(nets, "class Net:\n    def f(:\n", "broken.py")
    write(nets, "import os, json.decoder\n\nfrom not_here.x import Net\n", "needy.py")
    error = refusal_in(nets, model)
    assert message in error.message
    assert hint in error.hint


def test_an_argument_that_the_rank_gives_by_itself_may_be_left_out(nets: Path) -> None:
    check_in(nets, "{class_path: nets.Hidden}", "{class_path: nets.Data, init_args: {path: a}}")


def test_a_name_that_the_text_does_not_show_is_looked_up_by_importing_elsewhere(
    tmp_path: Path,
) -> None:
    write(tmp_path, "class Data: ...\n", "nets.py")
    write(
        tmp_path,
        "def __getattr__(n):\n    if n == 'Lazy': return int\n    raise AttributeError(n)\n",
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
    hidden = write(nets, "class Net: ...\n", "elsewhere/editable_one/__init__.py")

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
    check_in(nets, f"{{class_path: {path}, init_args: {{in_features: 1, out_features: 1}}}}")


def test_classes_among_arguments_callbacks_and_loggers_are_looked_at_too(nets: Path) -> None:
    model = "{class_path: nets.Open, init_args: {net: {class_path: nets.Nat}}}"
    assert "model.init_args.net.class_path: nets has no" in refusal_in(nets, model).message
    more = "trainer: {callbacks: [{class_path: nets.Nat}]}\n"
    error = refusal_in(nets, "{class_path: nets.Open}", "{class_path: nets.Open}", more)
    assert "cfg.yaml:5: trainer.callbacks.0.class_path: nets has no class 'Nat'" in error.message
    more = "loggers: [csv, {class_path: nets.Nat}]\n"
    error = refusal_in(nets, "{class_path: nets.Open}", "{class_path: nets.Open}", more)
    assert "loggers.1.class_path" in error.message


def test_in_another_environment_only_what_is_found_is_judged(nets: Path) -> None:
    more = "env: {conda: train}\n"
    check_in(nets, "{class_path: only_in_conda.Net}", "{class_path: nets.Data}", more)
    error = refusal_in(nets, "{class_path: nets.Nett}", "{class_path: nets.Data}", more)
    assert "nets has no class 'Nett'" in error.message


def test_a_venv_is_searched_for_the_class(nets: Path) -> None:
    write(nets, "class Net: ...\n", "my venv/lib/python3.11/site-packages/inside.py")
    more = "env: {venv: my venv}\n"
    check_in(nets, "{class_path: inside.Net}", "{class_path: nets.Data}", more)
    error = refusal_in(nets, "{class_path: inside.Nat}", "{class_path: nets.Data}", more)
    assert "did you mean 'inside.Net'?" in error.hint


def test_a_pythonpath_of_the_config_is_searched_for_the_class(nets: Path) -> None:
    write(nets, "class Net: ...\n", "src/inner.py")
    more = "env: {variables: {PYTHONPATH: src}}\n"
    check_in(nets, "{class_path: inner.Net}", "{class_path: nets.Data}", more)
    assert "no module 'inner'" in refusal_in(nets, "{class_path: inner.Net}").message


# Trainer arguments


def trainer_refusal(folder: Path, trainer: str) -> ConfigError:
    more = f"trainer: {trainer}\n"
    return refusal_in(folder, "{class_path: nets.Open}", "{class_path: nets.Open}", more)


@pytest.mark.parametrize(
    ("trainer", "message", "hint"),
    [
        (
            "{max_epoch: 3}",
            "cfg.yaml:5: trainer.max_epoch is no argument of Lightning's Trainer",
            "did you mean 'trainer.max_epochs'",
        ),
        ("{gpus: 4}", "trainer.gpus is no argument", "see Lightning's Trainer"),
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
        ("{strategy: ddp_spawn}", "starts processes of its own", "write ddp"),
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
        "trainer: {accelerator: cpu, strategy: my_registered_one, precision: 16-mixed,"
        " max_steps: 3, limit_val_batches: 0.5, gradient_clip_val: 1.0, profiler: simple}\n"
    )
    check_in(nets, "{class_path: nets.Open}", "{class_path: nets.Open}", more)
    more = "trainer: {precision: 32, strategy: {class_path: nets.Open}}\n"
    check_in(nets, "{class_path: nets.Open}", "{class_path: nets.Open}", more)


@pytest.mark.torch
def test_the_arguments_read_from_the_text_are_those_of_the_installed_trainer() -> None:
    from pytorch_lightning import Trainer

    wanted = list(inspect.signature(Trainer.__init__).parameters)[1:]
    assert trainer_parameters(sys.path) == wanted
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
