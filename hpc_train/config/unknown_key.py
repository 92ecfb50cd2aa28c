"""A key that there is not, and what to write for it: what others call it, or where it belongs."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from hpc_train.config.compose import BASES
from hpc_train.config.keys import FIELDS, SECTIONS
from hpc_train.config.origins import Origins
from hpc_train.config.own_arguments import argument_hint, is_taken, not_taken
from hpc_train.config.sbatch_names import KNOWN, OWNED
from hpc_train.config.trainer_args import trainer_parameters
from hpc_train.config.words import did_you_mean
from hpc_train.errors import ConfigError

# Words of sbatch and of other launchers for what has a key of its own here.
OTHER_WORDS = {
    **dict.fromkeys(("gpus", "ntasks_per_node"), "slurm.gpus_per_node"),
    "gres": "slurm.gpus_per_node: 4, and slurm.gpu_type: a100 where the type counts",
    "array": "sweep: {{KEY: [VALUES]}}, which makes a job array",
    **dict.fromkeys(("output", "error"), "nothing: `hpc-train logs RUN` shows the ranks' logs"),
    "ntasks": "slurm.nodes and slurm.gpus_per_node: a rank a GPU",
    **dict.fromkeys(
        ("cpus_per_task", "cpus_per_rank", "cpus", "cores", "ncpus"), "slurm.cpus_per_gpu"
    ),
    **dict.fromkeys(("walltime", "time_limit", "timelimit", "timeout_min"), "slurm.time"),
    **dict.fromkeys(("job_name", "jobname"), "name"),
    **dict.fromkeys(("batch_size", "train_batch_size", "total_batch_size"), "global_batch_size"),
    "logger": "loggers",
    **dict.fromkeys(("site", "profile", "site_profile", "cluster_profile"), "cluster_profile"),
    "cluster": "the option --cluster slurm or --cluster local",
    **dict.fromkeys(
        ("monitor", "save_top_k", "save_last", "dirpath", "filename"),
        "it under init_args of a ModelCheckpoint in trainer.callbacks",
    ),
    **dict.fromkeys(("datamodule", "data_module", "dataset"), "data: {{class_path: ...}}"),
    **dict.fromkeys(("epochs", "num_epochs", "n_epochs"), "trainer.max_epochs"),
    **dict.fromkeys(("steps", "num_steps"), "trainer.max_steps"),
    **{name: f"trainer.{name}" for name in ("callbacks", "max_epochs", "max_steps", "precision")},
    **dict.fromkeys(("seed_everything", "random_seed", "manual_seed"), "seed"),
    **dict.fromkeys(("mixed_precision", "fp16", "bf16", "amp"), "trainer.precision"),
    **dict.fromkeys(("zero_optimization", "deepspeed", "fsdp", "distributed"), "trainer.strategy"),
    **dict.fromkeys(("gradient_clipping", "clip_grad", "grad_clip"), "trainer.gradient_clip_val"),
    **dict.fromkeys(
        ("gradient_accumulation_steps", "accumulate_grad_batches", "grad_accum"),
        "global_batch_size and micro_batch_size, from which it follows",
    ),
    **dict.fromkeys(
        ("train_micro_batch_size_per_gpu", "per_device_train_batch_size", "batch_size_per_gpu"),
        "micro_batch_size",
    ),
    **dict.fromkeys(("num_machines", "num_nodes", "nnodes", "n_nodes"), "slurm.nodes"),
    **dict.fromkeys(
        ("num_processes", "num_gpus", "n_gpus", "ngpus", "nproc_per_node", "devices"),
        "slurm.gpus_per_node",
    ),
    **dict.fromkeys(("output_dir", "save_dir", "default_root_dir", "log_dir"), "runs_dir"),
}
# Settings that a class of the config has, by its section.
OF_A_CLASS = {
    **dict.fromkeys(
        ("lr", "learning_rate", "optimizer", "scheduler", "lr_scheduler", "weight_decay"), "model"
    ),
    **dict.fromkeys(("num_workers", "data_dir"), "data"),
}
_GOES_ON = "`hpc-train resume RUN` goes on with a run; weights alone: init_from: PATH"
_PYTHON = "write env.venv or env.conda, whose Python the ranks get"
# What is said of a key as a whole, in a section or without one.
SAID_OF_KEYS = {
    **dict.fromkeys(("resume", "resume_from_checkpoint", "ckpt_path", "checkpoint_path"), _GOES_ON),
    **dict.fromkeys(("python", "python_path", "interpreter"), _PYTHON),
    "hydra": "leave it out: of Hydra's keys defaults and _target_ are read",
    **{name: f"write loggers: [{name}]" for name in ("wandb", "mlflow", "tensorboard", "csv")},
    **dict.fromkeys(("slurm.email", "slurm.mail", "email"), "write slurm.mail_user"),
    **dict.fromkeys(
        ("notify.email", "notify.url", "notify.urls", "notify.slack"),
        "write the address into a file that only you can read, and notify.urls_from: ~/FILE",
    ),
}
# As LightningCLI has them around all other keys.
_SUBCOMMANDS = ("fit", "validate", "test", "predict")


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
    of_script = values.get("script")
    script = isinstance(of_script, Mapping) and bool(of_script.get("path"))
    hint = _known_word(full, section, key, script=script) or _of_sbatch(section, key)
    if not hint and key in OF_A_CLASS:
        owner = OF_A_CLASS[key]
        hint = argument_hint(owner, key, values) or not_taken(owner, key, values)
    hint = hint or _with_its_section(key.lower())
    hint = hint or did_you_mean(key.lower(), known, prefix=f"{section}." if section else "")
    if not hint and section == "slurm":
        hint = f"other options of sbatch go under slurm.extra: {{{key.replace('_', '-')}: ...}}"
    if not hint:
        hint = f"known: {', '.join(known)}"
        of_model = "" if section else argument_hint("model", key, values)
        hint = of_model if is_taken("model", key, values) else hint
        hint += f"; of your model: model.init_args.{key}" if of_model and hint != of_model else ""
    return origins.error(full, "is no key of hpc-train", hint)


def _of_sbatch(section: str, key: str) -> str:
    """What an option of sbatch is, where it stands in `slurm`: of ours, or under `extra`."""
    option = key.replace("_", "-")
    if section != "slurm" or option not in KNOWN:
        return ""
    under_extra = f"other options of sbatch go under slurm.extra: {{{option}: ...}}"
    return OWNED.get(option, under_extra)


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
        return f"write env.variables.{key}"
    if full in ("class_path", "init_args"):
        return f"indent {full} below the key of its object: model or data"
    if full == "preflight.enabled":
        return "write preflight: off"
    if full in _SUBCOMMANDS:
        return f"write the keys below {full} without it"
    hint = hint or (f"write {OTHER_WORDS[key].format(key=key)}" if key in OTHER_WORDS else "")
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
