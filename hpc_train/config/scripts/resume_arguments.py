"""`script.resume`: a script's own checkpoint, and the arguments by which it goes on from that."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hpc_train.config.compose import COMMAND_LINE
from hpc_train.config.origins import Origins
from hpc_train.config.python_text.script_tree import script_tree, words_in
from hpc_train.config.schema import ScriptConfig
from hpc_train.config.scripts.saved_files import SavedFiles
from hpc_train.config.scripts.script_arguments import (
    declared_options,
    refused_arguments,
    texts_given,
)
from hpc_train.config.scripts.script_file import check_args

_NEWEST = "{newest}"
_EXAMPLE = "out/ckpt.pt"
# Options by which a script is told what to go on from.
_RESUMES = re.compile(
    r"--?(?:resume|restore)(?:[-_](?:from|path|file|ckpt|checkpoint))*"
    r"|--(?:load[-_])?(?:ckpt|checkpoint)"
)
# Without a value the others may say that it saves, or trains with less memory.
_SWITCHES = re.compile(r"--?(?:resume|restore|continue)(?:[-_]training)?")
_PLAIN = re.compile(r"[\w./][\w./*?-]*")  # a text that YAML takes without quotes
# By which a script may read its command line.
_READS_LINE = re.compile(
    r"argv|argparse|getopt|optparse|click|typer|fire|absl|hydra|omegaconf|\w*(?i:cli|parser)"
)
_MOST_SHOWN = 8
_SAVE = "torch.save"
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def check_resume(resume: Any, origins: Origins, script: str) -> None:
    """Refuse what is not `{when: PATTERN, args: [...]}`.

    Args:
        script: Its path, whose text tells what to write.
    """
    key = "script.resume"
    if not isinstance(resume, Mapping) or set(resume) - {"when", "args"}:
        when = resume.get("when") if isinstance(resume, Mapping) else resume
        raise origins.error(key, f"is {resume!r}", _how_to_write(when, script, origins))
    if resume and not (isinstance(resume.get("when"), str) and resume["when"].strip()):
        hint = _how_to_write(None, script, origins)
        raise origins.error(f"{key}.when", "names no checkpoint of the script's", hint)
    check_args(resume.get("args") or [], origins, f"{key}.args")


def refused_resume(tree: ast.Module, script: ScriptConfig, origins: Origins) -> tuple[str, str]:
    """What the script's parser would say in the second attempt, and what to write; or empty.

    Args:
        tree: The script, whose parser takes `script.args` by themselves.
        script: What it is given.
        origins: Of the config.
    """
    when, given = str(script.resume.get("when", "")), [str(it) for it in script.args]
    words = [str(it) for it in script.resume.get("args") or []]
    added = [it.replace(_NEWEST, when) for it in words]
    if not added or any("{" in it for it in (*given, *added)):  # {key} is filled in by a sweep
        return "", ""
    said, hint = refused_arguments(tree, [*given, *added])
    if not said:
        return "", ""
    bare = [it for it in words if it != _NEWEST]
    if bare and bare != words and not refused_arguments(tree, [*given, *bare])[0]:
        return said, f"{bare[-1]} takes no value: write args: [{', '.join(bare)}]"
    takes = resume_option(tree)
    if takes and words == [takes] and not refused_arguments(tree, [*given, takes, when])[0]:
        return said, f"{takes} takes a value: {_how_to_write(when, script.path or '', origins)}"
    if not said.startswith("unrecognized"):
        return said, "correct them: a job that follows adds them to script.args"
    if hint.startswith("did you mean") and not resume_option(tree):
        return said, hint
    return said, _how_to_write(when, script.path or "", origins)


def _how_to_write(when: object, script: str, origins: Origins) -> str:
    """The whole of `script.resume`, with the option that the script declares for it.

    Args:
        when: The checkpoint, where it was named.
        script: Its path.
        origins: Of the config, which tells whether it was typed.
    """
    tree = script_tree(Path(script))
    saved = ""
    if tree is not None and (save := next(saves_in_loops(tree), None)) is not None:
        saved = saved_pattern(save, tree, texts_given(tree, ()))
    pattern = when if isinstance(when, str) and when.strip() else ""
    pattern = pattern or saved or _EXAMPLE
    quoted = pattern if _PLAIN.fullmatch(pattern) else json.dumps(pattern, ensure_ascii=False)
    is_typed = origins.prefix("script.resume").startswith(COMMAND_LINE)

    def write(*arguments: str) -> str:
        behind = f", args: [{', '.join(arguments)}]" if arguments else ""
        form = f"{{when: {quoted}{behind}}}"
        return shlex.quote(f"script.resume={form}") if is_typed else f"resume: {form}"

    takes, switch = resume_options(tree) if tree is not None else ("", "")
    newest = json.dumps(_NEWEST)
    if takes or switch:
        return f"write {write(takes, newest) if takes else write(switch)}"
    name, declared = Path(script).name, None
    if tree is not None:
        reads = any(map(_READS_LINE.fullmatch, words_in(tree)))
        declared = declared_options(tree) if reads else []
    alone = f"script.resume.when={shlex.quote(pattern)}" if is_typed else write()
    if declared is None:
        of = f"with the option of {name} for a checkpoint in OPTION's place"
        return f"write {write('OPTION', newest)}, {of}; or {alone} where it finds it itself"
    more = ", ..." * (len(declared) > _MOST_SHOWN)
    options = f"{', '.join(declared[:_MOST_SHOWN])}{more}"
    none = f": none of its options ({options}) is known to take one" if declared else ""
    return f"write {alone}, and let {name} load it itself where it is there{none}"


def resume_word(when: str, tree: ast.Module | None) -> str:
    """What to type so that a checkpoint of a script's is named, and handed to its own option."""
    option, switch = resume_options(tree) if tree is not None else ("", "")
    added = f"{option}, '{_NEWEST}'" if option else switch
    if added:
        return f'"script.resume={{when: {when}, args: [{added}]}}"'
    return f"script.resume.when={when if _PLAIN.fullmatch(when) else shlex.quote(when)}"


def resume_option(tree: ast.Module) -> str:
    """The option by which a script is told what to go on from, where it takes a value; or empty."""
    return resume_options(tree)[0]


def resume_options(tree: ast.Module) -> tuple[str, str]:
    """The first such option that takes a value, and the first that takes none; each or empty."""
    takes: list[str] = []
    switches: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".add_argument"):
            names = [str(it.value) for it in node.args if isinstance(it, ast.Constant)]
            is_switch = any(it.arg == "action" for it in node.keywords)
            meant = (_SWITCHES if is_switch else _RESUMES).fullmatch
            (switches if is_switch else takes).extend(filter(meant, names))
    return next(iter(takes), ""), next(iter(switches), "")


def saves_in_loops(
    tree: ast.Module, helpers: Collection[str] = (), called: Collection[str] = ()
) -> Iterator[ast.Call]:
    """Calls that save in a loop, or in a function or method of the text that is called in one.

    Args:
        tree: The script, or a module of its own.
        helpers: Functions of other files that save what they are given, as torch.save does.
        called: Functions at its top level that loops of another file call.
    """
    own = called_in_loops(tree)
    functions = [it for it in ast.walk(tree) if isinstance(it, _FUNCTIONS) and it.name in own]
    functions += [it for it in tree.body if isinstance(it, _FUNCTIONS) and it.name in called]
    inside = _in_loops(tree) + [it for function in functions for it in ast.walk(function)]
    for node in inside:
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and (name == _SAVE or name.rpartition(".")[2] in helpers):
            yield node


def called_in_loops(tree: ast.Module) -> set[str]:
    """What loops of a text call, as it is written there, without `self.`."""
    calls = (it for it in _in_loops(tree) if isinstance(it, ast.Call))
    return {ast.unparse(it.func).removeprefix("self.") for it in calls}


def _in_loops(tree: ast.Module) -> list[ast.AST]:
    return [it for loop in ast.walk(tree) if isinstance(loop, _LOOPS) for it in ast.walk(loop)]


def saving_helpers(texts: Iterable[ast.Module]) -> set[str]:
    """Functions that hand on all that they are given to torch.save: `save_on_master(*args)`."""
    names = set()
    for function in (it for text in texts for it in text.body if isinstance(it, ast.FunctionDef)):
        handed = [it for it in (function.args.vararg, *function.args.args[1:2]) if it]
        for call in (it for it in ast.walk(function) if isinstance(it, ast.Call)):
            given = {ast.unparse(it).lstrip("*") for it in call.args}
            if ast.unparse(call.func) == _SAVE and any(it.arg in given for it in handed):
                names.add(function.name)
    return names


def saved_pattern(call: ast.Call, tree: ast.Module, given: Mapping[str, str]) -> str:
    """The file that is saved, with `*` for what changes in its name; empty where it is not told.

    Args:
        call: Of torch.save.
        tree: The text in which it stands.
        given: The texts of the script's parsed arguments, as `texts_given` has them.
    """
    return SavedFiles(tree, given).pattern(call)
