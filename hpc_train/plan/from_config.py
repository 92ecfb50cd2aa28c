"""From the config to the plan: pure, no file is read and nothing is asked of the machine."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from hpc_train.config.gathered import tell_together
from hpc_train.config.keys import MEMORY_KEYS
from hpc_train.config.meant_words.gpu_counts import keys_for_gres
from hpc_train.config.meant_words.sbatch_names import PASSED_ON
from hpc_train.config.origins import Origins
from hpc_train.config.schema import Config, SlurmConfig
from hpc_train.config.specs import read_object, read_tree
from hpc_train.config.values import check_meaning
from hpc_train.errors import ConfigError
from hpc_train.plan.container import check_container
from hpc_train.plan.hostlist import expand
from hpc_train.plan.json_keys import as_json
from hpc_train.plan.plan import (
    Batch,
    ObjectSpec,
    Plan,
    ScriptPlan,
    Shape,
    ShellPlan,
    SlurmPlan,
    Training,
)
from hpc_train.plan.quoting import quote_sbatch
from hpc_train.plan.sbatch_options import FORMS, check_form, extra_options
from hpc_train.plan.shape import BatchSplitError, shape_of, split_batch
from hpc_train.plan.shell import shell_plan
from hpc_train.plan.units import (
    meant_memory,
    meant_time,
    memory_mib,
    slurm_time,
    stop_lead_s,
    time_s,
)

# Slurm counts minutes in 32 bits, the last values of which have other meanings (slurm.h, NO_VAL).
_LONGEST_S = (2**32 - 3) * 60


def make_plan(
    config: Config,
    *,
    workdir: str | PurePath,
    python: str,
    for_script: bool = False,
    origins: Origins | None = None,
) -> Plan:
    """Decide everything that follows from the config.

    Args:
        config: As `config.load` returns it.
        workdir: Where the user's modules are found; absolute.
        python: The interpreter of the ranks, used unless the config activates an environment.
        for_script: The plan goes into a script that must work by itself wherever it is submitted:
            folders stay relative to the folder it is submitted from.
        origins: `Loaded.origins`, so that an error can say file and line.

    Raises:
        ConfigError: for a value that cannot be meant.
        CheckError: for a batch that the shape cannot split.
    """
    origins = origins or Origins()
    check_meaning(config, origins)
    check_container(config.container, origins)
    shape = shape_of(config)
    folder = "." if for_script else str(workdir)
    shell = shell_plan(config.env, workdir=folder, python=python, origins=origins)
    training, script, weights = _training(config, origins), _script(config), config.init_from or ""
    # "~" is the home on the machine where it runs.
    stays = for_script or config.runs_dir.startswith("~")
    return Plan(
        name=config.name,
        workdir=folder,
        runs_dir=config.runs_dir if stays else str(PurePath(workdir) / config.runs_dir),
        config_hash=_hash(config, training, script),
        shape=shape,
        batch=_batch(config, shape, origins),
        training=training,
        slurm=_slurm_plan(config, shape, shell, origins),
        shell=shell,
        checkpoint=config.checkpoint,
        requeue=config.requeue,
        watchdog=config.watchdog,
        preflight=config.preflight,
        notify=config.notify,
        script=script,
        container=config.container if config.container.image else None,
        weights=weights,
        weights_left_out=list(config.init_leave_out),
        hosts=list(config.hosts),
    )


def _hash(config: Config, training: Training, script: ScriptPlan | None) -> str:
    weights, left_out = config.init_from or "", config.init_leave_out
    batch = config.global_batch_size
    return result_hash(training, batch, script=script, weights=weights, left_out=left_out)


def with_training(plan: Plan, config: Config, origins: Origins) -> Plan:
    """The plan of a config that differs in the arguments of model and data, or the seed, alone."""
    training = _training(config, origins)
    config_hash = result_hash(
        training,
        config.global_batch_size,
        weights=plan.weights,
        left_out=plan.weights_left_out,
    )
    return dataclasses.replace(plan, training=training, config_hash=config_hash)


def result_hash(
    training: Training,
    global_batch_size: int,
    *,
    script: ScriptPlan | None = None,
    weights: str = "",
    left_out: Sequence[str] = (),
) -> str:
    """16 hexadecimal digits that change when the result of the training would."""
    what: dict[str, Any] = {"weights": weights} if weights else {}
    what |= {"left_out": list(left_out)} if left_out else {}
    what |= {
        "global_batch_size": global_batch_size,
        "model": [training.model.class_path, training.model.init_args],
        "data": [training.data.class_path, training.data.init_args],
        "trainer": training.trainer,
        "seed": training.seed,
        "reproducible": training.reproducible,
    }
    if script is not None:
        what["script"] = [script.path, script.args]
        if script.scale_lr != "none":
            what["scale_lr"] = [script.scale_lr, script.lr_ranks, script.warmup_steps]
    text = json.dumps(what, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _batch(config: Config, shape: Shape, origins: Origins) -> Batch:
    if config.script.path:
        return Batch(0, 0, 0)
    try:
        return split_batch(config.global_batch_size, config.micro_batch_size, shape)
    except BatchSplitError as error:
        place = origins.prefix("global_batch_size")
        raise BatchSplitError(f"{place}{error.message}", error.sizes, error.candidates) from error


def _script(config: Config) -> ScriptPlan | None:
    script = config.script
    if not script.path:
        return None
    scaled = script.scale_lr != "none"
    return ScriptPlan(
        path=script.path,
        args=list(script.args),
        launcher=script.launcher,
        on_stop=script.on_stop,
        stop_grace_s=script.stop_grace_s,
        resume_when=str(script.resume.get("when", "")),
        resume_args=[str(word) for word in script.resume.get("args", [])],
        may_take_no_steps=script.may_take_no_steps,
        scale_lr=script.scale_lr,
        lr_ranks=script.lr_ranks if scaled else 1,
        warmup_steps=script.warmup_steps if scaled else 0,
    )


def _training(config: Config, origins: Origins) -> Training:
    model, data = (
        ObjectSpec("", {}) if config.script.path else _object(getattr(config, key), key, origins)
        for key in ("model", "data")
    )
    return Training(
        model=model,
        data=data,
        trainer=as_json(read_tree(config.trainer, "trainer", origins)),
        loggers=as_json(read_tree(config.loggers, "loggers", origins)),
        seed=config.seed,
        reproducible=config.reproducible,
    )


def _object(spec: Mapping[str, Any], key: str, origins: Origins) -> ObjectSpec:
    class_path, arguments = read_object(spec, key, origins)
    return ObjectSpec(class_path, as_json(arguments))


def _slurm_plan(config: Config, shape: Shape, shell: ShellPlan, origins: Origins) -> SlurmPlan:
    slurm = config.slurm
    limit_s = _time_limit_s(slurm, origins)
    lead_s = stop_lead_s(slurm.signal_lead_s, limit_s)
    _check_texts(slurm, origins)
    extra = _extra(slurm, origins)
    options: list[tuple[str, str | None]] = [
        ("job-name", config.name),
        ("nodes", str(shape.nodes + shape.spares)),
        # One supervisor runs in the batch step and starts the ranks with its own srun, but the
        # CPUs of a node are allocated by the tasks that the job announces.
        ("ntasks-per-node", str(shape.ranks_per_node)),
        *_resources(slurm, shape, origins),
    ]
    if slurm.time is not None:
        options.append(("time", "UNLIMITED" if limit_s is None else slurm_time(limit_s)))
    options += [
        (key.replace("_", "-"), value) for key in PASSED_ON if (value := getattr(slurm, key))
    ]
    if slurm.mail_user and not slurm.mail_type:
        options.append(("mail-type", "END,FAIL"))  # sbatch(1): without a type no mail is sent
    if slurm.exclusive:
        options.append(("exclusive", None if slurm.exclusive is True else slurm.exclusive))
    # Without "B:" the signal goes to the steps, so to the ranks, and not to the batch shell
    # (sbatch(1), --signal). NCCL may take USR1 for itself.
    options.append(("signal", f"USR2@{lead_s}"))
    options.append(("requeue" if config.requeue.enabled else "no-requeue", None))
    options.append(("open-mode", "append"))
    if shell.passthrough:
        options.append(("export", ",".join(["ALL", *shell.passthrough])))
    options += extra
    for name, value in options:
        if value is not None:
            quote_sbatch(value, f"sbatch's --{name}")
    return SlurmPlan(options=options, cpus_per_rank=slurm.cpus_per_gpu, signal_lead_s=lead_s)


def _extra(slurm: SlurmConfig, origins: Origins) -> list[tuple[str, str | None]]:
    """The options of `slurm.extra`; all that is refused there is told at once."""
    refused, options = [], []
    gres = str(slurm.extra.get("gres") or "")
    if any(part.split(":")[0] == "gpu" for part in gres.split(",")):
        hint = keys_for_gres(gres, on_line=origins.is_typed("slurm.extra.gres"))
        hint = hint or "write slurm.gpus_per_node and slurm.gpu_type"
        refused.append(origins.error("slurm.extra.gres", "asks for GPUs", hint))
    try:
        options = extra_options(slurm.extra, origins)
    except ConfigError as error:
        refused.append(error)
    tell_together(refused)
    return [pair for pair in options if pair[0] != "gres"]


def _resources(
    slurm: SlurmConfig, shape: Shape, origins: Origins
) -> Iterator[tuple[str, str | None]]:
    gres = [str(slurm.extra["gres"])] if slurm.extra.get("gres") else []
    if shape.gpus_per_node:
        kind = f"gpu:{slurm.gpu_type}" if slurm.gpu_type else "gpu"
        gres.insert(0, f"{kind}:{shape.gpus_per_node}")
    if gres:
        yield "gres", ",".join(gres)
    if slurm.cpus_per_gpu is not None:
        yield "cpus-per-task", str(slurm.cpus_per_gpu)
    yield from _memory(slurm, shape, origins)


def _memory(slurm: SlurmConfig, shape: Shape, origins: Origins) -> Iterator[tuple[str, str]]:
    given = [key for key in MEMORY_KEYS if getattr(slurm, key) is not None]
    if len(given) > 1:
        raise _beside(given, slurm, origins)
    for key in given:
        if key == "mem_per_gpu" and not shape.gpus_per_node:
            raise origins.error(
                "slurm.mem_per_gpu",
                "is set, and trainer.accelerator: cpu uses no GPU",
                "write slurm.mem (a node) or slurm.mem_per_cpu",
            )
        try:
            memory_mib(getattr(slurm, key))
        except ValueError as error:
            meant, full = meant_memory(getattr(slurm, key)), f"slurm.{key}"
            hint = f"write {full}={meant}" if origins.is_typed(full) else f'write {key}: "{meant}"'
            is_number = getattr(slurm, key).strip().isdecimal()
            memory = meant if is_number else ""
            raise origins.error(full, f": {error}", hint, memory=memory) from error
        yield key.replace("_", "-"), getattr(slurm, key)


def _beside(given: Sequence[str], slurm: SlurmConfig, origins: Origins) -> ConfigError:
    """The refusal of two of the keys for memory: one that is typed is meant in a file's place."""
    typed = [key for key in given if origins.is_typed(f"slurm.{key}")]
    meant = typed[0] if len(typed) == 1 else given[1]
    others = [f"slurm.{key}" for key in given if key != meant]
    places = [origins.of(key) for key in others]
    named = [f"{key} ({it})" if ":" in it else key for key, it in zip(others, places, strict=True)]
    hint, value = "keep one", str(getattr(slurm, meant))
    is_bare = value.strip().isdecimal() and value.strip("0 ") != ""
    if len(typed) == 1:
        size = meant_memory(value) if is_bare else value
        hint = f"write {shlex.join([f'slurm.{meant}={size}', *(f'{key}=null' for key in others)])}"
    said = f"is {value}, without a unit, and stands" if is_bare else "stands"
    return origins.error(f"slurm.{meant}", f"{said} beside {' and '.join(named)}", hint)


def _time_limit_s(slurm: SlurmConfig, origins: Origins) -> int | None:
    if slurm.time is None:
        return None
    try:
        limit_s = time_s(slurm.time)
    except ValueError as error:
        meant = meant_time(str(slurm.time))
        is_typed = origins.is_typed("slurm.time")
        hint = f"write slurm.time={meant}" if is_typed else f'write it in quotes: "{meant}"'
        raise origins.error("slurm.time", f": {error}", hint) from error
    if limit_s == 0:  # sbatch(1), --time: "a time limit of zero requests no time limit"
        raise origins.error("slurm.time", "is zero", 'write "UNLIMITED", or a time: "1:30:00"')
    if limit_s is not None and limit_s > _LONGEST_S:
        raise origins.error("slurm.time", f"is {slurm.time}", 'write "UNLIMITED", or a shorter one')
    return limit_s


def _check_texts(slurm: SlurmConfig, origins: Origins) -> None:
    for key in FORMS:
        value: str | None = getattr(slurm, key)
        if value is not None:
            check_form(key, value, origins)
    named: dict[str, list[str]] = {}
    for key in ("nodelist", "exclude"):
        hosts: str | None = getattr(slurm, key)
        if hosts and "/" not in hosts:  # with a slash it is a file of names (sbatch(1))
            try:
                named[key] = expand(hosts)
            except ValueError as error:
                hint = 'write as in "node[1-3],gpu7"'
                raise origins.error(f"slurm.{key}", f": {error}", hint) from error
    _check_named(named, slurm, origins)


def _check_named(named: Mapping[str, list[str]], slurm: SlurmConfig, origins: Origins) -> None:
    """Refuse more nodes by their names than there are to be, and nodes both named and left out."""
    wanted, left_out = named.get("nodelist", []), named.get("exclude", [])
    nodes = slurm.nodes + slurm.spares
    if both := [node for node in wanted if node in left_out]:
        message = f"names {', '.join(both)}, which slurm.nodelist asks for"
        raise origins.error("slurm.exclude", message, "take it from one of the two")
    if len(wanted) > nodes:
        message = f"names {len(wanted)} nodes, and slurm.nodes is {slurm.nodes}"
        hint = f"write --nodes {len(wanted)}; to keep other nodes out: slurm.exclude"
        raise origins.error("slurm.nodelist", message, hint)
