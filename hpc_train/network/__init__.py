"""InfiniBand, NCCL and the preflight: pure over an injected root and text, plus the probe on the nodes."""
