"""InfiniBand, NCCL and the preflight: pure over an injected root; and the probe on the nodes."""
