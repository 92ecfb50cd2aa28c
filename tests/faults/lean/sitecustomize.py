"""Read by every python of a run of `running.submit`: its ranks find neither scipy nor a compiler.

These tests start hundreds of ranks. Where scipy is there, torchmetrics imports half of it: a fifth
of a rank's start. Lightning, every optimizer and `reproducible` import torch's compiler, which
these trainings do not use: a quarter. The tests of other folders start ranks with both.
"""

from __future__ import annotations

import sys

if "hpc_train.training" in sys.orig_argv:
    import importlib.abc
    import importlib.machinery
    import importlib.metadata as metadata
    from importlib import import_module

    version = metadata.version

    def of_the_others(name: str) -> str:
        if name == "scipy":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    metadata.version = of_the_others
    sys.modules["scipy"] = None  # type: ignore[assignment] # importing it fails from now on

    def nothing(*_args, **_options):
        return None

    compiler = {
        "torch._dynamo": {
            "OptimizedModule": type("OptimizedModule", (), {}),
            "disable": lambda fn, *_args, **_options: fn,
            "graph_break": nothing,
        },
        "torch._dynamo.trace_rules": {"clear_lru_cache": nothing},
        "torch._dynamo.utils": {"get_optimize_ddp_mode": lambda: "ddp_optimizer"},
        "torch._inductor": {},
        "torch._inductor.config": {},
    }

    class NoCompiler(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        """What Lightning, optimizers and DDP ask of the compiler; any other name is an error."""

        def find_spec(self, name, path=None, target=None):
            if name not in compiler:
                return None
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

        def exec_module(self, module):
            vars(module).update(compiler[module.__name__])
            for name in compiler:
                if name.rpartition(".")[0] == module.__name__:
                    import_module(name)

    sys.meta_path.insert(0, NoCompiler())
