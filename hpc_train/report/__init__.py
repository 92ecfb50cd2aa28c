"""What a run was worth: goodput, metrics, nodes, asked against used; as text, data and a page."""
