"""Gets a PyTorch Lightning training through a Slurm cluster, to the end, with the right result."""

__version__ = "0.1.0"
