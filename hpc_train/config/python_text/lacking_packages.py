"""What to do about a package that is not found: where it lies, another name, or how to get it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from hpc_train.config.python_text.distributions import install, is_well_known
from hpc_train.config.python_text.modules import FoundModule, NeededImport, submodules
from hpc_train.config.python_text.other_lightning import import_there
from hpc_train.config.python_text.own_python import how_to_see
from hpc_train.config.words import did_you_mean

# What projects call their own files; PyPI has packages of other people by most of these names.
_OF_PROJECTS = (
    *("util", "utils", "helper", "helpers", "common", "lib", "src", "core", "tools", "misc"),
    *("config", "configs", "settings", "args", "options", "constants", "train", "trainer"),
    *("data", "dataset", "dataloader", "dataloaders", "data_utils", "datamodule", "transforms"),
    *("model", "models", "module", "modules", "net", "nets", "network", "networks", "layers"),
    *("loss", "losses", "metric", "optim", "callbacks", "engine", "my_utils", "preprocessing"),
)


def _how_to_get(package: str, search_path: Sequence[str]) -> str:
    how = how_to_see(package, search_path)
    how = how or f"{install(package)}, or name the environment that has it: env.conda, env.venv"
    own = elsewhere(package, Path(search_path[0]))
    if own or is_well_known(package):
        return own or how
    there = submodules(search_path)
    # Nobody means cgitb by git.
    meant = [
        name
        for name in there
        if name not in sys.stdlib_module_names or abs(len(name) - len(package)) < 2
    ]
    near = did_you_mean(package, meant, cutoff=0.75)
    return did_you_mean(package, meant, cutoff=0.85) or (f"{near} Else {how}" if near else how)


def how_to_have(needed: NeededImport, importer: FoundModule, search_path: Sequence[str]) -> str:
    """How to write an import of what lies in the project; else how to get it."""
    package = needed.module.partition(".")[0]
    folder = Path(search_path[0])
    beside = importer.file.parent if importer.file else folder
    roots = [it for it in beside.parents if it != folder and it.is_relative_to(folder)]
    below = [beside, *roots, *sorted(path for path in folder.glob("[!._]*") if path.is_dir())]
    for place in below:
        parts = place.relative_to(folder).parts if place.is_relative_to(folder) else ()
        is_there = bool(parts) and package in submodules([str(place)])
        is_there = is_there and (parts != ("src",) or _is_package_src(place))
        if is_there and all(part.isidentifier() for part in parts):
            within = ".".join(parts)
            written = f"from {within} import {package}"
            if needed.names:
                written = f"from {within}.{needed.module} import {', '.join(needed.names)}"
            since = f"write {written}, since it is in the folder {'/'.join(parts)}"
            root = f"; or env.variables.PYTHONPATH={'/'.join(parts)}" if place in roots else ""
            return since + root
    if package in _OF_PROJECTS:  # what is installed under such a name is somebody else's
        own = elsewhere(package, folder)
        return own or f"{package}.py of the project is missing: copy it to {folder}, or correct it"
    other = import_there(needed.module, needed.names, importer.file, search_path)
    return other or _how_to_get(package, search_path)


def fix_of_import(
    module: str, names: tuple[str, ...], importer: Path, search_path: Sequence[str]
) -> str:
    """How to write or get what a file of the user's imports, and what is not there.

    Args:
        module: Dotted; its first name is not found.
        names: From it.
        importer: The file.
        search_path: As `sys.path`, with the user's folder first.
    """
    found = FoundModule(importer.stem, importer, ())
    return how_to_have(NeededImport(module, names, 0), found, search_path)


def elsewhere(package: str, folder: Path) -> str:
    """How to find a package that lies in src of the project, in a folder above, or a notebook."""
    if (folder / f"{package}.ipynb").is_file() and not is_well_known(package):
        makes = f"jupyter nbconvert --to script {package}.ipynb makes {package}.py of all of it"
        return f"{package}.ipynb is a notebook, which no rank imports: put it into a .py ({makes})"
    for place in (it for above in (folder, *folder.parents[:3]) for it in (above, above / "src")):
        if package in submodules([str(place)]) and not _is_package_src(place):
            written = place.name if place == Path.cwd() / "src" else place
            made = any((place.parent / it).exists() for it in ("pyproject.toml", "setup.py"))
            install = f", or pip install -e {place.parent}" if place.name == "src" and made else ""
            return f"it is in {place}: write env.variables.PYTHONPATH={written}{install}"
    return ""


def _is_package_src(place: Path) -> bool:
    return place.name == "src" and (place / "__init__.py").exists()
