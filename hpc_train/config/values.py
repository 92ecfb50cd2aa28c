"""What the types of the schema cannot say: values that read well and cannot be meant."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, MutableMapping
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from hpc_train.config.fit.left_out_layers import check_left_out
from hpc_train.config.flags import FLAGS
from hpc_train.config.gathered import tell_together
from hpc_train.config.hosts import read_hosts, split_hosts
from hpc_train.config.keys import MEMORY_KEYS, TEXT_KEYS, TYPES, is_text
from hpc_train.config.long_paths import MAX_NAME, MAX_PATH
from hpc_train.config.meant_words.gpu_counts import hint_of_gpus
from hpc_train.config.meant_words.launcher_words import launcher_hint
from hpc_train.config.meant_words.logger_words import check_loggers
from hpc_train.config.meant_words.module_lines import check_modules
from hpc_train.config.meant_words.notify_words import MAIL_ADDRESS, event_hint
from hpc_train.config.origins import Origins
from hpc_train.config.ranges import RANGES, out_of_range
from hpc_train.config.read import Sexagesimal
from hpc_train.config.schema import REQUIRED, Config, NotifyConfig, SlurmConfig
from hpc_train.config.secrets import looks_secret
from hpc_train.config.specs import CLASS_PATH
from hpc_train.config.words import NEWEST, meant_number, with_unit
from hpc_train.config.yaml_slips.flow_slips import GPUS_HINT, GPUS_OF_A_RANK
from hpc_train.config.yaml_slips.interpolations import walk
from hpc_train.config.yaml_slips.plain_texts import quotes_for
from hpc_train.config.yaml_slips.unquoted_times import check_time
from hpc_train.errors import ConfigError

_SHELLS = re.compile(r"[/:]\$[A-Za-z_]|^\$[A-Za-z_]\w*[/:]")  # of a path, or of several
# Keys whose texts others read, and a ~ in them that stands for a home.
_HANDED_ON = (
    *("model.", "data.", "trainer.", "loggers.", "script.args.", "sweep."),
    *("env.variables.", "env.setup."),
)
_TILDE = re.compile(r"(?:^|(?<==))~(?=/)")
_QUOTED_TILDE = re.compile(r"""(?<=["'])~(?=/)""")
_BELOW = 256  # the run's name and id, and the longest name below them
_PLAIN = "write \\${{...}} where a plain ${{...}} is meant"
_UNITS = {"_s": "seconds", "_minutes": "minutes", "_h": "hours", "_mb": "megabytes"}
# OmegaConf 2.4's messages, what is wrong, and what to write.
_EXPLAINED = (
    (r"Value '(.*?)' .*to Integer", "is '{0}'", "write a whole number"),
    (r"Value '(.*?)' .*to Float", "is '{0}'", "write a number"),
    (r"Value '(.*)' is not a valid bool", "is '{0}'", "write true or false"),
    (r"Invalid value '(.*)', expected one of \[(.*)\]", "is '{0}'", "write one of {1}"),
    (r"not a ListConfig", "is no list", "write it in brackets: [...]"),
    (
        r"Cannot assign (\w+) to (?:Dict|dict)",
        "is no mapping",
        "write key: value pairs below it",
    ),
    (r"Missing mandatory value", "is ???, to be given", "write {key}=... on the command line"),
    (r"Environment variable '(.*)' not found", "needs the variable {0}, not set", "export {0}=..."),
    (
        r"Interpolation key '([A-Z][A-Z0-9_]*)' not found",
        "names the key {0}, which is not there",
        "a variable of the shell is ${{oc.env:{0}}}; " + _PLAIN,
    ),
    (
        r"Interpolation key '(.*)' not found",
        "names the key {0}, which is not there",
        "write the value here, or name another key of the config in full, as in"
        " ${{trainer.max_epochs}}; " + _PLAIN,
    ),
    (
        r"Unsupported interpolation type (.*)",
        "calls {0}, which there is not",
        "there is ${{oc.env:NAME}} for a variable; " + _PLAIN,
    ),
    (r"Recursive interpolation", "takes its value from itself", "write the value"),
    (
        r"(no viable alternative|token recognition|mismatched).*",
        "has a broken ${{...}}",
        "close its brace; " + _PLAIN,
    ),
    (r"(.*)", "cannot be meant: {0}", _PLAIN),
)


def read_switches(values: MutableMapping[str, Any]) -> None:
    """Read `preflight: off` as its mode, and a bare off, which is false in YAML 1.1, as the word.

    `hosts: a,b` is a list, and `slurm.exclusive: "true"` no text.

    Args:
        values: Of the whole config; changed in place.
    """
    if isinstance(hosts := values.get("hosts"), str):
        values["hosts"] = split_hosts(hosts)
    preflight = values.get("preflight")
    if preflight is False or isinstance(preflight, str):
        preflight = values["preflight"] = {"mode": preflight}
    if isinstance(preflight, Mapping) and preflight.get("mode") is False:
        values["preflight"] = {**preflight, "mode": "off"}
    slurm = values.get("slurm")
    if isinstance(slurm, Mapping) and slurm.get("exclusive") in ("true", "false"):
        values["slurm"] = {**slurm, "exclusive": slurm["exclusive"] == "true"}


def check_gpus_of_a_rank(values: Mapping[str, Any], origins: Origins) -> None:
    """Refuse CUDA_VISIBLE_DEVICES in `env.variables`, a list as well, with what chooses GPUs."""
    env = values.get("env")
    variables = env.get("variables") if isinstance(env, Mapping) else None
    if isinstance(variables, Mapping) and GPUS_OF_A_RANK in variables:
        message = f": {GPUS_OF_A_RANK} is set by Slurm or the launcher, for each rank its own"
        raise origins.error(f"env.variables.{GPUS_OF_A_RANK}", message, GPUS_HINT)


def check_texts(values: Mapping[str, Any], origins: Origins) -> None:
    """Refuse the scalars that YAML turned into something else than was written.

    Raises:
        ConfigError: for `time: 1:30:00` (the integer 5400 in YAML 1.1) and `time: 90`; for a
            memory without its unit; for `qos: no` and other texts that became true or false.
    """
    slurm = values.get("slurm") or {}
    check_time(slurm.get("time"), origins)
    for key in MEMORY_KEYS:
        size = slurm.get(key)
        if isinstance(size, (int, float)) and not isinstance(size, bool) and size != 0:
            meant = with_unit(size) if size > 0 else ""
            fix = f'write slurm.{key}: "{meant}"' if meant else 'write it like "64G"'
            said = f"is {size} without a unit"
            raise origins.error(f"slurm.{key}", said, fix, memory=meant)
    for key, value in walk(values, ""):
        if isinstance(value, str):
            _check_words(key, value, origins)
        if isinstance(value, bool) and is_text(key):
            raise origins.error(
                key,
                f"is {str(value).lower()} in YAML, where yes, no, on and off are true and false",
                "put the word in quotes",
            )
        if type(value) is int and abs(value) > sys.float_info.max:
            raise origins.error(
                key, f"is a number of {len(str(value))} digits", "write a smaller one"
            )
        if isinstance(value, str) and re.match("[\u2018-\u201f]", value):
            hint = f'type plain quotes: "{value[1:-1]}"'
            raise origins.error(key, f"is {value}, with quotes that YAML does not know", hint)
        if _SHELLS.search(str(value)) and not key.startswith(("env.setup", "script.")):
            _refuse_variable(key, str(value), values, origins)
        if isinstance(value, Sexagesimal):
            _refuse_time(key, value, values, origins)


def _refuse_time(
    key: str, value: Sexagesimal, values: Mapping[str, Any], origins: Origins
) -> NoReturn:
    """Refuse a time that YAML has made a number; below trainer a key that belongs elsewhere."""
    from hpc_train.config.meant_words.trainer_words import instead_of
    from hpc_train.config.trainer_args import trainer_parameters
    from hpc_train.config.trainer_times import short_time

    section, _, name = key.partition(".")
    if section == "trainer" and name not in trainer_parameters(sys.path) and instead_of(name):
        raise origins.error(key, "is no argument of Lightning's Trainer", instead_of(name))
    fix = short_time(key, value.text) or quotes_for(key, value.text, values, origins)
    message = f"is {value.text}, which YAML reads as the number {int(value)}"
    raise origins.error(key, message, fix)


def _refuse_variable(key: str, value: str, values: Mapping[str, Any], origins: Origins) -> None:
    """Refuse a variable that nothing replaces; the code of the model or the data may do it."""
    section = key.partition(".")[0]
    if section in ("model", "data") and ".init_args." in key:
        from hpc_train.config.python_text.modules import has_word  # on the way to an error

        owner = values[section]
        dotted = owner.get(CLASS_PATH) if isinstance(owner, Mapping) else None
        if has_word(str(dotted), "expandvars", [str(Path.cwd()), *sys.path]):
            return
    meant = re.sub(r"\$([A-Za-z_]\w*)", r"${oc.env:\1}", value)
    # In quotes: within { } a brace ends a text without them, and a shell would read the $.
    text = shlex.quote(f"{key}={meant}") if origins.is_typed(key) else json.dumps(meant)
    hint = f"nothing replaces it here: write {text}; env.setup is the shell's"
    raise origins.error(key, f"is {value}, with a variable of the shell", hint)


def _check_words(key: str, value: str, origins: Origins) -> None:
    if value == REQUIRED and key in TYPES:  # OmegaConf would keep the default in its place
        raise origins.error(key, "is ???, to be given", f"write {key}=... on the command line")
    if key in TEXT_KEYS and not value.strip():
        raise origins.error(key, "is empty", "leave it out, or write a value")
    may_be_null = TYPES.get(key, "").startswith("Optional[")
    if value == "None" and (may_be_null or key in TEXT_KEYS):
        hint = "write null" if may_be_null else "leave it out, or write a value"
        raise origins.error(key, "is the text 'None' (YAML's None is null)", hint)


def notes_on_texts(values: Mapping[str, Any], origins: Origins) -> list[str]:
    """A line for a name that is a word of the commands, and for each ~ that stays one.

    A ~ is replaced neither in what is handed on nor in quotes of the shell.
    """
    taken = _taken_word(values)
    notes = [f"{origins.prefix('name')}{taken}"] if taken else []
    for key, value in walk(values, ""):
        in_setup = key.startswith("env.setup")
        tilde = _QUOTED_TILDE if in_setup else _TILDE
        if isinstance(value, str) and key.startswith(_HANDED_ON) and tilde.search(value):
            why = "bash replaces no ~ in quotes" if in_setup else "nothing replaces its ~"
            what = f"{origins.prefix(key)}{key} is {value}, and {why}"
            but = "" if in_setup else ", unless your code calls expanduser"
            notes.append(f"{what}: write {tilde.sub(str(Path.home()), value)}{but}")
    return notes


def _taken_word(values: Mapping[str, Any]) -> str:
    """That RUN on the command line means something else by the run's name; empty for others."""
    name = str(values.get("name"))
    other = "the newest run" if name in NEWEST else f"job {name}" if name.isdecimal() else ""
    if not other:
        return ""
    return f"name is {name}: `hpc-train status {name}` then means this run, and not {other}"


def setup_lines(setup: Any, origins: Origins) -> list[str] | None:
    """The lines of `env.setup`: a list, or a text of several lines (`setup: |` in YAML).

    Bash gets them one below the other, so that a here-document and a line that ends in a backslash
    stay whole. A text of one line may be several that YAML has folded, and is refused.
    """
    if setup is None:
        return None
    if isinstance(setup, str) and "\n" in setup.strip():
        return setup.strip("\n").split("\n")
    if not isinstance(setup, list):
        text = json.dumps(str(setup).strip(), ensure_ascii=False)
        hint = f"write a list: [{text}]; or setup: | and each line of shell below it, indented"
        raise origins.error("env.setup", "is no list of lines", hint)
    hint = "put the whole line in quotes: - 'LINE'"
    tell_together(
        origins.error(f"env.setup.{index}", f"is {line!r} in YAML, and no text", hint)
        for index, line in enumerate(setup)
        if not isinstance(line, str)
    )
    return setup


def check_meaning(config: Config, origins: Origins) -> None:
    """Refuse values of the right type that cannot be meant.

    Raises:
        ConfigError: with file, line and key.
    """
    _check_path("runs_dir", config.runs_dir, origins)
    if not config.name.strip() or not config.name.isprintable():
        raise origins.error("name", f"is {config.name!r}", "write one line of printable text")
    check_left_out(config, origins)
    check_modules(config.env, origins)
    for key, value, hint in out_of_range(config):
        raise origins.error(key, f"is {value:.12g}", hint)
    for name in config.env.variables:
        if looks_secret(name):
            raise origins.error(
                f"env.variables.{name}",
                "looks like a secret, and would be written into the run directory",
                f"list it in env.passthrough: [{name}], and set it in the shell that submits",
            )
    _check_hosts(config, origins)
    _check_notify(config, origins)
    check_loggers(config.loggers, origins)


def check_begin(slurm: SlurmConfig, origins: Origins) -> None:
    """Refuse a day that has passed: of `begin`, which Slurm takes, and of sbatch's deadline."""
    for key, day in (("begin", slurm.begin), ("extra.deadline", slurm.extra.get("deadline"))):
        try:
            passed = day is not None and datetime.fromisoformat(str(day).strip()) < datetime.now()
        except (ValueError, TypeError):  # now+1hour, 16:00 and the like are never in the past
            continue
        if passed:
            hint = "leave it out, or write a later one, such as now+1hour"
            raise origins.error(f"slurm.{key}", f"is {day}, which has passed", hint)


def _check_hosts(config: Config, origins: Origins) -> None:
    try:
        read_hosts(config.hosts)
    except ValueError as error:
        typed = origins.of("hosts") == FLAGS["hosts"].option
        as_typed = "--hosts a,me@b,c (commas, no spaces)"
        hint = f"write as in {as_typed if typed else 'hosts: [a, me@b, c]'}"
        raise origins.error("hosts", f": {error}", hint) from error
    if file := next((it for it in config.hosts if Path(it).is_file()), ""):
        raise origins.error("hosts", f"names the file {file}", f'--hosts "$(paste -sd, {file})"')
    if config.hosts and config.slurm.nodes > len(config.hosts):
        raise origins.error(
            "hosts",
            f"names {len(config.hosts)}, and slurm.nodes is {config.slurm.nodes}",
            f"name more hosts, or give --nodes {len(config.hosts)}",
        )


def _check_notify(config: Config, origins: Origins) -> None:
    """Refuse an address itself, without a word of it: it would be written into the run."""
    source, key = config.notify.urls_from, "notify.urls_from"
    if source is not None and not re.fullmatch(r"[A-Za-z_]\w*|[/~][^:]*", source):
        if Path(source).exists():  # a file's name is no secret
            hint = f"write the whole path: {Path(source).absolute()}"
            raise origins.error(key, "is a path that depends on the folder", hint)
        in_file = "put it into a file that only you can read: urls_from: ~/.config/hpc-train/notify"
        of_mail = "for mail write slurm.mail_user, with the address, in place of urls_from"
        raise origins.error(
            key,
            "is neither the name of a variable nor a file; an address, which may hold a secret, is"
            " never written into a config or a run",
            of_mail if MAIL_ADDRESS.fullmatch(source) else in_file,
        )
    known = NotifyConfig().events
    tell_together(
        origins.error(f"notify.events.{index}", f"is {it!r}", event_hint(it, known))
        for index, it in enumerate(config.notify.events)
        if it not in known
    )
    folder = config.preflight.prometheus_dir
    if folder is not None and (not folder.startswith("/") or Path(folder).is_file()):
        hint = "write the whole path that the node exporter has: /var/lib/node_exporter"
        raise origins.error("preflight.prometheus_dir", f"is {folder!r}", hint)


def explain(
    key: str, message: str, origins: Origins, values: Mapping[str, Any] | None = None
) -> ConfigError:
    """One of OmegaConf's errors in our words.

    Args:
        key: Dotted.
        message: The first line of what OmegaConf says.
        origins: For file and line.
        values: Of the whole config, for what a `${...}` may be meant to name.
    """
    match, complaint, hint = next(
        (match, complaint, hint)
        for pattern, complaint, hint in _EXPLAINED
        if (match := re.search(pattern, message))
    )
    groups = match.groups()
    hint = hint.format(*groups, key=key).replace("True, False,", "true, false,")
    if message.startswith("Interpolation key '") and values:
        from hpc_train.config.yaml_slips.meant_interpolations import meant_interpolation

        hint = meant_interpolation(groups[0], key, values, origins) or hint
    if re.search(r"\s[\w.]+=", str(groups[:1])):
        hint = "write each key=value as a word of its own"
    if hint in ("write a whole number", "write a number"):
        unit = next((name for end, name in _UNITS.items() if key.endswith(end)), "")
        hint += f" of {unit}" if unit else meant_number(groups[0], "int")
    _, _, null = (RANGES[key].below if key in RANGES else "").partition(", or null")
    hint += f", or null{null}" if null and "number" in hint else ""
    if key == "script.launcher":
        hint = launcher_hint(str(groups[0])) or hint
    if key == "slurm.gpus_per_node":
        hint = hint_of_gpus(str((*groups, "")[0]), hint, on_line=origins.is_typed(key))
    return origins.error(key, complaint.format(*groups), hint)


def _check_path(key: str, path: str, origins: Origins) -> None:
    """Linux takes names of 255 bytes and paths of 4096 (limits.h); a run's own need some of it."""
    if re.match(r"\w+://", path):
        hint = "write a folder of the shared file system; results can be copied there afterwards"
        raise origins.error(key, f"is {path}, which is no folder", hint)
    if re.match(r"[A-Za-z]:[\\/]|\\\\", path):
        hint = "write a path of this machine, with /: /scratch/me/runs"
        raise origins.error(key, f"is {path}, a path of Windows", hint)
    try:
        Path(path).expanduser()
    except RuntimeError:  # ~nobody-here
        message = f"is {path}, and that home is not known"
        raise origins.error(key, message, "write the whole path") from None
    longest, most = max(len(os.fsencode(name)) for name in path.split("/")), MAX_PATH - _BELOW
    if longest > MAX_NAME or len(os.fsencode(path)) > most:
        size = f"{len(os.fsencode(path))} bytes, its longest name of {longest}"
        hint = f"write one of at most {most} bytes, with names of at most {MAX_NAME}"
        raise origins.error(key, f"is a path of {size}: {path[:40]}...", hint)
