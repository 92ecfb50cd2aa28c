"""The doors into a run: submitit on Slurm, submitit locally, the foreground."""
