"""What a script's own Trainers ask for, as far as its text tells; nothing of it is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence, Set

from hpc_train.config.meant_words.old_callbacks import (
    OLD_CALLBACKS,
    is_switch,
    of_callbacks,
    of_switch,
)
from hpc_train.config.meant_words.removed_arguments import (
    OLD_STRATEGIES,
    REMOVED_ARGUMENTS,
    RENAMED_ARGUMENTS,
    UNUSED_ARGUMENTS,
)
from hpc_train.config.python_text.harmless_code import working_statements
from hpc_train.config.python_text.lightning_home import of_project
from hpc_train.config.trainer_args import ACCELERATORS

_PARSED = {  # methods of the Trainer that Lightning 2.0 dropped
    "add_argparse_args": 'parser.add_argument("--max_epochs", type=int)',
    "from_argparse_args": "Trainer(max_epochs=args.max_epochs, ...)",
}
_IN_A_SCRIPT = {
    "gpus": "leave it out, and submit the script with --gpus N",
    "num_processes": "leave it out, and submit the script with --gpus N script.accelerator=cpu",
    "distributed_backend": 'write strategy="ddp"',
    "resume_from_checkpoint": "leave it out: a stopped run goes on with hpc-train resume RUN",
}
# Packages of others register strategies by these names.
_OF_OTHERS = ("horovod", "bagua", "colossalai", "hivemind", "collaborative", "tpu_spawn")

_HOMES = ("pytorch_lightning", "lightning", "lightning.pytorch")
_WITH_TRAINER = (  # modules that have its Trainer
    *_HOMES,
    *(f"{it}.{part}" for it in _HOMES for part in ("trainer", "trainer.trainer")),
)
_FABRICS = (  # that have its Fabric
    *("lightning", "lightning.fabric", "lightning.fabric.fabric"),
    *("lightning_fabric", "lightning_fabric.fabric"),
)
RUNS = ("fit", "validate", "test", "predict")  # of a Trainer's methods
# What may train by itself, or reaches a Trainer by other ways than its name.
_MAY_REACH_IT = re.compile(
    rf"\.(?:{'|'.join(RUNS)}|backward|step|tune)\b|\b(?:exec|eval|globals|locals|vars|getattr)\b"
)
_CLASS_OR_PRINT = re.compile(r"(?:\w+\.)*(?!\w*CLI\b)[A-Z]\w*|print")
_MOST_CALLS = 4  # of functions that call functions


def places_asked_for(tree: ast.Module) -> dict[str, tuple[int, int, str]]:
    """The least `devices` and `num_nodes` that every Trainer and Fabric of a script asks for.

    With its line, and which of the two asks. A name is missing where one of them leaves it open,
    or says it by anything but a constant.
    """
    calls = [(it, "Trainer") for it in made_trainers(tree)]
    calls += [(it, "Fabric") for it in made_fabrics(tree)]
    asked: dict[str, tuple[int, int, str]] = {}
    for name in ("devices", "num_nodes"):
        counts = [(_count(call, name), call.lineno, of) for call, of in calls]
        known = [(count, line, of) for count, line, of in counts if count is not None]
        if known and len(known) == len(calls):
            asked[name] = min(known)
    return asked


def word_of_old(tree: ast.Module, run: Sequence[ast.AST]) -> tuple[int, str, str] | None:
    """What Lightning 2 no longer has: the line, the word and the fix; None where all may work.

    An argument counts where every Trainer of the script has one, so that no other is made instead.

    Args:
        tree: The script.
        run: The parts of it that stand under no condition.
    """
    modules, names = imported(tree)
    trainers = {name for name, what in names.items() if what == "Trainer"}
    trainers |= {f"{module}.Trainer" for module in modules}
    if parsed := sorted(_parsed(run, trainers)):
        words = [f"line {line} Trainer.{name}" for line, name in parsed]
        first = words[0].removeprefix(f"line {parsed[0][0]} ")
        fixes = dict.fromkeys(_PARSED[name] for _, name in parsed)
        said = ", and ".join([first, *words[1:]])
        return parsed[0][0], said, f"write {', and '.join(fixes)}, or use LightningCLI"
    found = old_in_each(tree)
    return found[0] if found and set(made_trainers(tree)) <= set(run) else None


def old_in_each(tree: ast.Module) -> list[tuple[int, str, str]]:
    """The same of each Trainer of a script, by line; empty where one has no such argument."""
    found = [_old_arguments(it) for it in sorted(made_trainers(tree), key=lambda it: it.lineno)]
    told = [it for it in found if it]
    return told if len(told) == len(found) else []


def _parsed(run: Sequence[ast.AST], trainers: Set[str]) -> Iterator[tuple[int, str]]:
    """Calls of the methods that made a Trainer of argparse's options, with their lines."""
    for node in run:
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in _PARSED:
            is_trainers = ast.unparse(called.value) in trainers
            yield from [(called.lineno, called.attr)] if is_trainers else []


def _old_arguments(call: ast.Call) -> tuple[int, str, str] | None:
    """All of one Trainer's, so that a script is mended once."""
    given = next((it.value for it in call.keywords if it.arg == "callbacks"), None)
    held = [it for it in call.keywords if it.arg in OLD_CALLBACKS and not is_switch(it)]
    found = [it for word in call.keywords if word not in held and (it := _old_argument(word))]
    if held:
        named = [f"{it.arg}=..." for it in held]
        found.append((", ".join(named), of_callbacks(held, given)))
    if not found:
        return None
    words = ", ".join(word for word, _ in found)
    fixes = "; ".join(f"{word.replace('=...', '').partition('=')[0]}: {fix}" for word, fix in found)
    return call.lineno, f"Trainer({words})", fixes if len(found) > 1 else found[0][1]


def _old_argument(word: ast.keyword) -> tuple[str, str] | None:
    """How it is shown, and what to write; None where Lightning 2 may take it."""
    name = word.arg or ""
    value = word.value.value if isinstance(word.value, ast.Constant) else ...
    if name == "strategy" and isinstance(value, str) and value not in _OF_OTHERS:
        today, why = OLD_STRATEGIES.get(value, ("", ""))
        return (f'strategy="{value}"', f'write strategy="{today}": {why}') if today else None
    if name == "accelerator" and isinstance(value, str) and value.lower() not in ACCELERATORS:
        return f'accelerator="{value}"', of_accelerator(value)
    if name in OLD_CALLBACKS:
        return f"{name}=...", of_switch(word) if is_switch(word) else of_callbacks([word], None)
    if name == "progress_bar_refresh_rate":
        return f"{name}=...", _of_progress_bar(word)
    if name in RENAMED_ARGUMENTS:
        today, kind = RENAMED_ARGUMENTS[name]
        is_told = isinstance(value, int) or (kind is bool and value is not ...)
        return f"{name}=...", f"write {today}={kind(value) if is_told else ''}"
    gone = REMOVED_ARGUMENTS.get(name) or UNUSED_ARGUMENTS.get(name)
    if not gone:
        return None
    fix = _IN_A_SCRIPT.get(name, f"leave it out of the Trainer: {of_project(gone)}")
    if name == "resume_from_checkpoint" and value is not None:
        fix += f"; to begin with it: trainer.fit(..., ckpt_path={ast.unparse(word.value)})"
    return f"{name}=...", fix


def old_argument(name: str, value: object) -> str:
    """What to write for an argument of Lightning 1's Trainer by its value; empty for another."""
    written: ast.expr = ast.Name("...")
    if value is None or isinstance(value, str | int | float):
        written = ast.Constant(value)
    return (_old_argument(ast.keyword(name, written)) or ("", ""))[1]


def of_accelerator(value: str) -> str:
    """What to write for what is none here: Lightning 1 took a strategy there."""
    today = OLD_STRATEGIES.get(value, (value, ""))[0]
    if value == "ddp_cpu":
        return "leave it out, and submit the script with --gpus N script.accelerator=cpu"
    if today.startswith(("ddp", "fsdp", "deepspeed")):
        return f'write strategy="{today}", or leave it out'
    return 'write accelerator="auto": hpc-train trains on GPUs and CPUs'


def _of_progress_bar(word: ast.keyword) -> str:
    """It was a number of batches, and 0 none; what is there today is a callback's or a bool."""
    rate = ast.unparse(word.value)
    if rate in ("0", "False"):
        return "write enable_progress_bar=False"
    bar = f"callbacks=[TQDMProgressBar(refresh_rate={rate})]"
    return f"leave it out, or write {bar}, of Lightning's callbacks"


def made_trainers(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls of Lightning's Trainer by a name that an import of it gives."""
    modules, names = imported(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        made = node.func
        if isinstance(made, ast.Name) and names.get(made.id) == "Trainer":
            yield node
        elif isinstance(made, ast.Attribute) and made.attr == "Trainer":
            yield from [node] if ast.unparse(made.value) in modules else []


def made_fabrics(tree: ast.Module) -> Iterator[ast.Call]:
    """Calls of Lightning's Fabric by a name that an import of it gives."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [it for it in node.names if it.name in _FABRICS]
            names |= {f"{it.asname or it.name}.Fabric" for it in found}
        elif isinstance(node, ast.ImportFrom) and node.module in _FABRICS:
            names |= {it.asname or it.name for it in node.names if it.name == "Fabric"}
            subs = [it for it in node.names if f"{node.module}.{it.name}" in _FABRICS]
            names |= {f"{it.asname or it.name}.Fabric" for it in subs}
    calls = (it for it in ast.walk(tree) if isinstance(it, ast.Call))
    return (it for it in calls if ast.unparse(it.func) in names)


def imported(tree: ast.Module) -> tuple[set[str], Mapping[str, str]]:
    """Names that mean a package of Lightning, and those that mean something of it."""
    modules: set[str] = set()
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {it.asname or it.name for it in node.names if it.name in _WITH_TRAINER}
            plain = [it.name for it in node.names if not it.asname]  # binds its packages as well
            modules |= {home for home in _HOMES for it in plain if it.startswith(f"{home}.")}
        elif isinstance(node, ast.ImportFrom) and node.module in _HOMES:
            names |= {it.asname or it.name: it.name for it in node.names}
            names |= {"Trainer": "Trainer"} if _takes_all(node, tree) else {}
        elif isinstance(node, ast.ImportFrom) and node.module in _WITH_TRAINER:
            found = [it for it in node.names if it.name in ("Trainer", "trainer")]
            names |= {it.asname or it.name: it.name for it in found}
    modules |= {name for name, what in names.items() if what in ("pytorch", "trainer")}
    return modules, names | dict.fromkeys(_other_names(tree, modules, names), "Trainer")


def _takes_all(node: ast.ImportFrom, tree: ast.Module) -> bool:
    """Whether it imports all names, and the script has no Trainer of its own."""
    own = {it.name for it in ast.walk(tree) if isinstance(it, ast.ClassDef | ast.alias)}
    return node.names[0].name == "*" and "Trainer" not in own


def _other_names(tree: ast.Module, modules: Set[str], names: Mapping[str, str]) -> Iterator[str]:
    """Those that the module's top level gives to the class itself: `T = pl.Trainer`."""
    classes = {f"{it}.Trainer" for it in modules} | {
        name for name, what in names.items() if what == "Trainer"
    }
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.value) in classes:
            yield from (it.id for it in node.targets if isinstance(it, ast.Name))


def trainers_for_gpus(
    tree: ast.Module, run: Sequence[ast.AST] | None = None
) -> tuple[int, str] | None:
    """The line of the first of the Trainers and Fabrics where each is made, and for GPUs alone.

    With which of the two it is; None where one is for other devices, or there is none.

    Args:
        tree: The script.
        run: The parts of it that stand under no condition; None where any part counts.
    """
    of = dict.fromkeys(made_trainers(tree), "Trainer") | dict.fromkeys(made_fabrics(tree), "Fabric")
    values = [it.value for call in of for it in call.keywords if it.arg == "accelerator"]
    asked = [it.value for it in values if isinstance(it, ast.Constant)]
    is_sure = len(asked) == len(of) and (run is None or set(of) <= set(run))
    if not of or not is_sure or not set(asked) <= {"gpu", "cuda"}:
        return None
    call, kind = next(iter(of.items()))
    return call.lineno, kind


def unused_trainer(tree: ast.Module) -> ast.Call | None:
    """The call that makes a Trainer of which nothing is asked; None where something may be.

    Nothing else of the module's top level may train either: but for Trainers, what it does is
    harmless, makes an object of a class, or prints.
    """
    if _MAY_REACH_IT.search(ast.unparse(tree)):
        return None
    made: dict[ast.Call, str] = {}
    calls = set(made_trainers(tree))
    for statement in working_statements(tree):
        value = getattr(statement, "value", None)
        if not isinstance(statement, (ast.Expr, ast.Assign)) or not isinstance(value, ast.Call):
            return None
        inside = [it for it in ast.walk(statement) if isinstance(it, ast.Call) and it not in calls]
        if not all(_CLASS_OR_PRINT.fullmatch(ast.unparse(it.func)) for it in inside):
            return None
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if value in calls and all(isinstance(it, ast.Name) for it in targets):
            made[value] = next((it.id for it in targets if isinstance(it, ast.Name)), "")
    if not made or set(made) != calls or len(set(made.values())) != len(made):
        return None
    asked = {id(it.value) for it in ast.walk(tree) if isinstance(it, ast.Attribute)} - {
        id(it.func.value)
        for it in ast.walk(tree)
        if isinstance(it, ast.Call) and isinstance(it.func, ast.Attribute)
    }
    read = (it for it in ast.walk(tree) if isinstance(it, ast.Name))
    loads = (it for it in read if isinstance(it.ctx, ast.Load) and it.id in made.values())
    return None if any(id(it) not in asked for it in loads) else next(iter(made))


def fit_on_import(tree: ast.Module) -> ast.Call | None:
    """The call of a Trainer's `fit` or the like that the import of a module reaches in any case.

    None where it stands below an `if`, such as `if __name__ == "__main__"`, or where the text does
    not tell that it is a Trainer's.
    """
    functions = {it.name: it for it in tree.body if isinstance(it, ast.FunctionDef)}
    made = {ast.unparse(call.func) for call in made_trainers(tree)}
    return next(_fits(tree.body, functions, made, set(), _MOST_CALLS), None)


def _fits(
    body: Sequence[ast.stmt],
    functions: Mapping[str, ast.FunctionDef],
    made: Set[str],
    trainers: Set[str],
    steps: int,
) -> Iterator[ast.Call]:
    """Such calls in statements, and in the module's own functions that they call.

    Args:
        made: How the module writes the class `Trainer`.
        trainers: Names that are bound to one.
    """
    known = set(trainers)
    for statement in body:
        if isinstance(statement, (ast.With, ast.For, ast.Try)):
            yield from _fits(statement.body, functions, made, known, steps)
        value = getattr(statement, "value", None)
        if not isinstance(statement, (ast.Expr, ast.Assign)) or not isinstance(value, ast.Call):
            continue
        if ast.unparse(value.func) in made and isinstance(statement, ast.Assign):
            known |= {ast.unparse(target) for target in statement.targets}
        if isinstance(value.func, ast.Attribute) and value.func.attr in RUNS:
            held = value.func.value
            is_new = isinstance(held, ast.Call) and ast.unparse(held.func) in made
            yield from [value] if is_new or ast.unparse(held) in known else []
        called = functions.get(ast.unparse(value.func)) if steps else None
        if called is not None and not called.decorator_list:
            yield from _fits(called.body, functions, made, known, steps - 1)


def _count(call: ast.Call, name: str) -> int | None:
    """A constant number, also as text, or the length of a list of constants."""
    value = next((word.value for word in call.keywords if word.arg == name), None)
    if isinstance(value, (ast.List, ast.Tuple)):
        return (
            len(value.elts) if not any(isinstance(it, ast.Starred) for it in value.elts) else None
        )
    text = str(value.value) if isinstance(value, ast.Constant) else ""
    return int(text) if text.isdecimal() else None
