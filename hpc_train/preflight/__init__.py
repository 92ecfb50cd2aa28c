"""The preflight: what the nodes have, which network the ranks use, what is wrong, go or no-go."""
