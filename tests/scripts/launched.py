"""What a cluster's wiki has: one process a node that calls accelerate's launcher."""

import subprocess
import sys

own = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_machines", "1"]
own += ["--num_processes", "2", "--mixed_precision", "no", "--dynamo_backend", "no"]
sys.exit(subprocess.call([*own, "hugging_face.py", *sys.argv[1:]]))
