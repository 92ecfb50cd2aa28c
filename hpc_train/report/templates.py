"""Pages of HTML are made from templates: whatever stands in them is escaped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template


def html_template(file: Path, **filters: Callable[..., Any]) -> Template:
    """Load a template; a name in it that is not given is an error."""
    environment = Environment(
        loader=FileSystemLoader(file.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    return environment.get_template(file.name)
