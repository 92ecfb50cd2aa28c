"""What the command line says beside a result, as a warning to who has called from Python."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hpc_train.config.submission_words import again_in_python
from hpc_train.errors import HpcTrainError
from hpc_train.plan.states import RunState
from hpc_train.runs.run_word import run_word
from hpc_train.runs.status import RunStatus

if TYPE_CHECKING:
    from typing import ParamSpec

    from hpc_train.config.load import LoadedConfig

    P = ParamSpec("P")

T = TypeVar("T")
_PACKAGE = Path(__file__).parent


class HpcTrainNote(UserWarning):
    """What is not refused and should be known: `note: ...` of the command line."""


@functools.cache  # hpc_train.load is one function, however often it is asked for
def noted(load: Callable[P, LoadedConfig]) -> Callable[P, LoadedConfig]:
    """The same, whose notes are said as warnings; the command prints them itself."""

    @functools.wraps(load)
    def noted_load(*args: P.args, **kwargs: P.kwargs) -> LoadedConfig:
        try:
            loaded = load(*args, **kwargs)
        except HpcTrainError as error:
            for it in (error, *error.others):
                it.hint = again_in_python(it.hint)
            raise
        say(loaded.notes)
        return loaded

    return noted_load


def told_end(followed: Iterable[RunStatus]) -> RunStatus:
    """The last status; a warning with it where the run has failed."""
    for status in followed:
        last = status
    if last.state in (RunState.FAILED, RunState.LOST, RunState.TIMED_OUT):
        say([f"{last.name} {last.stands}; `hpc-train diagnose {run_word(last.run_dir)}` tells why"])
    return last


def with_notes(call: Callable[[], T]) -> tuple[T, list[str]]:
    """What a call returns, and what it would have warned of: the command prints that itself."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HpcTrainNote)
        returned = call()
    for it in caught:
        if not issubclass(it.category, HpcTrainNote):
            warnings.warn_explicit(it.message, it.category, it.filename, it.lineno)
    return returned, [str(it.message) for it in caught if issubclass(it.category, HpcTrainNote)]


def say(notes: Iterable[str]) -> None:
    """Warn at the line outside of this package that is being run."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and Path(frame.f_code.co_filename).is_relative_to(_PACKAGE):
        frame, level = frame.f_back, level + 1
    for note in notes:
        warnings.warn(note, HpcTrainNote, stacklevel=level)
