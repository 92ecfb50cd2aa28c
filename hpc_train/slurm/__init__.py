"""The only callers of sbatch, squeue, sacct, scontrol, scancel and srun."""
