"""The user's Python, read as text: modules, classes and what they take. Nothing is imported."""
