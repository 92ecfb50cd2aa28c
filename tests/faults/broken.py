"""A user's module that cannot be imported."""

from __future__ import annotations

raise RuntimeError("this module was never meant to be imported")


class Model:
    """Never reached."""
