"""What the dataclasses of the config say of a key that they have not, when Python asks or sets."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, NoReturn


class Section:
    """A dataclass that refuses a misspelled attribute, which would change nothing.

    Only at run time: a type checker has to go on refusing what is not there.
    """

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: object) -> None:
            """Raise AttributeError for what is no field."""
            if name not in type(self).__dataclass_fields__:
                raise self._no_key(name)
            object.__setattr__(self, name, value)

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError."""
            raise self._no_key(name)

        __iter__ = __contains__ = None  # or Python would take them from 0 on by `__getitem__`

        def __getitem__(self, name: object) -> NoReturn:
            """Raise TypeError, with what to write."""
            raise self._no_brackets(name)

        def __setitem__(self, name: object, value: object) -> NoReturn:
            """Raise TypeError as well."""
            raise self._no_brackets(name)

        def _no_brackets(self, name: object) -> TypeError:
            first, _, below = str(name).partition(".")
            is_field = first in type(self).__dataclass_fields__
            key = f"{_section_name(type(self))}{first}{'.' if below else ''}{below}"
            said = f"write {in_python(key)}" if is_field else hint_for(self, first)
            hint = f": {said}" if said else ""
            return TypeError(f"a {type(self).__name__} has no keys in brackets{hint}")

        def _no_key(self, name: str) -> AttributeError:
            what = f"{type(self).__name__} has no {name!r}"
            # Tools ask for names that begin with an underscore, and want no words.
            hint = "" if name.startswith("_") else hint_for(self, name)
            # An object, and Python would propose a name of its own behind it.
            told = {"name": name, "obj": None} if hint else {}
            return AttributeError(f"{what}: {hint}" if hint else what, **told)


def _section_name(kind: type) -> str:
    """`slurm.` of SlurmConfig; empty for the config itself."""
    from hpc_train.config.schema import Config

    made: dict[object, str] = {it.default_factory: it.name for it in fields(Config)}
    return f"{made[kind]}." if kind in made else ""


def hint_for(section: Section, name: str) -> str:
    """What to write for an attribute of a section that there is not."""
    from hpc_train.config.meant_words.unknown_key import key_of_word  # on the way to an error
    from hpc_train.config.words import did_you_mean

    key = key_of_word(name)
    written = in_python(key) if key and key != name else ""
    fields = type(section).__dataclass_fields__  # type: ignore[attr-defined]
    return f"write {written}" if written else did_you_mean(name, fields)


def in_python(key: str) -> str:
    """`loaded.config.trainer['max_epochs']` for `trainer.max_epochs`."""
    first, *below = key.split(".")
    if first in ("trainer", "model", "data"):
        return f"loaded.config.{first}{''.join(f'[{it!r}]' for it in below)}"
    return f"loaded.config.{key}"
