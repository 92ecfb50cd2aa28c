"""Names of the environment variables by which the supervisor hands an attempt to its ranks.

A rank needs these, SLURM_* or torchrun's variables (see `World.from_env`), and nothing else.
"""

from __future__ import annotations

RUN_DIR = "HPC_TRAIN_RUN_DIR"  # absolute path of the run directory
ATTEMPT = "HPC_TRAIN_ATTEMPT"  # number of the attempt, counted from 0
MASTER_ADDR = "MASTER_ADDR"  # host name or address of global rank 0's node
MASTER_PORT = "MASTER_PORT"  # a port that was free there
SCRIPT_RESUME = "HPC_TRAIN_SCRIPT_RESUME"  # of a script: `supervisor.script_resume.Resume` as JSON
RANK_LOG_DIR = "HPC_TRAIN_RANK_LOG_DIR"  # set where the launcher does not split logs: the rank does
SCRIPT_NODE = "HPC_TRAIN_SCRIPT_NODE"  # script.launcher=none: number of the node, from 0
SCRIPT_PORT = "HPC_TRAIN_SCRIPT_PORT"  # and MASTER_PORT, as it was set for the script
JOIN_DIR = "HPC_TRAIN_JOIN_DIR"  # where machines that were joined by hand wait (ssh/join.py)
JOIN_MASTER = "HPC_TRAIN_JOIN_MASTER"  # HOST:PORT for the ranks' rendezvous, as it was typed
GPUS_HERE = "HPC_TRAIN_GPUS_HERE"  # of a machine with simulated nodes: how many may be used there
FAULTS = "HPC_TRAIN_FAULTS"  # tests only: faults to inject into a rank, see training/faults.py
