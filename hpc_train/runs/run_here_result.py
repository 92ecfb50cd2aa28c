"""What `run_here` gives: a tuple, that tells a person who takes it for the run itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn


class _RunAndCode(NamedTuple):
    run: Any  # a `hpc_train.Run`, which stands above
    code: int


class RunHereResult(_RunAndCode):
    """The run and the supervisor's exit code."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError: the training is over, and its run is one word away."""
            if name.startswith("_"):
                raise AttributeError(name)
            is_there = name == "directory" or hasattr(type(self.run), name)
            elsewhere = f"run.{name}" if is_there else self.run.where(name)
            says = "run_here gives a pair, the run and its exit code"
            told = f"{says}: write run, code = hpc_train.run_here(...)"
            told += f", and {elsewhere}" if elsewhere else ""
            raise AttributeError(told, name=name, obj=None)
