"""Arguments of classes, of loggers and of Lightning's Trainer, held against their text."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

import pytest

from hpc_train.config.python_text.refusal_hints import hint_of
from hpc_train.config.trainer_args import OWNED, trainer_parameters
from hpc_train.errors import ConfigError
from tests.config.checking import check_in, nets, refusal_in
from tests.config.files import write

__all__ = ["nets"]

IMPORTED = "from pytorch_lightning import LightningDataModule, LightningModule\n"

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
        ("kind: 1.10", "is 1.10, which YAML reads as 1.1, and typed.Net takes str", '"1.10"'),
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
        ("{strategy: {class_path: nets.Open}}", ") is no Strategy", "has OwnStrategy"),
        ("{strategy: colossalai}", "is colossalai", "fsdp"),
        (
            "{strategy: fsdp, accelerator: cpu}",
            "cfg.yaml:5: trainer.strategy is fsdp, which needs GPUs, and trainer.accelerator is",
            "write ddp, or trainer.accelerator: gpu",
        ),
        ("{strategy: deepspeed_stage_2, accelerator: cpu}", "which needs GPUs", "write ddp"),
        ("{strategy: {name: fsdp}, accelerator: cpu}", "is fsdp, which needs GPUs", "write ddp"),
        (
            "{strategy: {class_path: lightning.pytorch.strategies.FSDPStrategy}, accelerator: cpu}",
            "strategies.FSDPStrategy, which needs GPUs",
            "write ddp",
        ),
    ],
)
def test_a_trainer_argument_that_cannot_be_is_refused_with_what_to_write(
    trainer: str, message: str, hint: str, nets: Path
) -> None:
    error = trainer_refusal(nets, trainer)
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    "strategy", ["fsdp", "{class_path: pytorch_lightning.strategies.FSDPStrategy}"]
)
def test_a_strategy_of_gpus_passes_where_no_cpu_is_asked_for(strategy: str, nets: Path) -> None:
    for accelerator in ("gpu", "auto"):
        more = f"trainer: {{accelerator: {accelerator}, strategy: {strategy}}}\n"
        check_in(nets, "{class_path: nets.Open}", "{class_path: nets.OpenData}", more)
    ours = "trainer: {accelerator: cpu, strategy: {class_path: nets.OwnStrategy}}\n"
    check_in(nets, "{class_path: nets.Open}", "{class_path: nets.OpenData}", ours)


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


@pytest.mark.parametrize(
    ("test", "given", "fix"),
    [
        (
            "self.monitor is None and self.save_top_k not in (-1, 0, 1)",
            ["save_top_k"],
            "write monitor: ..., or save_top_k: -1, 0 or 1",
        ),
        ("self.save_top_k < -1", ["save_top_k"], "write save_top_k: -1 or more"),
        ("self._every_n <= 0", ["every_n"], "write every_n: more than 0"),
        ("a_set + b_set > 1", ["a", "b"], "write one of a, b, and leave the rest out"),
        ("a_set + b_set > 1", ["a"], ""),
        ("self.other < 3", ["save_top_k"], ""),
        ("self.save_top_k < self.least", ["save_top_k"], ""),
        ("not save_top_k", ["save_top_k"], ""),
    ],
)
def test_a_refusal_of_a_class_is_told_with_what_it_takes(
    test: str, given: list[str], fix: str
) -> None:
    assert hint_of(test, given, {"monitor", "save_top_k", "every_n", "a", "b"}) == fix
