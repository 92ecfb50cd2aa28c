"""`python -m hpc_train.cli`."""

from hpc_train.cli.entry import main

main()
