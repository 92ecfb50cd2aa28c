"""`self.log(loss, "train_loss")`: the value in the place of the name.

"log(name, value, ...)": the value is a number, a tensor or a metric (Lightning's manual,
LightningModule.log); of a text it says ""str" values cannot be logged".
"""

from __future__ import annotations

import ast

from hpc_train.config.python_text.method_signatures import methods_of


def swapped_log(definition: ast.ClassDef) -> tuple[int, str, str] | None:
    """The line of such a call of a model's, what is wrong with it, and what to write."""
    if "log" in methods_of(definition):
        return None  # its own
    for call in ast.walk(definition):
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != "self.log":
            continue
        if len(call.args) < 2 or any(isinstance(it, ast.Starred) for it in call.args):
            continue
        value, name = call.args[:2]
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            continue
        said = f"logs the text {ast.unparse(name)}, and the name comes first"
        if isinstance(value, ast.Constant | ast.JoinedStr):
            return call.lineno, said, "write self.log(NAME, VALUE), with a number for VALUE"
        rest = [ast.unparse(it) for it in (*call.args[2:], *call.keywords)]
        written = ", ".join([ast.unparse(name), ast.unparse(value), *rest])
        return call.lineno, said, f"write self.log({written})"
    return None
