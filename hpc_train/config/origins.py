"""Where a value comes from, and errors that say so."""

from __future__ import annotations

from collections.abc import Mapping

from hpc_train.errors import ConfigError

DEFAULT = "default"


class UnquotedPlace(str):
    """The place of a value that YAML has made of a text without quotes, which is `text`."""

    __slots__ = ("text",)
    text: str

    @classmethod
    def of_text(cls, place: str, text: str) -> UnquotedPlace:
        """`NO` and `1e3` at a place, which are false and 1000.0 to YAML."""
        made = cls(place)
        made.text = text
        return made


class Origins:
    """For each dotted key the place of its value: `configs/digits.yaml:12`, `command line`.

    A key that nobody wrote has the origin `default`.
    """

    def __init__(self, places: Mapping[str, str] | None = None) -> None:
        self._places = dict(places or {})
        # Of one key with points at the top of a file: another file's section may be called alike.
        self._pointed: dict[str, str] = {}

    def put_pointed(self, key: str, place: str) -> None:
        """Note where a key that is one word with points stands."""
        self._pointed[key] = place

    def of_pointed(self, key: str) -> str:
        """The place of such a key."""
        return self._pointed.get(key) or self.of(key)

    def put(self, key: str, place: str) -> None:
        """Note that `key` has its value from `place`."""
        self._places[key] = place

    def put_all(self, places: Mapping[str, str]) -> None:
        """Note the places of several keys."""
        self._places |= places

    def drop(self, key: str) -> None:
        """Forget `key` and everything below it."""
        below = key + "."
        self._places = {
            known: place
            for known, place in self._places.items()
            if known != key and not known.startswith(below)
        }

    def of(self, key: str) -> str:
        """The place of `key`; `default` when nobody wrote it."""
        return self._places.get(key, DEFAULT)

    def written(self, key: str) -> str | None:
        """The text that YAML has read as the value of `key`; None where it is a text to YAML.

        Also where the value is taken from another place, as `${...}` does.
        """
        place = self._places.get(key)
        return place.text if isinstance(place, UnquotedPlace) else None

    def typed(self) -> list[str]:
        """The keys whose values stand in no file: a file's place is `FILE:LINE`."""
        return [key for key, place in self._places.items() if ":" not in place]

    def is_typed(self, key: str) -> bool:
        """Whether the value of `key` stands in no file, and somebody gave it."""
        return ":" not in self._places.get(key, ":")

    def error(self, key: str, message: str, hint: str = "", *, memory: str = "") -> ConfigError:
        """An error about the value of `key`, which starts with its place.

        Args:
            key: Dotted; its place, or that of the nearest key above it, is looked up.
            message: Goes on after the key, as in "is 0", or ": " and a sentence.
            hint: What to write instead.
            memory: With its unit, where that is what lacks.
        """
        separator = "" if message.startswith(":") else " "
        error = ConfigError(f"{self.prefix(key)}{key}{separator}{message}", hint)
        error.keys, error.memory = (key,), memory
        return error

    def prefix(self, key: str) -> str:
        """`FILE:LINE: ` of `key` or of the nearest key above it, for the start of a message."""
        while key and key not in self._places:
            key = key.rpartition(".")[0]
        return f"{self._places[key]}: " if key else ""


NOWHERE = Origins()  # of a config that was not read from a file
