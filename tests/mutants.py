"""Changes one thing at a time in a copy of the core, and asks the tests whether they notice.

`make mutants` takes a sample that depends on SEED and COUNT alone; COUNT=0 takes every mutant. A
mutant that behaves like the original is named in mutants_equivalent.yaml, with the reason.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.yaml")
WANTED = 0.85
MEMORY = "/dev/shm"  # tests flush much, which costs nothing there
SLOW_TO_IMPORT = ("hypothesis", "pytorch_lightning")  # once, and not in each fork
LEAST_S = 30.0  # a mutant gets this, or TIMES the tests' own time
TIMES = 5.0
COPIED = ("hpc_train", "tests", "sbatch_templates", "configs", "pyproject.toml")
# The core, and what of its tests needs no Slurm and no processes of ranks.
TESTS = {
    "plan/policy": ("plan/test_policy",),
    "plan/world": ("plan/test_world",),
    "runs/history": ("runs/test_history", "runs/test_events"),
    "supervisor/outcome": ("supervisor/test_outcome", "supervisor/test_deaths"),
    "supervisor/attempt": ("supervisor/test_attempt", "supervisor/test_attempt_start"),
    "preflight/choose/choose": (
        "preflight/test_choose",
        "preflight/test_choose_hca",
        "preflight/test_choose_socket",
    ),
    "preflight/choose/choose_hca": ("preflight/test_choose", "preflight/test_choose_hca"),
    "preflight/choose/choose_socket": ("preflight/test_choose", "preflight/test_choose_socket"),
    "preflight/verdict": ("preflight/test_verdict",),
    "training/resume/sample_order": ("training/test_sample_order", "training/test_sampling"),
    "training/resume/sampling": ("training/test_sampling",),
    "training/resume/manifest": ("training/test_checkpoint", "training/test_manifest"),
    "training/resume/saving": (
        "training/test_saving",
        "training/test_saving_ranks",
        "training/test_saving_refused",
    ),
    "training/resume/agreement": ("training/test_agreement",),
    "training/resume/step_controller": (
        "training/test_step_controller",
        "training/test_step_controller_evaluation",
    ),
}
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
REMOVABLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise, ast.Break, ast.Continue)


@dataclass(frozen=True)
class Mutant:
    """Change `number` of node `index` in the module at `path`, below hpc_train without suffix."""

    path: str
    index: int
    number: int
    line: int
    text: str
    change: str

    def source(self) -> str:
        """The whole changed module."""
        tree = ast.parse(_read(self.path))
        old = list(_behaviour(tree))[self.index]
        _replace(tree, old, list(_changes(old))[self.number])
        return ast.unparse(tree)


def mutants_of(path: str) -> list[Mutant]:
    """Every mutant of one module, in the order of its lines."""
    source = _read(path)
    lines = source.splitlines()
    found = []
    for index, node in enumerate(_behaviour(ast.parse(source))):
        for number, new in enumerate(_changes(node)):
            after = "removed" if isinstance(new, ast.Pass) else ast.unparse(new)
            change = f"{ast.unparse(node)} -> {after}".replace("\n", " ")
            text = lines[node.lineno - 1].strip()
            found.append(Mutant(path, index, number, node.lineno, text, change))
    return found


def _read(path: str) -> str:
    return (ROOT / "hpc_train" / f"{path}.py").read_text(encoding="utf-8")


def _behaviour(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """The expressions and statements below `node` that a run can notice."""
    for name, value in ast.iter_fields(node):
        if name in ("decorator_list", "annotation", "returns", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, (ast.Import, ast.ImportFrom, ast.JoinedStr)) or _is_words(child):
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, (ast.expr, ast.stmt)):
                yield child
            if isinstance(child, ast.AST):
                yield from _behaviour(child)


def _is_words(node: object) -> bool:
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) == "__all__"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand in the place of `node`."""
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                yield _like(node, ops=[*node.ops[:at], other(), *node.ops[at + 1 :]])
    elif isinstance(node, ast.BoolOp):
        yield _like(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield _like(node, value=not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        yield _like(node, value=node.value + 1)
    elif isinstance(node, REMOVABLE) and not _says_nothing(node):
        yield ast.Pass()


def _says_nothing(node: ast.stmt) -> bool:
    """A bare return does what its absence does; a name that is never bound is found at once."""
    if isinstance(node, ast.Return):
        return node.value is None or ast.unparse(node.value) == "None"
    return isinstance(node, ast.Assign) and all(
        isinstance(target, (ast.Name, ast.Tuple)) for target in node.targets
    )


def _like(node: ast.AST, **changes: object) -> ast.AST:
    twin = copy.copy(node)
    for name, value in changes.items():
        setattr(twin, name, value)
    return twin


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list):
                setattr(parent, name, [new if item is old else item for item in value])


def equivalents() -> set[tuple[str, str, str]]:
    """(path, text of the line, change) of each mutant that no test can tell from the original."""
    entries = yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8")) or []
    return {(entry["file"], entry["line"], entry["change"]) for entry in entries}


def sample(seed: int, count: int, modules: list[str]) -> list[Mutant]:
    """`count` mutants that are not known to be equivalent; all of them for 0."""
    known = equivalents()
    every = [mutant for path in modules for mutant in mutants_of(path)]
    real = [mutant for mutant in every if (mutant.path, mutant.text, mutant.change) not in known]
    if not count or count >= len(real):
        return real
    chosen = sorted(random.Random(seed).sample(range(len(real)), count))
    return [real[index] for index in chosen]


def passes(folder: Path, path: str, limit_s: float) -> bool:
    """Whether the module's tests pass in `folder`, in a forked process that imports it anew."""
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(folder)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        sys.path.insert(0, str(folder))
        os.environ["PYTHONPATH"] = str(folder)
        for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "hpc_train")]:
            del sys.modules[name]
        files = [f"tests/{name}.py" for name in TESTS[path] if Path(f"tests/{name}.py").exists()]
        options = ["-x", "--hypothesis-seed=0", "-m", "not slurm and not soak"]
        options += [f"--basetemp={folder.with_name('basetemp')}"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what is loaded here
        os._exit(pytest.main([*options, *files]))
    deadline = time.monotonic() + limit_s
    status = None
    while status is None and time.monotonic() < deadline:
        pid, code = os.waitpid(child, os.WNOHANG)
        status = code if pid else None
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what a mutant left running goes as well
    if status is None:
        os.waitpid(child, 0)
    return status == 0


def copy_of_the_project(folder: Path) -> Path:
    """What the tests of the core need, without what was made by running things."""
    for name in COPIED:
        source, copied = ROOT / name, folder / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copied, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, copied)
    return folder


def run(mutants: list[Mutant]) -> list[Mutant]:
    """The mutants that survive the tests."""
    survivors = []
    limits_s: dict[str, float] = {}
    in_memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="mutants-", dir=in_memory) as name:
        folder = copy_of_the_project(Path(name) / "copy")
        for number, mutant in enumerate(mutants, start=1):
            file = folder / "hpc_train" / f"{mutant.path}.py"
            if mutant.path not in limits_s:
                began = time.monotonic()
                if not passes(folder, mutant.path, 600):
                    raise SystemExit(f"{mutant.path}: its tests fail without any change")
                limits_s[mutant.path] = max(LEAST_S, TIMES * (time.monotonic() - began))
            file.write_text(mutant.source(), encoding="utf-8")
            os.utime(file, (number, number))  # or Python would take the compiled file of another
            if passes(folder, mutant.path, limits_s[mutant.path]):
                survivors.append(mutant)
                print(f"hpc_train/{mutant.path}.py:{mutant.line}: {mutant.change}", flush=True)
            shutil.copy2(ROOT / "hpc_train" / f"{mutant.path}.py", file)
    return survivors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=120, help="0 for all")
    parser.add_argument("modules", nargs="*", default=list(TESTS), help="e.g. plan/policy")
    asked = parser.parse_args()
    for name in SLOW_TO_IMPORT:
        importlib.import_module(name)
    mutants = sample(asked.seed, asked.count, asked.modules)
    survived = Counter(mutant.path for mutant in run(mutants))
    for path, tried in Counter(mutant.path for mutant in mutants).items():
        print(f"{path:24} {tried - survived[path]:4} of {tried:4} killed")
    killed = len(mutants) - survived.total()
    print(f"{killed} of {len(mutants)} killed: {killed / len(mutants):.0%}, wanted {WANTED:.0%}")
    return 0 if killed >= WANTED * len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
