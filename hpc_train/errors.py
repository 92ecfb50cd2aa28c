"""Every error a user can meet: one tree, each with a message, a fix and an exit code.

    HpcTrainError            1   something went wrong
    ├── UsageError           2   the command line itself
    ├── ConfigError          3   the config or a check of it was refused
    ├── CheckError           3   the preflight or a check of the plan said no
    ├── SlurmError           4   Slurm refused, or is not there
    ├── NoMetricError        1   a run has not logged that metric (a KeyError, too)
    ├── NoSuchRunError       5   no run answers to that name
    ├── RunFailedError      10   the run failed
    ├── RunTimedOutError    11   the run ran out of time for good
    └── RunCancelledError   12   the run was cancelled

A traceback is only for our own bugs: whatever a user, a site or the network can cause is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NoReturn


class HpcTrainError(Exception):
    """What is wrong in one line, and what to do about it in another.

    Args:
        message: What is wrong and where (file and key), one line, no final full stop needed.
        hint: What to write or type instead; empty where nothing sensible can be said.
    """

    exit_code = 1
    where = ""  # `file:line` of the user's code that it is about, if that is known by itself

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.others: tuple[HpcTrainError, ...] = ()  # found beside it, each with its own fix

    def __str__(self) -> str:
        said = f"{self.message} ({self.hint})" if self.hint else self.message
        return "; also ".join([said, *map(str, self.others)])


class UsageError(HpcTrainError):
    """The command line does not make sense by itself."""

    exit_code = 2


class ConfigError(HpcTrainError):
    """The config cannot be read, or a value in it cannot be meant."""

    exit_code = 3
    keys: tuple[str, ...] = ()  # that it is about, dotted; none where it is about something else
    memory = ""  # with the unit for want of which it is refused


class CheckError(HpcTrainError):
    """The config reads well but cannot work here: a shape, a device, a network."""

    exit_code = 3


class SlurmError(HpcTrainError):
    """Slurm is not there, or refused."""

    exit_code = 4


class NoSuchRunError(HpcTrainError):
    """No run answers to that name, id, folder or job id."""

    exit_code = 5


class NoMetricError(HpcTrainError, KeyError):
    """A run has no such metric: it logs others, or has not come that far."""

    __str__ = HpcTrainError.__str__  # a KeyError shows the repr of its argument


class RunFailedError(HpcTrainError):
    """The run ended and the result is not there."""

    exit_code = 10


class RunTimedOutError(HpcTrainError):
    """The run reached its time limit and was told not to go on."""

    exit_code = 11


class RunCancelledError(HpcTrainError):
    """Somebody cancelled the run."""

    exit_code = 12


class Hinted:
    """An object whose missing attributes, and keys in brackets, are told with where they are.

    Only at run time: a type checker has to go on refusing what is not there.
    """

    instead: ClassVar[str] = (
        ""  # what to write for a key in brackets of which nothing else is known
    )

    def where(self, name: str) -> str:  # noqa: ARG002 - those who have it name it
        """What to write for an attribute that there is not; empty where nothing can be said."""
        return ""

    if not TYPE_CHECKING:
        __iter__ = __contains__ = None  # or Python would take them from 0 on by `__getitem__`

        def __getitem__(self, name: object) -> NoReturn:
            """Raise TypeError, with what to write."""
            said = self.where(str(name).partition(".")[0]) or self.instead
            hint = f": write {said}" if said else ""
            kind = type(self).__name__
            raise TypeError(f"a {kind} has no keys in brackets{hint}")

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError."""
            said = "" if name.startswith("_") else self.where(name)
            hint = f": write {said}" if said else ""
            message = f"{type(self).__name__} has no {name!r}{hint}"
            if hint:  # an object, and Python would propose a name of its own behind it
                raise AttributeError(message, name=name, obj=None)
            raise AttributeError(message)
