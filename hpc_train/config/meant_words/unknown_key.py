"""A key that there is not, and what to write for it: what others call it, or where it belongs."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from hpc_train.config.compose import BASES
from hpc_train.config.keys import FIELDS, SECTIONS
from hpc_train.config.meant_words.gpu_counts import OF_ALL_NODES, keys_for_count, keys_for_gres
from hpc_train.config.meant_words.hydra_words import word_of_hydra
from hpc_train.config.meant_words.logger_forms import LOGGER_WORDS
from hpc_train.config.meant_words.meant_callbacks import meant_callback
from hpc_train.config.meant_words.notify_words import of_address
from hpc_train.config.meant_words.other_words import (
    OF_A_CLASS,
    OTHER_WORDS,
    SAID_OF_KEYS,
    SWITCHES,
    USUAL_NAMES,
    usual_form,
)
from hpc_train.config.meant_words.own_arguments import (
    argument_hint,
    below_class,
    is_taken,
    not_taken,
)
from hpc_train.config.meant_words.sbatch_names import KNOWN, OWNED
from hpc_train.config.meant_words.sbatch_values import UNDER_EXTRA, with_value
from hpc_train.config.origins import Origins
from hpc_train.config.python_text.lightning_home import of_project
from hpc_train.config.secrets import how_to_pass, looks_secret
from hpc_train.config.trainer_args import trainer_parameters
from hpc_train.config.words import did_you_mean
from hpc_train.config.yaml_slips.column_slips import below_empty_section
from hpc_train.config.yaml_slips.in_its_place import (
    below_its_section,
    inside_its_section,
    meant_section,
    of_a_file,
)
from hpc_train.config.yaml_slips.interpolations import held_by_prefix
from hpc_train.config.yaml_slips.keys_at_the_top import with_its_like
from hpc_train.errors import ConfigError

# As mmengine, Compose, GitLab CI and others call what a file builds on.
_INCLUDES = ("include", "includes", "_base_", "extends", "inherit", "inherits", "import", "imports")
# As LightningCLI has them around all other keys.
_SUBCOMMANDS = ("fit", "validate", "test", "predict")
_COUNTS = ("slurm.gpus_per_node", "slurm.cpus_per_gpu")
_NEAR = 0.7  # and above: `loss` is no `hosts`, and `batch` no `watchdog`
_NEARER = 0.85  # a slip of the key that stands there


def key_of_word(name: str, *, script: bool = False) -> str:
    """The key that ends in this name; a section's, the Trainer's, or what others call it.

    Args:
        script: Whether the training is a script, whose section has words of the Trainer's.
    """
    if "." in name or name in FIELDS:
        return name
    places = _places(name, script=script)
    if len(places) == 1:
        return places[0]
    if name in OF_A_CLASS:
        return f"{OF_A_CLASS[name]}.init_args.{name}"
    meant = OTHER_WORDS.get(name, "").rpartition(": ")[2]
    found = meant, _with_its_section(name).removeprefix("write ")
    return next((key for key in found if re.fullmatch(r"[a-z_]+(?:\.\w+)*", key)), "")


def unknown_key(
    full: str, known: Sequence[str], origins: Origins, values: Mapping[str, Any]
) -> ConfigError:
    """The refusal of a key.

    Args:
        full: Dotted, below a section or not.
        known: The keys that there are in its place.
        values: The whole config, whose classes may take it.
    """
    section, _, written = full.rpartition(".")
    key = written.replace("-", "_")
    like: tuple[str, ...] = ()
    is_whole = key in known or key.isupper() or _places(key, script=False)  # PYTHONPATH, a variable
    key = key if is_whole else usual_form(key)
    of_script = values.get("script")
    script = isinstance(of_script, Mapping) and bool(of_script.get("path"))
    typed = origins.is_typed(full)
    hint, users = _of_the_top(key, written, values, origins) if not section else ("", ())
    if not hint:
        hint, users = meant_callback(full, values, origins)
    if not section and key != key.lower() and key.lower() in known:
        hint = f"did you mean '{key.lower()}'?"
    if not section and not typed and not script:
        hint = hint or of_a_file(key, written, values)
    hint = hint or ("" if script else _of_a_class(key, values))
    hint = hint or _of_gres(full, values, typed=typed) or _of_count(full, values, typed=typed)
    hint = hint or of_address(full, values, typed=typed) or _twice(full, values, typed=typed)
    slip = did_you_mean(key, known, prefix=f"{section}.", cutoff=_NEARER) if section else ""
    hint = hint or slip or _known_word(full, section, key, script=script)
    hint = hint or _of_sbatch(section, key) or _of_a_class(key, values)
    if hint and not section and key in OTHER_WORDS and is_taken("model", key, values):
        hint += f"; of your model: {below_class('model', values)}{key}"
    hint = hint or _with_its_section(key.lower())
    hint = hint or did_you_mean(key.lower(), known, prefix=section and f"{section}.", cutoff=_NEAR)
    if not hint and section == "slurm":
        hint = UNDER_EXTRA.format(key.replace("_", "-"))
    hint = hint or _what_there_is(section, key, known, values)
    if section == "slurm" and isinstance(values.get(section), Mapping):
        hint = with_value(hint, values[section].get(written), typed=typed)
    if not section and not typed:
        hint = below_its_section(hint, written, values, origins)
        hint, like = with_its_like(hint, written, values, origins)
        users = (*users, *like)
    if section and not typed:
        hint = inside_its_section(hint, full, values, origins)
    others = [it.rpartition(".")[2] for it in users] if section or like else []
    said = f", and {', '.join(others)} {'is' if len(others) == 1 else 'are'} none" if others else ""
    error = origins.error(full, f"is no key of hpc-train{said}", hint)
    error.keys += users  # one mend for all of them
    return error


def _what_there_is(section: str, key: str, known: Sequence[str], values: Mapping[str, Any]) -> str:
    """Of a word that is near to nothing: the keys, and that a model may take it."""
    there = f"known: {', '.join(known)}"
    of_model = "" if section else argument_hint("model", key, values)
    if not of_model or is_taken("model", key, values):
        return of_model or there
    return f"{there}; of your model: {below_class('model', values)}{key}"


def _of_the_top(
    key: str, written: str, values: Mapping[str, Any], origins: Origins
) -> tuple[str, tuple[str, ...]]:
    """What is surely meant by a key at the top, and the keys that the same mend is for."""
    typed = origins.is_typed(written)
    if not typed:
        hint, users = held_by_prefix(written, values, origins)
        if hint:
            return hint, users
        hint, beside = below_empty_section(origins.of(written))
        if hint:
            return hint, tuple(beside)
    hint = meant_section(values.get(written), values)
    hint = hint or word_of_hydra(key, written, values, origins)
    hint = hint or _switch(key, values.get(written), typed=typed)
    return hint or ("" if typed else _builds_on(key, values.get(written))), ()


def _of_gres(full: str, values: Mapping[str, Any], *, typed: bool) -> str:
    """The keys for sbatch's --gres, with its own numbers; empty for other words."""
    section, _, name = full.rpartition(".")
    beside = values.get(section) if section else values
    if name != "gres" or section not in ("", "slurm") or not isinstance(beside, Mapping):
        return ""
    return keys_for_gres(beside.get(name), on_line=typed)


def _twice(full: str, values: Mapping[str, Any], *, typed: bool) -> str:
    """What to write for a section that stands in itself, with keys of its own."""
    section, _, name = full.rpartition(".")
    beside = values.get(section) if section == name else None
    below = beside.get(name) if isinstance(beside, Mapping) else None
    if not isinstance(below, Mapping) or not below:
        return ""
    if not typed:
        from hpc_train.config.whole_forms import flow  # on the way to an error

        return f"write {flow(dict(below))[1:-1]}, without the second {section}:"
    return f"write {section}.{next(iter(below))}, with one {section}"


def _of_count(full: str, values: Mapping[str, Any], *, typed: bool) -> str:
    """The key for a number of sbatch's in `slurm`, with the number; empty for other words."""
    section, _, written = full.rpartition(".")
    beside, name = values.get(section) if section else None, written.replace("-", "_")
    key = "slurm.gpus_per_node" if name in OF_ALL_NODES else OTHER_WORDS.get(name, "")
    if section != "slurm" or not isinstance(beside, Mapping) or key not in _COUNTS:
        return ""
    numbers = {**beside, name: beside.get(written)}
    return keys_for_count(name, key, numbers, on_line=typed)


def _builds_on(key: str, value: Any) -> str:
    """What to write for another tool's word that takes over another file."""
    files = value if isinstance(value, list) else [value]
    if key not in _INCLUDES or not all(isinstance(it, str) and it for it in files):
        return ""
    return f"write defaults: [{', '.join(files)}]"


def _switch(key: str, value: Any, *, typed: bool) -> str:
    """The key and the value that a switch of other trainers stands for; empty for other words."""
    meant = SWITCHES.get(key, "")
    if key == "report_to":
        from hpc_train.config.whole_forms import loggers_for  # on the way to an error

        wanted = loggers_for(value)
        is_known = all(isinstance(it, str) and it in LOGGER_WORDS for it in wanted)
        meant = f"loggers=[{', '.join(wanted if is_known else ('csv', 'wandb'))}]"
    if not meant:
        return ""
    if value is False and key != "report_to":
        return "leave it out"
    name, _, setting = meant.partition("=")
    if typed:
        return f"write {name}={setting.replace(' ', '')}"
    section, _, below = name.rpartition(".")
    return f"write {section}: {{{below}: {setting}}}" if section else f"write {name}: {setting}"


def _of_a_class(key: str, values: Mapping[str, Any]) -> str:
    """What to write for a setting that a class of the config has; empty for other words."""
    owner = OF_A_CLASS.get(key, "")
    name = key if not owner or is_taken(owner, key, values) else USUAL_NAMES.get(key, key)
    return argument_hint(owner, name, values) or not_taken(owner, name, values) if owner else ""


def _of_sbatch(section: str, key: str) -> str:
    """What an option of sbatch is, where it stands in `slurm`: of ours, or under `extra`."""
    option = key.replace("_", "-")
    if section != "slurm" or option not in KNOWN:
        return ""
    return OWNED.get(option, UNDER_EXTRA.format(option))


def _places(key: str, *, script: bool) -> list[str]:
    """The sections' keys of this name; what the Trainer takes is no script's in a config."""
    places = [f"{section}.{key}" for section, keys in SECTIONS.items() if key in keys]
    if not script and key in SECTIONS["script"] and key in trainer_parameters(sys.path):
        places.remove(f"script.{key}")
    return places


def _known_word(full: str, section: str, key: str, *, script: bool) -> str:
    """What a word of others is here, or where a key of ours belongs."""
    places = [name for name in FIELDS if name == key] + _places(key, script=script)
    if key == "enabled":  # of other sections
        places = []
    hint = SAID_OF_KEYS.get(full) or SAID_OF_KEYS.get(key) or ""
    hint = hint or (f"did you mean '{places[0]}'?" if places else "")
    if section == "env" and key.isupper():
        return how_to_pass(key) if looks_secret(key) else f"write env.variables.{key}"
    if full in ("class_path", "init_args", "_target_"):
        return f"indent {full} below the key of its object: model or data"
    if full == "preflight.enabled":
        return "write preflight: off"
    if full in _SUBCOMMANDS:
        return f"write the keys below {full} without it"
    if not hint and key in OTHER_WORDS:
        hint = of_project(f"write {OTHER_WORDS[key].format(key=key)}")
    return hint or ("a file builds on others, the command line does not" if key in BASES else "")


def _with_its_section(key: str) -> str:
    """`trainer.strategy` for `strategy`, and `slurm.partition` for `slurm_partition`."""
    of_trainer = trainer_parameters(sys.path)
    section, _, name = key.partition("_")
    if key in of_trainer:
        return f"write trainer.{key}"
    if name in SECTIONS.get(section, ()) or (section == "trainer" and name in of_trainer):
        return f"write {section}.{name}"
    return ""
