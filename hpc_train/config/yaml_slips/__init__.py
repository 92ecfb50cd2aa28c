"""What YAML makes of a file that was typed wrong: where the line is, and what to write."""
