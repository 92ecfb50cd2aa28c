"""`python -m hpc_train.cli`."""

from hpc_train.cli.main import main

main()
