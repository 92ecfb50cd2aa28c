"""A script in the place of a config's classes: its arguments, its ranks, what it saves."""
