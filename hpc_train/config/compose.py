"""Files that build on others, a site profile, the command line: merged, with every origin kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hpc_train.config.keys import SECTIONS, TYPES, is_text
from hpc_train.config.meant_words.hydra_groups import Group, groups_of, is_group
from hpc_train.config.origins import Origins
from hpc_train.config.python_values import no_override
from hpc_train.config.read import Source, parse_value, read_file
from hpc_train.config.replaced_values import ReplacedLists, drop_arguments_of_another_class
from hpc_train.config.scripts.script_file import is_script, script_source
from hpc_train.config.specs import CLASS_PATH, TARGET
from hpc_train.config.words import did_you_mean
from hpc_train.config.yaml_slips.interpolations import HOLDS_VALUES, takes, with_held
from hpc_train.config.yaml_slips.meant_bases import base_elsewhere
from hpc_train.config.yaml_slips.number_keys import check_same_kind, meant_key
from hpc_train.errors import ConfigError

COMMAND_LINE = "command line"
BASES = ("defaults", "base")
_PROFILE = "cluster_profile"
_KEY = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*\Z")


class Composed:
    """Nested values under merging, and the origin of each."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.origins = Origins()
        self.files: list[Path] = []
        # Of each class that the command line put in another's place: the keys that it dropped
        self.dropped: dict[str, dict[str, Any]] = {}
        self.replaced = ReplacedLists()
        self.left_out: list[str] = []  # a line on what was written and changes nothing
        self.words: list[str] = []  # what `hpc-train submit` is given for the same config
        # At the top, and begins with x-: an anchor or ${x-...} uses it, and it says nothing else
        self.held: dict[str, Any] = {}
        self.groups: list[Group] = []  # of Hydra's, which are not read
        # Files under `defaults` with a class at their top: where its key stands, and the key
        self.bare: dict[Path, tuple[str, str]] = {}

    def merge(self, values: Mapping[str, Any], places: Mapping[str, str], place: str) -> None:
        """Lay `values` over what is there.

        Args:
            values: Nested; a mapping is merged key by key, anything else replaces.
            places: Origins by dotted key.
            place: Origin of a key that `places` does not hold.
        """
        self._merge(self.values, values, "", places, place)

    def _merge(
        self,
        into: dict[str, Any],
        values: Mapping[str, Any],
        prefix: str,
        places: Mapping[str, str],
        place: str,
    ) -> None:
        if not prefix and isinstance(values.get("snapshot"), str):
            # Its short form, over or below which the section's other keys stay.
            values = {**values, "snapshot": {"mode": values["snapshot"]}}
        dropped = drop_arguments_of_another_class(into, values, prefix, self.origins)
        if dropped and place == COMMAND_LINE:
            self.dropped[f"{prefix}class_path"] = dropped
        for name, value in values.items():
            key = f"{prefix}{name}"
            here = places.get(key, place)
            if name not in into:
                check_same_kind(name, into, key, here, self.origins.of(key))
            empties = here == COMMAND_LINE and value == {}  # typed as that, so it is meant
            if isinstance(value, Mapping) and isinstance(into.get(name), dict) and not empties:
                self._merge(into[name], value, f"{key}.", places, here)
                continue
            self.replaced.add(key, into.get(name), value, self.origins)
            if not prefix and "." in str(name):
                self.origins.put_pointed(key, here)
            into[name] = _copy(value)
            self.note_origins(key, value, places, here)

    def set_element(self, holder: list[Any], rest: Sequence[str], value: Any, prefix: str) -> None:
        """Set one element of a list, or a key below it.

        Args:
            holder: The list.
            rest: The element's index, and the keys below it.
            value: What the command line gives.
            prefix: The list's key, with a dot behind it.
        """
        index, *below = rest
        key = ".".join([f"{prefix}{index}", *below])
        if not index.isdecimal() or int(index) >= len(holder):
            from hpc_train.config.yaml_slips.list_elements import (
                hint_of_element,  # on the way to an error
            )

            hint = hint_of_element(holder, index, below, value, prefix)
            if index[1:].isdecimal() and -len(holder) <= int(index) < 0:
                meant = ".".join([f"{prefix}{int(index) + len(holder)}", *below])
                hint = f"count from the front: {meant}=..."
            what = f"{COMMAND_LINE}: {key}: {prefix[:-1]} has no element {index!r}"
            raise ConfigError(what, hint)
        place = int(index)
        if not below:
            holder[place] = _copy(value)
            self.note_origins(key, value, {}, COMMAND_LINE)
        elif isinstance(holder[place], list):
            self.set_element(holder[place], below, value, f"{prefix}{index}.")
        elif isinstance(holder[place], dict):
            self.set_key(holder[place], below, value, f"{prefix}{index}.")
        else:
            raise ConfigError(
                f"{COMMAND_LINE}: {key}: {prefix}{index} is {holder[place]!r}, and has no keys",
                f"give the whole element: {prefix}{index}={{...}}",
            )

    def set_key(self, into: dict[str, Any], words: Sequence[str], value: Any, prefix: str) -> None:
        """Set the value below `into` that `words` lead to, through mappings and lists."""
        at: Any = into
        keys: list[Any] = [meant_key(words[0], into), *words[1:]]
        for depth, word in enumerate(words[1:], start=1):
            at = at.get(keys[depth - 1]) if isinstance(at, dict) else None
            above = f"{prefix}{'.'.join(words[:depth])}"
            if isinstance(at, list):
                self.set_element(at, words[depth:], value, f"{above}.")
                return
            keys[depth] = meant_key(word, at)
            is_text = isinstance(keys[depth], str)
            if is_text and word.isdecimal() and not (isinstance(at, dict) and word in at):
                raise ConfigError(
                    f"{COMMAND_LINE}: {prefix}{'.'.join(words)}: the files give no list {above}",
                    f"give the whole list: {above}=[...]",
                )
        self._merge(into, nested(keys, value), prefix, {}, COMMAND_LINE)

    def note_origins(self, key: str, value: Any, places: Mapping[str, str], place: str) -> None:
        """Note where `key` and all that is below it come from, in place of what was known."""
        self.origins.drop(key)
        for written in keys_below(value, key):
            self.origins.put(written, places.get(written, place))

    def notes(self) -> list[str]:
        """What was left out without being told to."""
        said = [*self.left_out, *self.replaced.notes(self.values, self.origins)]
        if not self.dropped:
            return said
        from hpc_train.config.dropped_arguments import notes_on_dropped  # where there are any

        return [*said, *notes_on_dropped(self.dropped, self.values, self.origins)]


def nested(words: Sequence[Any], value: Any) -> dict[str, Any]:
    """`{a: {b: value}}` of the words a and b."""
    for word in reversed(words):
        value = {word: value}
    return dict(value)


def compose(path: Path, overrides: Sequence[str], assets: Path) -> Composed:
    """Read `path` and all it builds on, then the overrides.

    The later wins: files under `defaults` in their order, the site profile, the file itself, the
    command line.

    Args:
        path: The config file, or a script.
        overrides: `key=value`, as on the command line.
        assets: Folder of the configs that come with hpc-train.

    Raises:
        ConfigError: for everything that cannot be read or found, with file and line.
    """
    composed = Composed()
    pairs = [
        split_override(override, around=(overrides[:at], overrides[at + 1 :]))
        for at, override in enumerate(overrides)
    ]
    for key, text in pairs:
        if not text.strip():
            nothing = {"dict": "{}", "list": "[]"}.get(TYPES.get(key, "")[:4], "null")
            hint = "write name=my-run" if key == "name" else f"write {key}={nothing}, or a value"
            raise ConfigError(f"{COMMAND_LINE}: {key} is empty", hint)
    chosen = [_text(text, key) for key, text in pairs if key == _PROFILE]
    _add_file(composed, path, assets, (), {_PROFILE: chosen[-1]} if chosen else None)
    for key, text in pairs:
        if key != _PROFILE:
            # so that `slurm.time=1:30:00` needs no quotes there
            is_time = key == "trainer.max_time" and re.fullmatch(r"[\d:]+:\d+", text)
            as_typed, places = is_text(key) or is_time, dict[str, str]()
            value = _text(text, key) if as_typed else parse_value(text, key, places)
            into = composed.held if _is_used(key.partition(".")[0], composed) else composed.values
            composed.set_key(into, key.split("."), value, "")
            composed.origins.put_all(places)
    composed.values = with_held(composed.values, composed.held)
    return composed


def _is_used(name: str, composed: Composed) -> bool:
    """Whether a key that begins with x- is taken by `${...}`: an anchor has taken it before."""
    others = {it: value for it, value in composed.held.items() if it != name}
    return name in composed.held and takes(name, [composed.values, others])


def _add_file(
    composed: Composed,
    path: Path,
    assets: Path,
    above: tuple[Path, ...],
    typed: Mapping[str, Any] | None = None,
) -> None:
    if path.resolve() in above:
        raise ConfigError(
            f"{path} builds on itself", "remove it from `base` or `defaults` of one file"
        )
    source = script_source(path) if is_script(path) else read_file(path)
    above = (*above, path.resolve())
    for name in BASES:
        for base in (bases := _base_names(source, name, composed)):
            found = _find(base, source, name, assets, is_alone=len(bases) == 1)
            _add_file(composed, found, assets, above)
    site = source.values.pop(_PROFILE, None)
    if typed:
        site, source.lines[_PROFILE] = typed[_PROFILE], COMMAND_LINE
    if site is not None:
        if not isinstance(site, str):
            raise _at(
                source, _PROFILE, f"is {site!r}", "write the name of a file in configs/clusters"
            )
        _add_file(composed, _find(f"clusters/{site}", source, _PROFILE, assets), assets, above)
    held = [it for it in source.values if str(it).startswith(HOLDS_VALUES)]
    composed.held |= {it: source.values.pop(it) for it in held}
    _leave_out_comments(source.values)
    composed.files.append(path)
    named = next((it for it in (CLASS_PATH, TARGET) if it in source.values), "")
    if named and above[1:]:
        composed.bare[path] = source.lines.get(named, str(path)), named
        return
    composed.merge(source.values, source.lines, str(path))


def _leave_out_comments(values: dict[str, Any]) -> None:
    """A section, a mapping or a list whose lines are all comments says nothing."""
    holders = [("", values), *((f"{name}.", values.get(name)) for name in SECTIONS)]
    for prefix, holder in holders:
        if not isinstance(holder, dict):
            continue
        for name in [name for name, value in holder.items() if value is None]:
            key = f"{prefix}{name}"
            if key in SECTIONS or TYPES.get(key, "").startswith(("dict[", "list[")):
                del holder[name]


def _base_names(source: Source, key: str, composed: Composed) -> list[str]:
    bases = source.values.pop(key, None)
    if bases is None:
        return []
    names = bases if isinstance(bases, list) else [bases]
    folder, place = source.path.parent, source.lines.get(key, str(source.path))
    if key == "defaults":
        composed.groups += groups_of(names, folder, place)
        names = [it for it in names if not is_group(it, folder)]
    for name in names:
        if not isinstance(name, str):
            raise _at(
                source, key, f"holds {name!r}", "write names of files: [base.yaml, clusters/SITE]"
            )
    return [name for name in names if name != "_self_"]


def _find(name: str, source: Source, key: str, assets: Path, *, is_alone: bool = False) -> Path:
    """The file itself beside `source`, or in a `configs` folder above it, or among our own."""
    here = source.path.parent
    wanted = [Path(name)] if Path(name).suffix in (".yaml", ".yml") else [Path(f"{name}.yaml")]
    parents = [here, *(folder / "configs" for folder in [here, *here.resolve().parents])]
    folders = [*parents, assets]
    for folder in folders:
        for candidate in wanted:
            if (folder / candidate).is_file():
                return folder / candidate
    known = {
        entry.stem: (Path(name).parent / entry.stem).as_posix()
        for folder in folders
        if (folder / name).parent.is_dir()
        for entry in (folder / name).parent.glob("*.yaml")
    }
    prefix = "" if key == _PROFILE else name[: -len(Path(name).name)]  # which it has by itself
    near = did_you_mean(Path(name).stem, known, prefix=prefix)
    there = ", ".join(sorted(known if key == _PROFILE else known.values())[:6])
    elsewhere = base_elsewhere(name, source.path, key=key, is_alone=is_alone)
    hint = elsewhere or near or _looked_in(name, source, parents)
    if key == _PROFILE and wanted[0].parent != Path("clusters"):
        hint = f"write its name alone: {wanted[0].stem}, of the file clusters/{wanted[0].name}"
    elif key == _PROFILE and not near:
        hint = f"write the file {here / wanted[0]}{f', or name one of: {there}' if known else ''}"
    raise _at(source, key, f"names {name}, and there is no such file", hint)


def _looked_in(name: str, source: Source, folders: Sequence[Path]) -> str:
    """What files there are beside a config, of those that it may build on, and where that is."""
    found = {
        entry.name
        for folder in folders
        if (folder / name).parent.is_dir()
        for ending in ("*.yaml", "*.yml")
        for entry in (folder / name).parent.glob(ending)
        if entry.resolve() != source.path.resolve()
    }
    there = f"; there are: {', '.join(sorted(found)[:6])}" if found else ""
    return f"looked beside it, in {folders[0].resolve()}, and in configs/ there and above{there}"


def _at(source: Source, key: str, message: str, hint: str) -> ConfigError:
    place = source.lines.get(key, str(source.path))
    return ConfigError(f"{place}: {key} {message}", hint)


def split_override(
    override: str,
    example: str = "trainer.max_epochs=3",
    around: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> tuple[str, str]:
    """Key and text of `key=value`; raises ConfigError for what is none.

    Args:
        override: As it was typed.
        example: Of one, for the refusal.
        around: What was typed in front of it and behind it.
    """
    if not hasattr(override, "partition"):  # of the Python API
        raise no_override(override, example)
    key, equals, text = override.partition("=")
    key = key.strip()
    if not equals:
        from hpc_train.config.meant_words.typed_words import hint_for

        before, behind = ([str(word) for word in words] for words in around)
        hint = hint_for(override, before, behind, example)
        raise ConfigError(f"{COMMAND_LINE}: {override!r} is no key=value", hint)
    if "[" in key:
        dotted = key.replace("[", ".").replace("]", "")
        raise ConfigError(f"{COMMAND_LINE}: {key!r} is no key", f"an index has a dot: {dotted}=...")
    if _KEY.match(key) is None:
        raise ConfigError(f"{COMMAND_LINE}: {key!r} is no key", _no_key(override, example))
    return key, text


def _no_key(override: str, example: str) -> str:
    """What to write for `key=value` whose key cannot be one."""
    from hpc_train.config.meant_words.typed_words import emptied, in_python

    key, _, text = override.partition("=")
    key = key.strip()
    if said := emptied(key) or in_python(override, ()):
        return said
    dotted = re.sub("[:/,.]+", ".", key.lstrip("+\"'")).strip(".")
    text = text.rstrip("\"'") if key[:1] in "\"'" else text
    if dotted[:6] == "hydra.":
        return "leave it out: hpc-train submits by itself; key=null empties it"
    hint = f"write {dotted}={text}" if _KEY.match(dotted) else f"write a name, as in {example}"
    return hint if key[:1] == "+" else f"{hint}; key=null empties it"


def _text(text: str, key: str) -> Any:
    """The value of a key that holds text: as it is typed, but for null and what is in quotes."""
    in_quotes = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return parse_value(text, key) if in_quotes or text in ("", "~", "null") else text


def keys_below(value: Any, key: str) -> Iterator[str]:
    """`key` and every key below it."""
    yield key
    if isinstance(value, (Mapping, list)):
        for name, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from keys_below(item, f"{key}.{name}")


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copy(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
