"""Going on exactly: order of the samples, states, checkpoints, stops."""
