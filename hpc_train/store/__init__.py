"""The run directory: names, atomic writes, events; knows no Slurm and no torch."""
