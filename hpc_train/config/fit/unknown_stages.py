"""A stage of `setup` or `teardown` that Lightning never says: `if stage == "train"` is never true.

Its own are those of TrainerFn (trainer/states.py): fit, validate, test and predict.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hpc_train.config.fit.hook_notes import STAGED
from hpc_train.config.python_text.class_kind import Located, place_of

_STAGES = ("fit", "validate", "test", "predict")
_MEANT = {
    **dict.fromkeys(("train", "training", "trainer", "fitting"), "fit"),
    **dict.fromkeys(("val", "valid", "validation", "eval", "evaluate", "dev"), "validate"),
    **dict.fromkeys(("testing", "tests"), "test"),
    **dict.fromkeys(("prediction", "inference", "infer", "pred"), "predict"),
}
_COMPARES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def unknown_stages(class_path: str, found: Located, path: list[str]) -> Iterator[str]:
    """A line for each such word, where no stage that there is stands beside it.

    Args:
        path: As `sys.path`, with the user's folder first.
    """
    definition = found.definition
    if not isinstance(definition, ast.ClassDef) or found.names is None:
        return
    told = set()
    for method in definition.body:
        if not isinstance(method, ast.FunctionDef) or method.name not in STAGED:
            continue
        for word, line in _words(method):
            if word in told or _calls_with(definition, method.name, word):
                continue
            told.add(word)
            place = place_of(found, line, path)
            said = f'{class_path}.{method.name} asks whether the stage is "{word}" ({place})'
            stages = '"fit", "validate", "test" or "predict"'
            meant = _MEANT.get(word.lower(), word.lower() if word.lower() in _STAGES else "")
            yield f"{said}, and it is {stages}" + (f': write "{meant}"' if meant else "")


def _words(method: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    """Words that the stage alone is compared with and that are none, with their lines."""
    names = [it.arg for it in (*method.args.args[1:2], *method.args.kwonlyargs)]
    stored = {it.id for it in ast.walk(method) if isinstance(it, ast.Name) and _is_stored(it)}
    if not names or names[0] in stored:
        return
    for node in _tests(method):
        compared = [it for it in ast.walk(node) if isinstance(it, ast.Compare)]
        compared = [it for it in compared if _is_of(it, names[0])]
        said = [(text, it.lineno) for it in compared for text in _texts(it)]
        if not any(text in _STAGES for text, _ in said):
            yield from said


def _tests(method: ast.FunctionDef) -> Iterator[ast.expr]:
    """The conditions, each as a whole."""
    for node in ast.walk(method):
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            yield node.test


def _is_stored(name: ast.Name) -> bool:
    return not isinstance(name.ctx, ast.Load)


def _is_of(node: ast.Compare, name: str) -> bool:
    return (
        len(node.ops) == 1 and ast.unparse(node.left) == name and isinstance(node.ops[0], _COMPARES)
    )


def _texts(compare: ast.Compare) -> list[str]:
    """The texts on the right side, which may be a tuple of them."""
    right = compare.comparators[0]
    each = right.elts if isinstance(right, ast.Tuple | ast.List | ast.Set) else [right]
    texts = [it.value for it in each if isinstance(it, ast.Constant)]
    return [it for it in texts if isinstance(it, str)]


def _calls_with(definition: ast.ClassDef, method: str, word: str) -> bool:
    """Whether the class says that stage itself, `self.setup("train")`."""
    calls = (it for it in ast.walk(definition) if isinstance(it, ast.Call))
    own = (it for it in calls if ast.unparse(it.func).endswith(f".{method}"))
    return any(repr(word) in ast.unparse(it) for it in own)
