"""One attempt of a run: preflight, launch, watch, outcome, what follows."""
