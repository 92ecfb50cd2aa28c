"""Calls of the Python interface that do not fit, told as errors of ours and not as TypeError."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from hpc_train.config.calls_on_import import refuse_on_import
from hpc_train.config.flags import FLAGS
from hpc_train.config.long_paths import told_as_typed
from hpc_train.config.python_values import check_no_objects, without_path
from hpc_train.config.words import class_of_object, did_you_mean
from hpc_train.errors import ConfigError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

_SWEEP = "write hpc_train.submit_sweep(hpc_train.load(PATH, sweep=['seed=1,2']))"
_GOES_ON_FROM = "leave it out: it goes on from the newest valid checkpoint"
# What the options of the command are in Python, by the function that does not take them.
_SAID: Mapping[str, Mapping[str, str]] = {
    "submit": {
        "wait": "write hpc_train.submit(loaded).wait()",
        "timeout_s": "write hpc_train.submit(loaded).wait(timeout_s=...)",
        "follow": "write: for status in hpc_train.submit(loaded).follow(): print(status.state)",
        "dry_run": "print(hpc_train.render(loaded)) shows what would be submitted",
        "test_only": "write hpc_train.test_only(loaded)",
        "at_most": "write hpc_train.submit_sweep(loaded, at_most=...)",
    },
    "submit_sweep": {
        "wait": "leave it out; sweep = submit_sweep(loaded), and sweep.status().state.ended tells",
        "follow": "leave it out; sweep = submit_sweep(loaded), and sweep.status().summary tells",
        "cluster": "leave it out: a sweep is a job array, for Slurm alone",
        "dry_run": "print(hpc_train.sweeps.render_sweep(loaded)) shows what would be submitted",
        "test_only": "hpc_train.test_only(loaded) is for a config without a sweep",
    },
    "run_here": {
        "cluster": "leave it out: run_here trains where it is called",
        "wait": "leave it out: run_here returns when the training has ended",
        "after": "write hpc_train.submit(loaded, after=run)",
        "devices": "set os.environ['CUDA_VISIBLE_DEVICES'] = '0,2' before it",
    },
    "Run.resume": {"ckpt": _GOES_ON_FROM},
    "Run.next_plan": {"ckpt": _GOES_ON_FROM},
    "plan": {"output": "write Path('plan.json').write_text(hpc_train.api.plan(loaded).to_json())"},
    "Session.open": {
        **dict.fromkeys(("batch_size", "bs"), "write global_batch_size=..., over all ranks"),
        **dict.fromkeys(("runs_dir", "dir", "path", "checkpoint_dir"), "write run_dir=..."),
        "epochs": "write: for epoch in session.epochs(10):",
        **dict.fromkeys(
            ("nodes", "gpus", "devices", "world_size", "rank"),
            "leave it out: the environment of the ranks tells it (torchrun, srun, hpc-train)",
        ),
    },
    "Session.epochs": {"start": "leave it out: it begins with the interrupted epoch by itself"},
    "Session.batches": {"batch_size": "write Session.open(global_batch_size=...), over all ranks"},
    "render": {"output": "write Path('job.sbatch').write_text(hpc_train.render(loaded))"},
}
SAID_OF_SUBMIT = _SAID["submit"]
# Methods whose flags are options, and how a key of the config is written there.
_RUN_AGAIN: Mapping[str, str] = {
    "Run.resume": "run.resume({!r})",
    "Run.next_plan": "run.next_plan({!r})",
    "Run.evaluate": "run.evaluate(VERB, {!r})",
}
_SAID_OF_LOADED = {
    "sweep": _SWEEP,
    "arguments": "write hpc_train.load('train.py', arguments=[...])",
}
_NAMED = {"Session.restore": "write session.restore(model=model, optimizer=optimizer)"}
# What a missing argument is, by the function where that differs.
_MADE_THERE: Mapping[str, Mapping[str, str]] = {
    "Session.evaluation": {"loader": "write session.evaluation(DataLoader(val_set, batch_size=64))"}
}
_NOT_CALLED = {
    "Session.__init__": (
        "a Session is made by its method open",
        "write: with hpc_train.Session.open(global_batch_size=64) as session:",
    ),
}
_MADE = {
    "loaded": "loaded = hpc_train.load('cfg.yaml') makes one",
    "path": "write hpc_train.load('cfg.yaml')",
    "global_batch_size": "samples an optimizer step, over all ranks: global_batch_size=64",
    "count": "how many epochs there are in all: session.epochs(10)",
    "loader": "write session.batches(DataLoader(train_set, shuffle=True))",
    "reference": "name a run, by its name, its id or its job's: find('latest')",
}


def checked_call(function: Callable[P, R]) -> Callable[P, R]:
    """Have a call whose arguments do not fit refused with what to write instead."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        check_call(function, args, kwargs)
        refuse_on_import(function)
        try:
            return function(*args, **kwargs)
        except (OSError, ValueError) as error:
            if told := told_as_typed(error, (), os.environ):
                raise told from error
            raise

    return call


def checked_methods(holder: type[C]) -> type[C]:
    """The same of every public method of a class."""
    for name, member in list(vars(holder).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod):
            setattr(holder, name, classmethod(checked_call(member.__func__)))
        elif inspect.isfunction(member):
            setattr(holder, name, checked_call(member))
    return holder


def check_call(
    function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> None:
    """Refuse a call that Python would.

    Raises:
        ConfigError: an argument is not known, is missing, or stands where a name is needed.
    """
    signature = inspect.signature(function)
    name = function.__qualname__
    if [*signature.parameters][:1] == ["loaded"] and (meant := _as_loaded(name, args)):
        raise ConfigError(f"{name} takes what load gives, and no overrides", meant)
    if [*signature.parameters][:1] == ["loaded"]:
        check_no_objects(name, args, kwargs)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        if function.__qualname__ in _NOT_CALLED:
            raise ConfigError(*_NOT_CALLED[function.__qualname__]) from None
        raise _refusal(function.__qualname__, signature, args, kwargs, str(error)) from None
    if function.__qualname__ in _RUN_AGAIN:
        _check_flags(function.__qualname__, list(signature.parameters)[1:], kwargs)


def _check_flags(name: str, known: list[str], kwargs: Mapping[str, object]) -> None:
    """Refuse what a method of a run takes neither by its own names nor as an option."""
    named = [it for it in known if it not in ("overrides", "flags")]
    for word, value in kwargs.items():
        if word in named or word in FLAGS:
            continue
        from hpc_train.config.meant_words.unknown_key import key_of_word  # on the way to an error

        key = key_of_word(word)
        as_text = f"write it as a text: {_RUN_AGAIN[name].format(f'{key}={value}')}" if key else ""
        takes = f"it takes {', '.join([*named, *FLAGS])}; keys of the config are texts: 'seed=3'"
        said = _SAID.get(name, {}).get(word) or did_you_mean(word, [*named, *FLAGS])
        raise ConfigError(f"{word} is no argument of {name}", said or as_text or takes)


def _refusal(
    name: str,
    signature: inspect.Signature,
    args: tuple[object, ...],
    kwargs: Mapping[str, Any],
    said: str,
) -> ConfigError:
    parameters = [it for it in signature.parameters.values() if it.name not in ("self", "cls")]
    own = len(signature.parameters) - len(parameters)
    kinds = {it.kind for it in parameters}
    by_name = [it.name for it in parameters if it.kind not in (it.VAR_POSITIONAL, it.VAR_KEYWORD)]
    for word, value in kwargs.items():
        if word not in by_name and inspect.Parameter.VAR_KEYWORD not in kinds:
            others = {it: of for it, of in kwargs.items() if it not in by_name}
            hint = _said_of(name, word, value, by_name) or _loaded_with(name, others, args)
            return ConfigError(f"{word} is no argument of {name}", hint)
    by_place = [it.name for it in parameters if it.kind is it.POSITIONAL_OR_KEYWORD]
    too_many = len(args) - own > len(by_place)
    if too_many and kinds & {inspect.Parameter.VAR_KEYWORD} and not by_place:
        return ConfigError(f"{name} takes its arguments by name", _NAMED.get(name, ""))
    required = [it.name for it in parameters if it.name in by_name and it.default is it.empty]
    given = {*by_place[: len(args) - own], *kwargs}
    if missing := [it for it in required if it not in given]:
        made = {**_MADE, **_MADE_THERE.get(name, {})}
        handed = without_path(kwargs) if missing == ["path"] else ""
        hint = handed or made.get(missing[0], f"write {name}({missing[0]}=...)")
        return ConfigError(f"{name} is called without {', '.join(missing)}", hint)
    if too_many:
        shown = [*by_place, *(f"{it}=..." for it in by_name if it not in by_place)]
        takes = f"{len(by_place)} argument{'' if len(by_place) == 1 else 's'} without a name"
        return ConfigError(
            f"{name} takes {takes}, and {len(args) - own} are there",
            f"write {name}({', '.join(shown)})",
        )
    return ConfigError(f"{name}: {said}", f"it takes {', '.join(by_name)}")


def _as_loaded(name: str, args: tuple[object, ...]) -> str:
    """The call that is meant by `submit("cfg.yaml", "seed=3")`; empty where that is no such."""
    others = args[1:]
    if not others or not all(isinstance(it, str) and "=" in it for it in others):
        return ""
    path = repr(str(args[0])) if isinstance(args[0], (str, os.PathLike)) else "PATH"
    return f"write hpc_train.{name}(hpc_train.load({', '.join([path, *map(repr, others)])}))"


def class_as_text(word: str, dotted: str) -> str:
    """What to write where an object, or a class itself, was handed over.

    Args:
        word: The argument.
        dotted: The class with its module.
    """
    module, _, name = dotted.rpartition(".")
    is_here = module == "__main__"
    dotted = f"my_code.{name}" if is_here else dotted
    put = f", with {name} in my_code.py beside the config" if is_here else ""
    key = ""
    if word == "trainer":
        return "its arguments go as texts: write hpc_train.load(PATH, 'trainer.NAME=VALUE')"
    if word in ("model", "data"):
        key = f"{word}.class_path={dotted}"
    elif "callback" in word:
        key = f"trainer.callbacks=[{{class_path: {dotted}}}]"
    elif "logger" in word:
        key = f"loggers=[{{class_path: {dotted}}}]"
    if key:
        return f"a class goes by its name: write hpc_train.load(PATH, '{key}'){put}"
    return f"values of a config are texts and numbers, and a class goes by its name: {dotted}"


def _said_of(name: str, word: str, value: object, known: list[str]) -> str:
    """What to write for an argument that there is not; empty where `load` takes it."""
    said = _SAID.get(name, {}).get(word) or did_you_mean(word, known)
    if said:
        return said
    takes = f"it takes {', '.join(known)}" if known else f"write {name}()"
    if "loaded" not in known:
        return takes
    if word in _SAID_OF_LOADED:
        return _SAID_OF_LOADED[word]
    if dotted := class_of_object(value):
        return f"{class_as_text(word, dotted)}, and {name} what it gives"
    return ""


def _loaded_with(name: str, words: Mapping[str, object], args: tuple[object, ...]) -> str:
    """The call of `load` that takes these words, as a text each or as an option of a command."""
    from hpc_train.config.meant_words.unknown_key import key_of_word  # on the way to an error

    texts = {it: f"{key_of_word(it) or it}={of}" for it, of in words.items() if it not in FLAGS}
    given = [*map(repr, texts.values()), *(f"{it}={words[it]!r}" for it in words if it in FLAGS)]
    if args and isinstance(args[0], str | os.PathLike):
        loaded = f"hpc_train.load({', '.join([repr(str(args[0])), *given])})"
        return f"write hpc_train.{name}({loaded})"
    return f"write hpc_train.load({', '.join(['PATH', *given])}), and {name} what it gives"
