"""Keys with several values: a sweep, and what was meant as one."""
