"""Gets a PyTorch Lightning training through a Slurm cluster, to the end, with the right result.

    import hpc_train

    loaded = hpc_train.load("configs/digits.yaml", nodes=3, gpus=4)
    run = hpc_train.submit(loaded)
    run.wait().metrics

`Session` makes a training loop of one's own exactly-once, without Lightning.
"""

from __future__ import annotations

__version__ = "0.1.0"

# `typing` is half of what `hpc-train list` would import; type checkers take the name at its word.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from hpc_train.api import Run, list_runs, load, render, run_here, submit, test_only
    from hpc_train.sweeps import Sweep, submit_sweep
    from hpc_train.training.session import Session

# `plan` is the name of a package here; the function is `hpc_train.api.plan`.
__all__ = [
    "Run",
    "Session",
    "Sweep",
    "list_runs",
    "load",
    "render",
    "run_here",
    "submit",
    "submit_sweep",
    "test_only",
]


# What the words of the command are in Python.
_FOUND = "hpc_train.Run.find('latest')"
_SAID = {
    **dict.fromkeys(("run", "train", "fit", "launch"), "hpc_train.run_here(hpc_train.load(PATH))"),
    **{it: f"{_FOUND}.{it}()" for it in ("status", "logs", "cancel", "resume", "checkpoints")},
    **{it: f"{_FOUND}.evaluate('{it}')" for it in ("test", "validate", "predict")},
    "list": "hpc_train.list_runs()",
    **dict.fromkeys(("find", "load_run", "get_run", "open_run", "find_run"), _FOUND),
    **dict.fromkeys(
        ("load_model", "get_model", "best_model", "load_checkpoint", "load_from_checkpoint"),
        f"CLASS.load_from_checkpoint({_FOUND}.best_model())",
    ),
    **dict.fromkeys(("Config", "config"), "hpc_train.load(PATH).config"),
    "sweep": "hpc_train.submit_sweep(hpc_train.load(PATH, sweep=['seed=1,2']))",
}

_LIGHTNINGS = ("Trainer", "LightningModule", "LightningDataModule", "Callback", "seed_everything")


def __getattr__(name: str) -> object:
    # The ranks and the commands import this package first: the rest loads when it is asked for.
    if name == "Session":
        from hpc_train.training.session import Session

        return Session
    if name in ("Sweep", "submit_sweep"):
        from hpc_train import sweeps

        return getattr(sweeps, name)
    if name in __all__:
        from hpc_train import api

        if name == "load":
            from hpc_train.python_notes import noted

            return noted(api.load)
        return getattr(api, name)
    if name.startswith("_"):  # tools ask for such names, and want no words
        raise AttributeError(f"module 'hpc_train' has no attribute {name!r}")
    raise _no_such_name(name)


def _no_such_name(name: str) -> Exception:
    """The refusal of a name, as an import or a use of it is to get it."""
    import inspect
    from pathlib import Path

    known = f"; it has {', '.join(__all__)}"
    said = f": write {_SAID[name]}" if name in _SAID else ""
    if name in _LIGHTNINGS:
        from hpc_train.config.python_text.lightning_home import of_project

        package, _, _ = of_project(f"pytorch_lightning.{name}").rpartition(".")
        said = f", it is Lightning's: write from {package} import {name}"
    if not said:
        from hpc_train.config.words import did_you_mean

        said = f": {near}" if (near := did_you_mean(name, __all__)) else ""
    here = Path(__file__).parent / name
    is_module = here.is_dir() or here.with_name(f"{name}.py").is_file()
    frame = inspect.currentframe()
    asks = frame.f_back.f_back if frame and frame.f_back else None  # who has asked for the name
    is_import = asks is not None and asks.f_code.co_name == "_handle_fromlist"  # importlib's
    if is_import and not is_module:
        # Python forgets the words of an AttributeError there.
        return ImportError(f"cannot import name {name!r} from 'hpc_train'{said or known}")
    return AttributeError(f"module 'hpc_train' has no attribute {name!r}{said or known}")


def __dir__() -> list[str]:
    # Without it nobody who types `hpc_train.` and Tab, or help(hpc_train), finds what loads later.
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
