"""Methods of a class that cannot be called as Lightning and Python call them, by the text."""

from __future__ import annotations

import ast

# What Lightning gives beside self, at most.
_GIVEN = {
    "training_step": ("batch", "batch_idx"),
    "configure_optimizers": (),
    "train_dataloader": (),
    "val_dataloader": (),
}
_STAGE = ("setup", "teardown")  # which Lightning calls with stage=...
_INIT = ("init", "int", "inti", "intit", "ini")  # between underscores


def wrong_method(definition: ast.ClassDef) -> tuple[str, str]:
    """What is wrong with a method of the class, and what to write; empty where nothing is."""
    methods = [it for it in definition.body if isinstance(it, ast.FunctionDef)]
    names = {it.name for it in methods}
    for method in methods:
        where = f"its {method.name} (line {method.lineno})"
        if method.name.strip("_") in _INIT and method.name[0] == "_" and "__init__" not in names:
            return f"{where} is called by nobody", "rename it __init__"
        if method.decorator_list or method.args.vararg or method.args.kwarg:
            continue
        positional = [it.arg for it in (*method.args.posonlyargs, *method.args.args)]
        if positional[:1] != ["self"] and _says_self(definition, method):
            first = positional[0] if positional else "nothing"
            hint = f"write def {method.name}({', '.join(['self', *positional])})"
            return f"{where} begins with {first}, and not with self", hint
        if method.name in _STAGE and "stage" not in positional:
            return f"{where} does not take stage", f"write def {method.name}(self, stage)"
        given = _GIVEN.get(method.name)
        needed = positional[1 : len(positional) - len(method.args.defaults)]
        if given is not None and len(needed) > len(given):
            hint = f"write def {method.name}({', '.join(['self', *given])})"
            return f"{where} needs {', '.join(needed)}, and Lightning gives less", hint
    return "", ""


def _says_self(definition: ast.ClassDef, method: ast.FunctionDef) -> bool:
    """Whether a method speaks of self and does not take it, or the others take it."""
    if any(isinstance(it, ast.Name) and it.id == "self" for it in ast.walk(method)):
        return True
    others = [
        it.args.args[0].arg
        for it in definition.body
        if isinstance(it, ast.FunctionDef) and it is not method and it.args.args
    ]
    return bool(others) and set(others) == {"self"}
