"""Models and data that run everywhere, named by the files in configs/."""
