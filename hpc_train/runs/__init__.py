"""The run directory: names, atomic writes, events, status; knows no Slurm and no torch."""
