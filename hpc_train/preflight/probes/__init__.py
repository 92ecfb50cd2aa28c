"""The programs on the nodes: they meet, test pairs and leave one verdict."""
