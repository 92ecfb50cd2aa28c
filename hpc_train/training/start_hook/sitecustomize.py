"""Python runs this as it starts a process of a script (site(1)): see `training.script_process`."""  # noqa: INP001 - found by PYTHONPATH, which names this folder

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

_HERE = os.path.dirname(__file__)  # noqa: PTH120 - nothing is imported that a script may not need
sys.path[:] = [folder for folder in sys.path if folder != _HERE]
_others = PathFinder.find_spec("sitecustomize", sys.path)
if _others is not None and _others.loader is not None:  # the site's own
    sys.modules["sitecustomize"] = module_from_spec(_others)
    _others.loader.exec_module(sys.modules["sitecustomize"])
if find_spec("hpc_train") is not None:  # else of another Python than the ranks': it runs as it is
    from hpc_train.training.scripts.script_process import follow_child

    follow_child(os.environ)
