"""Side by side with the peers, and how cost grows: `python -m benchmarks [NAME ...]`."""
