"""Changes modules that a script imports, as soon as they have been executed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Change = Callable[[ModuleType], None]


class _AfterImport(MetaPathFinder):
    """Finds modules as ever, and is there once they have been executed."""

    def __init__(self, changes: Mapping[str, Change]) -> None:
        self._changes = changes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for all other modules."""
        if fullname not in self._changes:
            return None
        others: list[Any] = [finder for finder in sys.meta_path if finder is not self]
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec: ModuleSpec | None = next((spec for spec in found if spec is not None), None)
        loader: Any = spec.loader if spec is not None else None
        if loader is not None:
            execute = loader.exec_module

            def execute_and_change(module: ModuleType) -> None:
                execute(module)
                self._changes[fullname](module)

            loader.exec_module = execute_and_change
        return spec


def after_import(changes: Mapping[str, Change]) -> None:
    """Change these modules, by name, when they are imported, or now where they have been."""
    sys.meta_path.insert(0, _AfterImport(changes))
    for name, change in changes.items():
        if name in sys.modules:
            change(sys.modules[name])


def hold_hydra_clock(time_s: float) -> None:
    """Let Hydra's `${now:...}` be one time, so that each rank and each attempt has one folder.

    Hydra registers it in `hydra.core.utils.setup_globals` (1.0 to 1.3).

    Args:
        time_s: Seconds since the epoch.
    """
    when = datetime.fromtimestamp(time_s, tz=timezone.utc).astimezone()

    def held(pattern: str) -> str:
        return when.strftime(pattern)

    def hold(module: Any) -> None:
        setup = module.setup_globals

        def setup_and_hold() -> None:
            setup()
            omegaconf = module.OmegaConf
            register = getattr(omegaconf, "register_resolver", omegaconf.register_new_resolver)
            register("now", held, replace=True)

        module.setup_globals = setup_and_hold

    after_import({"hydra.core.utils": hold})
