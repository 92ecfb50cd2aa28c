"""The config of a run: read, merged, typed, checked, with the origin of every value."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from hpc_train.config import values as checks
from hpc_train.config.assets import config_dir
from hpc_train.config.compose import (
    COMMAND_LINE,
    Composed,
    compose,
    nested,
    split_override,
)
from hpc_train.config.containers import check_containers
from hpc_train.config.flags import FLAGS, Flag
from hpc_train.config.gathered import gather, tell_together
from hpc_train.config.key_checks import check_keys
from hpc_train.config.keys import FIELDS, OF_THE_SCRIPT
from hpc_train.config.load_keywords import no_option
from hpc_train.config.meant_words.accelerate_config import check_accelerate_config
from hpc_train.config.meant_words.hydra_config import check_bare_objects, check_hydra
from hpc_train.config.meant_words.lightning_cli import check_lightning_cli, leave_out_unchosen
from hpc_train.config.meant_words.logger_forms import write_out_loggers
from hpc_train.config.meant_words.typed_words import check_whole_path
from hpc_train.config.meant_words.unknown_key import key_of_word
from hpc_train.config.origins import Origins
from hpc_train.config.python_values import in_a_file
from hpc_train.config.schema import Config
from hpc_train.config.scripts.beside_script import check_beside, hint_beside, notes_on_taken
from hpc_train.config.scripts.resume_arguments import check_resume
from hpc_train.config.scripts.script_file import check_args, is_script
from hpc_train.config.secrets import check_passthrough
from hpc_train.config.sections import in_python
from hpc_train.config.show import escape
from hpc_train.config.submission_words import submission_words
from hpc_train.config.sweeps.meant_sweep import without_equals
from hpc_train.config.sweeps.swept_values import swept_values
from hpc_train.config.words import class_of_object, shown
from hpc_train.config.yaml_slips.interpolations import check_interpolations
from hpc_train.errors import ConfigError, Hinted

# What is done with a loaded config, by the name that is tried on it.
# Of a torch.nn.Module, which a config is not.
_OF_A_MODEL = (
    *("eval", "forward", "predict", "state_dict", "load_state_dict", "parameters", "to", "cuda"),
    *("cpu", "freeze", "load_from_checkpoint", "predict_step", "half", "to_onnx", "modules"),
)
_LOAD_MODEL = (
    "CLASS.load_from_checkpoint(hpc_train.Run.find(RUN).best_model()), the model of a run:"
    " load() reads a config"
)
_FUNCTIONS = {
    **{name: name for name in ("submit", "render", "run_here", "test_only", "submit_sweep")},
    **dict.fromkeys(("run", "train", "fit", "start"), "run_here"),
}


@dataclass(frozen=True, kw_only=True)
class LoadedConfig(Hinted):
    """A config that reads well.

    Attributes:
        config: The values.
        origins: Where each comes from.
        files: Every file that was read, the user's own last.
        composed: The values as they were written, before they were typed.
        notes: What a person should know, a line each, though nothing is wrong.
        as_read: The values when they were handed to Python code, which may set others.
    """

    config: Config
    origins: Origins
    files: tuple[Path, ...]
    composed: Composed = field(repr=False)
    notes: tuple[str, ...] = ()
    as_read: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        """The file, and what is trained in which shape."""
        config = self.config
        what = config.script.path or config.model.get("class_path", config.model.get("_target_"))
        shape = f"nodes={config.slurm.nodes}, gpus_per_node={config.slurm.gpus_per_node}"
        return f"LoadedConfig({str(self.files[-1])!r}, name={config.name!r}, {what}, {shape})"

    instead: ClassVar[str] = "loaded.config"

    @staticmethod
    def where(name: str) -> str:
        """`loaded.config.slurm` for `slurm`, `loaded.config.slurm.nodes` for `nodes`."""
        if name in _FUNCTIONS:
            return f"hpc_train.{_FUNCTIONS[name]}(loaded)"
        if name in _OF_A_MODEL:
            return _LOAD_MODEL
        if name in ("trainer", "model", "data"):
            key = name if name == "trainer" else f"{name}.init_args"
            sets = f"hpc_train.load(PATH, '{key}.NAME=VALUE') sets a value"
            return f"loaded.config.{name}, a dict; {sets}"
        key = name if name in FIELDS else FLAGS[name].key if name in FLAGS else ""
        key = key or key_of_word(name)
        return in_python(key) if key else ""


def load(
    path: str | Path,
    overrides: Sequence[str] = (),
    *,
    arguments: Sequence[str] | None = None,
    flags: Mapping[str, object] | None = None,
    sweep: Sequence[str] = (),
    assets: Path | None = None,
    refused: list[ConfigError] | None = None,
) -> LoadedConfig:
    """Read a config file and what it builds on, with the command line over it.

    Args:
        path: The YAML file, or a training script.
        overrides: `key=value`, the last one wins.
        arguments: Of the script, in place of `script.args`; None leaves these.
        flags: Values by the names of `FLAGS`; they win over the files; None leaves one out.
        sweep: `key=value,value` or `key=range(3)`, each laid over the section `sweep`.
        assets: Folder of the configs that come with hpc-train; found by itself.
        refused: Takes what is refused of the values, where the rest can be looked at without it.

    Raises:
        ConfigError: naming file, line, key and what to write instead.
    """
    _check_call(path, arguments, sweep)
    if is_script(Path(path)):
        check_beside(Path(path), overrides)
    if overrides and not Path(path).exists():
        check_whole_path(Path(path), overrides)
    composed = compose(Path(path), overrides, assets or config_dir())
    _merge_flags(composed, flags or {}, script=is_script(Path(path)))
    _merge_sweep(composed, sweep)
    _refuse_swept(composed, overrides, flags or {})
    _settle_script(composed, Path(path), arguments)
    composed.left_out = leave_out_unchosen(composed.values, composed.origins)
    composed.left_out += notes_on_taken(Path(path), overrides, arguments or ())
    check_bare_objects(composed.bare)
    check_hydra(composed.values, composed.origins, Path(path), composed.groups)
    check_accelerate_config(composed.values, Path(path))
    check_lightning_cli(composed.values, composed.origins, Path(path))
    composed.words = submission_words(path, overrides, flags or {}, sweep, arguments)
    return checked(composed, Path(path), refused)


def _merge_flags(composed: Composed, flags: Mapping[str, object], *, script: bool) -> None:
    for name, value in flags.items():
        if name not in FLAGS:
            raise no_option(name, flags, script=script)
        if value is not None:
            _check_once(composed, FLAGS[name], value)
            composed.merge(nested(FLAGS[name].key.split("."), value), {}, FLAGS[name].option)


def _merge_sweep(composed: Composed, sweep: Sequence[str]) -> None:
    for typed in sweep:
        if "=" not in typed:
            what = f"{COMMAND_LINE}: --sweep {typed} has no values"
            fix = f"write them behind an =, with commas: --sweep {typed}=A,B"
            what, fix = without_equals(typed) or (what, fix)
            if typed.endswith((".yaml", ".yml", ".json")):
                fix = "write --sweep KEY=A,B; or in the config: sweep: {KEY: [A, B]}"
            raise ConfigError(what, fix)
        key, text = split_override(typed, "model.init_args.lr=0.1,0.01")
        if composed.origins.of(f"sweep.{key}") == COMMAND_LINE:
            raise ConfigError(f"{key} is to vary twice", f"give all values at once: {key}=A,B,C")
        composed.merge({"sweep": {key: swept_values(text, key)}}, {}, COMMAND_LINE)


def _refuse_swept(
    composed: Composed, overrides: Sequence[str], flags: Mapping[str, object]
) -> None:
    """Refuse a key that is typed and varies as well: the sweep would win without a word.

    Raises:
        ConfigError: with both ways out.
    """
    typed = {split_override(it)[0]: it for it in overrides}
    typed |= {FLAGS[it].key: f"{FLAGS[it].option} {flags[it]}" for it in flags if flags[it]}
    for key in _leaves(composed.values.get("sweep"), ""):
        if key in typed:
            place = composed.origins.of(f"sweep.{key}")
            way = f"--sweep {key}=..." if place == COMMAND_LINE else f"sweep.{key} ({place})"
            hint = "leave one of them out" + ("" if place == COMMAND_LINE else "; sweep={} for all")
            raise ConfigError(f"{COMMAND_LINE}: {typed[key]} and {way} are both there", hint)


def _leaves(values: object, prefix: str) -> Iterator[str]:
    for name, value in values.items() if isinstance(values, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _check_call(path: object, arguments: object, sweep: object) -> None:
    """Refuse what only the Python interface can be given."""
    if not isinstance(path, (str, os.PathLike)):
        written = in_a_file([path]) or "write the values into a YAML file"
        hint = f"{written}, and hpc_train.load('cfg.yaml', 'seed=3')"
        raise ConfigError(f"a config is a file, and {shown(path)} is none", hint)
    for name, given in (("arguments", arguments), ("sweep", sweep)):
        if isinstance(given, (str, Mapping)):
            example = "['--lr', '0.1']" if name == "arguments" else "['seed=1,2']"
            raise ConfigError(f"{name} is {shown(given)}, and no list", f"write {name}={example}")


def check_loaded(loaded: object) -> None:
    """Refuse what `load` has not given, such as the path of a config.

    Raises:
        ConfigError: with what to write.
    """
    if not isinstance(loaded, LoadedConfig):
        hint = "hpc_train.load(PATH) gives one"
        if isinstance(loaded, (str, os.PathLike)):
            hint = f"write hpc_train.load({str(loaded)!r})"
        elif isinstance(loaded, Config):
            hint = "name what hpc_train.load gave, and not its config: submit(loaded)"
        elif dotted := class_of_object(loaded):
            hint = f"{hint}; a config has a class by its name: class_path: {dotted}"
        raise ConfigError(f"{shown(loaded)} is no loaded config", hint)


def with_values(
    loaded: LoadedConfig, values: Mapping[str, Any], places: Mapping[str, str], *, without: str
) -> LoadedConfig:
    """The same config read anew with other values.

    Args:
        loaded: As `load` gave it.
        values: By dotted key.
        places: Where each value comes from.
        without: A key that is left out.

    Raises:
        ConfigError: as `load` does.
    """
    composed = copy.deepcopy(loaded.composed)
    composed.values.pop(without, None)
    for key, value in values.items():
        composed.set_key(composed.values, key.split("."), value, "")
        composed.origins.put(key, places[key])
    return checked(composed, loaded.files[-1])


def checked(
    composed: Composed, path: Path, refused: list[ConfigError] | None = None
) -> LoadedConfig:
    """The config of values that are merged; raises ConfigError as `load` does."""

    def look(values: dict[str, Any]) -> LoadedConfig:
        rest = copy.copy(composed)
        rest.values = values
        return _checked(rest, path)

    loaded, found = gather(look, composed.values)
    if loaded is None or refused is None or loaded.config.sweep:
        tell_together(found)
    assert loaded is not None
    if refused is not None:
        refused += found
    return loaded


def _checked(composed: Composed, path: Path) -> LoadedConfig:
    origins = composed.origins
    checks.read_switches(composed.values)
    checks.check_gpus_of_a_rank(composed.values, origins)
    check_keys(composed.values, origins, path)
    check_passthrough(composed.values, origins)
    check_containers(composed.values, origins)
    checks.check_texts(composed.values, origins)
    config = _typed(composed.values, origins, path)
    checks.check_meaning(config, origins)
    return LoadedConfig(
        config=config,
        origins=origins,
        files=tuple(composed.files),
        composed=composed,
        notes=(*composed.notes(), *checks.notes_on_texts(composed.values, origins)),
    )


def _settle_script(composed: Composed, path: Path, arguments: Sequence[str] | None) -> None:
    """Give the script its arguments and the run its name, and refuse what the script decides."""
    section = composed.values.get("script")
    script = section.get("path") if isinstance(section, Mapping) else None
    if arguments is not None and not script:
        raise ConfigError(
            f"what stands behind -- is for a script, and {path} names none",
            "write key=value in front of --, or script: {path: train.py}",
        )
    if not isinstance(section, Mapping) or not str(script or "").strip():
        return
    if arguments is not None:
        # They are what was typed: "${HOME}" in them is no interpolation.
        composed.merge({"script": {"args": escape(list(arguments))}}, {}, COMMAND_LINE)
    composed.values.setdefault("name", Path(str(script)).stem)
    check_args(composed.values["script"].get("args") or [], composed.origins)
    check_resume(composed.values["script"].get("resume") or {}, composed.origins, str(script))
    for name in OF_THE_SCRIPT:
        if name in composed.values:
            said = f"stands beside script.path ({script}), which decides it"
            raise composed.origins.error(
                name, said, hint_beside(name, str(script), composed.values[name], composed.origins)
            )


def _check_once(composed: Composed, flag: Flag, value: object) -> None:
    """Refuse `--nodes 1 slurm.nodes=2`: nobody can tell which of them is meant."""
    section, _, key = flag.key.rpartition(".")
    written = (composed.values.get(section) or {} if section else composed.values).get(key)
    if composed.origins.of(flag.key) == COMMAND_LINE and str(written) != str(value):
        raise ConfigError(
            f"{COMMAND_LINE}: {flag.option} {value} and {flag.key}={written} are both there",
            "keep one of them",
        )


def _typed(values: dict[str, Any], origins: Origins, path: Path) -> Config:
    values = dict(values)
    if "loggers" in values:
        values["loggers"] = write_out_loggers(values["loggers"])
    # Lines for the shell are the shell's: "${HOME}" in them is no interpolation of ours.
    values["env"] = env = dict(values.get("env", {}))
    setup = checks.setup_lines(env.pop("setup", None), origins)
    check_interpolations(values, origins)
    try:
        merged = OmegaConf.unsafe_merge(OmegaConf.structured(Config), OmegaConf.create(values))
        config = OmegaConf.to_object(merged)
    except OmegaConfBaseException as error:
        raise _from_omegaconf(error, values, origins, path) from error
    if not isinstance(config, Config):
        raise TypeError(f"OmegaConf made a {type(config)} of the schema")
    if setup is not None:
        config.env.setup = setup
    return config


def _from_omegaconf(
    error: OmegaConfBaseException, values: Mapping[str, Any], origins: Origins, path: Path
) -> ConfigError:
    key = (error.full_key or "").replace("[", ".").replace("]", "")
    message = str(error.msg or error).splitlines()[0]
    if not key:
        return ConfigError(f"{path}: {message}", "check the values")
    return checks.explain(key, message, origins, values)
