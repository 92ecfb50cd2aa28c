"""The models that a training has saved by its own ModelCheckpoints: the list, and the best of it.

The ranks write `models/models.json` (`training.model_files`); here it is read without torch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hpc_train.codec import Document, encode
from hpc_train.config.python_text.lightning_home import of_project
from hpc_train.config.specs import callbacks_of, is_object, read_object
from hpc_train.config.words import did_you_mean
from hpc_train.errors import HpcTrainError, UsageError
from hpc_train.runs.atomic import write_text
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.events import read_events
from hpc_train.runs.history import has_ended
from hpc_train.runs.layout import RunDir
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.run_word import run_word

_OF_ZIP = b"PK\x03\x04"  # with which the header of an archive's first file begins


class TornBestError(HpcTrainError):
    """All models that a metric has chosen are torn."""


@dataclass(frozen=True, kw_only=True)
class SavedModel(Document):
    """One file (or folder, of a sharded model) in Lightning's own format.

    Attributes:
        path: As read: absolute. In the file it is relative where it is in the run's folder, so
            that a run can be moved.
        step: Optimizer steps taken when it was saved.
        monitor: The metric that decided; empty where none did.
        score: Its value; None where it was NaN, or where nothing decided.
        last: It is `save_last`'s, written over each time.
    """

    path: str
    step: int
    epoch: int
    monitor: str = ""
    mode: str = "min"
    score: float | None = None
    last: bool = False

    def __fspath__(self) -> str:
        """The path, so that torch.load and `load_from_checkpoint` take the model itself."""
        return self.path

    @property
    def is_there(self) -> bool:
        """Whether it has not been deleted; elsewhere than in a file system, nobody looks."""
        return "://" in self.path or Path(self.path).exists()

    @property
    def why_torn(self) -> str:
        """Why nothing can load it; empty where it is whole, or of a kind that is not looked at.

        torch.save writes a zip archive, whose list of names stands at the end: one that was cut
        off, as by a full disk, has none. A folder of shards, torch's older pickles and what a
        plugin writes in another format are left alone.
        """
        import zipfile  # the command line starts without it

        try:
            if not (file := Path(self.path)).is_file():
                return ""
            with file.open("rb") as stream:
                start = stream.read(len(_OF_ZIP))
                if not start:
                    return "it is empty"
                is_cut = start == _OF_ZIP and not zipfile.is_zipfile(stream)
        except OSError:
            return ""
        return "its end is missing" if is_cut else ""

    @property
    def metric_text(self) -> str:
        """`val_acc 0.9778`; empty where no metric decided."""
        if not self.monitor:
            return ""
        return f"{self.monitor} {'nan' if self.score is None else format(self.score, '.4g')}"


def read_models(run: RunDir) -> list[SavedModel]:
    """Those that are still there, newest first; of one step, that of the later training first."""
    try:
        rows = json.loads(run.models_list.read_text(encoding="utf-8"))
        found = [SavedModel.from_json(row) for row in rows]
    except (OSError, ValueError, TypeError):
        return []  # none yet, or none that can be read: the files themselves stay what they are
    placed = [
        model if "://" in model.path else replace(model, path=str(run.path / model.path))
        for model in found
    ]
    there = [model for model in reversed(placed) if model.is_there]
    return sorted(there, key=lambda model: -model.step)


def write_models(run: RunDir, models: Iterable[SavedModel]) -> None:
    """Write the list that `read_models` reads.

    Raises:
        OSError: as the file system says.
    """
    rows = []
    for model in models:
        path = Path(model.path)
        inside = path.is_relative_to(run.path)
        rows.append(replace(model, path=str(path.relative_to(run.path)) if inside else model.path))
    run.models.mkdir(parents=True, exist_ok=True)
    write_text(run.models_list, json.dumps(encode(rows), indent=1) + "\n")


def best_models(models: Sequence[SavedModel]) -> dict[str, SavedModel]:
    """The best one by each metric that decided."""
    best: dict[str, SavedModel] = {}
    for model in sorted(models, key=lambda model: model.step):  # the first of equals, as Lightning
        rival = best.get(model.monitor)
        if model.monitor and not model.last and (rival is None or _is_better(model, rival)):
            best[model.monitor] = model
    return best


def without_torn(models: Sequence[SavedModel]) -> tuple[list[SavedModel], list[SavedModel]]:
    """The models without those that would be the best, or the newest, and are torn; and these.

    What is neither is not opened: there may be hundreds.
    """
    whole, torn = list(models), list[SavedModel]()
    while True:
        newest = newest_undecided(whole)
        chosen = [*best_models(whole).values(), *([newest] if newest else [])]
        found = [model for model in chosen if model.why_torn]
        if not found:
            return whole, torn
        torn += found
        whole = [model for model in whole if model not in found]


def passed_over(run: RunDir, chosen: SavedModel) -> list[str]:
    """A line on each model that would be in the place of the chosen one, were it whole."""
    _, torn = without_torn(read_models(run))
    return [
        f"{it.path} ({it.metric_text}, step {it.step}) is better, and passed over: {it.why_torn}"
        for it in torn
        if it.monitor == chosen.monitor
    ]


# Where a script makes the Trainer.
OF_SCRIPT = (
    "a ModelCheckpoint with a monitor among the callbacks of its Trainer saves it; what a script"
    " saves by itself is where it writes it"
)


def newest_undecided(models: Sequence[SavedModel]) -> SavedModel | None:
    """The newest one of a ModelCheckpoint without a monitor, where there is one."""
    undecided = [model for model in models if not model.monitor and not model.last]
    return max(undecided, key=lambda model: model.step, default=None)


def _is_better(model: SavedModel, than: SavedModel) -> bool:
    if model.score is None or than.score is None:
        return than.score is None and model.score is not None
    return model.score < than.score if model.mode == "min" else model.score > than.score


def never_logged(run: RunDir) -> tuple[str, str] | None:
    """What is wrong and what to write, where a ModelCheckpoint waits for what nothing has logged.

    None as well where it is not known what was logged: the run has not ended, or is a script.
    """
    try:
        final = json.loads(run.final_metrics.read_text(encoding="utf-8"))
        logged = sorted(name for name in final if name not in ("step", "epoch"))
    except (OSError, ValueError, TypeError):
        return None
    for monitor in awaited_metrics(run):
        if monitor not in (*logged, "step", "epoch"):
            metrics = ", ".join(logged) or "nothing"
            what = f"its ModelCheckpoint monitors {monitor}, never logged; logged: {metrics}"
            fix = f'write self.log("{monitor}", ...) in the model'
            return what, did_you_mean(monitor, logged) or fix
    return None


def awaited_metrics(run: RunDir) -> list[str]:
    """What the ModelCheckpoints of its config monitor; none of a script's."""
    try:
        callbacks = callbacks_of(read_plan(run).training.trainer)
    except (TypeError, HpcTrainError):
        return []
    found = [read_object(it, "") for _, it in callbacks if is_object(it)]
    own = [given for path, given in found if path.endswith("ModelCheckpoint")]
    return [str(given["monitor"]) for given in own if given.get("monitor")]


def none_of_its_own(run: RunDir) -> str:
    """What is said of a run whose ModelCheckpoint has saved nothing; empty where it has none."""
    awaited = awaited_metrics(run)
    so_far = "" if has_ended(read_events(run.events)) else " so far"
    return f"its ModelCheckpoint has saved none by {awaited[0]}{so_far}" if awaited else ""


def is_of_script(run: RunDir) -> bool:
    """Whether a script makes the Trainer, or none at all."""
    try:
        return read_plan(run).script is not None
    except HpcTrainError:
        return False


def _project_of(run: RunDir) -> tuple[list[str], str]:
    """Where a run's modules are looked for, and the class of its model; empty where it has none."""
    try:
        plan = read_plan(run)
    except HpcTrainError:
        return [str(Path.cwd()), *sys.path], ""
    model = plan.training.model
    return [plan.workdir or str(Path.cwd()), *sys.path], model.class_path


def choose_best(run: RunDir, monitor: str | None = None) -> SavedModel:
    """The best model of a run.

    Args:
        monitor: The metric that decides; needed where models were saved by several.

    Raises:
        HpcTrainError: there is none (by that metric), or no metric decided.
        TornBestError: there is none that is whole.
        UsageError: several metrics decided, and none is named.
    """
    models = read_models(run)
    named = sorted(best_models(models))
    if not named:
        raise _no_best(run)
    if monitor is not None and monitor not in named:
        raise HpcTrainError(
            f"{run.name} ({run.run_id}) has saved no model by {monitor}",
            f"its models were saved by {', '.join(named)}",
        )
    if monitor is None and len(named) > 1:
        raise UsageError(
            f"the models of {run.name} ({run.run_id}) were saved by {', '.join(named)}",
            f"say which decides: --monitor {named[0]}",
        )
    whole, torn = without_torn(models)
    metric = monitor or named[0]
    if metric in (best := best_models(whole)):
        return best[metric]
    first = next(it for it in torn if it.monitor == metric)
    raise TornBestError(
        f"{run.name} ({run.run_id}) has no best model that is whole: {first.path}:"
        f" {first.why_torn}",
        f"`hpc-train checkpoints {run_word(run.path)}` shows what else it has",
    )


def _no_best(run: RunDir) -> HpcTrainError:
    """Why no model is the best, and what to write."""
    what = f"{run.name} ({run.run_id}) has saved no best model"
    if newest := newest_undecided(without_torn(read_models(run))[0]):
        why = "no metric decided about those that it saved"
        fix = "set monitor in its ModelCheckpoint, to what the model logs"
        return HpcTrainError(f"{what}: {why}", f"{fix}; the newest one: {newest.path}")
    if why_not := never_logged(run):
        return HpcTrainError(f"{what}: {why_not[0]}", why_not[1])
    if is_of_script(run):
        return HpcTrainError(what, OF_SCRIPT)
    from hpc_train.runs.trials import trial_without_models  # on the way to an error

    if trial := trial_without_models(run):
        return HpcTrainError(f"{what}: {trial[0]}", trial[1])
    if why := none_of_its_own(run):
        return HpcTrainError(f"{what}: {why}", f"hpc-train status {run_word(run.path)}")
    checkpoint = of_project("pytorch_lightning.callbacks.ModelCheckpoint", *_project_of(run))
    fix = f"add a {checkpoint} with init_args.monitor to trainer.callbacks"
    if newest_step(run):
        fix += f"; `hpc-train checkpoints {run_word(run.path)}` shows its newest state"
    return HpcTrainError(what, fix)
