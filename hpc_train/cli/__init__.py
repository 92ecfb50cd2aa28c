"""One file a command, thin over the api; the only printers."""
