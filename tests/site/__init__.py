"""How `make docs` builds the site: pages from the README and the code, beside those of docs/."""
