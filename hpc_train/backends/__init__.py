"""How a run starts, on Slurm or on this machine; and how it is looked at from outside."""
