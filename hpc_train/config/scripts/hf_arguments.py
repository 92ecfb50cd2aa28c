"""What is typed for transformers' HfArgumentParser: options of dataclasses, told from their text.

The parser makes an option of each field, with `_` or `-`, and refuses what is left
(transformers/hf_argparser.py). TrainingArguments has other fields in other versions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.config.origins import Origins
from hpc_train.config.python_text.class_kind import Located, locate
from hpc_train.config.python_text.distributions import distribution, install_here
from hpc_train.config.python_text.harmless_code import imported_names
from hpc_train.config.python_text.modules import find_module, full_name, read_names
from hpc_train.config.python_text.script_tree import words_in
from hpc_train.config.scripts.parser_of_text import changes_line
from hpc_train.config.scripts.script_arguments import OF_SUBMIT
from hpc_train.config.scripts.script_trainer_calls import ScriptText
from hpc_train.config.words import did_you_mean

if TYPE_CHECKING:
    from hpc_train.config.schema import Config

_PARSERS = ("transformers.HfArgumentParser", "transformers.hf_argparser.HfArgumentParser")
_ARGUMENTS = "transformers.training_args.TrainingArguments"
_HOMES = {  # of names that transformers imports when they are asked for
    "transformers.TrainingArguments": _ARGUMENTS,
    "transformers.Seq2SeqTrainingArguments": (
        "transformers.training_args_seq2seq.Seq2SeqTrainingArguments"
    ),
}
_PARSE = "parse_args_into_dataclasses"
_MORE = ("add_argument", "parse_known_args", "parse_args", "add_argument_group", "aliases")
_RENAMED = {
    "--evaluation_strategy": "--eval_strategy",
    "--no_cuda": "--use_cpu",
    "--per_gpu_train_batch_size": "--per_device_train_batch_size",
    "--per_gpu_eval_batch_size": "--per_device_eval_batch_size",
    "--push_to_hub_model_id": "--hub_model_id",
}
_MOST_BASES = 6
_REPORTERS = ("wandb", "mlflow", "comet_ml", "clearml", "codecarbon", "swanlab", "trackio")
# transformers/training_args.py, OptimizerNames: those of bitsandbytes.
_OF_BITS = re.compile(
    r"(?:paged_)?(?:adamw|lion|ademamix)(?:_bnb)?_(?:8bit|32bit)|(?:paged_)?ademamix|rmsprop_bnb\w*"
)


@dataclass(frozen=True)
class _Fields:
    """Of the parser's dataclasses."""

    names: frozenset[str]
    is_whole: bool  # whether there are no others
    of_trainer: bool  # whether TrainingArguments are among them


def check_hf(
    tree: ast.Module, config: Config, workdir: Path, search_path: Sequence[str], origins: Origins
) -> None:
    """Refuse an option that no dataclass has, and one for a package that is not installed.

    Args:
        tree: The script.
        workdir: Where it is started.
        search_path: What the ranks' Python has behind the script's folder.

    Raises:
        ConfigError: with what to write.
    """
    arguments = [str(word) for word in config.script.args]
    if not arguments or not {"-h", "--help"}.isdisjoint(arguments):
        return
    file = workdir / str(config.script.path)
    path = [str(file.parent), *search_path]
    said, hint = _refused(ScriptText(tree=tree, file=file, search_path=path, arguments=arguments))
    if said:
        raise origins.error("script.args", f": {config.script.path} {said}", hint)


def _refused(script: ScriptText) -> tuple[str, str]:
    """What is wrong with the arguments, and what to write; empty where they are taken."""
    calls = [it for it in ast.walk(script.tree) if isinstance(it, ast.Call)]
    names = imported_names(script.tree)
    made = [it for it in calls if full_name(ast.unparse(it.func), names) in _PARSERS]
    parses = [it for it in calls if isinstance(it.func, ast.Attribute) and it.func.attr == _PARSE]
    is_plain = not any(it.args or it.keywords for it in parses) and bool(parses)
    if len(made) != 1 or not is_plain or changes_line(script.tree):
        return "", ""
    fields = _fields_of(made[0], script)
    unknown: list[str] = []
    if fields.is_whole and not words_in(script.tree).intersection(_MORE):
        unknown = [it for it in _options(script.arguments) if not _is_known(it, fields.names)]
    lacking = [*_lacking(script)] if fields.of_trainer else []
    return _told(unknown, [f"--{it}" for it in sorted(fields.names)], lacking)


def _options(arguments: Sequence[str]) -> list[str]:
    words = [word.partition("=")[0] for word in arguments if word[:2] == "--" and len(word) > 2]
    return list(dict.fromkeys(words))


def _told(
    unknown: Sequence[str], known: Sequence[str], lacking: Sequence[tuple[str, str]]
) -> tuple[str, str]:
    """All that is wrong with the arguments in one go: who mends one of it meets no next one.

    Args:
        unknown: Options that no dataclass has.
        known: Those that they have.
        lacking: What is given, and the package that it needs.
    """
    said = [f"refuses: unrecognized arguments: {', '.join(unknown)}"] if unknown else []
    hints = [_instead(it, known) for it in unknown]
    if len({*hints}) > 1:
        hints = [f"{it}: {hint}" for it, hint in zip(unknown, hints, strict=True)]
    by_package: dict[str, list[str]] = {}
    for given, package in lacking:
        by_package.setdefault(package, []).append(given)
    for package, options in by_package.items():
        missing = f"{package} is not installed in this Python"
        said.append(f"is given {' and '.join(options)}, and {missing}")
    packages = [install_here(" ".join(map(distribution, by_package)))] if by_package else []
    return "; ".join(said), "; ".join([*dict.fromkeys(hints), *packages])


def _is_known(option: str, names: frozenset[str]) -> bool:
    """Whether it is one of them, or begins one: argparse takes both."""
    written = option[2:].replace("-", "_")
    return any(f"{it}{name}".startswith(written) for name in names for it in ("", "no_"))


def _instead(option: str, known: Sequence[str]) -> str:
    if option[2:] in OF_SUBMIT:
        return f"{option} is hpc-train's: write it in front of --"
    renamed = _RENAMED.get(option.replace("-", "_").replace("__", "--", 1), "")
    if renamed in known:
        return f"write {renamed}, as transformers calls it now"
    leave = "leave it out: the installed transformers, and the script, have no such option"
    return did_you_mean(option, known) or leave


def _lacking(script: ScriptText) -> Iterator[tuple[str, str]]:
    """What is given, and the package by which TrainingArguments or their Trainer surely do it.

    Of those that are not there.
    """
    words = words_in(script.tree)
    trains = "do_train" not in words or "--do_train" in script.arguments
    has_trainer = any(it.endswith("Trainer") for it in words)
    for option, value in _values(script.arguments):
        package = "deepspeed" if option == "deepspeed" and value else ""
        if option == "report_to" and has_trainer and value in _REPORTERS:
            package = value
        if option == "optim" and has_trainer and trains and _OF_BITS.fullmatch(value):
            package = "bitsandbytes"
        if package and find_module(package, script.search_path)[0] is None:
            yield f"--{option} {value}", package


def _values(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each option with each of its values."""
    option = ""
    for word in arguments:
        if word[:2] == "--":
            option, _, value = word[2:].replace("-", "_").partition("=")
            if value:
                yield option, word.partition("=")[2]
        elif option:
            yield option, word


def _fields_of(call: ast.Call, script: ScriptText) -> _Fields:
    value = call.args[0] if len(call.args) == 1 and not call.keywords else None
    classes = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    text = Located(script.file.stem, "", read_names(script.file))
    found = [_fields(ast.unparse(it) if it else "", text, script.search_path) for it in classes]
    return _Fields(
        frozenset(name for it in found for name in it.names) | {"help"},
        all(it.is_whole for it in found),
        any(it.of_trainer for it in found),
    )


def _fields(written: str, where: Located, path: Sequence[str], steps: int = _MOST_BASES) -> _Fields:
    """Of one dataclass and its bases, as a module names it."""
    nothing = _Fields(frozenset(), is_whole=False, of_trainer=False)
    names = where.names
    if names is None or not steps or not written:
        return nothing
    definition, home = names.definitions.get(written), where
    full = full_name(written, names.imports)
    above = where.module.split(".")[: -(len(full) - len(full.lstrip("."))) or None]
    full = ".".join([*above, full.lstrip(".")]) if full.startswith(".") else full
    full = _HOMES.get(full, full)
    if definition is None and full != written:
        found = locate(full, path)
        definition, home = (found.definition, found) if found else (None, where)
    if not isinstance(definition, ast.ClassDef) or not _is_dataclass(definition):
        return _Fields(frozenset(), is_whole=False, of_trainer=full in _HOMES.values())
    bases = [_fields(ast.unparse(it), home, path, steps - 1) for it in definition.bases]
    own = [it.target for it in definition.body if isinstance(it, ast.AnnAssign)]
    return _Fields(
        frozenset(it.id for it in own if isinstance(it, ast.Name)).union(
            *(it.names for it in bases)
        ),
        all(it.is_whole for it in bases) and "aliases" not in ast.unparse(definition),
        full in _HOMES.values() or any(it.of_trainer for it in bases),
    )


def _is_dataclass(definition: ast.ClassDef) -> bool:
    made = [it.func if isinstance(it, ast.Call) else it for it in definition.decorator_list]
    return any(ast.unparse(it).rpartition(".")[2] == "dataclass" for it in made)
