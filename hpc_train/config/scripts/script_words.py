"""Words of its command line that a script surely reads and is not given."""

from __future__ import annotations

import ast
from collections.abc import Collection

# How a fix begins that names the arguments which a script lacks; the command line that was typed
# is put in its place where it is known.
ADD_BEHIND = "add behind --: "
COME_BEHIND = "come behind --: "
FIRST_BEHIND = "write as the first word behind --: "
# Programs that start a script, and are typed in front of it.
STARTERS = ("python", "python3", "torchrun", "accelerate", "deepspeed", "srun", "mpirun", "bash")
_ARGV = "sys.argv"


def untyped_word(call: ast.Call, given: int) -> str:
    """`sys.argv[2]` among a call's own arguments, where fewer words are typed; else empty."""
    for value in (*call.args, *(it.value for it in call.keywords)):
        if isinstance(value, ast.Subscript) and ast.unparse(value.value) == _ARGV:
            index = value.slice.value if isinstance(value.slice, ast.Constant) else 0
            if isinstance(index, int) and index > given:
                return ast.unparse(value)
    return ""


def is_only_read(tree: ast.Module, once: Collection[str]) -> bool:
    """Whether a script does nothing with sys.argv but to read words of it, or to count them."""
    read = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            read.add(id(node.value))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("len", "print"):
            read |= {id(it) for it in node.args}
    every = [it for it in ast.walk(tree) if isinstance(it, ast.Attribute) and it.attr == "argv"]
    return "sys" in once and all(id(it) in read for it in every)
