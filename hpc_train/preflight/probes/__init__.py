"""The programs on the nodes: rendezvous, tests in pairs, one verdict."""
