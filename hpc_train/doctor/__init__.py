"""`hpc-train doctor`: what a machine, a cluster and a folder of runs allow, each with the fix."""
