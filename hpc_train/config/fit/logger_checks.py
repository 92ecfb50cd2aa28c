"""What a logger of Lightning's needs on this machine, before anything is submitted."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from hpc_train.config.load import LoadedConfig
from hpc_train.config.meant_words.logger_forms import MLFLOW_REFUSES_FILES, MLFLOW_STORES, PACKAGES
from hpc_train.config.python_text.abstract_methods import lacking
from hpc_train.config.python_text.class_kind import locate, place_of
from hpc_train.config.python_text.distributions import install_here
from hpc_train.config.python_text.modules import find_module
from hpc_train.config.specs import read_object


def check_logger(key: str, spec: dict[str, Any], loaded: LoadedConfig, path: Sequence[str]) -> None:
    """Refuse a logger whose package is not here, or that has nowhere to write.

    Raises:
        ConfigError: with the key, and what to install or to write. Likewise for a logger of the
            user's that lacks methods.
    """
    class_path, _ = read_object(spec, key, loaded.origins)
    found = locate(class_path, path)
    lacks, hint = lacking(found, path)
    if found and found.definition and lacks:
        place = place_of(found, found.definition.lineno, path)
        raise loaded.origins.error(f"{key}.class_path", f": {class_path} ({place}) {lacks}", hint)
    package = PACKAGES.get(class_path.rpartition(".")[2])
    if package and find_module(package, path)[0] is None:
        raise loaded.origins.error(key, f": {package} is not installed", install_here(package))
    _check_mlflow_store(key, spec, loaded, path)


def _check_mlflow_store(
    key: str, spec: dict[str, Any], loaded: LoadedConfig, path: Sequence[str]
) -> None:
    """Refuse a store of files where MLflow itself would (github.com/mlflow/mlflow/pull/22773)."""
    class_path, arguments = read_object(spec, key, loaded.origins)
    env = loaded.config.env
    told = {*arguments, *env.variables, *env.passthrough, *os.environ}
    if not class_path.endswith(".MLFlowLogger") or env.setup or told & set(MLFLOW_STORES):
        return
    from importlib.metadata import distributions

    names = ("mlflow", "mlflow-skinny")
    found = [it.version for name in names for it in distributions(name=name, path=[*path])]
    numbers = re.match(r"(\d+)\.(\d+)", found[0]) if found else None
    if numbers and tuple(map(int, numbers.groups())) >= MLFLOW_REFUSES_FILES:
        message = f": MLflow {found[0]} writes into no files, and no server is named"
        hint = 'write env: {variables: {MLFLOW_ALLOW_FILE_STORE: "true"}}, or MLFLOW_TRACKING_URI'
        raise loaded.origins.error(key, message, hint)
