"""Which folders a config's PYTHONPATH adds, and whose modules are the user's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.config.python_text.modules import (
    FoundModule,
    NeededImport,
    find_module,
    read_names,
    submodules,
)
from hpc_train.config.schema import EnvConfig

_CHANGES_PATH = re.compile(rb"sys\.path|from sys import|pythonpath|site\.add|chdir", re.IGNORECASE)


def folders_of_variable(env: EnvConfig, workdir: Path) -> list[str]:
    """Those of `env.variables.PYTHONPATH`, as far as they are known here."""
    named = env.variables.get("PYTHONPATH", "").split(":")
    return [str(workdir / folder) for folder in named if folder and "$" not in folder]


def is_own(file: Path | None, *folders: str) -> bool:
    """Whether it is the user's code, and no package installed into a venv of such a folder."""
    if file is None or "site-packages" in file.parts:
        return False
    return any(file.is_relative_to(it) for it in folders)


def is_own_module(found: FoundModule, *folders: str) -> bool:
    """The same of a module, which may be a folder without __init__.py."""
    files = [found.file] if found.file else [Path(it) for it in found.search]
    return bool(files) and all(is_own(it, *folders) for it in files)


def changed_path(file: Path) -> int:
    """The first line that may change where modules are found; 0 where none does."""
    try:
        text = file.read_bytes()
    except OSError:
        return 0
    found = _CHANGES_PATH.search(text)
    return text.count(b"\n", 0, found.start()) + 1 if found else 0


def modules_run(
    needed: NeededImport, dotted: str, search_path: Sequence[str]
) -> Iterator[FoundModule]:
    """All that an import runs: the packages that it is in, the module, and parts named from it.

    `from package import part` imports the module `package.part` where the package has no such name
    (Python's reference, "The import statement").
    """
    words = dotted.split(".")
    found: FoundModule | None = None
    for count in range(1, len(words) + 1):
        found, rest = find_module(".".join(words[:count]), search_path)
        if found is None or rest:
            return
        yield found
    if found is None or not found.search:
        return
    names = read_names(found.file) if found.file else None
    if names is not None and names.is_opaque:
        return
    bound = names.bound if names else ()
    for name in needed.names:
        if name not in bound and name in submodules(found.search):
            part, rest = find_module(f"{dotted}.{name}", search_path)
            if part is not None and not rest:
                yield part
