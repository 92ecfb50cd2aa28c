"""A user's module that cannot be imported."""

raise RuntimeError("this module was never meant to be imported")
