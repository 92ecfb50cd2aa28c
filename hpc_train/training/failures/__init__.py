"""What an exception means at the user's line: the cause, the place, and what to write."""
