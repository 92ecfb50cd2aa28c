"""What a run keeps when it goes on, and what is said of a change that would make another one."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hpc_train.backends.compare_runs import (
    ConfigChanges,
    Pairs,
    config_changes,
    said,
    written_config,
)
from hpc_train.backends.lengthen import LENGTH_KEYS
from hpc_train.backends.rendered_config import changes_since_rendered, edited_files
from hpc_train.backends.same_values import in_parts
from hpc_train.backends.submit_again import (
    as_typed_here,
    can_submit_again,
    submit_again,
)
from hpc_train.config.keys import is_text
from hpc_train.config.load import LoadedConfig, load
from hpc_train.config.origins import DEFAULT
from hpc_train.config.python_text.modules import UNREADABLE
from hpc_train.config.submission_words import typed_words
from hpc_train.errors import ConfigError, HpcTrainError, UsageError
from hpc_train.plan.plan import Plan
from hpc_train.runs.checkpoints import newest_step
from hpc_train.runs.layout import RunDir
from hpc_train.runs.provenance import gone_sources
from hpc_train.runs.read_plan import read_plan
from hpc_train.runs.registry import find_run, folders
from hpc_train.runs.run_word import plain_word, run_word
from hpc_train.runs.snapshot import copy_at
from hpc_train.runs.status import RunStatus
from hpc_train.runs.weights_arguments import run_of_weights

KEPT = ("model", "data", "trainer", "seed", "reproducible", "global_batch_size", "script")
# What may change while a run goes on.
_FREE = (
    *("slurm", "env", "checkpoint", "requeue", "watchdog", "preflight", "loggers"),
    "micro_batch_size",
)
_SAME_SHAPES = "with these weights, where the model keeps its shapes:"
_KEEPS = "a run keeps its own config"
_KEEPS_SCRIPT = "the run keeps what its script says"
MOST_SHOWN = 5
_OF_LENGTH = tuple(f"trainer.{name}" for name in LENGTH_KEYS)
_KEY = re.compile(rf"(?:^|: )((?:{'|'.join(KEPT)})(?:\.[\w.]+)?)(?=[: ])")
_Compared = Callable[[Sequence[str]], ConfigChanges]
_NO_KEY = re.compile(r"command line: ([\w.]+) is no ")
_MEANT_KEY = re.compile(rf"(?:: |^write |^did you mean ')((?:{'|'.join(KEPT)})(?:\.\w+)*)(?:'\?)?$")
_MEANT = re.compile(r"did you mean '([\w.]+)\.(\w+)'")


def another_training(run: RunDir, before: LoadedConfig, loaded: LoadedConfig) -> ConfigError:
    """The refusal of a change that makes another training, by the keys that make it so.

    Args:
        before: The run's config as it is.
        loaded: With what was typed.
    """
    typed = [key for key in loaded.origins.typed() if key.split(".")[0] in KEPT]
    changed = [
        key
        for key in typed
        if key not in _OF_LENGTH
        and _value(before.composed.values, key) != _value(loaded.composed.values, key)
    ]
    # A section that was not there before is typed with its key.
    changed = [key for key in changed if not any(it.startswith(f"{key}.") for it in changed)]
    makes = "make" if len(changed) > 1 else "makes"
    return ConfigError(
        f"{', '.join(changed) or 'an override'} {makes} another training: model, data, trainer (but"
        " for its length), seed, reproducible and global_batch_size stay as they are in a run",
        _of_its_own(run, loaded, changed),
    )


def of_an_unknown_key(
    error: ConfigError, run: RunDir, overrides: Sequence[str], flags: Mapping[str, object]
) -> ConfigError:
    """The error of a typed key that there is not; its fix may not be a key that is then refused."""
    found, meant = _NO_KEY.match(error.message), _MEANT_KEY.search(error.hint)
    if not found or not meant or meant[1] in _OF_LENGTH:
        return error
    pairs = [(it, *it.partition("=")) for it in overrides]
    words = [f"{meant[1]}={value}" if key == found[1] else it for it, key, _, value in pairs]
    try:
        loaded = load(run.config, words, flags=flags)
    except HpcTrainError:
        return error
    other = another_training(run, load(run.config), loaded)
    if meant[1] not in other.message.partition(" make")[0]:  # with the value that it has
        return error
    return ConfigError(f"{error.message}; {other.message}", other.hint)


def kept_as_it_was(error: ConfigError, run: RunDir, loaded: LoadedConfig) -> ConfigError:
    """The error of a config that a run goes on with; its fix may not be one that is then refused.

    What no longer fits the code (a class that was renamed, an argument that is gone) cannot be
    changed in the config of a run.
    """
    found = _KEY.search(error.message)
    if found is None or found[1] in _OF_LENGTH or error.hint.startswith(UNREADABLE):
        return error
    key = found[1]
    meant = _MEANT.search(error.hint)
    old = str(_value(loaded.composed.values, key)).rpartition(".")[2]
    renamed = meant is not None and key.endswith("class_path") and old.isidentifier()
    if key in loaded.origins.typed():
        lengths = [it for it in _OF_LENGTH if re.search(rf"\b{re.escape(it)}\b", error.hint)]
        may_change = f"did you mean {' or '.join(map(repr, lengths))}?" if lengths else ""
        leave = f"leave it out: a run keeps its {key.split('.')[0]}"
        return ConfigError(error.message, may_change or leave)
    back = f"write `{old} = {meant[2]}` in {meant[1]}" if meant and renamed else "change it back"
    own = _of_its_own(run, loaded)
    hint = f"a run keeps its {key.split('.')[0]}, so that the code has to fit: {back}; or {own}"
    return ConfigError(error.message, hint)


def put_back(error: ConfigError, run: RunDir, workdir: Path) -> ConfigError | None:
    """The same where it names a module or a script that the submission had and that is gone."""
    named = set(re.findall(r"'([\w.]+)'|there is no file (\S+)", error.message))
    for name in gone_sources(run, workdir):
        module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if named & {(module, ""), (module.rpartition(".")[2], ""), ("", name)}:
            what = f"{name} was there at the submission, and is gone"
            then = f"put it back in {workdir}, and then hpc-train resume {run_word(run.path)}"
            return ConfigError(error.message, f"{what}: {then}")
    return None


def config_notes(
    run: RunDir,
    before: Plan,
    typed: Sequence[str],
    words: Sequence[str] = (),
    *,
    in_sweep: bool = False,
) -> list[str]:
    """That the file which a run was submitted with says something else by now, and what to do.

    Args:
        before: Its plan.
        typed: Keys that are given anew as the run goes on.
        words: Of them what was typed as KEY=VALUE.
        in_sweep: It is one of the points of a sweep that go on together.
    """
    if told := _edited_since_rendered(before):
        again = f"hpc-train render {shlex.quote(as_typed_here(_file_of(before)))} and sbatch"
        return [f"{told}; with the new: {again}, as a run of its own"]
    compared = _comparison(run, before, typed)
    if compared is None:
        return []
    try:
        now = compared(())
    except HpcTrainError as error:
        return [_unreadable(run, error)]
    if not now.pairs:
        return []
    way = submit_again(run) if in_sweep else _with_the_new_values(run, now, compared, words)
    return [f"{_changed_text(run, now)}; {_KEEPS}; with the new: {way}"]


def changes_of_the_file(run: RunDir, before: Plan) -> ConfigChanges | None:
    """What the file of a run's submission says otherwise now; None where there is none.

    Raises:
        HpcTrainError: it does not read well now.
    """
    compared = _comparison(run, before, ())
    return compared(()) if compared else None


def edited_since(run: RunDir, submitted: float) -> str:
    """The same of a run that waits or trains, without what to do; empty where nothing differs.

    It is read again only where a file of it was written since.

    Args:
        submitted: Seconds since the epoch.
    """
    with contextlib.suppress(HpcTrainError):
        if told := _edited_since_rendered(read_plan(run)):
            return told
    written = written_config(run)
    if not any(_written_at(it) > submitted for it in written.get("read") or ()):
        return ""
    try:
        now = changes_of_the_file(run, read_plan(run))
    except HpcTrainError as error:
        return _unreadable(run, error)
    return f"{_changed_text(run, now)}; {_KEEPS}" if now and now.pairs else ""


def _edited_since_rendered(plan: Plan) -> str:
    """That the file of a rendered script has other values than the script; empty if it has not."""
    kept = plan.rendered_from
    if kept is None or not edited_files(plan):
        return ""
    file = as_typed_here(_file_of(plan))
    try:
        pairs, fresh = changes_since_rendered(plan, kept)
    except HpcTrainError as error:
        return f"{file} does not read well now: {error.message}; {_KEEPS_SCRIPT}"
    since = "since the script was rendered"
    return f"{_told(pairs, fresh, file, since)}; {_KEEPS_SCRIPT}" if pairs else ""


def _file_of(plan: Plan) -> str:
    return str(Path(plan.workdir, plan.rendered_from.file)) if plan.rendered_from else ""


def _written_at(file: str) -> float:
    try:
        return Path(file).stat().st_ctime  # also of an older one that has taken its place
    except OSError:
        return 0.0


def _comparison(run: RunDir, before: Plan, typed: Sequence[str]) -> _Compared | None:
    """What holds the run's config, with words over it, against its file; None without a file."""
    if before.verb != "fit" or not run.config.is_file():
        return None
    copy = copy_at(Path(before.workdir))
    workdir = copy.original if copy else Path(before.workdir)
    written = written_config(run)
    if not written or not Path(workdir, written["file"]).exists():
        return None
    typed = [*written["typed"], *written.get("typed_since", ()), *typed]
    written = {**written, "typed": typed}
    return lambda words: config_changes(
        run, written, workdir, is_copied=copy is not None, words=words
    )


def _unreadable(run: RunDir, error: HpcTrainError) -> str:
    file = as_typed_here(written_config(run)["file"])
    return f"{file} does not read well now: {error.message}; {_KEEPS}"


def _changed_text(run: RunDir, now: ConfigChanges) -> str:
    file = as_typed_here(written_config(run)["file"])
    return _told(now.pairs, now.fresh, file, "since the submission")


def _told(pairs: Pairs, fresh: LoadedConfig, file: str, since: str) -> str:
    """`cfg.yaml has changed since ...: seed 0 -> 1`, with the files that have the new values."""
    files = [fresh.origins.of(key).partition(":")[0] for key in pairs]
    names = {as_typed_here(name) for name in files if name not in ("", DEFAULT)} or {file}
    parts = (it for key, pair in pairs.items() for it in in_parts(key, *pair))
    shown = [f"{key} {said(old)} -> {said(new)}" for key, old, new in parts]
    more = f" and {len(shown) - MOST_SHOWN} more" if shown[MOST_SHOWN:] else ""
    have = "have" if len(names) > 1 else "has"
    what = f"{', '.join(sorted(names))} {have} changed {since}"
    return f"{what}: {', '.join(shown[:MOST_SHOWN])}{more}"


def _with_the_new_values(
    run: RunDir, now: ConfigChanges, compared: _Compared, typed: Sequence[str]
) -> str:
    """What to type: the run goes on with them where it may, and is another one where it may not."""
    if all(key.split(".")[0] in _FREE or key in _OF_LENGTH for key in now.pairs):
        above = tuple(f"{key}." for key in now.pairs)  # env.variables={} takes env.variables.A away
        pairs = {key: pair for key, pair in now.pairs.items() if not key.startswith(above)}
        words = [_word(key, new) for key, (_, new) in pairs.items()]
        # Not all that a file says can be typed: a variable cannot be taken away.
        with contextlib.suppress(HpcTrainError):
            if not compared(words).pairs:
                return shlex.join(["hpc-train", "resume", plain_word(run.path), *words])
    has_weights = newest_step(run) and not now.fresh.config.script.path
    if has_weights and any(_may_reshape(key, new) for key, (_, new) in now.pairs.items()):
        again = submit_again(run, *typed)
        return f"{again}; {_SAME_SHAPES} init_from={run_word(run.path)} behind it"
    weights = [f"init_from={plain_word(run.path)}"] * bool(has_weights)
    return submit_again(run, *typed, *weights)


def _may_reshape(key: str, value: object) -> bool:
    """Whether another value may give the model other weights: a width may, a rate does not."""
    return key.partition(".")[0] == "model" and not isinstance(value, float)


def _word(key: str, value: object) -> str:
    """`key=value` of one value, which may be read otherwise."""
    is_plain = isinstance(value, str) and (is_text(key) or value.strip())
    return f"{key}={value if is_plain else json.dumps(value)}"


def refuse_length_of_an_evaluation(
    before: Plan, changes: Mapping[str, object], status: RunStatus
) -> None:
    """Refuse to make a test longer.

    Raises:
        UsageError: with what does train longer.
    """
    if before.verb in ("fit", "bench") or not changes:
        return
    raise UsageError(
        f"{', '.join(f'trainer.{key}' for key in changes)}: {what_evaluates(before, status)}",
        _train_longer(before),
    )


def what_evaluates(before: Plan, status: RunStatus) -> str:
    """That a run is no training."""
    doing = {"test": "tests", "validate": "validates", "predict": "predicts with"}[before.verb]
    return f"{status.name} ({status.run}) {doing} a model, and trains none"


def of_a_complete_evaluation(before: Plan) -> str:
    """What to type once it is complete."""
    return f"anew: hpc-train {before.verb} {_training(before)}; {_train_longer(before)}"


def _train_longer(before: Plan) -> str:
    return f"to train longer: hpc-train resume {_training(before)} trainer.max_epochs=N"


def _training(before: Plan) -> str:
    """The name of the training, which that of its evaluation begins with; RUN where it is lost.

    Its id, where a newer run has its name.
    """
    name = before.name.removesuffix(f"-{before.verb}")
    its = run_of_weights(Path(before.weights or ""))
    if its is not None and its.name == name:
        with contextlib.suppress(HpcTrainError):
            if find_run(name, folders(Path(before.runs_dir))).run_id != its.run_id:
                return run_word(its.path)
    return shlex.quote(name) if name != before.name else "RUN"


def _of_its_own(run: RunDir, loaded: LoadedConfig, changed: Sequence[str] = ()) -> str:
    """What to do instead, with the whole command where these keys are all that is to be changed."""
    words = typed_words(loaded.composed.words) if changed else ()
    values = loaded.composed.values
    reshapes = any(_may_reshape(key, _value(values, key)) for key in changed)
    kept = _SAME_SHAPES if reshapes else "with these weights:"
    weights = f"; {kept} init_from={run_word(run.path)}"
    weights = weights if newest_step(run) and not loaded.config.script.path else ""
    if words and can_submit_again(run):
        weights = f"{weights} behind it" if weights else ""
        return f"as a run of its own: {submit_again(run, *words)}{weights}"
    return f"submit the changed config as a run of its own{weights}"


def _value(values: Any, key: str) -> Any:
    for part in key.split("."):
        if isinstance(values, Mapping) and part in values:
            values = values[part]
        elif isinstance(values, list) and part.isdecimal() and int(part) < len(values):
            values = values[int(part)]
        else:
            return None
    return values
