"""Methods of a class that cannot be called as Lightning and Python call them, by the text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from hpc_train.config.python_text.modules import Names

# What Lightning gives beside self, at most.
_GIVEN = {
    "training_step": ("batch", "batch_idx"),
    "configure_optimizers": (),
    "train_dataloader": (),
    "val_dataloader": (),
}
_STAGE = ("setup", "teardown")  # which Lightning calls with stage=...
_PAIR = {
    "training_step": "configure_optimizers",
    "configure_optimizers": "training_step",
}
# Signs of a class that optimizes by hand, or hands a method on.
BY_HAND = (
    *("automatic_optimization", ".step(", ".backward(", ".optimizers(", "setattr(", "__getattr"),
)
_MANUAL = ("self.automatic_optimization = False", "automatic_optimization = False")
_STEPS_BY_HAND = (
    ".step(",
    ".backward(",
    "manual_backward",
    ".optimizers(",
    "setattr(",
    "super().t",
)
_HANDS_ON = ("super().training_step", "super().configure_optimizers")
PLATEAU_FORM = '{"optimizer": opt, "lr_scheduler": {"scheduler": s, "monitor": "val_loss"}}'
_INDEX = "optimizer_idx"
_INIT = ("init", "int", "inti", "intit", "ini")  # between underscores


def wrong_method(
    definition: ast.ClassDef, imports: Mapping[str, str] | None = None
) -> tuple[str, str]:
    """What is wrong with a method of the class, and what to write; empty where nothing is.

    Args:
        imports: Of the class's file: what its names stand for.
    """
    methods = [it for it in definition.body if isinstance(it, ast.FunctionDef)]
    names = {it.name for it in methods}
    used = _used_in_body(definition)
    for method in methods:
        where = f"its {method.name} (line {method.lineno})"
        if method.name.strip("_") in _INIT and method.name[0] == "_" and "__init__" not in names:
            return f"{where} is called by nobody", "rename it __init__"
        if method.decorator_list or method.args.vararg or method.args.kwarg:
            continue
        if method.name in used:  # as a decorator is, in the class itself
            continue
        positional = [it.arg for it in (*method.args.posonlyargs, *method.args.args)]
        if positional[:1] != ["self"] and _says_self(definition, method):
            first = positional[0] if positional else "nothing"
            hint = f"write def {method.name}({', '.join(['self', *positional])})"
            return f"{where} begins with {first}, and not with self", hint
        if method.name in _STAGE and "stage" not in positional:
            bases = [ast.unparse(it) for it in definition.bases]
            is_callback = "trainer" in positional or any(it.endswith("Callback") for it in bases)
            taken = "self, trainer, pl_module, stage" if is_callback else "self, stage"
            return f"{where} does not take stage", f"write def {method.name}({taken})"
        given = _GIVEN.get(method.name)
        needed = positional[1 : len(positional) - len(method.args.defaults)]
        if given is not None and _INDEX in positional and method.name == "training_step":
            from hpc_train.config.fit.several_optimizers import without_index  # to an error

            # Also with a default: pytorch_lightning/core/optimizer.py refuses the name.
            hint = without_index(definition, method, imports or {})
            verb = "needs" if _INDEX in needed else "takes"
            return f"{where} {verb} {_INDEX}, which Lightning 2 does not give", hint
        if given is not None and len(needed) > len(given):
            hint = f"write def {method.name}({', '.join(['self', *given])})"
            return f"{where} needs {', '.join(needed)}, and Lightning gives less", hint
    return "", ""


def _used_in_body(definition: ast.ClassDef) -> set[str]:
    """Names that the body of a class speaks of while it is made."""
    parts = [
        part
        for it in definition.body
        for part in (it.decorator_list if isinstance(it, ast.FunctionDef) else [it])
    ]
    return {it.id for part in parts for it in ast.walk(part) if isinstance(it, ast.Name)}


def methods_of(definition: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """What a class defines itself, by name."""
    return {it.name: it for it in definition.body if isinstance(it, ast.FunctionDef)}


def hands_itself_on(definition: ast.ClassDef) -> bool:
    """Whether a call in a class is given `self`: what it calls may set or do more with it."""
    calls = (it for it in ast.walk(definition) if isinstance(it, ast.Call))
    given = (one for it in calls for one in (*it.args, *(word.value for word in it.keywords)))
    return any(isinstance(it, ast.Name) and it.id == "self" for it in given)


def is_of_lightning_alone(definition: ast.ClassDef) -> bool:
    """Whether a class surely has no more than its own text and LightningModule gives it."""
    if definition.decorator_list or definition.keywords or not definition.bases:
        return False
    bases = (ast.unparse(it).rpartition(".")[2] for it in definition.bases)
    return all(it == "LightningModule" for it in bases)


def returns_nothing(definition: ast.ClassDef, name: str) -> tuple[int, str] | None:
    """The line of a method that gives no loss or no optimizer, and what to write; else None.

    None as well wherever that may be meant: the class or a method that it may inherit optimizes by
    hand, the method is empty, says `return None`, or its counterpart gives nothing, either.
    """
    if not is_of_lightning_alone(definition):
        return None
    text = ast.unparse(definition)
    if any(word in text for word in (*BY_HAND, *_HANDS_ON)):
        return None
    methods = methods_of(definition)
    method, other = (methods.get(it) for it in (name, _PAIR.get(name, "")))
    if (
        method is None
        or other is None
        or gives_value(other) is not True
        or gives_value(method) is not False
    ):
        return None
    if name == "training_step":
        bound = {it.id for it in ast.walk(method) if isinstance(it, ast.Name)}
        return method.lineno, f"end it with: return {'loss' if 'loss' in bound else 'LOSS'}"
    return method.lineno, with_return(method, "OPTIMIZER")


def without_loader(method: ast.FunctionDef) -> str:
    """What to write where a method that has to give a loader surely gives none; else empty.

    One that is still to be written (`pass`) gives none, either; `...` is a form for others.
    """
    if isinstance(last := method.body[-1], ast.Expr) and ast.unparse(last) == "...":
        return ""
    gives_none = gives_value(method) is False or (_is_blank(method) and not method.decorator_list)
    return with_return(method, "DataLoader(...)") if gives_none else ""


def with_return(method: ast.FunctionDef, what: str) -> str:
    """How a method returns what its last line makes."""
    last = method.body[-1]
    made = [it.id for it in ast.walk(last) if isinstance(it, ast.Name) and _is_stored(it)]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return f"write return in front of line {last.lineno}"
    return f"end it with: return {made[0] if made else what}"


def step_without_loss(definition: ast.ClassDef) -> int:
    """The line of a training_step that gives no value anywhere; 0 where that may well be meant."""
    text = ast.unparse(definition)
    for method in (it for it in definition.body if isinstance(it, ast.FunctionDef)):
        if method.name != "training_step" or any(word in text for word in BY_HAND):
            continue
        said = [it for it in own_nodes(method.body) if isinstance(it, ast.Return)]
        if gives_value(method) is False or (
            said and _is_blank(method) and not method.decorator_list
        ):
            return method.lineno
    return 0


def manual_without_step(definition: ast.ClassDef) -> tuple[int, int]:
    """The line of `automatic_optimization = False`, and of a training_step that steps nothing.

    Zeros where a base, or something that the model is handed to, may step an optimizer.
    """
    text = ast.unparse(definition)
    if any(word in text for word in _STEPS_BY_HAND):
        return 0, 0
    if not is_of_lightning_alone(definition):
        return 0, 0
    nodes = list(ast.walk(definition))
    used = {id(it.value) for it in nodes if isinstance(it, ast.Attribute)}
    used |= {id(it.func) for it in nodes if isinstance(it, ast.Call)}
    if any(it.id == "self" and id(it) not in used for it in _names_in(definition)):
        return 0, 0
    methods = methods_of(definition)
    step, made = methods.get("training_step"), methods.get("configure_optimizers")
    off = [it.lineno for it in nodes if isinstance(it, ast.Assign) and ast.unparse(it) in _MANUAL]
    if not off or step is None or made is None or not (gives_value(step) and gives_value(made)):
        return 0, 0  # without a loss or an optimizer it may learn in a way of its own
    return off[0], step.lineno


def plateau_without_monitor(definition: ast.ClassDef) -> int:
    """The line of a ReduceLROnPlateau for which the class names no monitor; else 0."""
    text = ast.unparse(definition)
    if "monitor" in text or any(word in text for word in BY_HAND):
        return 0
    for method in (it for it in definition.body if isinstance(it, ast.FunctionDef)):
        if method.name != "configure_optimizers" or gives_value(method) is not True:
            continue
        for call in (it for it in ast.walk(method) if isinstance(it, ast.Call)):
            if ast.unparse(call.func).rpartition(".")[2] == "ReduceLROnPlateau":
                return call.lineno
    return 0


def sure_plateau(definition: ast.ClassDef, names: Names) -> int:
    """The line of such a ReduceLROnPlateau that every call of configure_optimizers surely returns.

    0 also where a base may optimize by hand.
    """
    if not is_of_lightning_alone(definition) or not plateau_without_monitor(definition):
        return 0
    method = methods_of(definition)["configure_optimizers"]
    returns = [it for it in own_nodes(method.body) if isinstance(it, ast.Return)]
    last = method.body[-1]
    if method.decorator_list or len(returns) != 1 or last is not returns[0]:
        return 0
    if any(isinstance(it, ast.Dict) and None in it.keys for it in ast.walk(last)):
        return 0  # what is unpacked there may name one
    made: dict[str, int] = {}
    for statement in method.body[:-1]:
        stored = [it.id for it in _names_in(statement) if _is_stored(it)]
        for name in stored:
            made.pop(name, None)
        if isinstance(statement, ast.Assign) and len(stored) == 1:
            line = _makes_plateau(statement.value, names)
            made.update({stored[0]: line} if line else {})
    given = [made.get(it.id, 0) for it in _names_in(last)]
    inline = [_makes_plateau(it, names) for it in ast.walk(last) if isinstance(it, ast.Call)]
    calls = [it for it in inline if not it]  # of something else, which may wrap it
    return 0 if calls else next(filter(None, (*given, *inline)), 0)


def _names_in(node: ast.AST) -> list[ast.Name]:
    return [it for it in ast.walk(node) if isinstance(it, ast.Name)]


def _makes_plateau(value: ast.expr, names: Names) -> int:
    """The line of a call of torch's own class."""
    if not isinstance(value, ast.Call):
        return 0
    first, _, rest = ast.unparse(value.func).partition(".")
    full = f"{names.imports.get(first, '')}.{rest}".strip(".")
    return value.lineno if re.fullmatch(r"torch\..*\bReduceLROnPlateau", full) else 0


def _is_blank(method: ast.FunctionDef) -> bool:
    """Whether all its returns are without a value, and it neither yields nor raises."""
    nodes = list(own_nodes(method.body))
    if any(isinstance(it, (ast.Yield, ast.YieldFrom, ast.Raise, ast.Await)) for it in nodes):
        return False
    values = [it.value for it in nodes if isinstance(it, ast.Return) and it.value is not None]
    return all(isinstance(it, ast.Constant) and it.value is None for it in values)


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def gives_value(method: ast.FunctionDef) -> bool | None:
    """Whether it returns a value; None where it says itself that it gives none, or may not end."""
    nodes = list(own_nodes(method.body))
    returned = [it.value for it in nodes if isinstance(it, ast.Return)]
    values = [it for it in returned if it is not None]
    if any(not isinstance(it, ast.Constant) or it.value is not None for it in values):
        return True
    does = [it for it in method.body if not isinstance(it, (ast.Pass, ast.Import, ast.ImportFrom))]
    does = [
        it for it in does if not (isinstance(it, ast.Expr) and isinstance(it.value, ast.Constant))
    ]
    stops = (ast.Yield, ast.YieldFrom, ast.Raise, ast.Await)
    if returned or not does or method.decorator_list or any(isinstance(it, stops) for it in nodes):
        return None
    return False


def own_nodes(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """What a function does itself, without the functions that are defined in it."""
    for node in body:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from own_nodes(list(ast.iter_child_nodes(node)))


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
