"""Keys of a Hydra app's config that mean nothing here, and what to do in their place.

Source: https://github.com/ashleve/lightning-hydra-template (configs/train.yaml, configs/extras).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpc_train.config.meant_words.other_seeds import KEY as SEED
from hpc_train.config.meant_words.other_seeds import seed_to_write
from hpc_train.config.meant_words.other_words import OTHER_WORDS
from hpc_train.config.meant_words.own_arguments import is_taken
from hpc_train.config.origins import Origins

# Switches that say which loops of the Trainer a program runs.
_LOOPS = ("train", "fit", "validate", "test", "predict")
_AFTERWARDS = "leave it out: once it has trained, `hpc-train {} RUN` does that"
_WORDS = {
    "tags": "leave it out: tags are an argument of wandb's logger: loggers: [{class_path: wandb,"
    " init_args: {tags: [...]}}]",
    "extras": "leave it out: `hpc-train config show` prints the config, and runs are named by name",
    **dict.fromkeys(
        ("enforce_tags", "print_config", "ignore_warnings", "optimized_metric"), "leave it out"
    ),
}
_COMPILE = "leave it out: compile in your model, self.net.compile() in configure_model"


def word_of_hydra(key: str, written: str, values: Mapping[str, Any], origins: Origins) -> str:
    """What to do with a key of the top; empty for one that says something else.

    Args:
        key: With underscores for dashes.
        written: As it is in the file.
        values: The whole config.
        origins: For the places of a seed.
    """
    value = values.get(written)
    if any(is_taken(it, key, values) for it in ("model", "data")):
        return ""
    if key in _LOOPS and isinstance(value, bool):
        trains = "leave it out: hpc-train submit trains"
        return trains if key in _LOOPS[:2] else _AFTERWARDS.format(key)
    if key == "compile" and isinstance(value, bool):
        return _COMPILE if value else "leave it out"
    if key == "callbacks" and isinstance(value, Mapping):
        return _as_list(value, values)
    meant = OTHER_WORDS.get(key, "")
    if meant == SEED:
        return seed_to_write(written, values, origins)
    if meant == "name" and values.get(meant) is not None:
        return f"leave it out: {meant} is there"
    return _WORDS.get(key, "")


def _as_list(callbacks: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """The list that the Trainer takes for callbacks which stand each below a name."""
    from hpc_train.config.whole_forms import flow, objects_by_name  # on the way to an error

    objects = objects_by_name(callbacks)
    if not objects:
        return ""
    form = f"callbacks: {flow(objects)}"
    return f"write below trainer: {form}" if "trainer" in values else f"write trainer: {{{form}}}"
