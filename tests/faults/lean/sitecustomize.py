"""Read by every python of a run of `running.submit`: its ranks find no scipy.

As where hpc-train is installed without its examples. Where scipy is there, torchmetrics imports
half of it, which is a fifth of a rank's start; and these tests start hundreds of ranks.
"""

from __future__ import annotations

import sys

if "hpc_train.training" in sys.orig_argv:
    import importlib.metadata as metadata

    version = metadata.version

    def of_the_others(name: str) -> str:
        if name == "scipy":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    metadata.version = of_the_others
    sys.modules["scipy"] = None  # type: ignore[assignment] # importing it fails from now on
