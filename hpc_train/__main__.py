"""`python -m hpc_train`."""

from hpc_train.cli.entry import main

main()
