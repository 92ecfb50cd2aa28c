"""Words that may share samples, and that a text has only for its layers and for texts.

`stride` of a convolution, `chunk` of an attention's heads, `split` of an option's text or of the
name of a data set's part.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from hpc_train.config.python_text.script_tree import words_of

_OF_BOTH = frozenset({"stride", "strides", "chunk", "chunks", "split", "splits", "partition"})
_BASES = ("Module", "Sequential", "ModuleList")  # of torch.nn
_LAYERS = ("Conv", "MaxPool", "AvgPool", "AdaptiveAvgPool", "Linear", "BatchNorm", "Unfold")
_LAYER_FUNCTIONS = ("max_pool2d", "avg_pool2d", "conv2d", "conv1d", "unfold", "interpolate")
_OF_DATA = {"DataLoader", "Dataset", "Subset", "init_process_group", "get_world_size"}
_OF_TEXTS = ("split", "rsplit", "splitlines", "partition", "rpartition", "splitext")


def words_of_layers(texts: Sequence[ast.Module]) -> set[str]:
    """Those of these words that no text has for anything else."""
    others: set[str] = set()
    for text in texts:
        others |= words_of(_others(text))
    return {*_OF_BOTH, *_OF_TEXTS} - others


def _others(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a text that stand in no layer's class, function or call, and in no text's."""
    yield node
    for child in _children(node):
        if not _is_of_layers(child):
            yield from _others(child)


def _children(node: ast.AST) -> Iterable[ast.AST]:
    if not isinstance(node, ast.Call):
        return ast.iter_child_nodes(node)
    kept = [it for it in node.keywords if not _names_a_part(it)]
    if _makes_layer(node):
        kept = [it for it in kept if it.arg not in _OF_BOTH]
    called = node.func
    if isinstance(called, ast.Attribute) and called.attr in _OF_TEXTS and _cuts_text(node):
        return [called.value, *node.args, *kept]
    return [called, *node.args, *kept]


def _names_a_part(word: ast.keyword) -> bool:
    """`split="train"` of a data set: a name, and no slice of it (`train[:50%]`)."""
    value = word.value
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return word.arg == "split" and is_text and "[" not in ast.unparse(value)


def _cuts_text(call: ast.Call) -> bool:
    """`words.split()`, `words.split(",")` and `os.path.splitext(name)`."""
    if ast.unparse(call.func).endswith("path.splitext"):
        return True
    first = call.args[0] if call.args else None
    return first is None or (isinstance(first, ast.Constant) and isinstance(first.value, str))


def _is_of_layers(node: ast.AST) -> bool:
    if isinstance(node, ast.ClassDef):
        bases = (ast.unparse(it).rpartition(".")[2] for it in node.bases)
        return any(it in _BASES for it in bases)
    if isinstance(node, ast.FunctionDef):
        calls = [it for it in ast.walk(node) if isinstance(it, ast.Call)]
        return any(map(_makes_layer, calls)) and not words_of(ast.walk(node)) & _OF_DATA
    return False


def _makes_layer(call: ast.Call) -> bool:
    name = ast.unparse(call.func).rpartition(".")[2]
    return name.startswith(_LAYERS) or name in _LAYER_FUNCTIONS
