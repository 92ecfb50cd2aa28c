"""The last sample of a batch in the place of the last time step of a recurrent layer.

Without batch_first torch's recurrent layers give [time, batch, features] (torch.nn.LSTM), so that
`out[:, -1]` is the last sample at each time. Nothing fails, and samples are learned as time steps.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from hpc_train.config.python_text.method_signatures import methods_of

_RECURRENT = ("LSTM", "GRU", "RNN")
_BATCH_FIRST = 4  # its place among the arguments
# With one of these the text does not tell which dimension is which.
_TURNS = re.compile(
    r"\.(?:transpose|permute|swapaxes|swapdims|movedim|moveaxis|t|mT|T)\b"
    r"|rearrange|einsum|pack_padded|pad_packed|batch_first"
)


def last_sample_notes(
    definition: ast.ClassDef, name: str, place: Callable[[int], str]
) -> Iterator[str]:
    """A line for each place of a class that takes the last sample for the last time step.

    Args:
        name: The class, as it is told.
        place: `file:line` of a line of its text.
    """
    for line, taken, made_in, write in _last_samples(definition):
        said = f"{name} takes {taken} ({place(line)}), which has the batch in that dimension"
        yield f"{said}: the last sample at each time step; write {write} ({place(made_in)})"


def _last_samples(definition: ast.ClassDef) -> Iterator[tuple[int, str, int, str]]:
    """Of a class: the line and what is taken there, the line of the layer, and what to write."""
    methods = methods_of(definition)
    init = methods.get("__init__")
    if init is None or _TURNS.search(ast.unparse(definition)):
        return
    layers = dict(_layers(init))
    for method in (it for it in methods.values() if it is not init):
        outputs = dict(_outputs(method, layers))
        for node in ast.walk(method):
            if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
                continue
            if node.value.id in outputs and _is_last(node.slice):
                line, made = layers[outputs[node.value.id]]
                taken = f"{ast.unparse(node)} of {outputs[node.value.id]}"
                yield node.lineno, taken, line, f"{made[:-1]}, batch_first=True)"


def _layers(init: ast.FunctionDef) -> Iterator[tuple[str, tuple[int, str]]]:
    """`self.lstm`, the line that makes it, and how."""
    for node in ast.walk(init):
        call = node.value if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not isinstance(call, ast.Call):
            continue
        is_layer = ast.unparse(call.func).rpartition(".")[2] in _RECURRENT
        is_plain = len(call.args) <= _BATCH_FIRST and all(it.arg for it in call.keywords)
        target = ast.unparse(node.targets[0])
        if is_layer and is_plain and len(node.targets) == 1 and target.startswith("self."):
            yield target, (node.lineno, ast.unparse(call))


def _outputs(
    method: ast.FunctionDef, layers: dict[str, tuple[int, str]]
) -> Iterator[tuple[str, str]]:
    """The names of what such a layer gives first, each assigned once."""
    assigned = [it for it in ast.walk(method) if isinstance(it, ast.Name)]
    for node in ast.walk(method):
        call = node.value if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not isinstance(call, ast.Call):
            continue
        target, layer = node.targets[0], ast.unparse(call.func)
        first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else None
        if layer not in layers or not isinstance(first, ast.Name):
            continue
        stores = [it for it in assigned if it.id == first.id and isinstance(it.ctx, ast.Store)]
        if len(stores) == 1:
            yield first.id, layer


def _is_last(index: ast.expr) -> bool:
    """Whether it is `[:, -1]`, or `[:, -1, :]`."""
    parts = index.elts if isinstance(index, ast.Tuple) else []
    if len(parts) < 2 or not all(_is_whole(it) for it in (parts[0], *parts[2:])):
        return False
    return ast.unparse(parts[1]) == "-1"


def _is_whole(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and not (part.lower or part.upper or part.step)
