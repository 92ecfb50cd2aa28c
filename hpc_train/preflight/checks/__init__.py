"""What is wrong with a node, judged from what was seen: pure."""
