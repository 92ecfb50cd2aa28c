"""The script of a command that is translated: what its own text tells of how it is submitted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpc_train.plan.translation import Translation


def settle_script(made: Translation) -> None:
    """Put the script in the place of one that submits it, and let one start its own ranks."""
    if not made.script:
        return
    _with_accelerate_config(made)
    _without_submitit(made)
    _with_own_ranks(made)
    from hpc_train.config.scripts.typed_arguments import address_of_one, rank_of_one

    nodes = made.config.get("slurm.nodes", 1)
    is_alone = made.config.get("script.launcher") == "none" and nodes == 1
    if not is_alone and (of_one := rank_of_one(made.script[1:])):
        made.said.append(of_one)
    if nodes > 1 and (address := address_of_one(made.script[1:])):
        made.said.append(address)


def _with_accelerate_config(made: Translation) -> None:
    """Its values where nothing typed says another, as `accelerate launch` reads it."""
    from hpc_train.config.meant_words.accelerate_config import read_accelerate_config

    for word, why in [*made.refused]:
        option, _, file = word.replace("=", " ", 1).partition(" ")
        if option.replace("_", "-") != "--config-file":
            continue
        keys, plugins = read_accelerate_config(Path(made.starts_in, file.strip()))
        if not keys:
            continue
        made.refused.remove((word, why))
        taken = {key: value for key, value in keys.items() if key not in made.config}
        made.config.update(taken)
        made.say(word, ", ".join(f"{key}: {value}" for key, value in taken.items()) or "left out")
        for plugin in plugins:
            made.refuse(word, plugin.replace(" in it,", f" in {made.script[0]},"))


def _without_submitit(made: Translation) -> None:
    from hpc_train.config.scripts.submitting_scripts import submits_jobs, submitted_script

    path = made.script[0]
    file = Path(made.starts_in, path)
    line, said, hint = submits_jobs(file)
    if not line:
        return
    made.say(path, f"line {line} {said}: {hint}")
    found = submitted_script(file, path, made.script[1:])
    if found is None:
        return
    made.script = [found.script, *found.arguments]
    if found.left_out:
        made.say(" ".join(found.left_out), f"left out: it is of {path} alone")
    shape = {"slurm.nodes": found.nodes, "slurm.gpus_per_node": found.gpus}
    for key, value in {**shape, "slurm.partition": found.partition}.items():
        if value:
            made.config[key] = value


def _with_own_ranks(made: Translation) -> None:
    from hpc_train.config.python_text.script_tree import script_tree
    from hpc_train.config.scripts.spawned_ranks import spawns_as_typed

    tree = script_tree(Path(made.starts_in, made.script[0]))
    line, called = spawns_as_typed(tree, made.script[1:]) if tree is not None else (0, "")
    if not line or "script.launcher" in made.config:
        return
    made.config["script.launcher"] = "none"
    gpus = "" if "slurm.gpus_per_node" in made.config else "; add --gpus N, its ranks a node"
    made.say(made.script[0], f"line {line} starts its ranks ({called}): script.launcher=none{gpus}")
