"""Which interface and which HCAs the ranks use, and why: NCCL's and gloo's variables. Pure."""
