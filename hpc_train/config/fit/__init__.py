"""What a fit surely refuses, or a person should know of it, by the text of the config's classes."""
