"""Steps over ssh, where there is no scheduler: what srun is on Slurm."""
