"""What an option of sbatch, torchrun, accelerate or Lightning's command line is here."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpc_train.cli.dotted_options import key_in_config
from hpc_train.cli.habits import DOCTOR_THERE, HABITS, STATES
from hpc_train.cli.multirun_words import first_point, of_multirun
from hpc_train.cli.typed_values import (
    NO_DASHES,
    dependency_with,
    key_with,
    option_with,
    typed_value,
)
from hpc_train.config.meant_words.gpu_counts import option_for_gpus
from hpc_train.config.words import EVERY

if TYPE_CHECKING:
    from hpc_train.plan.launcher_options import OptionRule

_CLICKS_WORDS = {"INTEGER": "N", "FLOAT": "N", "PATH": "FILE", "TEXT": "VALUE"}
_FROM_TO = re.compile(r"\s*(\d+)\s*(?:-|\.\.\.?|:|to)\s*(\d+)\s*")
_MOST_NUMBERS = 64
_FILE_BY_OPTION = ("config", "cfg", "config-file", "config-name", "config-path", "c", "f", "file")
_RUN_BY_OPTION = ("run", "run-id", "run-name", "runid", "id")
# Options whose several values are one word, with what such a value is.
_SEVERAL = {
    "--sweep": r"(?!-+[A-Za-z]|.*\.(?:ya?ml|py)\Z)[\w.+,-]+",
    **dict.fromkeys(("--partition", "--partitions", "--hosts"), r"[A-Za-z][\w-]*"),
    **dict.fromkeys(("--nodes", "--gpus", "--devices"), r"\d+"),
}
_OUTPUT_FILE = re.compile(r"[^=:~]+(?<!\.py)(?<!\.yaml)(?<!\.yml)")
# Commands that choose runs by their names, and the option's name in Python.
_BY_PATTERN = {"list": "name", "top": "text"}
_COUNTED = {
    "nodes": "--nodes",
    "ranks": "--gpus",
    "all_ranks": "--nodes and --gpus: a rank a GPU",
    "devices": "--devices",
}


def long_dash(word: str) -> str:
    """`--nodes` where long dashes of a web page stand before `nodes`; empty for other words."""
    found = re.match("-?[\u2010-\u2015\u2212]+-?(\\w.*)", word)
    if found is None:
        return ""
    name, equals, value = found[1].partition("=")
    return f"{'-' if len(name) == 1 else '--'}{shlex.quote(name)}{equals}{value}"


def one_dash(option: str, typed: list[str]) -> str:
    """`--lr` for the `-l` that click names of a typed `-lr=0.1`; empty for a single letter."""
    words = (word.partition("=")[0] for word in typed if word.startswith(option))
    found = next((it for it in words if re.fullmatch(r"-[A-Za-z][A-Za-z][\w.-]*", it)), "")
    return f"-{found}" if found and len(option) == 2 else ""


def swallowed_hint(context: click.Context, typed: list[str]) -> tuple[str, str] | None:
    """What is wrong and what to write, where an option has taken another one for its value."""
    taking = {name: it for it in _options(context) for name in it.opts if not _is_flag(it)}
    known = {name for it in _options(context) for name in it.opts}
    for option, word in itertools.pairwise(typed):
        if option in taking and word.startswith("-") and word.partition("=")[0] in known:
            value = taking[option].metavar
            said = f"{option} wants {value or 'a value'}, and {word} follows"
            return said, f"write {option} {value or 'VALUE'}"
    return None


def stray_hint(context: click.Context, typed: list[str]) -> tuple[str, str] | None:
    """What is wrong and what to write, where a word too many stands behind an option's value.

    None where none does, and where nothing is known of the option that would be right.
    """
    taking = {name: it for it in _options(context) for name in it.opts if not _is_flag(it)}
    outputs = [word for word in context.params["overrides"] if _OUTPUT_FILE.fullmatch(word)]
    if "--output" in taking and outputs:
        return f"{outputs[0]} stands where KEY=VALUE belongs", f"write -o {outputs[0]}"
    for number, word in enumerate(typed[2:], start=2):
        option, value = typed[number - 2 : number]
        pattern = _SEVERAL.get(option) if option in taking else None
        if pattern is None or "=" in word or not re.fullmatch(pattern, word):
            continue
        more = list(itertools.takewhile(re.compile(pattern).fullmatch, typed[number:]))
        more = [bare for it in more if (bare := it.strip(","))]
        value = value.strip(",")
        values = ",".join([value, *more])
        hint = f"write {option} {values}"
        if option == "--sweep" and "=" not in value:
            hint = f"write {option} {value}={','.join(more)}"
        if option in ("--nodes", "--gpus"):
            hint = f"one number; several: hpc-train bench {option} {values} CFG"
        return f"{option} takes one word, and {' '.join(more)} stands behind {value}", hint
    return None


def _is_flag(parameter: click.Parameter) -> bool:
    return bool(getattr(parameter, "is_flag", False))


def lacking_value(command: click.Command, option: str) -> str:
    """`write --html FILE` for an option without its value."""
    forms = (it.make_metavar(click.Context(command)) for it in command.params if option in it.opts)
    form = next(forms, "TEXT")
    return f"write {option} {_CLICKS_WORDS.get(form.partition(' ')[0], form)}"


def value_hint(context: click.Context | None, parameter: str, said: str) -> str:
    """What to write for a value that an option does not take; empty where nothing can be said.

    Args:
        parameter: The option's name in Python.
        said: click's words, such as `'a100:4' is not a valid integer.`
    """
    typed = said[1:].partition("'")[0]
    if gpus := option_for_gpus(typed) if parameter == "gpus" else "":
        return gpus
    if context is not None and context.info_name == "list" and said.startswith("'all'"):
        return "write --all"
    if too_small := re.search(r"is not in the range x>=(\d+)", said):
        return f"write {too_small[1]} or more, or leave it out"
    kind = re.search(r"is not a valid (integer|float)", said)
    number = f"write a {'whole ' * (kind[1] == 'integer')}number" if kind else ""
    is_shape = parameter in ("nodes", "gpus") and any(it.name == "cfg" for it in _options(context))
    many = several_numbers(typed) if is_shape else ""
    if many and parameter == "gpus" and any(it.name == "devices" for it in _options(context)):
        return f"write how many; --devices {many} chooses them on this machine"
    if parameter == "gpus" and typed in EVERY:
        return "write how many GPUs of each node are used, such as --gpus 4"
    return f"one number; several: hpc-train bench --{parameter} {many} CFG" if many else number


def several_numbers(typed: str) -> str:
    """`1,2,3,4` for `1-4`, `1..4`, `1:4`, `1 2 3 4` and itself; empty for anything else."""
    if found := _FROM_TO.fullmatch(typed):
        first, last = int(found[1]), int(found[2])
        many = range(first, last + 1) if 0 <= last - first < _MOST_NUMBERS else (first, last)
        return ",".join(map(str, many))
    is_list = re.fullmatch(r"\s*\d+([\s,;]+\d+)+\s*", typed)
    return ",".join(re.findall(r"\d+", typed)) if is_list else ""


def expanded_hint(context: click.Context, extra: list[str]) -> tuple[str, str] | None:
    """What is wrong and what to write, where a shell has expanded a pattern; None elsewhere.

    Args:
        extra: The words too many.
    """
    from hpc_train.cli.shell_patterns import typed_pattern, what_the_shell_did  # to an error

    option = _BY_PATTERN.get(str(context.info_name))
    if option is None:
        return None
    value = context.params.get(option)
    words = [*([str(value)] if value else []), *extra]
    pattern = typed_pattern(words)
    if not pattern or len(words) == 1:
        return None
    if option == "text":
        return what_the_shell_did(words), "write --filter and a part of the names, without a *"
    return what_the_shell_did(words), f"put the pattern in quotes: --name {pattern}"


def extra_hint(context: click.Context, word: str, *behind: str) -> str:
    """What to write for a word too many; empty where nothing can be said.

    Args:
        word: The first one.
        behind: The others.
    """
    words = [it.name for it in context.command.params]
    if context.info_name == "doctor" and not word.endswith((".yaml", ".yml", ".py")):
        return DOCTOR_THERE.format(shlex.quote(word))
    if context.info_name == "nodes":
        return f"write --forget {shlex.quote(word)}, to use it again"
    if "run" in words and "other" in words:
        return f"two RUNs at most; report takes more: hpc-train report RUN RUN {shlex.quote(word)}"
    key, equals, value = word.partition("=")
    typed = f"--{key.replace('_', '-')}"
    if equals and any(typed in it.opts for it in _options(context)):
        return f"write {typed} {shlex.quote(value)}"
    meant = next((it for it in _options(context) if f"--{word}" in it.opts), None)
    if meant is not None:
        rest = [] if _is_flag(meant) else [shlex.quote(it) for it in behind[:1]] or ["VALUE"]
        return " ".join(["write", f"--{word}", *rest])
    if context.info_name == "logs" and word.isdecimal():
        return f"write --rank {word}"
    if "run" in words:
        return f"one RUN at a time: {context.command_path} RUN"
    if option := {"top": "--filter", "list": "--name"}.get(str(context.info_name)):
        option = "--state" if option == "--name" and word in (*STATES, "running") else option
        return f"write {option} {shlex.quote(word)}"
    if context.info_name == "du":
        return _of_du(word)
    checks = f"; hpc-train submit --dry-run {shlex.quote(word)} checks a config"
    return "leave it out" + (checks if word.endswith((".yaml", ".yml", ".py")) else "")


def _of_du(word: str) -> str:
    """What to type for a run or a folder behind `du`, which takes an option alone."""
    from hpc_train.runs.folders_meant import as_option, folder_of_runs  # on the way to an error
    from hpc_train.runs.registry import all_runs

    path = Path(word)
    if path.is_dir() and all_runs([path]):
        return f"write hpc-train du {as_option(path.absolute())}"
    around = folder_of_runs(path) if path.is_dir() else None
    is_elsewhere = around is not None and around != Path("runs").absolute()
    option = f" {as_option(around)}" if around and is_elsewhere else ""
    return f"du takes no RUN, and has a line for each: hpc-train du{option}"


def option_hint(
    context: click.Context | None,
    option: str,
    typed: Sequence[str],
    *,
    script: str = "",
    line: str = "",
) -> str:
    """What to write for an option that there is not; empty where nothing can be said.

    Args:
        context: Of the command; only one that takes KEY=VALUE is given words of the config.
        option: As it was typed, such as `--mem` or `-N`.
        typed: The words among which it stands.
        script: What is to run, where that is a script: its words are its own.
        line: The command line in which they stand behind `--`.
    """
    if context is None:
        return ""
    name = option.lstrip("-").replace("_", "-")
    words = {it.name for it in context.command.params}
    value = typed_value(option, typed)
    is_cpus = option == "-c" and value.isdecimal()  # sbatch(1)
    behind = f"arguments of {script} come behind --: {line}" if script else ""
    if name in _FILE_BY_OPTION and "cfg" in words and not is_cpus:
        if line and (option, script) not in itertools.pairwise(typed):
            return behind  # an option of the script's own, as LightningCLI has it
        return f"the file is a word by itself: {context.command_path} FILE"
    if option == "-m" and "cfg" in words:
        from hpc_train.cli.script_line import line_of_module

        if line := line_of_module(context):
            return f"name the module's file: {line}"
    told = of_multirun(name, context.command_path, typed)
    if habit := told or HABITS.get((str(context.info_name), name)):
        run = next((it for it in typed[1:] if it[:1] != "-" and "=" not in it), "RUN")
        is_resume = context.info_name == "resume"
        habit = habit.replace("RUN", shlex.quote(run)) if is_resume else habit
        return (first_point(context.command_path, typed) if name == "sweep" else "") or habit
    if words & {"run", "runs"} and (told := _of_a_run(context, name, typed)):
        return told
    elsewhere = _elsewhere(context, option)
    if elsewhere and isinstance(context.command, click.Group):
        return f"options stand behind the command: hpc-train COMMAND {option}"
    if "overrides" not in words:
        return elsewhere or _longer(context, option)
    dotted = "" if behind else _of_a_class(option, value, typed)
    said = dotted or _as_key(context, option, value, elsewhere, behind)
    from hpc_train.cli.resume_options import of_another_training  # on the way to an error

    return of_another_training(said, context, typed[1:], [value])


def _of_a_run(context: click.Context, name: str, typed: Sequence[str]) -> str:
    """What to write where RUN stands behind an option, or the config that it has beside it."""
    value = typed_value(f"--{name}", typed) or typed_value(f"--{name.replace('-', '_')}", typed)
    if name in _RUN_BY_OPTION:
        run = shlex.quote(value) if value else "RUN"
        return f"the run is a word by itself: {context.command_path} {run}"
    if name not in _FILE_BY_OPTION or "overrides" not in {it.name for it in context.command.params}:
        return ""
    words = [it for it in typed[1:] if not it.startswith("-") and "=" not in it]
    words = [it for it in words if it != value and not it.endswith((".yaml", ".yml"))]
    run = shlex.quote(words[0]) if words else "RUN"
    return (
        f"the run has its config, and KEY=VALUE changes it: {context.command_path} {run} KEY=VALUE"
    )


def _of_a_class(option: str, value: str, typed: Sequence[str]) -> str:
    """What an argument of the model or of the data is here, typed as `--model.lr`."""
    name = option.lstrip("-").replace("-", "_")
    if not name.startswith(("model.", "data.")):
        return ""
    if name in ("data.batch_size", "data.init_args.batch_size"):  # which a rank gives itself
        of_step = "write global_batch_size=N, the samples of one step over all ranks"
        return of_step + (f": {value} for one rank" if value.isdecimal() else "")
    found = key_in_config(name, typed)
    plain = re.fullmatch(r"[\w./+-]+", value)
    word = f"{found.key}={value}" if plain else key_with(found.key, value)
    takes = "" if found.is_taken else ", where your class takes it"
    takes = takes if ".init_args." in found.key else ""
    return found.said or f"{NO_DASHES}{word}{takes}"


def _as_key(context: click.Context, option: str, value: str, elsewhere: str, behind: str) -> str:
    """What an option of other tools is here, as an option or a key of the config."""
    from hpc_train.config.flags import FLAGS
    from hpc_train.config.meant_words.other_words import OTHER_WORDS, SAID_OF_KEYS, SWITCHES
    from hpc_train.config.meant_words.sbatch_names import OWNED, SHORT
    from hpc_train.config.meant_words.unknown_key import key_of_word
    from hpc_train.plan.translate_slurm import key_of_option

    name = option.lstrip("-").replace("_", "-")
    if not option.startswith("--"):
        name = SHORT.get(name[:1], name)
    own = [known for it in context.command.params for known in it.opts]
    if said := SAID_OF_KEYS.get(name.replace("-", "_")):
        return said
    if (meant := SWITCHES.get(name.replace("-", "_"))) and not behind:
        return f"{NO_DASHES}{meant}"
    rule = _rule_of(name, is_behind=bool(behind))
    counted = rule.to if rule and rule.does == "number" else "all_ranks" if name == "ntasks" else ""
    flags = {flag.key: flag.option for flag in FLAGS.values() if flag.option in own}
    key = key_of_option(name)
    key = key if key or behind else key_of_word(name.replace("-", "_"))
    if name == "array":
        return "--sweep KEY=VALUES makes a job array"
    if counted or f"--{name}" in own:
        return option_with(_COUNTED[counted] if counted else f"--{name}", name, value)
    _, _, nothing = OTHER_WORDS.get(name, "").partition("nothing: ")
    if elsewhere and "." not in key and not nothing:
        return elsewhere
    if key:
        takes = ", where your class takes it" if ".init_args." in key else ""
        if key in flags:
            return option_with(flags[key], name, value)
        if key == "slurm.dependency":
            return dependency_with(value, has_after="--after" in own)
        return f"{NO_DASHES}{key_with(key, value)}{takes}"
    return rule.why if rule else nothing or OWNED.get(name, behind) or _longer(context, option)


def _rule_of(name: str, *, is_behind: bool) -> OptionRule | None:
    """What is done with an option of a launcher; sbatch has --quiet as well."""
    from hpc_train.plan.launcher_options import ACCELERATE, DEEPSPEED, TORCHRUN

    if name == "quiet" and not is_behind:
        return None
    return TORCHRUN.get(name) or ACCELERATE.get(name) or DEEPSPEED.get(name)


def _options(context: click.Context | None) -> list[click.Parameter]:
    return context.command.params if context else []


def _elsewhere(context: click.Context, option: str) -> str:
    """The commands that have this option, where it is one of ours."""
    root = context.find_root()
    if len(option) < 3 or not isinstance(root.command, click.Group):
        return ""
    names = [
        name
        for name in root.command.list_commands(root)
        if (command := root.command.get_command(root, name)) is not None
        and any(option in it.opts for it in command.params)
    ]
    if not names:
        return ""
    more = " and others" if names[3:] else ""
    return f"leave it out: it is of hpc-train {', '.join(names[:3])}{more}"


def _longer(context: click.Context, option: str) -> str:
    """The options of a command that begin with the one letter that was typed."""
    known = [word for it in context.command.params for word in it.opts]
    near = [word for word in known if len(option) == 2 and word.startswith(f"-{option}")]
    return f"write {' or '.join(near)}" if near else ""
