"""`hpc-train top`: all runs on one live page, on the terminal or in a browser."""
