"""What will happen, as pure data: shape, Slurm options, environment, commands, policies."""
