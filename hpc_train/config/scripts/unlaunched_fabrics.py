"""A Fabric of several ranks whose `launch()` nothing calls: its `setup` raises.

"To use Fabric with more than one device, you must call .launch()" (lightning/fabric/fabric.py,
_validate_launched).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from hpc_train.config.python_text.script_tree import name_given_to, words_in
from hpc_train.config.scripts.ranks_apart import Apart, is_known
from hpc_train.config.scripts.script_call_arguments import sure_calls
from hpc_train.config.scripts.script_starts import MOST_MODULES, own_files
from hpc_train.config.scripts.script_trainers import made_fabrics

_SET_UP = frozenset({"setup", "setup_module", "setup_optimizers", "setup_dataloaders"})


def unlaunched_fabric(
    tree: ast.Module, file: Path, search_path: Sequence[str], *, ranks: int
) -> Apart | None:
    """None where something may call it, or one rank needs none.

    Args:
        tree: The script.
        file: The script's.
        search_path: As `sys.path`, with the script's folder first.
        ranks: How many run it.
    """
    made = next(made_fabrics(tree), None)
    if made is None or ranks < 2:
        return None
    texts = [tree, *(it for _, it in own_files(tree, file, search_path, also_inner=True))]
    words = {word for it in texts for word in words_in(it)}
    if not words & _SET_UP or any("launch" in it.lower() for it in words):
        return None
    if len(texts) >= MOST_MODULES or "getattr" in words:
        return None
    knows_all = all(is_known(it, search_path[0]) for it in texts)
    name = name_given_to(made, tree) or "fabric"
    said = f"makes a Fabric, and nothing calls its launch(): with {ranks} ranks its setup raises"
    is_sure = knows_all and any(it is made for it in sure_calls(tree))
    return Apart(made.lineno, said, f"write {name}.launch() behind that line", is_sure)
