"""A training_step that surely returns a loss without a gradient, told from its text."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from hpc_train.config.fit.cut_forwards import NO_GRAD, cut_at, is_computed
from hpc_train.config.python_text.method_signatures import (
    BY_HAND,
    is_of_lightning_alone,
    methods_of,
    own_nodes,
)

# With one of these a class may make something else of the loss than backward().
_OWN_WAYS = ("backward", "optimizer_step", "training_step_end")
_WITHOUT_GRADIENT = ("detach", "item")
# Words with which a step may give a gradient back to what has none.
_GIVES_BACK = ("manual_backward", "requires_grad", "enable_grad", "set_grad_enabled")
_INDICES = ("argmax", "argmin", "argsort")  # which have no gradient, whatever they are of
_INDEX = "argmax()"  # a name for the calls of those
_FORWARD = "self()"  # a name for the calls of a forward that gives no gradient
_STRAIGHT = (ast.Assign, ast.AnnAssign)

Cut = tuple[int, str]  # the line that takes the gradient away, and what to write


def detached_loss(definition: ast.ClassDef, imports: Mapping[str, str]) -> Cut | None:
    """The line after which the loss of training_step surely has no gradient, and what to write.

    None wherever it, or a base that is not Lightning's, may train in a way of its own.

    Args:
        imports: Of names that its module imports, the dotted name behind each.
    """
    if not is_of_lightning_alone(definition):
        return None
    methods = methods_of(definition)
    method = methods.get("training_step")
    if method is None or method.decorator_list or {*_OWN_WAYS} & set(methods):
        return None
    text = ast.unparse(definition)
    if any(word in text for word in (*BY_HAND, *_GIVES_BACK)):
        return None
    nodes = list(own_nodes(method.body))
    if any(isinstance(it, ast.Yield | ast.Global | ast.Nonlocal) for it in nodes):
        return None
    read = _Straight(imports, _losses_of(definition, imports), plain=set(_parameters(method)))
    if (line := _cut_forward(methods, imports)) and "__call__" not in methods:
        method = _without_calls(method)
        read.cut[_FORWARD] = line, "leave torch.no_grad() out of forward"
    returns = [it for it in own_nodes(method.body) if isinstance(it, ast.Return) and it.value]
    read.run(method.body)
    cuts = [read.returned(it) for it in returns]
    return cuts[0] if cuts and None not in cuts else None


def _detached(value: ast.expr | None) -> ast.expr | None:
    """`X` of `X.detach()` or `X.item()`."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    if value.func.attr not in _WITHOUT_GRADIENT or value.args or value.keywords:
        return None
    return value.func.value


def _detached_above(value: ast.expr) -> str:
    """`detach` of `X.detach().clone()`, where nothing else is given a part in it."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.args or value.keywords:
            break
        if value.func.attr in _WITHOUT_GRADIENT:
            return value.func.attr
        value = value.func.value
    return ""


@dataclass
class _Straight:
    """The lines of a method that are executed each time, one after the other.

    Attributes:
        losses: Attributes of self that are losses of torch's, which have no parameters.
        plain: Names of what came with the batch, or was made of it by torch alone.
        cut: Names that surely have no gradient, as it stands.
        made: Names of a loss of torch's that was made, and not called.
        at: Both at each return among these lines.
    """

    imports: Mapping[str, str]
    losses: frozenset[str]
    plain: set[str]
    cut: dict[str, Cut] = field(default_factory=dict)
    made: dict[str, Cut] = field(default_factory=dict)
    at: dict[ast.Return, dict[str, Cut]] = field(default_factory=dict)

    def run(self, body: Sequence[ast.stmt], without: int = 0) -> None:
        """Read lines, those of `with torch.no_grad():` with the number of that line."""
        for statement in body:
            if isinstance(statement, ast.Return):
                self.at[statement] = {**self.cut, **self.made}
            elif isinstance(statement, ast.With) and self._is_no_grad(statement):
                self.run(statement.body, without or statement.lineno)
            else:
                self._assign(statement, without)

    def returned(self, given: ast.Return) -> Cut | None:
        """What took the gradient from a returned loss, also from a dict's "loss"."""
        value, before, names = given.value, "return ", self.at.get(given, {})
        if isinstance(value, ast.Dict):
            pairs = zip(value.keys, value.values, strict=True)
            named = [
                it for key, it in pairs if isinstance(key, ast.Constant) and key.value == "loss"
            ]
            if len(named) != 1 or None in value.keys:
                return None
            before, value = '"loss": ', named[0]
        if value is None or isinstance(value, ast.Name):
            return names.get(value.id) if value else None
        if uncalled := self._uncalled(value) or self._of_indices(value):
            return uncalled
        if inner := _detached(value) or self._copied(value):
            inner = _detached(inner) or inner
            return value.lineno, f"write {before}{ast.unparse(inner)}"
        above = _detached_above(value)
        return (value.lineno, f"leave .{above}() out") if above else None

    def _assign(self, statement: ast.stmt, without: int) -> None:
        value = statement.value if isinstance(statement, _STRAIGHT) else None
        names = list(_stored(statement))
        cut = self._cut(value, names, without) if value else None
        is_plain = value is not None and self._is_made_of(value, self.plain)
        for name in names:
            self.cut.pop(name, None)
            self.made.pop(name, None)
            self.plain.discard(name)
            if value and len(names) == 1 and (uncalled := self._uncalled(value)):
                self.made[name] = uncalled
            elif cut:
                self.cut[name] = cut
            elif is_plain:
                self.plain.add(name)

    def _cut(self, value: ast.expr, names: Sequence[str], without: int) -> Cut | None:
        """What takes the gradient from a value that is assigned to these names."""
        inner = _detached(value)
        copied = None if inner else self._copied(value)
        if len(names) == 1 and (of := inner or copied):
            if isinstance(of, ast.Name) and of.id == names[0]:
                return value.lineno, "leave this line out"
            if copied:
                call = ast.unparse(cast("ast.Call", value).func)
                return value.lineno, f"leave {call}() out, which gives a number without its origin"
            return value.lineno, f"write {names[0]} = {ast.unparse(of)}"
        if without and is_computed(value):
            return without, "call the model outside of torch.no_grad()"
        if cut := self._of_indices(value):
            return cut
        known = [self.cut[it] for it in _read(value) if it in self.cut]
        return known[0] if known and self._is_made_of(value, {*self.plain, *self.cut}) else None

    def _uncalled(self, value: ast.expr) -> Cut | None:
        """Of `nn.CrossEntropyLoss(out, y)`, which is no number, whatever it is given."""
        if not isinstance(value, ast.Call) or len(value.args) != 2:
            return None
        dotted = self._dotted(value.func)
        if not dotted.startswith("torch.nn.") or not dotted.endswith("Loss"):
            return None
        return value.lineno, uncalled_loss(value)

    def _of_indices(self, value: ast.expr) -> Cut | None:
        """Of `(self(x).argmax(1) != y).float().mean()`, and of all that is made of such alone."""
        plain, found = _named_indices(value)
        if not found or not self._is_made_of(plain, {*self.plain, *self.cut, _INDEX}):
            return None
        call = cast("ast.Attribute", found[0].func)
        is_torchs = self._dotted(call).startswith("torch.") and bool(found[0].args)
        of = found[0].args[0] if is_torchs else call.value
        if self._is_made_of(of, self.plain):  # as of labels
            return None
        loss = f"torch.nn.functional.cross_entropy({ast.unparse(of)}, y)"
        why = f"{call.attr} has no gradient, and is for an accuracy alone"
        return call.lineno, f"write a loss such as {loss}: {why}"

    def _copied(self, value: ast.expr) -> ast.expr | None:
        """`X` of `float(X)`, `torch.tensor(X)` and `torch.tensor(X.item())`."""
        if not isinstance(value, ast.Call) or len(value.args) != 1:
            return None
        if ast.unparse(value.func) != "float" and self._dotted(value.func) != "torch.tensor":
            return None
        inner = _detached(value.args[0]) or value.args[0]
        return inner if isinstance(inner, ast.Name | ast.Call | ast.BinOp) else None

    def _is_made_of(self, value: ast.expr, names: set[str]) -> bool:
        """Whether it has nothing but these names, and functions of torch's without parameters."""
        own = {id(name) for it in ast.walk(value) for name in self._self_of_loss(it)}
        for it in ast.walk(value):
            if isinstance(it, ast.Lambda | ast.NamedExpr | ast.Await | ast.comprehension):
                return False
            is_other = isinstance(it, ast.Name) and id(it) not in own and it.id not in names
            if is_other and not self._dotted(cast("ast.Name", it)).startswith("torch"):
                return False
            dotted = self._dotted(it.func) if isinstance(it, ast.Call) else ""
            last = dotted.rpartition(".")[2]
            if dotted.startswith("torch") and last[:1].isupper() and not last.endswith("Loss"):
                return False  # as of a layer, whose parameters have a gradient
        return True

    def _self_of_loss(self, node: ast.AST) -> Iterator[ast.expr]:
        """The `self` of a call of `self.LOSS(...)`."""
        function = node.func if isinstance(node, ast.Call) else None
        if isinstance(function, ast.Attribute) and function.attr in self.losses:
            yield function.value

    def _is_no_grad(self, statement: ast.With) -> bool:
        calls = [it.context_expr for it in statement.items]
        return len(calls) == 1 and any(
            isinstance(it, ast.Call) and not it.args and self._dotted(it.func) in NO_GRAD
            for it in calls
        )

    def _dotted(self, value: ast.expr) -> str:
        return _dotted(value, self.imports)


def uncalled_loss(call: ast.Call) -> str:
    """What is wrong with `nn.CrossEntropyLoss(out, y)`, and what to write."""
    made = ast.Call(call.func, [], call.keywords)
    write = ast.unparse(ast.Call(made, call.args, []))
    return f"{ast.unparse(call)} makes the loss and does not call it: write {write}"


def _dotted(value: ast.expr, imports: Mapping[str, str]) -> str:
    """The whole name behind `F.mse_loss`; empty where its first part is not imported."""
    first, _, rest = ast.unparse(value).partition(".")
    return f"{imports[first]}.{rest}".strip(".") if first in imports else ""


def _cut_forward(methods: Mapping[str, ast.FunctionDef], imports: Mapping[str, str]) -> int:
    """The line of a forward that computes what it gives under torch.no_grad(); 0 of others."""
    forward = methods.get("forward")
    return cut_at(forward, lambda it: _dotted(it, imports) in NO_GRAD) if forward else 0


def _without_calls(method: ast.FunctionDef) -> ast.FunctionDef:
    """The method with a name in place of each call of the model."""
    of_model = ("self", "self.forward")
    named, _ = _named_calls(method, _FORWARD, lambda it: ast.unparse(it) in of_model)
    return cast("ast.FunctionDef", named)


def _named_indices(value: ast.expr) -> tuple[ast.expr, list[ast.Call]]:
    """The value with a name in place of each call that gives indices, and those calls."""
    named, found = _named_calls(
        value, _INDEX, lambda it: isinstance(it, ast.Attribute) and it.attr in _INDICES
    )
    return cast("ast.expr", named), found


def _named_calls(
    tree: ast.AST, name: str, is_meant: Callable[[ast.expr], bool]
) -> tuple[ast.AST, list[ast.Call]]:
    """A copy with a name in place of each call of a function that is meant, and those calls."""
    found: list[ast.Call] = []

    class Named(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            if is_meant(node.func):
                found.append(node)
                return ast.copy_location(ast.Name(name, ast.Load()), node)
            return self.generic_visit(node)

    return Named().visit(copy.deepcopy(tree)), found


def _losses_of(definition: ast.ClassDef, imports: Mapping[str, str]) -> frozenset[str]:
    """Attributes that the class assigns once, and then a loss of torch's."""
    made: dict[str, list[str]] = {}
    for node in ast.walk(definition):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                value = node.value.func if isinstance(node.value, ast.Call) else node.value
                made.setdefault(target.attr, []).append(_dotted(value, imports))
    ends = {name: "".join(dotted) for name, dotted in made.items() if len(dotted) == 1}
    return frozenset(
        name for name, it in ends.items() if it.startswith("torch.nn.") and it.endswith("Loss")
    )


def _parameters(method: ast.FunctionDef) -> list[str]:
    return [it.arg for it in (*method.args.posonlyargs, *method.args.args)][1:]


def _stored(node: ast.AST) -> Iterator[str]:
    """Names that are assigned, or changed where they are: `x[0] = ...`, `x.add_(...)`."""
    for it in ast.walk(node):
        if isinstance(it, ast.Name) and not isinstance(it.ctx, ast.Load):
            yield it.id
        if isinstance(it, ast.Subscript | ast.Attribute) and isinstance(it.value, ast.Name):
            is_in_place = isinstance(it, ast.Attribute) and it.attr.endswith("_")
            if is_in_place or not isinstance(it.ctx, ast.Load):
                yield it.value.id


def _read(node: ast.AST) -> Iterator[str]:
    names = (it for it in ast.walk(node) if isinstance(it, ast.Name))
    return (it.id for it in names if isinstance(it.ctx, ast.Load))
