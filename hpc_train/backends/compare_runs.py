"""What differs between a run and now, or between two runs or attempts: code, packages, config."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpc_train.backends.code_copy import settle_paths
from hpc_train.backends.moved_run import config_file, project_of_today
from hpc_train.backends.same_values import is_same_value, sections_alike
from hpc_train.config.load import LoadedConfig, load
from hpc_train.config.schema import Config
from hpc_train.errors import HpcTrainError
from hpc_train.runs.installed import installed_packages
from hpc_train.runs.layout import RunDir
from hpc_train.runs.provenance import (
    CodeChange,
    code_change,
    code_state,
    edited_files,
    packages_of,
    read_state,
    state_before,
)
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.run_word import run_word
from hpc_train.runs.snapshot import changed_files, copy_at

# Of what tells runs apart in one line.
_MOST_TOLD_APART, _MOST_KEYS, _MOST_CHARACTERS = 10, 2, 80

OF_THE_PLACE = ("python", "hpc_train", "slurm", "driver", "system", "kernel", "modules")
OF_TORCH = ("cuda", "hip", "cudnn", "nccl", "gpus")
Pairs = dict[str, tuple[Any, Any]]  # key -> before, after; None = it is not there


@dataclass(frozen=True, kw_only=True)
class AttemptDifferences:
    """What an attempt of a run had that the one before had not.

    Attributes:
        before: The attempt before; None for the submission.
        files: Python files whose text differs.
    """

    before: int | None
    files: tuple[str, ...] = ()
    place: Pairs = field(default_factory=dict)
    packages: Pairs = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunDifferences:
    """Empty where nothing differs.

    Attributes:
        place: Python, Slurm, driver, how torch was built.
        typed: What was typed over the config file, which has another value there now; no change.
        attempts: How the run's later attempts differ from the ones before, by their numbers.
        unknown: What could not be compared, and why.
    """

    code: CodeChange
    place: Pairs = field(default_factory=dict)
    packages: Pairs = field(default_factory=dict)
    config: Pairs = field(default_factory=dict)
    typed: Pairs = field(default_factory=dict)
    attempts: Mapping[int, AttemptDifferences] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


def compare_with_now(run: RunDir, attempt: int | None = None) -> RunDifferences:
    """The run against the folder it was submitted from, this Python, and its config file."""
    plan = read_plan(run)
    copy = copy_at(Path(plan.workdir))
    workdir = project_of_today(run, copy.original if copy else Path(plan.workdir))
    now = code_state(workdir, packages_of(plan))
    now["packages"] = installed_packages(sys.path)
    unknown: list[str] = []
    if not workdir.is_dir():
        del now["sources"], now["git_diff"]
        where = "type it in the folder where the project is now"
        unknown.append(f"code: the project was in {workdir}, which is gone; {where}")
    config: Pairs = {}
    typed: Pairs = {}
    try:
        if not (written := written_config(run)):
            raise HpcTrainError("the run names no config file")
        changes = config_changes(run, written, workdir, is_copied=copy is not None)
        config, typed = changes.pairs, changes.typed
    except HpcTrainError as error:
        unknown.append(f"config: {error.message}")
    before = _state(run, attempt)
    place = _known_of_both(before, now, ("python", "hpc_train"))
    compared = _compared(before, now, place, config, unknown)
    compared = dataclasses.replace(compared, typed=typed)
    if attempt is None:
        compared = dataclasses.replace(compared, attempts=_among_attempts(run))
    if copy is None:
        return compared
    code = dataclasses.replace(compared.code, files=tuple(changed_files(copy)))
    return dataclasses.replace(compared, code=code)


@dataclass(frozen=True, kw_only=True)
class ConfigChanges:
    """What a config file says otherwise than the run that was submitted with it.

    Attributes:
        pairs: By key; what was typed over the file is no change of it.
        typed: Of what was typed: the run's value, and that of the file.
        fresh: The file as it reads now.
    """

    pairs: Pairs
    typed: Pairs
    fresh: LoadedConfig


def written_config(run: RunDir) -> dict[str, Any]:
    """The `file` of a run's submission, the keys that were `typed` over it, then and since.

    The file is that of today, where the project was moved since.
    """
    written: dict[str, Any] = read_state(run).get("config") or {}
    return {**written, "file": config_file(run)} if written else {}


def config_changes(
    run: RunDir,
    written: Mapping[str, Any],
    workdir: Path,
    *,
    is_copied: bool,
    words: Sequence[str] = (),
) -> ConfigChanges:
    """Hold the run's config against the file that it was submitted with, and what that builds on.

    Args:
        run: A run, or a point of a sweep, whose swept keys are as typed.
        written: See `written_config`.
        workdir: The folder that it was submitted from.
        is_copied: Whether the run has a copy of that folder.
        words: What would be typed over the run's config, KEY=VALUE.

    Raises:
        HpcTrainError: the file is gone, or does not read well now.
    """
    loaded = load(workdir / written["file"])
    fresh = loaded.config
    if is_copied:  # its paths were settled, whoever asked for it
        fresh.snapshot.mode = "git"
        settle_paths(fresh, workdir)
    own, now = _both_flat(load(run.config, words).config, fresh)
    if _same_weights(own.get("init_from"), now.get("init_from"), workdir):
        now["init_from"] = own["init_from"]
    typed = written["typed"]
    swept = [key.removeprefix("sweep.") for key in (*now, *typed) if key.startswith("sweep.")]
    filled = ["script.args"] if swept else []
    without = [*typed, "sweep", *swept, *filled, *_taken_by(typed, own, now)]
    pairs = {key: (own.get(key), now.get(key)) for key in typed}
    over = {key: pair for key, pair in pairs.items() if not _is_same(key, pair, workdir)}
    return ConfigChanges(pairs=differing(own, now, without), typed=over, fresh=loaded)


def _same_weights(own: str | None, file: str | None, workdir: Path) -> bool:
    """Whether a run's weights, a whole path, are those that its file names by a run or a path."""
    if not own or not file:
        return False
    path, named = Path(own), workdir / Path(file).expanduser()
    return named in (path, *path.parents) or file in path.parts


def _is_same(key: str, pair: tuple[object, object], workdir: Path) -> bool:
    """Whether both mean the same: a script's path from the folder, a section with nothing in it."""
    own, file = pair
    if key == "script.path" and own and file:
        return workdir / str(own) == workdir / str(file)
    return is_same_value(key, own, file) or (own in (None, {}) and file in (None, {}))


def _taken_by(typed: Sequence[str], own: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Keys whose values the typed ones have changed as well.

    A class that takes another's place has not its arguments; of a list whose element was typed
    the file has another one as a whole.
    """
    classes = [key for key in typed if key.endswith(".class_path") and own.get(key) != now.get(key)]
    lists = [found[1] for key in typed if (found := re.match(r"(.+?)\.\d+(?:\.|\Z)", key))]
    return [*(f"{key.rpartition('.')[0]}.init_args" for key in classes), *lists]


def said(value: object) -> str:
    """A value of a config, as a change is told."""
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return "(absent)" if value is None else str(value)


def _among_attempts(run: RunDir) -> dict[int, AttemptDifferences]:
    """What changed while the run went on, of each attempt that began with something else."""
    found = {}
    for number in _attempts(run):
        before, state = state_before(run, number)
        now = read_state(run, number)
        if not (state and now):
            continue
        one = AttemptDifferences(
            before=before,
            files=tuple(edited_files(state, now)),
            place=_known_of_both(_place(state), _place(now), ("python", "hpc_train")),
            packages=_known_of_both(state, now, ("packages",))
            and differing(state["packages"], now["packages"]),
        )
        if one.files or one.place or one.packages:
            found[number] = one
    return found


def _attempts(run: RunDir) -> list[int]:
    return sorted(int(path.name) for path in run.attempts.glob("*") if path.name.isdigit())


def compare_runs(
    run: RunDir, other: RunDir, attempt: int | None = None, other_attempt: int | None = None
) -> RunDifferences:
    """Two runs, or two attempts; without a number the newest one that has begun."""
    before, after = _state(run, attempt), _state(other, other_attempt)
    unknown: list[str] = []
    config: Pairs = {}
    if run.config.is_file() and other.config.is_file():
        config = differing(*_both_flat(load(run.config).config, load(other.config).config))
    elif run != other:
        unknown.append("config: a rendered script's run has none")
    return _compared(before, after, _known_of_both(_place(before), _place(after)), config, unknown)


def told_apart(runs: Sequence[RunDir]) -> list[str]:
    """Of each run the values of its config that the others have otherwise: `seed=1, name=x`.

    Empty for each where that would be long, or where a config does not read well.
    """
    nothing = [""] * len(runs)
    if len(runs) > _MOST_TOLD_APART or not all(run.config.is_file() for run in runs):
        return nothing
    try:
        flats = [flat(dataclasses.asdict(load(run.config).config)) for run in runs]
    except HpcTrainError:
        return nothing
    keys = dict.fromkeys(key for it in flats[1:] for key in differing(flats[0], it))
    if len(keys) > _MOST_KEYS:
        return nothing
    told = [", ".join(f"{key}={said(it.get(key))}" for key in keys) for it in flats]
    return told if max(map(len, told), default=0) <= _MOST_CHARACTERS else nothing


def _compared(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    place: Pairs,
    config: Pairs,
    unknown: list[str],
) -> RunDifferences:
    packages: Pairs = {}
    if "packages" in before and "packages" in after:
        packages = differing(before["packages"], after["packages"])
    else:
        unknown.append("packages: no attempt has begun to train")
    is_told = any(it.startswith("code: ") for it in unknown)
    if not is_told and not (before.get("sources") and after.get("sources")):
        unknown.append("code: there is no record of it")
    return RunDifferences(
        code=code_change(before, after),
        place=place,
        packages=packages,
        config=config,
        unknown=tuple(unknown),
    )


def _state(run: RunDir, attempt: int | None) -> dict[str, Any]:
    """What is known of an attempt, of the newest one by default; else of the submission."""
    if attempt is not None:
        state = read_state(run, attempt)
        if not state:
            raise HpcTrainError(
                f"{run.name} ({run.run_id}) has no record of an attempt {attempt}",
                f"hpc-train status {run_word(run.path)} lists the attempts",
            )
        return state
    states = (read_state(run, number) for number in reversed(_attempts(run)))
    return next((state for state in states if state), None) or read_state(run)


def _place(state: Mapping[str, Any]) -> dict[str, Any]:
    torch = state.get("torch") or {}
    named = {f"torch's {name}": torch[name] for name in OF_TORCH if name in torch}
    return {name: state[name] for name in OF_THE_PLACE if name in state} | named


def _known_of_both(
    before: Mapping[str, Any], after: Mapping[str, Any], only: Collection[str] = ()
) -> Pairs:
    both = [name for name in before if name in after and (not only or name in only)]
    return differing(*({name: state[name] for name in both} for state in (before, after)))


def _both_flat(before: Config, after: Config) -> tuple[dict[str, Any], dict[str, Any]]:
    first, second = sections_alike(dataclasses.asdict(before), dataclasses.asdict(after))
    return flat(first), flat(second)


def flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """The values by their dotted keys; a list is one."""
    found: dict[str, Any] = {}

    def walk(value: Any, key: str) -> None:
        if isinstance(value, Mapping) and value:
            for name, item in value.items():
                walk(item, f"{key}.{name}" if key else str(name))
        else:
            found[key] = value

    walk(config, "")
    return found


def differing(
    before: Mapping[str, Any], after: Mapping[str, Any], without: Collection[str] = ()
) -> Pairs:
    """What is not the same in both; keys of `without`, and below them, are passed over."""
    keys = [*before, *(key for key in after if key not in before)]
    below = tuple(f"{key}." for key in without)
    keys = [key for key in keys if key not in without and not key.startswith(below)]
    pairs = {key: (before.get(key), after.get(key)) for key in keys}
    return {key: pair for key, pair in pairs.items() if not is_same_value(key, *pair)}
