"""Inside a rank; the only importers of torch and lightning."""
